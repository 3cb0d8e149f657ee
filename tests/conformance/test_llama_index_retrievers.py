"""Every LlamaIndex retriever goes through this suite; a new one is added to `BUILD`."""

from __future__ import annotations

import asyncio
import json
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from llama_index.core import Document, MockEmbedding, VectorStoreIndex
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore

from drillrank.errors import DrillrankWarning, InvalidInput
from llama_index_ext import (
    BRMGRRetriever,
    D3Retriever,
    MultiViewNodeParser,
    MultiViewRetriever,
    PromptRankRetriever,
    UPRRerank,
)
from tests.conformance.building import build
from tests.conformance.corpus import BOOK, NOTE, QUESTION, QUESTIONS, section_path, threads_at_work
from tests.conformance.llama_index_reader import Reader

DOCUMENTS = [
    Document(text=BOOK, id_="book", metadata={"source": "book.md"}),
    Document(text=NOTE, id_="note", metadata={"source": "note.txt"}),
]


def multi_view(documents: list[Document], top_n: int = 3, **fields) -> MultiViewRetriever:
    return build(MultiViewRetriever, MultiViewNodeParser().get_nodes_from_documents(documents), top_n=top_n, **fields)


def over_retrievers(documents: list[Document], top_n: int = 3, **fields) -> MultiViewRetriever:
    by_view = {"raw": multi_view(documents, 99, retriever="tfidf"), "keywords": multi_view(documents, 99)}
    return build(MultiViewRetriever, source=by_view, top_n=top_n, **fields)


def drill_down(documents: list[Document], top_n: int = 3, **fields) -> D3Retriever:
    return build(D3Retriever, documents, top_n=top_n, **fields)


def with_llm(documents: list[Document], top_n: int = 3, **fields) -> D3Retriever:
    return build(D3Retriever, documents, Reader(), top_n=top_n, **fields)


def over_sections(documents: list[Document], top_n: int = 3, **fields) -> D3Retriever:
    nodes = MultiViewNodeParser().get_nodes_from_documents(documents)
    return build(D3Retriever, nodes, Reader(), top_n=top_n, **fields)


def over_an_index(documents: list[Document], top_n: int = 3, **fields) -> D3Retriever:
    nodes = MultiViewNodeParser().get_nodes_from_documents(documents)
    index = VectorStoreIndex(nodes, embed_model=MockEmbedding(8))
    return build(D3Retriever, source=index, llm=Reader(), top_n=top_n, **fields)


def with_generated(documents: list[Document], top_n: int = 3, **fields) -> BRMGRRetriever:
    """The guard lets nothing through that the mock writes, its prompt, so that only documents come back."""
    return build(BRMGRRetriever, drill_down(documents, 5), MockLLM(), guard=True, top_n=top_n, **fields)


def path_search(documents: list[Document], top_n: int = 3, **fields) -> PromptRankRetriever:
    return build(PromptRankRetriever, source=drill_down(documents, 99), top_n=top_n, **fields)


BUILD = {
    "MultiViewRetriever": multi_view,
    "MultiViewRetriever over retrievers": over_retrievers,
    "D3Retriever": drill_down,
    "D3Retriever with an LLM": with_llm,
    "D3Retriever over sections": over_sections,
    "D3Retriever over an index": over_an_index,
    "BRMGRRetriever": with_generated,
    "PromptRankRetriever": path_search,
}
Build = Callable[..., BaseRetriever]

pytestmark = pytest.mark.parametrize("build", BUILD.values(), ids=BUILD)


def outcome(nodes: list[NodeWithScore]) -> list[tuple[str, str, float]]:
    return [(node.node.node_id, node.node.get_content(), node.score) for node in nodes]


def test_finds_the_evidence(build: Build):
    best = build(DOCUMENTS).retrieve(QUESTION)[0].node
    assert "The Rhine flows through Basel" in best.get_content()
    assert section_path(best.metadata) == "Rivers > The Rhine"


@pytest.mark.parametrize("documents", [[], [Document(text="")]])
def test_nothing_to_search_is_said(build: Build, documents: list[Document]):
    with pytest.raises((InvalidInput, DrillrankWarning), match=r"nothing to (search|drill into)"):
        build(documents).retrieve(QUESTION)


def test_one_document_without_headings(build: Build):
    found = build(DOCUMENTS[1:]).retrieve("Vienna?")
    assert [node.node.get_content() for node in found] == [DOCUMENTS[1].text]
    assert section_path(found[0].node.metadata) == ""


@pytest.mark.parametrize("top_n", [1, 2, 99])
def test_top_n_and_no_result_twice(build: Build, top_n: int):
    found = build(DOCUMENTS, top_n).retrieve(QUESTION)
    ids = [node.node.node_id for node in found]
    assert len(ids) == len(set(ids)) <= top_n
    assert top_n > 2 or len(ids) == top_n


@pytest.mark.parametrize("top_n", [0, -3])
def test_senseless_top_n_is_rejected_at_construction(build: Build, top_n: int):
    with pytest.raises(InvalidInput, match="top_n"):
        build(DOCUMENTS, top_n)


def test_a_blank_query_is_a_clear_error(build: Build):
    with pytest.raises(InvalidInput, match="query"):
        build(DOCUMENTS).retrieve("  ")


def test_scores_are_plain_floats_in_falling_order(build: Build):
    scores = [node.score for node in build(DOCUMENTS).retrieve(QUESTION)]
    assert all(type(score) is float for score in scores)
    assert scores == sorted(scores, reverse=True)
    json.dumps(scores)


def test_offsets_source_and_metadata(build: Build):
    texts = {document.id_: document.text for document in DOCUMENTS}
    for found in build(DOCUMENTS, 99).retrieve(QUESTION):
        node = found.node
        assert texts[node.ref_doc_id][node.start_char_idx : node.end_char_idx] == node.get_content()
        assert node.metadata["source"] == {"book": "book.md", "note": "note.txt"}[node.ref_doc_id]
        assert all(isinstance(value, str | int | float) for value in node.metadata.values())


def test_documents_are_not_mutated_and_ids_are_the_same_in_every_run(build: Build):
    before = [document.model_dump_json() for document in DOCUMENTS]
    first, second = (build(DOCUMENTS).retrieve(QUESTION) for _ in range(2))
    assert [document.model_dump_json() for document in DOCUMENTS] == before
    assert outcome(first) == outcome(second)


def test_results_can_be_changed_without_changing_the_retriever(build: Build):
    retriever = build(DOCUMENTS)
    expected = outcome(retriever.retrieve(QUESTION))
    for found in retriever.retrieve(QUESTION):
        found.score = 7.0
        found.node.metadata["source"] = "changed"
    again = retriever.retrieve(QUESTION)
    assert outcome(again) == expected
    assert all(found.node.metadata.get("source") != "changed" for found in again)


async def test_async_equals_sync_and_does_not_block(build: Build, monkeypatch: pytest.MonkeyPatch):
    retriever = build(DOCUMENTS)
    expected = outcome(retriever.retrieve(QUESTION))
    threads = threads_at_work(monkeypatch)
    found = await asyncio.gather(*(retriever.aretrieve(QUESTION) for _ in range(4)))
    assert [outcome(nodes) for nodes in found] == [expected] * 4
    assert threads
    assert threading.get_ident() not in threads


def test_eight_threads_give_serial_results(build: Build):
    retriever = build(DOCUMENTS)
    expected = [outcome(retriever.retrieve(question)) for question in QUESTIONS]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda question: outcome(retriever.retrieve(question)), QUESTIONS)) == expected


def test_pickle(build: Build):
    retriever = build(DOCUMENTS)
    copy = pickle.loads(pickle.dumps(retriever))
    assert outcome(copy.retrieve(QUESTION)) == outcome(retriever.retrieve(QUESTION))


def test_events_are_balanced(build: Build):
    debug = LlamaDebugHandler(print_trace_on_end=False)
    build(DOCUMENTS, callback_manager=CallbackManager([debug])).retrieve(QUESTION)
    assert len(debug.get_event_pairs(CBEventType.RETRIEVE)) == 1


def test_a_whole_query_with_the_reranker_behind_it(build: Build):
    engine = RetrieverQueryEngine.from_args(build(DOCUMENTS), llm=MockLLM(), node_postprocessors=[UPRRerank(top_n=1)])
    response = engine.query(QUESTION)
    assert len(response.source_nodes) == 1
    assert "The Rhine flows through Basel" in response.source_nodes[0].node.get_content()
    assert QUESTION in str(response)  # the mock answers with its prompt
