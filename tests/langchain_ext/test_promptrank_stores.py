"""Path search beside a store: what it returns is what the store holds, and nothing that a filter hides."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnableLambda
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore

from drillrank import load_language_model
from drillrank.errors import DrillrankWarning, InvalidInput
from langchain_ext import BRMGRRetriever, PromptRankRerank, PromptRankRetriever, SelfAskChain
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

MINE = {"tenant": "a"}
FILM = Document(FILM_TEXT, id="film", metadata=FILM_METADATA)


def holm(tenant="a", text=HOLM_TEXT, id="holm"):
    return Document(text, id=id, metadata={**HOLM_METADATA, "tenant": tenant})


def vectors(*documents):
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents(list(documents))
    return store


def by_key(*documents):
    store = InMemoryStore()
    store.mset([(document.id, document) for document in documents])
    return store


def finds(*documents):
    return RunnableLambda(lambda question: list(documents))


def only_film(store):
    """A retriever over a vector store, with a filter that lets one document through."""
    return store.as_retriever(search_kwargs={"k": 1, "filter": lambda document: document.id == "film"})


class Ears(BaseCallbackHandler):
    def __init__(self):
        self.heard = []

    def on_custom_event(self, name, data, **kwargs: Any):
        self.heard.append(repr(data))


def texts(documents):
    return [document.page_content for document in documents]


LINKS = ["metadata", "hyperlinks", "titles"]


@pytest.mark.parametrize("links", LINKS)
@pytest.mark.parametrize("docstore", [by_key, vectors])
async def test_a_linked_text_is_what_the_store_holds_now(links, docstore):
    store = docstore(FILM, holm(text="Redacted."))
    retriever = PromptRankRetriever(
        source=finds(FILM), documents=[FILM, holm(text="SECRET")], store=store, links=[links]
    )
    with pytest.warns(DrillrankWarning, match="1 of the documents given"):
        found = retriever.invoke(QUESTION)
    assert sorted(texts(found)) == sorted([FILM.page_content, "Redacted."])
    assert await retriever.ainvoke(QUESTION) == found


def test_a_hit_wins_over_a_given_document():
    new = holm(text="She grew up in Ribe.").model_copy(update={"metadata": {**holm().metadata, "version": 2}})
    old = holm().model_copy(update={"metadata": {**holm().metadata, "version": 1}})
    retriever = PromptRankRetriever(source=finds(FILM, new), documents=[FILM, old])
    with pytest.warns(DrillrankWarning, match="'holm'"):
        found = {document.id: document for document in retriever.invoke(QUESTION)}
    assert (found["holm"].page_content, found["holm"].metadata["version"]) == ("She grew up in Ribe.", 2)
    again = PromptRankRetriever(source=finds(FILM, new), documents=[FILM, new]).invoke(QUESTION)
    assert {d.id: d.metadata["relevance_score"] for d in again}.keys() == found.keys()


@pytest.mark.parametrize("links", LINKS)
def test_the_store_behind_the_retriever_knows_what_is_left(links):
    store = vectors(FILM, holm())
    everything = store.as_retriever(search_kwargs={"k": 1})
    retriever = PromptRankRetriever(source=everything, documents=[FILM, holm()], links=[links], top_n=None)
    store.delete(["holm"])
    assert texts(retriever.invoke(QUESTION)) == [FILM.page_content]
    store.add_documents([holm(text="She grew up in Ribe.")])
    store.delete(["film"])
    with pytest.warns(DrillrankWarning):
        assert texts(retriever.invoke(QUESTION)) == ["She grew up in Ribe."]


class FilmsOnly(InMemoryVectorStore):
    """Its search finds the film, though it holds more."""

    def similarity_search(self, query, k=4, **options):
        return [found for found in super().similarity_search(query, k=9) if "Pier" in found.page_content]


def test_a_store_with_ids_of_its_own_says_so_and_nothing_comes_twice():
    documents = [FILM, holm()]
    stores = [store(DeterministicFakeEmbedding(size=8)) for store in (FilmsOnly, InMemoryVectorStore)]
    for store in stores:
        store.add_documents([document.model_copy(update={"id": None}) for document in documents])
    films, both = (store.as_retriever() for store in stores)
    with pytest.warns(DrillrankWarning, match="pass store=") as caught:
        found = PromptRankRetriever(source=films, documents=documents).invoke(QUESTION)
    assert len(caught) == 1
    assert texts(found) == [FILM.page_content]
    found = PromptRankRetriever(source=both, documents=documents, links=["titles"], top_n=None).invoke(QUESTION)
    assert sorted(texts(found)) == sorted(texts(documents))
    paths = {document.metadata["drillrank_path"] for document in found}
    named = {document.page_content: document.id for document in found}
    assert set(named.values()) == set(stores[1].store)
    assert f"{named[FILM.page_content]} > {named[holm().page_content]}" in paths


def test_where_no_store_can_be_asked_the_given_ones_stand():
    class Unasked(InMemoryVectorStore):
        def get_by_ids(self, ids, /):
            raise NotImplementedError

    store = Unasked(DeterministicFakeEmbedding(size=8))
    store.add_documents([FILM])
    found = PromptRankRetriever(source=store.as_retriever(), documents=[FILM, holm()]).invoke(QUESTION)
    assert sorted(document.id for document in found) == ["film", "holm"]
    with pytest.raises(InvalidInput, match="another store"):
        PromptRankRetriever(source=finds(FILM), store=store).invoke(QUESTION)


def test_all_that_one_hop_needs_is_fetched_at_once():
    asked = []

    class Counting(InMemoryStore):
        def mget(self, keys):
            asked.append(sorted(keys))
            return super().mget(keys)

    store = Counting()
    others = [Document(f"Port {i}.", id=f"p{i}") for i in range(4)]
    store.mset([(document.id, document) for document in others])
    start = [FILM.model_copy(update={"id": f"f{i}", "metadata": {"links": [f"p{i}", f"p{i + 2}"]}}) for i in range(2)]
    PromptRankRetriever(source=finds(*start), documents=others, store=store).invoke(QUESTION)
    assert asked == [["p0", "p1", "p2", "p3"]]


WAYS = {
    "documents": lambda hidden: {"source": finds(FILM), "documents": [FILM, hidden]},
    "docstore": lambda hidden: {"source": finds(FILM), "store": by_key(FILM, hidden)},
    "store as docstore": lambda hidden: {"source": finds(FILM), "store": vectors(FILM, hidden)},
    "hits": lambda hidden: {"source": finds(FILM, hidden)},
    "retrieval": lambda hidden: {
        "source": RunnableLambda(lambda query: [FILM] if query == QUESTION else [hidden]),
        "links": ["retrieval"],
    },
    "docstore and documents of one's own": lambda hidden: {
        "source": finds(FILM),
        "documents": [FILM, holm()],
        "store": by_key(FILM, hidden),
    },
}


@pytest.mark.parametrize("links", LINKS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("filter", [MINE, lambda document: document.metadata.get("tenant") == "a"])
async def test_nothing_hidden_is_returned_named_or_told(links, way, filter):
    hidden = holm("b", "SECRET")
    ears = Ears()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        retriever = PromptRankRetriever(**{"links": [links], **WAYS[way](hidden)}, filters=filter, top_n=None)
        run = RunnableLambda(lambda question: retriever.invoke(question))
        found = run.invoke(QUESTION, {"callbacks": [ears]})
        assert texts(await retriever.ainvoke(QUESTION)) == texts(found)
    assert [document.id for document in found] == ["film"]
    assert ears.heard
    told = repr([found, ears.heard, [str(warning.message) for warning in caught]])
    assert "SECRET" not in told
    assert "> holm" not in told
    assert "'holm'" not in told.replace("'links': 'holm'", "")


@pytest.mark.parametrize("way", ["documents", "docstore"])
def test_the_filter_of_the_source_governs_what_is_linked(way):
    hidden = holm("b", "SECRET")
    store = vectors(FILM, hidden)
    settings = WAYS[way](hidden)
    settings["source"] = store.as_retriever(search_kwargs={"filter": lambda found: found.metadata["tenant"] == "a"})
    assert [document.id for document in PromptRankRetriever(**settings).invoke(QUESTION)] == ["film"]
    settings["source"] = store.as_retriever(search_kwargs={"where_document": {"$contains": "Pier"}})
    settings["source"].vectorstore.similarity_search = lambda query, **options: [FILM]
    with pytest.raises(InvalidInput, match="cannot check"):
        PromptRankRetriever(**settings).invoke(QUESTION)


def test_a_reranker_reads_nothing_hidden():
    hidden = holm("b", "SECRET")
    for options in ({}, {"store": by_key(hidden)}, {"source": finds(hidden)}):
        found = PromptRankRerank(filters=MINE, top_n=None, **options).compress_documents([FILM, hidden], QUESTION)
        assert [document.id for document in found] == ["film"]
        found = PromptRankRerank(filters=MINE, top_n=None, **options).compress_documents([FILM], QUESTION)
        assert [document.id for document in found] == ["film"]


def test_a_reranker_takes_its_own_documents_out_of_a_store_once():
    nameless = [document.model_copy(update={"id": None}) for document in (FILM, holm())]
    found = PromptRankRerank(store=by_key(FILM, holm()), top_n=None).compress_documents(nameless, QUESTION)
    assert sorted(texts(found)) == sorted(texts(nameless))


class Listening(FakeListChatModel):
    prompts: list

    def _call(self, messages, *args, **kwargs):
        self.prompts.append(str(messages))
        return super()._call(messages, *args, **kwargs)


async def test_no_prompt_holds_what_is_hidden():
    hidden = holm("b", "SECRET")
    says = ["Yes.\nFollow up: Who directed it?", "Ada Holm", "So the final answer is: Esbjerg"]
    llm = Listening(responses=says, prompts=[])
    chain = SelfAskChain(llm=llm, source=finds(hidden, FILM), filters=MINE)
    found = chain.invoke(QUESTION)
    assert texts(found["steps"][0]["documents"]) == [FILM.page_content]
    llm.i = 0
    assert (await chain.ainvoke(QUESTION))["steps"] == found["steps"]
    assert "Pier" in str(llm.prompts)
    assert "SECRET" not in str(llm.prompts)
    merging = BRMGRRetriever(
        source=finds(hidden, FILM), llm=Listening(responses=["x"], prompts=[]), filters=MINE, n_generated=1
    )
    assert sorted(texts(merging.invoke(QUESTION))) == sorted([FILM.page_content, "x"])
    assert sorted(texts(await merging.ainvoke(QUESTION))) == sorted([FILM.page_content, "x"])


@pytest.mark.parametrize("component", [PromptRankRerank, PromptRankRetriever, SelfAskChain, BRMGRRetriever])
def test_a_filter_that_nobody_knows_is_refused_at_once(component):
    fields = {"llm": FakeListChatModel(responses=["x"])} if "llm" in component.model_fields else {}
    if component is not PromptRankRerank:
        fields["source"] = finds()
    with pytest.raises(InvalidInput, match="near"):
        component(filters={"tenant": {"$near": "a"}}, **fields)


def documents_of(records):
    return [Document(text, id=id_, metadata=metadata) for id_, text, metadata in records]


@pytest.mark.filterwarnings("ignore:PromptRankRetriever. the source brought nothing")
@settings(deadline=None, max_examples=60)
@given(RECORDS, st.integers(0, 4), st.sampled_from(["given", "store"]))
def test_what_is_hidden_might_as_well_not_be_there(records, first, where):
    documents = documents_of(records)
    mine = [document for document in documents if document.metadata["tenant"] == "a"]
    hits = documents[: first + 1]
    common = {
        "source": finds(*hits),
        "model": load_language_model("unigram").fit(TITLES),
        "top_n": None,
        "links": LINKS,
    }

    def found(documents, stored, **options):
        beside = {"store": by_key(*stored)} if where == "store" else {}
        ranking = PromptRankRetriever(**common, documents=documents, **beside, **options).invoke(NAMING)
        return {document.id: (round(document.metadata["relevance_score"], 9), document) for document in ranking}

    behind = found(documents, documents, filters=MINE)
    common["source"] = finds(*(document for document in hits if document in mine))
    alone = found(mine, mine)
    assert behind.keys() == alone.keys()
    assert {id_: score for id_, (score, _) in behind.items()} == {id_: score for id_, (score, _) in alone.items()}


@settings(deadline=None, max_examples=60)
@given(RECORDS, RECORDS, st.integers(0, 3))
def test_every_result_is_what_the_store_holds(before, after, first):
    held = {document.id: document for document in documents_of(after)}
    retriever = PromptRankRetriever(
        source=finds(*list(held.values())[: first + 1]),
        documents=documents_of(before),
        store=by_key(*held.values()),
        filters=MINE,
        top_n=None,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DrillrankWarning)
        found = retriever.invoke(QUESTION)
    for document in found:
        record = held[document.id]
        assert document.page_content == record.page_content
        assert record.metadata["tenant"] == "a"
        assert record.metadata.items() <= document.metadata.items()
    assert len({document.id for document in found}) == len(found)
