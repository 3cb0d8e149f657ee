"""Every retriever of both hosts goes through this suite, and LangChain's through the host's own, too."""

from __future__ import annotations

import asyncio
import json
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_tests.integration_tests import RetrieversIntegrationTests
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine

from drillrank.errors import DrillrankWarning, InvalidInput
from tests.conformance.corpus import BOOK, NOTE, QUESTION, QUESTIONS, section_path, threads_at_work
from tests.conformance.frameworks import LangChain, LlamaIndex, both_frameworks, build
from tests.conformance.retriever_cases import (
    BUILD,
    DOCUMENTS,
    drill_down,
    multi_view,
    over_a_store,
    path_search,
    with_llm,
)

for_each = pytest.mark.parametrize("make", BUILD.values(), ids=BUILD)


def outcome(found: Any) -> list[tuple[Any, ...]]:
    return [(one.id, one.text, one.score) for one in found]


def asked(host: Any, make: Any, question: str = QUESTION, **fields: Any) -> Any:
    return host.retrieve(make(host, DOCUMENTS[host], **fields), question)


@both_frameworks
@for_each
def test_finds_the_evidence_and_a_query_that_is_not_blank(host, make):
    best = asked(host, make)[0]
    assert "The Rhine flows through Basel" in best.text
    assert section_path(best.metadata) == "Rivers > The Rhine"
    with pytest.raises(InvalidInput, match="query"):
        asked(host, make, "  ")


@both_frameworks
@for_each
@pytest.mark.parametrize("empty", [False, True])
def test_nothing_to_search_is_said(host, make, empty):
    with pytest.raises((InvalidInput, DrillrankWarning), match=r"nothing to (search|read)"):
        host.retrieve(make(host, [host.document("")] if empty else []), QUESTION)


@both_frameworks
@for_each
def test_one_document_without_headings(host, make):
    [found] = host.retrieve(make(host, DOCUMENTS[host][1:]), "Vienna?")
    assert (found.text, section_path(found.metadata)) == (NOTE, "")


@both_frameworks
@for_each
@pytest.mark.parametrize("top_n", [1, 2, 99])
def test_top_n_and_no_result_twice(host, make, top_n):
    found = asked(host, make, top_n=top_n)
    ids = [one.id for one in found]
    assert len(ids) == len(set(ids)) <= top_n
    assert top_n > 2 or len(ids) == top_n
    if host is LangChain:
        called = make(host, DOCUMENTS[host]).invoke(QUESTION, top_n=top_n)
        assert outcome(LangChain._found(called)) == outcome(found)


@for_each
@pytest.mark.parametrize("top_n", [0, -3])
def test_the_top_n_of_one_question_is_checked(make, top_n):
    with pytest.raises(InvalidInput, match="top_n"):
        make(LangChain, DOCUMENTS[LangChain]).invoke(QUESTION, top_n=top_n)


@for_each
def test_equal_documents_without_ids_give_different_ids(make):
    twins = [LangChain.document(NOTE, source="note.txt") for _ in range(2)]
    fields = {"settings": {"repeats": True}} if make in (with_llm, over_a_store) else {}
    ids = [one.id for one in LangChain.retrieve(make(LangChain, twins, **fields), "Vienna?")]
    assert len(ids) == len(set(ids)) == 2


@both_frameworks
@for_each
def test_scores_offsets_and_metadata(host, make):
    scores = [one.score for one in asked(host, make)]
    assert all(type(score) is float for score in scores)
    assert scores == sorted(scores, reverse=True)
    json.dumps(scores)
    texts = {"book.md": BOOK, "note.txt": NOTE}
    retriever = make(host, DOCUMENTS[host], top_n=99)
    for hit in host.retrieve(retriever, QUESTION):
        assert texts[hit.metadata["source"]][hit.start : hit.start + len(hit.text)] == hit.text
        assert all(isinstance(value, str | int | float) for value in hit.metadata.values())
        assert host is LangChain or hit.metadata["source"].startswith(hit.document)
    for hit in retriever.retrieve(QUESTION) if host is LlamaIndex else ():
        assert hit.node.end_char_idx == hit.node.start_char_idx + len(hit.node.text)


@both_frameworks
@for_each
def test_documents_are_not_mutated_and_results_can_be(host, make):
    before = [document.model_dump_json() for document in DOCUMENTS[host]]
    retriever = make(host, DOCUMENTS[host])
    first = host.retrieve(retriever, QUESTION)
    assert outcome(first) == outcome(asked(host, make))  # the same ids in every run
    assert [document.model_dump_json() for document in DOCUMENTS[host]] == before
    for one in first:
        one.metadata["source"] = "changed"
    again = host.retrieve(retriever, QUESTION)
    assert outcome(again) == outcome(first)
    assert all(one.metadata["source"] != "changed" for one in again)


@both_frameworks
@for_each
async def test_async_equals_sync_and_does_not_block(host, make, monkeypatch):
    retriever = make(host, DOCUMENTS[host])
    expected = outcome(host.retrieve(retriever, QUESTION))
    threads = threads_at_work(monkeypatch)
    found = await asyncio.gather(*(host.aretrieve(retriever, QUESTION) for _ in range(4)))
    assert [outcome(one) for one in found] == [expected] * 4
    assert threads
    assert threading.get_ident() not in threads


@both_frameworks
@for_each
def test_batches_and_eight_threads_give_serial_results(host, make):
    retriever = make(host, DOCUMENTS[host])
    expected = [outcome(host.retrieve(retriever, question)) for question in QUESTIONS]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda question: outcome(host.retrieve(retriever, question)), QUESTIONS)) == expected
    if host is LangChain:
        assert [outcome(LangChain._found(found)) for found in retriever.batch(QUESTIONS)] == expected


@both_frameworks
@for_each
def test_pickle_and_rebuilding_from_its_fields(host, make):
    retriever = make(host, DOCUMENTS[host], top_n=2)
    expected = outcome(host.retrieve(retriever, QUESTION))
    assert outcome(host.retrieve(pickle.loads(pickle.dumps(retriever)), QUESTION)) == expected
    if host is LangChain:
        rebuilt = type(retriever)(**{name: getattr(retriever, name) for name in type(retriever).model_fields})
        assert outcome(host.retrieve(rebuilt, QUESTION)) == expected


@for_each
def test_events_are_balanced(make):
    debug = LlamaDebugHandler(print_trace_on_end=False)
    asked(LlamaIndex, make, callback_manager=CallbackManager([debug]))
    assert len(debug.get_event_pairs(CBEventType.RETRIEVE)) == 1


@both_frameworks
@for_each
def test_a_whole_query_with_the_reranker_behind_it(host, make):
    inner, reranker = make(host, DOCUMENTS[host]), host.ext.UPRRerank(top_n=1)
    if host is LlamaIndex:
        engine = RetrieverQueryEngine.from_args(inner, llm=MockLLM(), node_postprocessors=[reranker])
        response = engine.query(QUESTION)
        assert QUESTION in str(response)  # the mock answers with its prompt
        [best] = [hit.node.text for hit in response.source_nodes]
    else:
        pipeline = ContextualCompressionRetriever(base_compressor=reranker, base_retriever=inner)
        [best] = [document.page_content for document in pipeline.invoke(QUESTION)]
    assert "The Rhine flows through Basel" in best


class HostSuite(RetrieversIntegrationTests):
    """The standard tests of langchain-tests."""

    made: Any = None

    @property
    def retriever_query_example(self) -> str:
        return QUESTION

    @property
    def num_results_arg_name(self) -> str:
        return "top_n"

    @property
    def retriever_constructor(self) -> Any:
        return type(self.made)

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        fields = type(self.made).model_fields
        return {name: getattr(self.made, name) for name in fields if name != "top_n"}


class TestMultiViewRetrieverInTheHostSuite(HostSuite):
    made = multi_view(LangChain, DOCUMENTS[LangChain])


class TestD3RetrieverInTheHostSuite(HostSuite):
    made = drill_down(LangChain, DOCUMENTS[LangChain])


class TestBRMGRRetrieverInTheHostSuite(HostSuite):
    made = build(
        LangChain.ext.BRMGRRetriever,
        drill_down(LangChain, DOCUMENTS[LangChain], top_n=5),
        LangChain.llm(["The Rhine flows through Basel."]),
    )


class TestPromptRankRetrieverInTheHostSuite(HostSuite):
    made = path_search(LangChain, DOCUMENTS[LangChain])
