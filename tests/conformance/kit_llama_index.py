"""Components of LlamaIndex in the kit of `drillrank.testing`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.schema import NodeWithScore, TextNode
from pydantic import PrivateAttr

from drillrank.testing import Event, RerankerTests, Result, RetrieverTests
from tests.conformance.kit_stores import FilledIndex

_SUFFIXES = {"StartEvent": "start", "EndEvent": "end", "ExceptionEvent": "error", "SpanDropEvent": "error"}


class EventCollector(BaseEventHandler):
    """Collects the events of one kind of component, and the texts of all others."""

    _events: list[Event] = PrivateAttr(default_factory=list)
    _prefix: str = PrivateAttr()

    def __init__(self, prefix: str) -> None:
        super().__init__()
        self._prefix = prefix

    def handle(self, event: Any, **kwargs: Any) -> None:
        name = event.class_name()
        kinds = [kind for suffix, kind in _SUFFIXES.items() if name in (self._prefix + suffix, suffix)]
        self._events.append(Event(kinds[0] if kinds else "other", repr(event.model_dump())))


@contextmanager
def collected_events(prefix: str) -> Iterator[list[Event]]:
    """The events that are sent meanwhile; those whose names begin with the prefix are the component's."""
    handler, dispatcher = EventCollector(prefix), get_dispatcher()
    dispatcher.add_event_handler(handler)
    try:
        yield handler._events
    finally:
        dispatcher.event_handlers.remove(handler)


def results(hits: list[NodeWithScore]) -> list[Result]:
    return [Result(hit.node_id, hit.node.get_content(), hit.score, hit.node.metadata) for hit in hits]


class LlamaIndexRerankerTests(RerankerTests):
    """Reranker kit over a node postprocessor. As the framework's own ones, it returns the nodes that it was given."""

    returns_given_records = True

    def make_record(self, id: str, text: str, metadata: Any) -> NodeWithScore:
        return NodeWithScore(node=TextNode(text=text, id_=id, metadata=dict(metadata)), score=0.5)

    def rerank(self, reranker: Any, question: str, records: Any) -> list[Result]:
        return results(reranker.postprocess_nodes(records, query_str=question))

    async def arerank(self, reranker: Any, question: str, records: Any) -> list[Result]:
        return results(await reranker.apostprocess_nodes(records, query_str=question))

    def listen(self) -> Any:
        return collected_events("ReRank")


class LlamaIndexRetrieverTests(FilledIndex, RetrieverTests):
    """Retriever kit over a retriever on an index."""

    ignored_loggers = ("llama_index.vector_stores",)  # of the rows that they found

    def retrieve(self, retriever: Any, question: str) -> list[Result]:
        return results(retriever.retrieve(question))

    async def aretrieve(self, retriever: Any, question: str) -> list[Result]:
        return results(await retriever.aretrieve(question))

    def listen(self) -> Any:
        return collected_events("Retrieval")
