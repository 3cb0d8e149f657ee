"""An LLM that gives no answer, as each framework's retries, fallbacks and traces see it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableLambda
from llama_index.core import Document as NodesDocument
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.callbacks.schema import EventPayload
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers.base import BaseEventHandler
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from pydantic import PrivateAttr

import langchain_ext
import llama_index_ext
from drillrank.errors import LLMFailure
from tests.conformance.langchain_reader import AsyncReader, Reader
from tests.conformance.llama_index_reader import ChatReader
from tests.conformance.readers import everything

TEXT = "# Foxes\n\nFoxes hunt mice.\n\n# Owls\n\nOwls hoot at night."
QUESTION = "What do foxes hunt?"
PARAGRAPHS = {"unit": "paragraph"}
asynchronous = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])


class Flaky:
    """Has no answer to the first `n` prompts."""

    def __init__(self, n: int) -> None:
        self.n_failures, self.n_calls = n, 0

    def __call__(self, prompt: str) -> str:
        self.n_calls += 1
        if self.n_calls <= self.n_failures:
            raise ConnectionError("no route")
        if "section names" in prompt or "paragraph ids" in prompt:
            return everything(prompt)
        return "So the final answer is: mice" if prompt.endswith("here:") else "[Foxes hunt mice]"


# LangChain


def document_source() -> langchain_ext.D3Retriever:
    return langchain_ext.D3Retriever([Document(TEXT)], settings=PARAGRAPHS)


RUNNABLES = {
    "D3Retriever": lambda llm: langchain_ext.D3Retriever([Document(TEXT)], llm=llm, settings=PARAGRAPHS),
    "BRMGRRetriever": lambda llm: langchain_ext.BRMGRRetriever(source=document_source(), llm=llm),
    "PromptRankRetriever": lambda llm: langchain_ext.PromptRankRetriever(source=document_source(), llm=llm),
    "SelfAskChain": lambda llm: langchain_ext.SelfAskChain(source=document_source(), llm=llm),
    "MultiViewTextSplitter": lambda llm: RunnableLambda(langchain_ext.MultiViewTextSplitter(llm=llm).split_documents),
}
each_runnable = pytest.mark.parametrize("name", RUNNABLES)


def ask(runnable: Runnable[Any, Any], name: str, asynchronous: bool, config: Any = None) -> Any:
    given = [Document(TEXT)] if name == "MultiViewTextSplitter" else QUESTION
    return asyncio.run(runnable.ainvoke(given, config)) if asynchronous else runnable.invoke(given, config)


@asynchronous
@each_runnable
@pytest.mark.parametrize("kind", [Reader, AsyncReader], ids=["blocking LLM", "asynchronous LLM"])
def test_with_retry_asks_again_after_an_outage(name, kind, asynchronous):
    policy = {"retry_if_exception_type": (LLMFailure,), "wait_exponential_jitter": False, "stop_after_attempt": 2}
    flaky = Flaky(1)
    expected = ask(RUNNABLES[name](kind(answer=Flaky(0))), name, asynchronous)
    assert ask(RUNNABLES[name](kind(answer=flaky)).with_retry(**policy), name, asynchronous) == expected
    assert flaky.n_calls > 1
    with pytest.raises(LLMFailure, match="no route"):
        ask(RUNNABLES[name](kind(answer=Flaky(99))).with_retry(**policy), name, asynchronous)


@asynchronous
@each_runnable
def test_with_fallbacks_asks_the_next_component_after_an_outage(name, asynchronous):
    runnable = RUNNABLES[name](Reader(answer=Flaky(99)))
    second = RunnableLambda(lambda given: "from the fallback")
    assert ask(runnable.with_fallbacks([second]), name, asynchronous) == "from the fallback"
    other = RUNNABLES[name](Reader(answer=Flaky(0)))
    assert ask(runnable.with_fallbacks([other], exceptions_to_handle=(LLMFailure,)), name, asynchronous)


class Errors(BaseCallbackHandler):
    """Collects the errors of runs."""

    def __init__(self) -> None:
        self.errors: list[BaseException] = []

    def on_retriever_error(self, error: BaseException, **kwargs: Any) -> None:
        self.errors.append(error)

    on_chain_error = on_retriever_error


@asynchronous
@pytest.mark.parametrize("name", [name for name in RUNNABLES if name != "MultiViewTextSplitter"])
def test_the_run_of_the_component_ends_with_the_error_and_its_cause(name, asynchronous):
    log = Errors()
    with pytest.raises(LLMFailure) as caught:
        ask(RUNNABLES[name](Reader(answer=Flaky(99))), name, asynchronous, {"callbacks": [log]})
    assert log.errors[-1] is caught.value
    assert isinstance(caught.value.__cause__, ConnectionError)
    assert QUESTION not in str(caught.value)
    assert 'on_failure="fallback"' in str(caught.value)


@asynchronous
def test_a_splitter_that_is_asked_again_sends_only_the_prompts_without_an_answer(asynchronous):
    flaky = Flaky(0)

    def second_call_fails(prompt: str) -> str:
        flaky.n_failures = 2 * (flaky.n_calls == 1)
        return flaky(prompt)

    splitter = langchain_ext.MultiViewTextSplitter(llm=Reader(answer=second_call_fails), settings={"workers": 1})
    runnable = RunnableLambda(splitter.split_documents).with_retry(wait_exponential_jitter=False)
    assert ask(runnable, "MultiViewTextSplitter", asynchronous)
    assert flaky.n_calls == 3  # two sections, and the call that failed


# LlamaIndex


def node_source() -> llama_index_ext.D3Retriever:
    return llama_index_ext.D3Retriever([NodesDocument(text=TEXT)], settings=PARAGRAPHS)


RETRIEVERS = {
    "D3Retriever": lambda llm, **more: llama_index_ext.D3Retriever(
        [NodesDocument(text=TEXT)], llm, settings=PARAGRAPHS, **more
    ),
    "BRMGRRetriever": lambda llm, **more: llama_index_ext.BRMGRRetriever(node_source(), llm, **more),
    "PromptRankRetriever": lambda llm, **more: llama_index_ext.PromptRankRetriever(
        source=node_source(), llm=llm, **more
    ),
}
each_retriever = pytest.mark.parametrize("name", RETRIEVERS)


class Events(BaseEventHandler):
    """Collects all events."""

    _events: list[Any] = PrivateAttr(default_factory=list)

    def handle(self, event: Any, **kwargs: Any) -> None:
        self._events.append(event)


@pytest.fixture
def events() -> Iterator[list[Any]]:
    handler, root = Events(), get_dispatcher("root")
    root.add_event_handler(handler)
    yield handler._events
    root.event_handlers.remove(handler)


class Fails(BaseRetriever):
    """A retriever of LlamaIndex's own kind that raises an error."""

    def _retrieve(self, query_bundle: Any) -> Any:
        raise ConnectionError("no route")


def retrieve(retriever: Any, asynchronous: bool) -> Any:
    return asyncio.run(retriever.aretrieve(QUESTION)) if asynchronous else retriever.retrieve(QUESTION)


def last_events(retriever: Any, asynchronous: bool, events: list[Any], debug: LlamaDebugHandler) -> tuple[Any, ...]:
    """Return the error of a retrieval, the names of the dropped spans, and the ends of the legacy events."""
    events.clear()
    debug.flush_event_logs()
    with pytest.raises((LLMFailure, ConnectionError)) as caught:
        retrieve(retriever, asynchronous)
    drops = [event for event in events if event.class_name() == "SpanDropEvent"]
    own = [event for event in drops if event.err_str == str(caught.value)]
    methods = [event.span_id.partition(".")[2].partition("-")[0] for event in own]
    [[_, end]] = debug.get_event_pairs(CBEventType.RETRIEVE)
    return caught.value, methods, (end.payload or {}).get(EventPayload.EXCEPTION)


@asynchronous
@each_retriever
def test_an_outage_ends_a_retrieval_as_an_error_of_the_framework_does(name, asynchronous, events):
    debug = LlamaDebugHandler(print_trace_on_end=False)
    manager = CallbackManager([debug])
    error, methods, exception = last_events(Fails(manager), asynchronous, events, debug)
    assert exception is error
    retriever = RETRIEVERS[name](ChatReader(Flaky(99)), callback_manager=manager)
    own_error, own_methods, exception = last_events(retriever, asynchronous, events, debug)
    assert isinstance(own_error, LLMFailure)
    assert isinstance(own_error.__cause__, ConnectionError)
    assert exception is own_error
    assert own_methods[-1] == methods[-1]


@asynchronous
def test_an_outage_comes_out_of_query_engines_and_pipelines(asynchronous, events):
    llm = ChatReader(Flaky(99))
    engine = RetrieverQueryEngine.from_args(RETRIEVERS["D3Retriever"](llm), llm=llm)
    self_ask = llama_index_ext.SelfAskQueryEngine(node_source(), llm)
    for step, asked in (("choose sections", engine), ("ask a follow-up question", self_ask)):
        with pytest.raises(LLMFailure, match=f"{step}.*no route") as caught:
            asyncio.run(asked.aquery(QUESTION)) if asynchronous else asked.query(QUESTION)
        assert [event.err_str for event in events if event.class_name() == "SpanDropEvent"][-1] == str(caught.value)
    pipeline = IngestionPipeline(transformations=[llama_index_ext.MultiViewNodeParser(llm=llm)])
    documents = [NodesDocument(text=TEXT)]
    with pytest.raises(LLMFailure, match="write keywords and summaries"):
        asyncio.run(pipeline.arun(documents=documents)) if asynchronous else pipeline.run(documents=documents)


def test_a_second_retrieval_finds_what_the_outage_withheld():
    retriever = RETRIEVERS["D3Retriever"](ChatReader(Flaky(1)))
    with pytest.raises(LLMFailure):
        retriever.retrieve(QUESTION)
    assert "Foxes hunt mice." in {hit.text for hit in retriever.retrieve(QUESTION)}
