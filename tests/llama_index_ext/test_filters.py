"""The guard reads the filters of whatever stands between a component and an index, or refuses."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core import Document, MockEmbedding, StorageContext, VectorStoreIndex
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
)

from drillrank.errors import DrillrankWarning
from llama_index_ext._filters import NodeFilter
from tests.conformance.text_store import TextStore
from tests.examples import examples
from tests.llama_index_ext.filter_cases import ALL, INDEX, node, retriever, seen, where


def test_what_a_search_is_told_beside_its_filter_is_none():
    assert len(seen(retriever(vector_store_kwargs={"mmr_threshold": 0.5}))) == 4


def test_a_whole_document_is_known_by_its_own_id():
    whole: list[BaseNode] = [Document(text="x", id_="mine"), Document(text="x", id_="theirs")]
    for source, own in (
        (retriever(doc_ids=["mine"]), None),
        (None, where(doc_id="mine")),
        (None, where(ref_doc_id="mine")),
    ):
        assert [found.node_id for found in NodeFilter(own, source).filter_fetched(whole)] == ["mine"]


@pytest.mark.parametrize("key", ["doc_id", "document_id", "ref_doc_id"])
def test_these_keys_mean_the_document_as_in_stores_whatever_users_wrote_there(key: str):
    own = node("1", "x", "mine", **{key: "theirs"})
    index = VectorStoreIndex([own], embed_model=MockEmbedding(embed_dim=4))
    for document, found in (("mine", 1), ("theirs", 0)):
        filters = where(**{key: document})
        assert (
            len(NodeFilter(filters).filter_results([own]))
            == len(index.as_retriever(filters=filters).retrieve("q"))
            == found
        )


single = st.one_of(
    st.builds(
        MetadataFilter,
        key=st.sampled_from(["tenant", "doc_id"]),
        value=st.sampled_from(["a", "b"]),
        operator=st.sampled_from([FilterOperator.EQ, FilterOperator.NE, FilterOperator.TEXT_MATCH]),
    ),
    st.builds(
        MetadataFilter,
        key=st.just("level"),
        value=st.integers(0, 2),
        operator=st.sampled_from([FilterOperator.EQ, FilterOperator.NE, FilterOperator.GT, FilterOperator.LTE]),
    ),
    st.builds(
        MetadataFilter,
        key=st.sampled_from(["tenant", "doc_id"]),
        value=st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=2),
        operator=st.sampled_from([FilterOperator.IN, FilterOperator.NIN]),
    ),
    st.builds(
        MetadataFilter,
        key=st.sampled_from(["tags", "absent"]),
        value=st.none(),
        operator=st.just(FilterOperator.IS_EMPTY),
    ),
    st.builds(
        MetadataFilter,
        key=st.just("tags"),
        value=st.sampled_from(["x", "y"]),
        operator=st.just(FilterOperator.CONTAINS),
    ),
    st.builds(
        MetadataFilter,
        key=st.just("tags"),
        value=st.lists(st.sampled_from(["x", "y"]), min_size=1, max_size=2),
        operator=st.sampled_from([FilterOperator.ANY, FilterOperator.ALL]),
    ),
)
flat = st.builds(
    MetadataFilters,
    filters=st.lists(single, min_size=1, max_size=3),
    condition=st.sampled_from([None, *FilterCondition]),
)
complete = st.fixed_dictionaries(
    {
        "tenant": st.sampled_from(["a", "b"]),
        "level": st.integers(0, 2),
        "tags": st.lists(st.sampled_from(["x", "y"]), max_size=2),
    }
)


@settings(max_examples=examples(150))
@given(st.lists(complete, min_size=1, max_size=4), flat)
def test_the_guard_says_what_the_hosts_store_says_where_records_say_all(held: list[dict], filters: MetadataFilters):
    nodes: list[BaseNode] = [node(str(i), "x", "ab"[i % 2], **values) for i, values in enumerate(held)]
    index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=4))
    query = VectorStoreQuery(query_embedding=[0.5] * 4, similarity_top_k=9, filters=filters)
    assert {found.node_id for found in NodeFilter(filters).filter_results(nodes)} == set(
        index.vector_store.query(query).ids or []
    )


@settings(max_examples=examples(100))
@given(st.lists(st.dictionaries(st.sampled_from(["tenant", "level"]), st.sampled_from(["a", 1])), max_size=4), flat)
def test_where_records_do_not_say_the_guard_lets_no_more_through(held: list[dict], filters: MetadataFilters):
    nodes: list[BaseNode] = [node(str(i), "x", **values) for i, values in enumerate(held)]
    index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=4))
    query = VectorStoreQuery(query_embedding=[0.5] * 4, similarity_top_k=9, filters=filters)
    kept = {found.node_id for found in NodeFilter(filters).filter_results(nodes)}
    try:
        found = index.vector_store.query(query).ids or []
    except TypeError:  # the host compares what cannot be compared
        return
    if filters.condition != FilterCondition.NOT:
        assert kept <= set(found)
    inherited = NodeFilter(None, index.as_retriever(filters=filters))
    assert {record.node_id for record in inherited.filter_fetched(nodes)} == set(found)


def test_nodes_without_the_key_of_what_is_denied_are_hidden_aloud_where_stores_differ():
    index = VectorStoreIndex(
        ALL, embed_model=MockEmbedding(4), storage_context=StorageContext.from_defaults(vector_store=TextStore())
    )
    denied = MetadataFilters(filters=[MetadataFilter(key="tenant", value="b", operator=FilterOperator.NE)])
    with pytest.warns(DrillrankWarning, match="without a key of the retriever's filters"):
        assert seen(index.as_retriever(filters=denied)) == ["1", "3"]
    assert seen(index.as_retriever(filters=denied)) == ["1", "3"]  # and says it no more
    assert seen(INDEX.as_retriever(filters=denied)) == ["1", "3", "4"]


class SqlStore:
    """As the framework's store of PostgreSQL, which writes values into SQL."""

    __module__ = "llama_index.vector_stores.postgres.base"


def test_quotes_and_colons_of_values_are_escaped_for_a_store_that_writes_sql():
    tenant = MetadataFilter(key="tenant", value="O'Neill: a")
    year = MetadataFilter(key="year", value=2020)
    mine = NodeFilter(MetadataFilters(filters=[tenant, MetadataFilters(filters=[tenant, year])]))
    where = {"ref_doc_id": "12", "drillrank_section_id": ("a'; DROP TABLE records; --", "b")}
    document, section, own, inner = mine.as_store_filters(where, SqlStore()).filters
    assert (document.operator, document.value) == (FilterOperator.IN, ["12"])  # compared as text
    assert section.value == ["a''; DROP TABLE records; --", "b"]
    assert own.value == inner.filters[0].value == "O''Neill\\: a"
    assert inner.filters[1].value == 2020
    assert tenant.value == "O'Neill: a"


def test_values_for_other_stores_are_not_escaped():
    [one] = NodeFilter(None).as_lookup_filters({"ref_doc_id": "O'Neill"}).filters
    assert (one.operator, one.value) == (FilterOperator.EQ, "O'Neill")
