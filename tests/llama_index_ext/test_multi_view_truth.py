"""What MultiViewRetriever returns is what the index holds when it is asked, under one filter, whoever filled it."""

from __future__ import annotations

import asyncio
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core import Document, StorageContext, VectorStoreIndex
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import IndexNode, TransformComponent
from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

from drillrank.errors import DrillrankWarning, InvalidInput
from llama_index_ext import MultiViewNodeParser, MultiViewRetriever
from tests.conformance.corpus import BOOK, QUESTION
from tests.conformance.hosts import Nodes, WordEmbedding
from tests.conformance.text_store import TextStore

VIEWS = ("raw", "keywords", "summary")


class CountedEmbedding(WordEmbedding):
    """Counts the questions."""

    questions: int = 0

    def _get_query_embedding(self, query):
        self.questions += 1
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query):
        return self._get_query_embedding(query)


def nodes(text=BOOK, id_="book", **metadata):
    key = "tenant" if "tenant" in metadata else None
    return MultiViewNodeParser(namespace_key=key)([Document(text=text, id_=id_, metadata=metadata)])


class Held:
    """An index, over vectors with a document store or over a store of texts, and what it holds."""

    def __init__(self, kind, found):
        self.kind = kind
        self.embedding = CountedEmbedding()
        self.texts = TextStore(nested=True)
        storage = StorageContext.from_defaults(vector_store=self.texts) if kind == "texts" else None
        self.index = VectorStoreIndex(found, embed_model=self.embedding, storage_context=storage)

    def nodes(self):
        if self.kind == "texts":
            return self.texts.held()
        return {id_: self.index.docstore.docs[id_] for id_ in self.index.vector_store.data.embedding_dict}

    def change(self, node):
        if self.kind == "texts":
            self.texts.change(node)
        else:
            self.index.docstore.add_documents([node])

    def delete(self, id_):
        if self.kind == "texts":
            self.texts.delete_nodes([id_])
        else:
            self.index.delete_nodes([id_])

    def sources(self):
        return self.index, self.index.as_retriever(similarity_top_k=40)


kinds = pytest.mark.parametrize("kind", ["vectors", "texts"])


def asked(retriever, question=QUESTION):
    """The same sync and async, warnings included."""
    outcomes, told = [], []
    for ask in (retriever.retrieve, lambda question: asyncio.run(retriever.aretrieve(question))):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            outcomes.append(ask(question))
        told.append([str(warning.message) for warning in caught if warning.category is DrillrankWarning])
    assert [(hit.score, hit.node.to_dict()) for hit in outcomes[0]] == [
        (hit.score, hit.node.to_dict()) for hit in outcomes[1]
    ]
    assert {*told[1]} <= {*told[0]}  # some things are told once
    return [hit.node for hit in outcomes[0]], told[0]


def texts(found):
    return [node.text for node in found]


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_every_result_s_text_is_what_the_index_holds_at_that_moment(data):
    made = nodes()
    held = Held(data.draw(st.sampled_from(["vectors", "texts"])), made)
    beside = data.draw(st.sampled_from([[], made]))
    source = data.draw(st.sampled_from(held.sources()))
    expand = data.draw(st.sampled_from([None, "neighbours", "parent"]))
    retriever = MultiViewRetriever(beside, source=source, top_n=3, expand=expand)
    for step in range(3):
        id_ = data.draw(st.sampled_from(made)).node_id
        change = data.draw(st.sampled_from(["redact", "delete", "retag"]))
        node = held.nodes().get(id_)
        if node is not None and change == "delete":
            held.delete(id_)
        elif node is not None:
            update = (
                {"text": f"Redacted {step}."} if change == "redact" else {"metadata": {**node.metadata, "tag": "x"}}
            )
            held.change(node.model_copy(update=update))
        found, _ = asked(retriever)
        for hit in found:
            now = held.nodes()[hit.node_id]
            assert hit.text == now.text
            assert hit.metadata.items() >= now.metadata.items()
            assert now.metadata["drillrank_view"] == "raw"


class Redact(TransformComponent):
    """A later step of the pipeline, which sees raw nodes only."""

    def __call__(self, nodes, **keywords):
        return [
            node
            if isinstance(node, IndexNode)
            else node.model_copy(update={"text": node.text.replace("Cologne", "[...]")})
            for node in nodes
        ]


@kinds
def test_what_a_later_step_of_the_pipeline_redacts_does_not_come_back(kind):
    made = IngestionPipeline(transformations=[Redact()]).run(nodes=nodes())
    held = Held(kind, made)
    for source in held.sources():
        found, _ = asked(MultiViewRetriever(source=source, top_n=9))
        assert any("[...]" in text for text in texts(found))
        assert not any("Cologne" in str(node.to_dict()) for node in found)


@kinds
def test_a_section_whose_raw_node_is_deleted_is_left_out_and_told(kind):
    made = nodes()
    gone = next(node for node in made if "flows through Basel" in node.text)
    held = Held(kind, made)
    held.delete(gone.node_id)
    for source in held.sources():
        found, told = asked(MultiViewRetriever(made, source=source, top_n=9))
        assert len(found) == sum(not isinstance(node, IndexNode) for node in made) - 1
        assert gone.text not in texts(found)
        assert "no longer in the store" in "".join(told)


@kinds
def test_stale_nodes_give_way(kind):
    held = Held(kind, nodes(BOOK.replace("Basel and Cologne", "Basel and Strasbourg")))
    found, told = asked(MultiViewRetriever(nodes(), source=held.index, expand="neighbours"))
    assert set(texts(found)) <= {node.text for node in held.nodes().values()}
    assert told == []


def test_nodes_stand_in_where_no_index_can_be_asked_unless_they_differ():
    made = nodes(version=1)
    keywords = [node for node in made if node.metadata["drillrank_view"] == "keywords"]
    source = {"keywords": Nodes(keywords)}
    found, told = asked(MultiViewRetriever(made, source=source, top_n=9))
    assert {node.node_id for node in found} == {node.index_id for node in keywords}
    assert told == []
    found, told = asked(MultiViewRetriever(nodes(version=2), source=source, top_n=9))
    assert found == []
    assert len(told) == 1


@kinds
def test_one_embedding_three_searches_and_one_look_up(kind):
    held = Held(kind, nodes())
    for expand, look_ups in ((None, 1), ("neighbours", 2)):
        held.texts.asked.clear()
        held.embedding.questions = 0
        MultiViewRetriever(source=held.index, top_n=2, expand=expand).retrieve(QUESTION)
        assert held.embedding.questions == 1
        if kind == "texts":
            assert held.texts.asked["search"] == 3
            assert held.texts.asked["nodes"] <= look_ups


# Filters


def of_tenant(tenant="a"):
    return MetadataFilter(key="tenant", value=tenant)


FILTERS = [
    MetadataFilters(filters=[of_tenant()]),
    MetadataFilters(filters=[MetadataFilter(key="tenant", value=["a", "c"], operator=FilterOperator.IN)]),
    MetadataFilters(
        filters=[
            MetadataFilter(key="year", value=2000, operator=FilterOperator.GTE),
            MetadataFilters(filters=[of_tenant("z"), of_tenant()], condition=FilterCondition.OR),
        ]
    ),
    lambda node: node.metadata["tenant"] == "a",
]
SECRET = BOOK.replace("Basel and Cologne", "the secret caves")


def two_tenants():
    return [*nodes(tenant="a", year=2020), *nodes(SECRET, tenant="b", year=2020)]


@kinds
@pytest.mark.parametrize("filters", FILTERS)
@pytest.mark.parametrize("how", ["memory", "index", "retriever", "inherited", "by view"])
def test_one_filter_governs_every_look_up(kind, filters, how):
    if kind == "vectors" and filters is FILTERS[2] and how != "memory":
        pytest.skip("SimpleVectorStore takes no filters inside filters, and says so")
    made = two_tenants()
    held = Held(kind, made)
    inherited = MetadataFilters(filters=[of_tenant()]) if callable(filters) else filters

    def of_view(view):
        filters = MetadataFilters(filters=[*inherited.filters, MetadataFilter(key="drillrank_view", value=view)])
        return held.index.as_retriever(similarity_top_k=40, filters=filters)

    where = {
        "memory": lambda: {"documents": made, "filters": filters},
        "index": lambda: {"source": held.index, "filters": filters},
        "retriever": lambda: {"source": held.sources()[1], "filters": filters},
        "inherited": lambda: {"source": held.index.as_retriever(similarity_top_k=40, filters=inherited)},
        "by view": lambda: {"source": {view: of_view(view) for view in VIEWS}, "documents": made},
    }[how]()
    for expand in (None, "neighbours", "parent"):
        found, told = asked(MultiViewRetriever(**where, expand=expand, top_n=9), "Where are the secret caves?")
        assert {node.metadata["tenant"] for node in found} == {"a"}
        assert len(found) == sum(not isinstance(node, IndexNode) for node in made) / 2
        assert not any("secret" in str(node.to_dict()) for node in found)
        assert told == []


def test_two_tenants_with_equal_ids_in_one_index():
    made = two_tenants()
    assert len({node.node_id for node in made}) == len(made)
    assert {node.metadata["drillrank_namespace"] for node in made} == {"a", "b"}
    assert {node.ref_doc_id for node in made} == {"book"}


@kinds
def test_a_hidden_section_is_not_shown_through_its_views_and_nothing_is_said_of_it(kind):
    made = nodes()
    hidden = next(node for node in made if "flows through Basel" in node.text)
    shown = [
        node.model_copy(update={"metadata": {**node.metadata, "open": str(node.node_id != hidden.node_id)}})
        for node in made
    ]
    only_open = MetadataFilters(filters=[MetadataFilter(key="open", value="True")])
    for source in (*Held(kind, shown).sources(), None):
        for expand in (None, "neighbours"):
            retriever = MultiViewRetriever(shown, source=source, filters=only_open, top_n=9, expand=expand)
            found, told = asked(retriever)
            assert hidden.node_id not in {node.node_id for node in found}
            assert found
            assert told == []


@kinds
def test_a_filter_that_shows_nothing_is_told_without_a_name(kind):
    held = Held(kind, two_tenants())
    for filters in (MetadataFilters(filters=[of_tenant("z")]), lambda node: False):
        found, told = asked(MultiViewRetriever(source=held.index, filters=filters))
        assert found == []
        assert len(told) == 1
        assert "filter" in told[0]


def test_what_is_no_filter_is_refused():
    with pytest.raises(InvalidInput, match="filters"):
        MultiViewRetriever(nodes(), filters="tenant")


# Old stores, other parsers' nodes, users' keys


@kinds
def test_nodes_of_another_parser_are_ranked_as_they_are_with_one_warning(kind):
    document = Document(text=BOOK, id_="book", metadata={"view": "of the lake"})
    chunks = SentenceSplitter(chunk_size=40, chunk_overlap=0)([document])
    for source in Held(kind, chunks).sources():
        found, told = asked(MultiViewRetriever(source=source, top_n=1, expand="neighbours"))
        assert "Basel" in found[0].text
        assert len(found) > 1
        assert {node.node_id for node in found} <= {node.node_id for node in chunks}
        assert found[0].metadata["view"] == "of the lake"
        assert len(told) == 1
        assert "did not make" in told[0]


@kinds
def test_users_keys_survive_and_hide_nothing(kind):
    names = ("view", "section_id", "section_path", "context", "matched_views", "expanded_from")
    mine = dict.fromkeys(names, "mine")
    made = nodes(**mine)
    for where in ({"documents": made}, {"source": Held(kind, made).index}):
        found, told = asked(MultiViewRetriever(**where, expand="neighbours", top_n=1))
        assert len(found) == 3
        assert told == []
        for node in found:
            assert mine.items() <= node.metadata.items()
            assert BOOK[node.metadata["drillrank_start"] : node.metadata["drillrank_end"]] == node.text
            assert "drillrank" not in node.get_content(metadata_mode="llm") + node.get_content(metadata_mode="embed")
