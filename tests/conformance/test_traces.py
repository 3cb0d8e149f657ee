"""What the hosts' own instrumentation shows: a rerank or a drill-down is a span, or a run, with counts."""

from __future__ import annotations

import asyncio

import pytest
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from llama_index.core import Document as LlamaIndexDocument
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.span_handlers import SimpleSpanHandler
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine

import langchain_ext
import llama_index_ext
from tests.conformance.runs import Runs, below

TEXT = "# Rent\n\nThe rent is 100 francs.\n\n# Pets\n\nNo dogs.\n\nNo cats."
QUESTION = "What is the rent?"


class Spans(SimpleSpanHandler):
    """Keeps what is done."""


class Events(BaseEventHandler):
    """Keeps what is told, by the span in which it is."""

    told: dict[str, dict[str, list]]

    def handle(self, event, **kwargs):
        of_span = self.told.setdefault(str(event.span_id).partition("-")[0], {})
        of_span.setdefault(event.class_name(), []).append(event)


@pytest.fixture
def traced():
    spans, events, root = Spans(), Events(told={}), get_dispatcher()
    root.add_span_handler(spans)
    root.add_event_handler(events)
    yield spans, events
    root.span_handlers.remove(spans)
    root.event_handlers.remove(events)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_spans_and_events_of_llama_index(traced, asynchronous):
    spans, events = traced
    retriever = llama_index_ext.D3Retriever([LlamaIndexDocument(text=TEXT)], top_n=2, settings={"unit": "paragraph"})
    reranker = llama_index_ext.UPRRerank(top_n=1)
    engine = RetrieverQueryEngine.from_args(retriever, llm=MockLLM(max_tokens=3), node_postprocessors=[reranker])
    asyncio.run(engine.aquery(QUESTION)) if asynchronous else engine.query(QUESTION)
    names = [span.id_.partition("-")[0] for span in spans.completed_spans]
    drilled, ranked = f"D3Retriever.{'aretrieve' if asynchronous else '_retrieve'}", "UPRRerank._postprocess_nodes"
    assert {drilled, ranked} <= set(names)
    assert not [name for name in names if name.startswith(("D3", "UPR")) and name.endswith("_found")]
    assert not spans.open_spans
    assert not spans.dropped_spans
    [start], [end] = events.told[ranked]["ReRankStartEvent"], events.told[ranked]["ReRankEndEvent"]
    assert (len(start.nodes), start.top_n, start.model_name, len(end.nodes)) == (2, 1, "unigram", 1)
    [step], [end] = events.told[drilled]["D3StepEvent"], events.told[drilled]["D3EndEvent"]
    assert (step.kind, step.n_candidates, len(step.chosen)) == ("likelihood", 3, 2)
    assert (end.usage["llm_calls"], end.problems) == (0, [])


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("name", ["UPRRerank", "PromptRankRerank"])
def test_runs_of_langchain(asynchronous, name):
    runs = Runs()
    reranker = getattr(langchain_ext, name)(top_n=1)
    retriever = ContextualCompressionRetriever(
        base_retriever=langchain_ext.D3Retriever([Document(TEXT)], top_n=2, settings={"unit": "paragraph"}),
        base_compressor=reranker,
    )
    config = {"callbacks": [runs]}
    found = asyncio.run(retriever.ainvoke(QUESTION, config)) if asynchronous else retriever.invoke(QUESTION, config)
    [root] = runs.roots
    [run] = below(root, name)
    counts = {name: value for name, value in run.extra["metadata"].items() if name.startswith("drillrank_")}
    assert counts == {"drillrank_candidates": 2, "drillrank_top_n": 1, "drillrank_model": "unigram"}
    assert (run.inputs["query"], len(run.inputs["documents"]), run.outputs["output"]) == (QUESTION, 2, found)
    [drilled] = below(root, "D3Retriever")
    assert (drilled.run_type, len(drilled.outputs["documents"])) == ("retriever", 2)
    told = {event: data for event, data, run in runs.told if run == drilled.id}
    assert (told["d3_step"]["n_candidates"], len(told["d3_step"]["chosen"]), told["d3_end"]["llm_calls"]) == (3, 2, 0)


def test_a_failed_rerank_is_a_failed_run():
    runs = Runs()
    failing = langchain_ext.PromptRankRerank(source=RunnableLambda(lambda question: 1 / 0))
    with pytest.raises(ZeroDivisionError):
        failing.compress_documents([Document(TEXT)], QUESTION, callbacks=[runs])
    assert "ZeroDivisionError" in runs.roots[0].error
