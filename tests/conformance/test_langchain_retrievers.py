"""Every LangChain retriever goes through this suite, and through the host's own; a new one is added to `BUILD`."""

from __future__ import annotations

import asyncio
import json
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_tests.integration_tests import RetrieversIntegrationTests

from drillrank.errors import DrillrankWarning, InvalidInput
from langchain_ext import (
    BRMGRRetriever,
    D3Retriever,
    MultiViewRetriever,
    MultiViewTextSplitter,
    PromptRankRetriever,
    UPRRerank,
)
from tests.conformance.building import build
from tests.conformance.corpus import BOOK, NOTE, QUESTION, QUESTIONS, section_path, threads_at_work
from tests.conformance.langchain_reader import Reader

DOCUMENTS = [
    Document(page_content=BOOK, id="book", metadata={"source": "book.md"}),
    Document(page_content=NOTE, metadata={"source": "note.txt"}),
]


def multi_view(documents: list[Document], **fields) -> MultiViewRetriever:
    return build(MultiViewRetriever, documents=MultiViewTextSplitter().split_documents(documents), **fields)


def over_retrievers(documents: list[Document], **fields) -> MultiViewRetriever:
    by_view = {"raw": multi_view(documents, retriever="tfidf", top_n=99), "keywords": multi_view(documents, top_n=99)}
    return build(MultiViewRetriever, source=by_view, **fields)


def drill_down(documents: list[Document], **fields) -> D3Retriever:
    """Twins each for itself: other components, and their tests, build on it."""
    return build(D3Retriever, documents=documents, **{"settings": {"repeats": True}, **fields})


def with_llm(documents: list[Document], **fields) -> D3Retriever:
    return build(D3Retriever, documents=documents, llm=Reader(), **fields)


def over_sections(documents: list[Document], **fields) -> D3Retriever:
    return build(D3Retriever, documents=MultiViewTextSplitter().split_documents(documents), llm=Reader(), **fields)


def over_a_store(documents: list[Document], **fields) -> D3Retriever:
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents(MultiViewTextSplitter().split_documents(documents))
    return build(D3Retriever, source=store, llm=Reader(), **fields)


def with_generated(documents: list[Document], **fields) -> BRMGRRetriever:
    """The guard lets nothing through that the model writes, so that only documents come back."""
    llm = FakeListChatModel(responses=["A zebra plays chess."])
    return build(BRMGRRetriever, source=drill_down(documents, top_n=5), llm=llm, guard=True, **fields)


def path_search(documents: list[Document], **fields) -> PromptRankRetriever:
    return build(PromptRankRetriever, source=drill_down(documents, top_n=99), **fields)


BUILD = {
    "MultiViewRetriever": multi_view,
    "MultiViewRetriever over retrievers": over_retrievers,
    "D3Retriever": drill_down,
    "D3Retriever with an LLM": with_llm,
    "D3Retriever over sections": over_sections,
    "D3Retriever over a store": over_a_store,
    "BRMGRRetriever": with_generated,
    "PromptRankRetriever": path_search,
}
Build = Callable[..., BaseRetriever]

for_each = pytest.mark.parametrize("build", BUILD.values(), ids=BUILD)


def outcome(documents: list[Document]) -> list[tuple[str | None, str, float]]:
    return [(found.id, found.page_content, found.metadata["relevance_score"]) for found in documents]


@for_each
def test_finds_the_evidence(build: Build):
    best = build(DOCUMENTS).invoke(QUESTION)[0]
    assert "The Rhine flows through Basel" in best.page_content
    assert section_path(best.metadata) == "Rivers > The Rhine"


@for_each
@pytest.mark.parametrize("documents", [[], [Document(page_content="")]])
def test_nothing_to_search_is_said(build: Build, documents: list[Document]):
    with pytest.raises((InvalidInput, DrillrankWarning), match=r"nothing to (search|drill into)"):
        build(documents).invoke(QUESTION)


@for_each
def test_one_document_without_headings(build: Build):
    found = build(DOCUMENTS[1:]).invoke("Vienna?")
    assert [document.page_content for document in found] == [DOCUMENTS[1].page_content]
    assert section_path(found[0].metadata) == ""


@for_each
@pytest.mark.parametrize("top_n", [1, 2, 99])
def test_top_n_in_constructor_and_call(build: Build, top_n: int):
    found = build(DOCUMENTS, top_n=top_n).invoke(QUESTION)
    assert outcome(build(DOCUMENTS).invoke(QUESTION, top_n=top_n)) == outcome(found)
    ids = [document.id for document in found]
    assert len(ids) == len(set(ids)) <= top_n
    assert top_n > 2 or len(ids) == top_n


@for_each
@pytest.mark.parametrize("top_n", [0, -3])
def test_senseless_top_n_is_rejected(build: Build, top_n: int):
    with pytest.raises(InvalidInput, match="top_n"):
        build(DOCUMENTS, top_n=top_n)
    with pytest.raises(InvalidInput):
        build(DOCUMENTS).invoke(QUESTION, top_n=top_n)


@for_each
def test_a_blank_query_is_a_clear_error(build: Build):
    with pytest.raises(InvalidInput, match="query"):
        build(DOCUMENTS).invoke("  ")


@for_each
def test_equal_documents_without_ids_give_different_ids(build: Build):
    twins = [Document(page_content=NOTE, metadata={"source": "note.txt"}) for _ in range(2)]
    ids = [document.id for document in build(twins).invoke("Vienna?")]
    assert len(ids) == len(set(ids)) == 2


@for_each
def test_scores_are_plain_floats_in_falling_order(build: Build):
    scores = [score for *_, score in outcome(build(DOCUMENTS).invoke(QUESTION))]
    assert all(type(score) is float for score in scores)
    assert scores == sorted(scores, reverse=True)
    json.dumps(scores)


@for_each
def test_offsets_and_metadata(build: Build):
    texts = {document.metadata["source"]: document.page_content for document in DOCUMENTS}
    for found in build(DOCUMENTS, top_n=99).invoke(QUESTION):
        start = found.metadata["start_index"]
        source = texts[found.metadata["source"]]
        assert source[start : start + len(found.page_content)] == found.page_content
        assert all(isinstance(value, str | int | float) for value in found.metadata.values())


@for_each
def test_documents_are_not_mutated_and_ids_are_the_same_in_every_run(build: Build):
    before = [document.model_dump_json() for document in DOCUMENTS]
    first, second = (build(DOCUMENTS).invoke(QUESTION) for _ in range(2))
    assert [document.model_dump_json() for document in DOCUMENTS] == before
    assert outcome(first) == outcome(second)


@for_each
def test_results_can_be_changed_without_changing_the_retriever(build: Build):
    retriever = build(DOCUMENTS)
    expected = outcome(retriever.invoke(QUESTION))
    for found in retriever.invoke(QUESTION):
        found.metadata["relevance_score"] = 7.0
        found.metadata["source"] = "changed"
    again = retriever.invoke(QUESTION)
    assert outcome(again) == expected
    assert all(found.metadata.get("source") != "changed" for found in again)


@for_each
async def test_async_equals_sync_and_does_not_block(build: Build, monkeypatch: pytest.MonkeyPatch):
    retriever = build(DOCUMENTS)
    expected = outcome(retriever.invoke(QUESTION))
    threads = threads_at_work(monkeypatch)
    found = await asyncio.gather(*(retriever.ainvoke(QUESTION) for _ in range(4)))
    assert [outcome(documents) for documents in found] == [expected] * 4
    assert threads
    assert threading.get_ident() not in threads


@for_each
def test_batch_and_eight_threads_give_serial_results(build: Build):
    retriever = build(DOCUMENTS)
    expected = [outcome(retriever.invoke(question)) for question in QUESTIONS]
    assert [outcome(found) for found in retriever.batch(QUESTIONS)] == expected
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda question: outcome(retriever.invoke(question)), QUESTIONS)) == expected


@for_each
def test_pickle_and_rebuilding_from_its_fields(build: Build):
    retriever = build(DOCUMENTS, top_n=2)
    copy = pickle.loads(pickle.dumps(retriever))
    rebuilt = type(retriever)(**{name: getattr(retriever, name) for name in type(retriever).model_fields})
    expected = outcome(retriever.invoke(QUESTION))
    assert outcome(copy.invoke(QUESTION)) == outcome(rebuilt.invoke(QUESTION)) == expected


@for_each
def test_a_whole_query_with_the_reranker_behind_it(build: Build):
    pipeline = ContextualCompressionRetriever(base_compressor=UPRRerank(top_n=1), base_retriever=build(DOCUMENTS))
    (best,) = pipeline.invoke(QUESTION)
    assert "The Rhine flows through Basel" in best.page_content


class HostSuite(RetrieversIntegrationTests):
    """The standard tests of langchain-tests."""

    @property
    def retriever_query_example(self) -> str:
        return QUESTION

    @property
    def num_results_arg_name(self) -> str:
        return "top_n"


class TestMultiViewRetrieverInTheHostSuite(HostSuite):
    @property
    def retriever_constructor(self) -> type[MultiViewRetriever]:
        return MultiViewRetriever

    @property
    def retriever_constructor_params(self) -> dict:
        return {"documents": MultiViewTextSplitter().split_documents(DOCUMENTS)}


class TestD3RetrieverInTheHostSuite(HostSuite):
    @property
    def retriever_constructor(self) -> type[D3Retriever]:
        return D3Retriever

    @property
    def retriever_constructor_params(self) -> dict:
        return {"documents": DOCUMENTS}


class TestBRMGRRetrieverInTheHostSuite(HostSuite):
    @property
    def retriever_constructor(self) -> type[BRMGRRetriever]:
        return BRMGRRetriever

    @property
    def retriever_constructor_params(self) -> dict:
        llm = FakeListChatModel(responses=["The Rhine flows through Basel."])
        return {"source": drill_down(DOCUMENTS, top_n=5), "llm": llm}


class TestPromptRankRetrieverInTheHostSuite(HostSuite):
    @property
    def retriever_constructor(self) -> type[PromptRankRetriever]:
        return PromptRankRetriever

    @property
    def retriever_constructor_params(self) -> dict:
        return {"source": drill_down(DOCUMENTS, top_n=99)}
