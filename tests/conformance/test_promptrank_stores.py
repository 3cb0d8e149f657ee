"""Path search beside a store, in both hosts: what it returns is what the store holds, and nothing that filters hide."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo

import langchain_ext
from drillrank import load_language_model
from drillrank.errors import DrillrankWarning, InvalidInput
from tests.conformance.frameworks import LangChain, LlamaIndex, both_frameworks
from tests.conformance.linked_records import (
    FILM_METADATA,
    FILM_TEXT,
    HOLM_METADATA,
    HOLM_TEXT,
    NAMING,
    QUESTION,
    RECORDS,
    TITLES,
)
from tests.examples import examples

SAYS = ["Yes.\nFollow up: Who directed it?", "Ada Holm", "So the final answer is: Esbjerg"]
each_link = pytest.mark.parametrize(
    ("host", "links"), [(host, link) for host in (LlamaIndex, LangChain) for link in host.links]
)


def film(host, **changes):
    record = host.record(FILM_TEXT, "film", **FILM_METADATA, **changes)
    if host is LlamaIndex:
        record.relationships = {NodeRelationship.NEXT: RelatedNodeInfo(node_id="holm")}
    return record


def holm(host, tenant="a", text=HOLM_TEXT, id="holm", **metadata):
    return host.record(text, id, **{**HOLM_METADATA, "tenant": tenant}, **metadata)


def paths(host, *hits, **fields):
    """A retriever; without a source of its own it has one that brings these hits."""
    return host.ext.PromptRankRetriever(**{"source": host.retriever(*hits), **fields})


def texts(found):
    return sorted(one.text for one in found)


def ids(found):
    return [one.id for one in found]


@each_link
@pytest.mark.parametrize("stored", ["by key", "by vectors"])
async def test_a_linked_text_is_what_the_store_holds_now(host, links, stored):
    if stored == "by vectors" and host is LlamaIndex:
        pytest.skip("LlamaIndex knows nodes by id in document stores")
    store = (host.store if stored == "by key" else host.index)(film(host), holm(host, text="Redacted."))
    given_ones = [film(host), holm(host, text="SECRET")]
    retriever = paths(host, film(host), documents=given_ones, store=store, links=[links])
    with pytest.warns(DrillrankWarning, match="some of the documents given"):
        found = host.retrieve(retriever, QUESTION)
    assert texts(found) == sorted([FILM_TEXT, "Redacted."])
    assert await host.aretrieve(retriever, QUESTION) == found


@both_frameworks
def test_a_hit_wins_over_a_given_record(host):
    new, old = holm(host, text="She grew up in Ribe.", version=2), holm(host, version=1)
    with pytest.warns(DrillrankWarning, match="other texts under the ids"):
        found = host.retrieve(paths(host, film(host), new, documents=[film(host), old]), QUESTION)
    [ours] = [one for one in found if one.id == "holm"]
    assert (ours.text, ours.metadata["version"]) == ("She grew up in Ribe.", 2)
    again = host.retrieve(paths(host, film(host), new, documents=[film(host), new]), QUESTION)
    assert set(ids(again)) == set(ids(found))


@each_link
async def test_the_store_behind_the_retriever_knows_what_is_left(host, links):
    index = host.index(film(host), holm(host))
    first = host.over(index, 1)
    [hit] = host.retrieve(first, QUESTION)
    retriever = paths(host, source=first, documents=[film(host), holm(host)], links=[links], top_n=None)
    expected = ["film", "holm"] if hit.id == "film" else ["holm"]
    assert sorted(ids(host.retrieve(retriever, QUESTION))) == expected
    host.delete(index, "holm")
    assert texts(host.retrieve(retriever, QUESTION)) == [FILM_TEXT]
    assert texts(await host.aretrieve(retriever, QUESTION)) == [FILM_TEXT]
    if host is LangChain:
        index.add_documents([holm(host, text="She grew up in Ribe.")])
        host.delete(index, "film")
        with pytest.warns(DrillrankWarning):
            assert texts(host.retrieve(retriever, QUESTION)) == ["She grew up in Ribe."]


class FilmsOnly(InMemoryVectorStore):
    """Its search finds the film, though it holds more."""

    def similarity_search(self, query, k=4, **options):
        return [found for found in super().similarity_search(query, k=9) if "Pier" in found.page_content]


@both_frameworks
def test_a_store_with_ids_of_its_own_says_so_and_nothing_comes_twice(host):
    documents = [film(host), holm(host)]
    if host is LlamaIndex:
        again = [node.model_copy(update={"id_": f"{node.node_id}-2"}) for node in documents]
        fields, both = {"source": host.retriever(again[0]), "store": host.store(*again)}, host.retriever(*again)
    else:
        stores = [store(DeterministicFakeEmbedding(size=8)) for store in (FilmsOnly, InMemoryVectorStore)]
        for store in stores:
            store.add_documents([document.model_copy(update={"id": None}) for document in documents])
        fields, both = {"source": stores[0].as_retriever()}, stores[1].as_retriever()
    with pytest.warns(DrillrankWarning, match="Pass store=") as caught:
        found = host.retrieve(paths(host, documents=documents, **fields), QUESTION)
    assert len(caught) == 1
    assert texts(found) == [FILM_TEXT]
    found = host.retrieve(paths(host, source=both, documents=documents, links=["titles"], top_n=None), QUESTION)
    assert texts(found) == sorted([FILM_TEXT, HOLM_TEXT])
    named = {one.text: one.id for one in found}
    assert set(named.values()).isdisjoint({"film", "holm"})
    assert f"{named[FILM_TEXT]} > {named[HOLM_TEXT]}" in [one.metadata["drillrank_path"] for one in found]


def test_where_no_store_can_be_asked_the_given_ones_stand():
    class Unasked(InMemoryVectorStore):
        def get_by_ids(self, ids, /):
            raise NotImplementedError

    store = Unasked(DeterministicFakeEmbedding(size=8))
    store.add_documents([film(LangChain)])
    found = LangChain.retrieve(
        paths(LangChain, source=store.as_retriever(), documents=[film(LangChain), holm(LangChain)]), QUESTION
    )
    assert sorted(ids(found)) == ["film", "holm"]
    with pytest.raises(InvalidInput, match="another store"):
        LangChain.retrieve(paths(LangChain, film(LangChain), store=store), QUESTION)


def test_all_that_one_hop_needs_is_fetched_at_once():
    asked = []

    class Counting(InMemoryStore):
        def mget(self, keys):
            asked.append(sorted(keys))
            return super().mget(keys)

    store = Counting()
    others = [Document(f"Port {i}.", id=f"p{i}") for i in range(4)]
    store.mset([(document.id, document) for document in others])
    start = [Document(FILM_TEXT, id=f"f{i}", metadata={"links": [f"p{i}", f"p{i + 2}"]}) for i in range(2)]
    LangChain.retrieve(paths(LangChain, *start, documents=others, store=store), QUESTION)
    assert asked == [["p0", "p1", "p2", "p3"]]


WAYS = {
    "documents": lambda host, hidden: {"documents": [film(host), hidden]},
    "docstore": lambda host, hidden: {"store": host.store(film(host), hidden)},
    "store as docstore": lambda host, hidden: {"store": host.index(film(host), hidden)},
    "hits": lambda host, hidden: {"source": host.retriever(film(host), hidden)},
    "retrieval": lambda host, hidden: {
        "source": host.finds(lambda query: [film(host) if query == QUESTION else hidden]),
        "links": ["retrieval"],
    },
    "docstore and documents of one's own": lambda host, hidden: {
        "documents": [film(host), holm(host)],
        "store": host.store(film(host), hidden),
    },
}


@each_link
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("declared", [True, False], ids=["declared", "a function"])
async def test_nothing_hidden_is_returned_named_or_told(host, links, way, declared):
    if way == "store as docstore" and host is LlamaIndex:
        pytest.skip("LlamaIndex knows nodes by id in document stores")
    hidden = holm(host, "b", "SECRET")
    filters = host.filters(tenant="a") if declared else lambda record: record.metadata.get("tenant") == "a"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fields = {"links": [links], **WAYS[way](host, hidden)}
        retriever = paths(host, film(host), filters=filters, top_n=None, **fields)
        found, heard = host.hear(retriever, QUESTION)
        assert texts(await host.aretrieve(retriever, QUESTION)) == texts(found)
    assert ids(found) == ["film"]
    assert found[0].metadata["drillrank_path"] == "film"
    assert found[0].text == FILM_TEXT
    assert heard
    told = repr([found, heard, [str(warning.message) for warning in caught]])
    assert "SECRET" not in told
    assert "> holm" not in told
    assert "'holm'" not in told.replace(repr(FILM_METADATA)[1:-1], "")


@both_frameworks
@pytest.mark.parametrize("way", ["documents", "docstore"])
def test_the_filters_of_the_source_govern_what_is_linked(host, way):
    hidden = holm(host, "b", "SECRET")
    fields = WAYS[way](host, hidden) | {"source": host.over(host.index(film(host), hidden), tenant="a")}
    assert ids(host.retrieve(paths(host, **fields), QUESTION)) == ["film"]
    if host is LangChain:
        store = host.index(film(host), hidden)
        fields["source"] = store.as_retriever(search_kwargs={"where_document": {"$contains": "Pier"}})
        fields["source"].vectorstore.similarity_search = lambda query, **options: [film(host)]
        with pytest.raises(InvalidInput, match="cannot apply to records that it looks up"):
            host.retrieve(paths(host, **fields), QUESTION)


@both_frameworks
def test_a_reranker_reads_nothing_hidden(host):
    hidden = holm(host, "b", "SECRET")
    for options in ({}, {"store": host.store(hidden)}, {"source": host.retriever(hidden)}):
        reranker = host.ext.PromptRankRerank(filters=host.filters(tenant="a"), links=host.links, top_n=None, **options)
        for records in ([film(host)], [film(host), hidden]):
            assert ids(host.rerank(reranker, QUESTION, *records)) == ["film"]


def test_a_reranker_takes_its_own_documents_out_of_a_store_once():
    documents = [film(LangChain), holm(LangChain)]
    nameless = [document.model_copy(update={"id": None}) for document in documents]
    reranker = langchain_ext.PromptRankRerank(store=LangChain.store(*documents), top_n=None)
    assert texts(LangChain.rerank(reranker, QUESTION, *nameless)) == sorted([FILM_TEXT, HOLM_TEXT])


@both_frameworks
async def test_no_prompt_holds_what_is_hidden(host):
    records, mine = (holm(host, "b", "SECRET"), film(host)), host.filters(tenant="a")
    prompts = []
    component = host.self_ask(host.retriever(*records), host.llm(SAYS, prompts=prompts), filters=mine)
    assert host.answer(component, QUESTION)[1] == [FILM_TEXT]
    assert (await host.aanswer(component, QUESTION))[1] == [FILM_TEXT]
    assert "Pier" in str(prompts)
    assert "SECRET" not in str(prompts)
    merging = host.ext.BRMGRRetriever(host.retriever(*records), host.llm(["x"]), n_generated=1, filters=mine)
    assert texts(host.retrieve(merging, QUESTION)) == sorted([FILM_TEXT, "x"])
    assert texts(await host.aretrieve(merging, QUESTION)) == sorted([FILM_TEXT, "x"])


def records_of(host, records):
    return [host.record(text, id_, **metadata) for id_, text, metadata in records]


@both_frameworks
@pytest.mark.filterwarnings("ignore:PromptRankRetriever. the filter removed all records")
@settings(deadline=None, max_examples=examples(60))
@given(RECORDS, st.integers(0, 4), st.sampled_from(["given", "store"]))
def test_what_is_hidden_might_as_well_not_be_there(host, records, first, where):
    records = records_of(host, records)
    mine = [record for record in records if record.metadata["tenant"] == "a"]
    hits = records[: first + 1]
    common = {"model": load_language_model("unigram").fit(TITLES), "top_n": None, "links": host.links}

    def found(records, hits, **options):
        beside = {"store": host.store(*records)} if where == "store" else {}
        retriever = paths(host, *hits, documents=records, **common, **beside, **options)
        return {one.id: round(one.score, 9) for one in host.retrieve(retriever, NAMING)}

    alone = found(mine, [record for record in hits if record in mine])
    assert found(records, hits, filters=host.filters(tenant="a")) == alone


@both_frameworks
@settings(deadline=None, max_examples=examples(60))
@given(RECORDS, RECORDS, st.integers(0, 3))
def test_every_result_is_what_the_store_holds(host, before, after, first):
    held = {id_: (text, metadata) for id_, text, metadata in after}
    records = records_of(host, after)
    fields = {"documents": records_of(host, before), "store": host.store(*records), "top_n": None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DrillrankWarning)
        retriever = paths(host, *records[: first + 1], filters=host.filters(tenant="a"), **fields)
        found = host.retrieve(retriever, QUESTION)
    for one in found:
        text, metadata = held[one.id]
        assert one.text == text
        assert metadata["tenant"] == "a"
        assert metadata.items() <= one.metadata.items()
    assert len(set(ids(found))) == len(found)
