"""Components of LangChain in the kit of `drillrank.testing`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document

from drillrank.testing import Event, RerankerTests, Result, RetrieverTests
from tests.conformance.kit_stores import FilledVectorStore


class EventCollector(BaseCallbackHandler):
    """Collects what callback handlers are told of chains, retrievers and LLMs."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
        self.events.append(Event("start", repr(inputs)))

    def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:
        self.events.append(Event("end", repr(outputs)))

    def on_chain_error(self, error: BaseException, **kwargs: Any) -> None:
        self.events.append(Event("error", str(error)))

    def on_retriever_start(self, serialized: Any, query: str, **kwargs: Any) -> None:
        self.events.append(Event("start", query))

    def on_retriever_end(self, documents: Any, **kwargs: Any) -> None:
        self.events.append(Event("end", repr(documents)))

    on_retriever_error = on_chain_error

    def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
        self.events.append(Event("other", repr(data)))


_collector: ContextVar[EventCollector | None] = ContextVar("collector", default=None)


@contextmanager
def collected_events() -> Iterator[list[Event]]:
    """The events of what is invoked meanwhile."""
    collector = EventCollector()
    token = _collector.set(collector)
    try:
        yield collector.events
    finally:
        _collector.reset(token)


def config() -> Any:
    return {"callbacks": [collector] if (collector := _collector.get()) else []}


def results(documents: list[Document], score_key: str = "relevance_score") -> list[Result]:
    return [Result(one.id, one.page_content, one.metadata.get(score_key), one.metadata) for one in documents]


class LangChainRerankerTests(RerankerTests):
    """Reranker kit over a document compressor."""

    def make_record(self, id: str, text: str, metadata: Any) -> Document:
        return Document(text, id=id, metadata=dict(metadata))

    def rerank(self, reranker: Any, question: str, records: Any) -> list[Result]:
        return results(reranker.compress_documents(records, question))

    async def arerank(self, reranker: Any, question: str, records: Any) -> list[Result]:
        return results(await reranker.acompress_documents(records, question))


class LangChainRetrieverTests(FilledVectorStore, RetrieverTests):
    """Retriever kit over a retriever on a vector store."""

    def retrieve(self, retriever: Any, question: str) -> list[Result]:
        return results(retriever.invoke(question, config()))

    async def aretrieve(self, retriever: Any, question: str) -> list[Result]:
        return results(await retriever.ainvoke(question, config()))

    def listen(self) -> Any:
        return collected_events()
