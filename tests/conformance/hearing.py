"""All that comes out of a component of either host: results, prompts, events, spans, logs, warnings and errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.span_handlers import SimpleSpanHandler
from pydantic import PrivateAttr

from drillrank.frameworks.metadata import result_metadata
from drillrank.testing.listening import Heard, listening
from llama_index_ext import SelfAskQueryEngine
from tests.conformance.frameworks import LangChain

_STORES_LOGS = "llama_index.vector_stores"  # of the rows that they found
_SEARCHES_LOG = "llama_index.core.indices.utils"
_THEIRS = "VectorIndexRetriever."


class Callbacks(BaseCallbackHandler):
    """Hears what handlers are told; but not what a user's own retriever without a filter brings."""

    def __init__(self, heard: Heard, unheard: bool) -> None:
        self._heard, self._unheard, self._theirs = heard, unheard, set[Any]()

    def on_retriever_start(self, serialized: Any, query: str, *, run_id: Any, name: str = "", **kwargs: Any) -> None:
        if self._unheard and name == "VectorStoreRetriever":
            self._theirs.add(run_id)

    def on_retriever_end(self, documents: Any, *, run_id: Any, **kwargs: Any) -> None:
        if run_id not in self._theirs:
            self._heard.note("end of a retriever", *documents)

    def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
        self._heard.note(f"event {name}", data)

    def on_llm_start(self, serialized: Any, prompts: list[str], **kwargs: Any) -> None:
        self._heard.note("prompt", *prompts)

    def on_chat_model_start(self, serialized: Any, messages: Any, **kwargs: Any) -> None:
        self._heard.note("prompt", messages)

    def on_chain_end(self, outputs: Any, *, parent_run_id: Any = None, **kwargs: Any) -> None:
        if not self._unheard:  # a step of a chain may be the user's own retriever
            self._heard.note("end of a chain", outputs)

    def on_retriever_error(self, error: BaseException, **kwargs: Any) -> None:
        self._heard.note("error", str(error))

    on_chain_error = on_llm_error = on_retriever_error


class Events(BaseEventHandler):
    """Hears events; but not those of a user's own retriever without a filter."""

    _heard: Heard = PrivateAttr()
    _unheard: bool = PrivateAttr()

    def __init__(self, heard: Heard, unheard: bool) -> None:
        super().__init__()
        self._heard, self._unheard = heard, unheard

    def handle(self, event: Any, **kwargs: Any) -> None:
        if not (self._unheard and str(event.span_id).startswith(_THEIRS)):
            self._heard.note(f"event {event.class_name()}", event.model_dump())


class Spans(SimpleSpanHandler):
    """Hears what our components return, step by step."""

    _heard: Heard = PrivateAttr()

    def __init__(self, heard: Heard) -> None:
        super().__init__()
        self._heard = heard

    def prepare_to_exit_span(
        self, id_: str, bound_args: Any, instance: Any = None, result: Any = None, **kwargs: Any
    ) -> Any:
        if type(instance).__module__.startswith("llama_index_ext.") and not id_.startswith(_THEIRS):
            self._heard.note(f"span {id_}", result)
        return super().prepare_to_exit_span(id_, bound_args, instance, result, **kwargs)


@contextmanager
def instrumented(heard: Heard, unheard: bool) -> Any:
    """Events and spans of what happens meanwhile."""
    dispatcher = get_dispatcher()
    before = dispatcher.event_handlers, dispatcher.span_handlers
    dispatcher.event_handlers = [*before[0], Events(heard, unheard)]
    dispatcher.span_handlers = [*before[1], Spans(heard)]
    try:
        yield
    finally:
        dispatcher.event_handlers, dispatcher.span_handlers = before


async def ask(host: Any, component: Any, question: str, llm: Any, theirs: bool, asynchronous: bool) -> Heard:
    """What is heard when a component is asked; over their own retriever without a filter, not what that says."""
    if host is LangChain:
        with listening() as heard:
            config: Any = {"callbacks": [Callbacks(heard, unheard=theirs)]}
            outcome = await component.ainvoke(question, config) if asynchronous else component.invoke(question, config)
            found = outcome
            if isinstance(outcome, dict):
                heard.note("output", outcome)
                found = [document for step in outcome["steps"] for document in step["documents"]]
            _hear_results(heard, ((one.metadata, one.page_content) for one in found))
    else:
        with listening(_STORES_LOGS, *([_SEARCHES_LOG] * theirs)) as heard, instrumented(heard, theirs):
            if isinstance(component, SelfAskQueryEngine):
                response = await component.aquery(question) if asynchronous else component.query(question)
                heard.note("output", str(response), response.metadata)
                found = response.source_nodes
            else:
                found = await component.aretrieve(question) if asynchronous else component.retrieve(question)
            _hear_results(heard, ((hit.metadata, hit.get_content()) for hit in found))
    prompts = (llm.crowd if host is LangChain else llm._crowd).prompts
    heard.note("prompt", *prompts)
    prompts.clear()
    return heard


def _hear_results(heard: Heard, found: Iterator[tuple[dict[str, Any], str]]) -> None:
    for metadata, text in found:
        heard.note("metadata", metadata)
        if result_metadata(metadata).get("origin") != "generated":
            heard.results.append(text)
