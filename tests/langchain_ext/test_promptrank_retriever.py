from __future__ import annotations

import asyncio
import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_classic.storage import create_kv_docstore
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever
from langchain_core.stores import InMemoryByteStore, InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore
from pydantic import PrivateAttr

from drillrank import Passage, PathSearch, PromptRank
from drillrank.errors import InvalidInput
from drillrank.rerank.promptrank import PROMPTRANK_INSTRUCTIONS
from drillrank.vectors import TfidfIndex, top
from langchain_ext import PromptRankRerank, PromptRankRetriever, UPRRerank
from tests.conformance.corpus import SlowModel, ticks_during

QUESTION = "Where did the director of The Silent Pier spend her childhood?"
FILM = Document(
    "The Silent Pier was directed by [Ada Holm](holm.md).",
    id="film",
    metadata={"title": "The Silent Pier", "source": "film.md", "links": "holm"},
)
HOLM = Document("She grew up in the port of Esbjerg.", id="holm", metadata={"title": "Ada Holm", "source": "holm.md"})
WHALE = Document("Whales sing.", id="whale", metadata={"title": "Whale"})
RIVER = Document("Rivers flow.", id="river", metadata={"title": "River"})
DOCUMENTS = [FILM, WHALE, RIVER, HOLM]


class Words(BaseRetriever):
    """TF-IDF without the titles."""

    documents: list[Document]
    top_k: int = 1
    _queries: list[str] = PrivateAttr(default_factory=list)

    def _get_relevant_documents(self, query, *, run_manager):
        self._queries.append(query)
        scores = TfidfIndex([document.page_content for document in self.documents]).scores(query)
        return [self.documents[i] for i in top(scores, self.top_k)]


class AsyncWords(Words):
    async def _aget_relevant_documents(self, query, *, run_manager):
        await asyncio.sleep(0.001)
        return await asyncio.to_thread(self._get_relevant_documents, query, run_manager=run_manager)


def outcome(documents):
    return [(found.id, found.metadata["relevance_score"], found.metadata.get("drillrank_path")) for found in documents]


def stored(documents=DOCUMENTS):
    store = InMemoryStore()
    store.mset([(document.id, document) for document in documents])
    return store


def vectors(documents=DOCUMENTS):
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents(documents)
    return store


@pytest.mark.parametrize("links", ["metadata", "hyperlinks", "titles"])
def test_reaches_documents_that_were_not_retrieved(links):
    retriever = PromptRankRetriever(source=Words(documents=DOCUMENTS), documents=DOCUMENTS, links=[links])
    found = retriever.invoke(QUESTION)
    assert sorted(document.id for document in found) == ["film", "holm"]
    assert "film > holm" in [document.metadata["drillrank_path"] for document in found]


@pytest.mark.parametrize("docstore", [stored, vectors])
async def test_reaches_documents_by_id_in_a_store(docstore):
    retriever = PromptRankRetriever(source=Words(documents=DOCUMENTS), store=docstore())
    found = retriever.invoke(QUESTION)
    assert sorted(document.id for document in found) == ["film", "holm"]
    assert outcome(await retriever.ainvoke(QUESTION)) == outcome(found)


def test_a_document_of_a_key_value_store_is_called_by_its_key():
    store = InMemoryStore()
    store.mset([("holm", Document("She grew up in the port of Esbjerg."))])
    found = PromptRankRetriever(source=Words(documents=[FILM]), store=store).invoke(QUESTION)
    assert sorted(document.id for document in found) == ["film", "holm"]


def test_a_store_of_bytes_is_a_clear_error_and_can_be_wrapped():
    base = Words(documents=[FILM])
    store = InMemoryByteStore()
    store.mset([("holm", b"bytes")])
    with pytest.raises(InvalidInput, match="create_kv_docstore"):
        PromptRankRetriever(source=base, store=store).invoke(QUESTION)
    wrapped = create_kv_docstore(InMemoryByteStore())
    wrapped.mset([("holm", HOLM)])
    found = PromptRankRetriever(source=base, store=wrapped).invoke(QUESTION)
    assert sorted(document.id for document in found) == ["film", "holm"]


def test_a_second_retrieval_whose_query_is_the_path():
    base = Words(documents=DOCUMENTS, top_k=2)
    retriever = PromptRankRetriever(
        source=base,
        links=["retrieval"],
        top_n=None,
        settings={"beam": 1, "hops": 2},
    )
    retriever.invoke("the silent pier")
    assert base._queries == ["the silent pier", f"the silent pier The Silent Pier {FILM.page_content}"]


def test_links_to_nowhere_and_cycles_end():
    one = Document("a red fox", id="1", metadata={"links": ["2", "nowhere", "1"]})
    two = Document("a river", id="2", metadata={"links": ["1", "2"]})
    retriever = PromptRankRetriever(source=Words(documents=[one]), store=stored([one, two]), settings={"hops": 4})
    assert sorted(document.id for document in retriever.invoke("which red fox")) == ["1", "2"]


def test_copies_carry_the_path_and_the_given_documents_do_not_change():
    before = [document.model_dump_json() for document in DOCUMENTS]
    found = PromptRankRetriever(source=Words(documents=DOCUMENTS), documents=DOCUMENTS).invoke(QUESTION)
    assert [document.model_dump_json() for document in DOCUMENTS] == before
    originals = {document.id: document for document in DOCUMENTS}
    for document in found:
        score = document.metadata["drillrank_path_score"]
        added = {
            "drillrank_path": document.metadata["drillrank_path"],
            "drillrank_path_score": score,
            "relevance_score": score,
        }
        assert document.metadata == {**originals[document.id].metadata, **added}
        assert document.page_content == originals[document.id].page_content


def test_a_users_own_path_stays_and_a_later_ranking_forgets_ours():
    film = FILM.model_copy(update={"metadata": {**FILM.metadata, "path": "films/pier.md", "path_score": "mine"}})
    [found] = PromptRankRetriever(source=Words(documents=[film])).invoke(QUESTION)
    assert (found.metadata["path"], found.metadata["path_score"]) == ("films/pier.md", "mine")
    [again] = UPRRerank().compress_documents([found], QUESTION)
    assert {**again.metadata, "relevance_score": None} == {**film.metadata, "relevance_score": None}


def test_documents_without_ids_are_told_apart_and_recognised():
    nameless = [document.model_copy(update={"id": None}) for document in DOCUMENTS]
    base = Words(documents=nameless, top_k=2)
    found = PromptRankRetriever(source=base, documents=nameless, links=["titles", "retrieval"], top_n=None).invoke(
        QUESTION
    )
    ids = [document.id for document in found]
    assert len(set(ids)) == len(ids)
    assert {name for document in found for name in document.metadata["drillrank_path"].split(" > ")} <= set(ids)
    assert sorted(document.page_content for document in found) == sorted({d.page_content for d in found})


def test_a_document_that_is_retrieved_twice_comes_once():
    base = Words(documents=[FILM, FILM, HOLM], top_k=3)
    retriever = PromptRankRetriever(source=base, top_n=None)
    assert sorted(document.page_content for document in retriever.invoke(QUESTION)) == sorted(
        [FILM.page_content, HOLM.page_content]
    )


@pytest.mark.parametrize("base", [Words, AsyncWords])
async def test_async_equals_sync(base):
    retriever = PromptRankRetriever(
        source=base(documents=DOCUMENTS[:2], top_k=2),
        store=stored(),
        links=["metadata", "retrieval"],
        settings={"hops": 3},
    )
    expected = outcome(retriever.invoke(QUESTION))
    assert outcome(await retriever.ainvoke(QUESTION)) == expected
    many = await asyncio.gather(*(retriever.ainvoke(QUESTION) for _ in range(40)))  # more than there are threads
    assert [outcome(found) for found in many] == [expected] * 40


async def test_the_event_loop_is_not_blocked():
    retriever = PromptRankRetriever(source=Words(documents=DOCUMENTS), documents=DOCUMENTS, model=SlowModel())
    assert await ticks_during(retriever.ainvoke(QUESTION)) >= 3


GRAPHS = st.lists(
    st.tuples(st.lists(st.sampled_from(["silent", "pier", "director", "whale", "port"]), max_size=4).map(" ".join),
              st.lists(st.integers(0, 6).map(str), max_size=4)),
    min_size=1, max_size=6,
)  # fmt: skip


@settings(deadline=None, max_examples=40)
@given(GRAPHS, st.integers(1, 6), st.integers(1, 4), st.booleans())
def test_the_result_is_that_of_the_core(graph, retrieved, hops, in_corpus):
    documents = [Document(text, id=str(i), metadata={"links": links}) for i, (text, links) in enumerate(graph)]
    passages = [Passage(text, id=str(i), links=links) for i, (text, links) in enumerate(graph)]
    base = Words(documents=documents, top_k=retrieved)
    search = {"hops": hops, "beam": 4, "branch": 2, "pairs": 3}
    known = {"documents": documents} if in_corpus else {"store": stored(documents)}
    found = PromptRankRetriever(source=base, links=["metadata"], top_n=None, settings=search, **known).invoke(
        "silent pier"
    )

    class Source:
        def retrieve(self, query, n):
            return [passages[int(document.id)] for document in base.invoke(query)]

        def fetch(self, ids):
            return [passage for passage in passages if passage.id in ids]

    expected = PathSearch(PromptRank(), passages if in_corpus else None, first_stage=Source(), settings=search)
    assert outcome(found) == [
        (item.passage.id, item.score, " > ".join(item.details["path"])) for item in expected.search("silent pier")
    ]


class Listener(BaseCallbackHandler):
    def __init__(self):
        self.hops, self.starts = [], []

    def on_custom_event(self, name, data, **kwargs: Any):
        self.hops.append((name, data["query"], data["hop"], data["paths"], data["best_path"], kwargs["run_id"]))

    def on_retriever_start(self, serialized, query, *, run_id, parent_run_id=None, **kwargs):
        self.starts.append((run_id, parent_run_id))


class AsyncListener(AsyncCallbackHandler, Listener):
    async def on_custom_event(self, *arguments, **kwargs):
        Listener.on_custom_event(self, *arguments, **kwargs)

    async def on_retriever_start(self, *arguments, **kwargs):
        Listener.on_retriever_start(self, *arguments, **kwargs)


async def test_every_hop_is_told_and_inner_runs_are_children():
    retriever = PromptRankRetriever(source=Words(documents=DOCUMENTS), documents=DOCUMENTS, settings={"hops": 4})
    listener, alistener = Listener(), AsyncListener()
    retriever.invoke(QUESTION, {"callbacks": [listener]})
    await retriever.ainvoke(QUESTION, {"callbacks": [alistener]})
    for heard in (listener, alistener):
        (run, no_parent), (_, parent) = heard.starts
        assert no_parent is None
        assert parent == run
        assert heard.hops == [
            ("promptrank_hop", QUESTION, 1, 1, ["film"], run),
            ("promptrank_hop", QUESTION, 2, 1, ["film", "holm"], run),
        ]


async def test_events_stream():
    retriever = PromptRankRetriever(source=Words(documents=DOCUMENTS), documents=DOCUMENTS)
    events = [event async for event in retriever.astream_events(QUESTION, version="v2")]
    told = [event["data"]["hop"] for event in events if event["event"] == "on_custom_event"]
    assert told == [1, 2]


def test_a_reranker_in_a_run_tells_of_its_hops_and_of_what_it_retrieves():
    listener = Listener()
    reranker = PromptRankRerank(source=Words(documents=[WHALE]), settings={"hops": 2})
    pipeline = ContextualCompressionRetriever(
        base_compressor=reranker, base_retriever=Words(documents=[FILM, HOLM], top_k=2)
    )
    assert len(pipeline.invoke(QUESTION, {"callbacks": [listener]})) == 3
    run = listener.starts[0][0]
    assert [hop[1:3] for hop in listener.hops] == [(QUESTION, 1), (QUESTION, 2)]
    [reranking] = {hop[-1] for hop in listener.hops}  # a run of its own
    assert len(listener.starts) == 4  # the pipeline, its retriever, one retrieval for each path
    assert [parent for _, parent in listener.starts[1:]] == [run, reranking, reranking]


def test_nothing_retrieved_nothing_found():
    assert PromptRankRetriever(source=Words(documents=[]), documents=DOCUMENTS).invoke(QUESTION) == []


@pytest.mark.parametrize("wrong", [{"hop": 3}, {"links": ["title"]}, {"top_n": 0}, {"hops": 0}, {"store": {}}])
def test_settings_that_cannot_be_used_are_refused_at_once(wrong):
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        PromptRankRetriever(source=Words(documents=DOCUMENTS), **wrong)


def test_two_documents_of_the_same_id_are_refused_as_a_corpus():
    with pytest.raises(InvalidInput, match="share"):
        PromptRankRetriever(source=Words(documents=[]), documents=[FILM, HOLM.model_copy(update={"id": "film"})])


def test_settings_reach_the_search_and_survive_pickle():
    retriever = PromptRankRetriever(
        source=Words(documents=DOCUMENTS),
        documents=DOCUMENTS,
        settings={"hops": 1, "instructions": [PROMPTRANK_INSTRUCTIONS[7]]},
    )
    assert [document.metadata["drillrank_path"] for document in retriever.invoke(QUESTION)] == ["film"]
    assert outcome(pickle.loads(pickle.dumps(retriever)).invoke(QUESTION)) == outcome(retriever.invoke(QUESTION))
