"""What the calls of `hosts` need of LangChain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import SimpleChatModel
from langchain_core.messages import BaseMessage
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore
from pydantic import PrivateAttr

from . import hosts, rerank
from .building import build, imported
from .data import candidates, read
from .taking import CONVERTERS, Recorder, ScriptedLLM, embed


class Words(Embeddings):
    """Vectors of words."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Of texts."""
        return embed(texts).tolist()

    def embed_query(self, text: str) -> list[float]:
        """Of a question."""
        return embed([text])[0].tolist()


class Scripted(SimpleChatModel):
    """Answers by a script."""

    _script: ScriptedLLM = PrivateAttr()

    def __init__(self, script: ScriptedLLM) -> None:
        super().__init__()
        self._script = script

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _call(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> str:  # noqa: ARG002
        return self._script.complete(str(messages[-1].content))


class Ears(BaseCallbackHandler):
    """Hears the adapter's events."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:  # noqa: ARG002
        """Keep what an event says."""
        self._recorder.events.append({"event": name, "data": data})

    def on_retriever_start(self, serialized: Any, query: str, **kwargs: Any) -> None:  # noqa: ARG002
        """A retriever is asked."""
        self._recorder.events.append({"event": "retriever", "query": query})


class LangChain(hosts.Host):
    """Documents, vector stores, compressors, runnables."""

    package, given, filters = "langchain_ext", "documents", "filter"
    splitter, answerer = "MultiViewTextSplitter", "SelfAskChain"

    @property
    def reads(self) -> dict[str, Any]:
        """The title and, of other metadata, the page."""
        return {"score_key": "relevance_score", "title_key": "title", "metadata_fields": ("page",)}

    @property
    def reads_of_paths(self) -> dict[str, Any]:
        """The title alone."""
        return {"score_key": "relevance_score", "metadata_fields": ()}

    def document(self, text: hosts.Text) -> Document:
        """A document."""
        return Document(text.text, id=text.id, metadata=dict(text.metadata))

    def record(self, text: hosts.Text) -> Document:
        """A document with the score of its retrieval."""
        score = {} if text.score is None else {"relevance_score": text.score}
        return Document(text.text, id=text.id, metadata={**text.metadata, **score})

    def records(self, texts: Sequence[hosts.Text]) -> list[Document]:
        """Documents."""
        return list(map(self.document, texts))

    def store(self, records: Sequence[Any]) -> InMemoryVectorStore:
        """A vector store in memory."""
        store = InMemoryVectorStore(Words())
        store.add_documents([record.model_copy(deep=True) for record in records])
        return store

    def retriever(self, store: Any, k: int, view: str | None = None) -> Any:
        """A vector store's retriever, of one view if that is wanted."""

        def of_view(document: Document) -> bool:
            return document.metadata.get("drillrank_view") == view

        return store.as_retriever(search_kwargs={"k": k} | ({"filter": of_view} if view else {}))

    def by_key(self, records: Sequence[Any]) -> InMemoryStore:
        """A store by key."""
        store = InMemoryStore()
        store.mset([(record.id, record) for record in records])
        return store

    def llm(self, script: ScriptedLLM) -> Scripted:
        """A chat model."""
        return Scripted(script)

    def of_tenant(self, tenant: str) -> dict[str, Any]:
        """A filter by metadata."""
        return {"tenant": tenant}

    def reranked(self, component: Any, query: str, records: Sequence[Any], *, awaited: bool = False) -> Any:
        """By a compressor."""
        call = component.acompress_documents if awaited else component.compress_documents
        return call(list(records), query)

    def found(self, component: Any, query: str, *, awaited: bool = False) -> Any:
        """By a retriever."""
        if awaited:
            return component.ainvoke(query)
        return component.invoke(query, config={"callbacks": [Ears(self.recorder)]})

    def split(self, component: Any, documents: Sequence[Any], *, awaited: bool = False) -> Any:
        """By a text splitter."""
        return component.atransform_documents(documents) if awaited else component.split_documents(documents)

    def answered(self, component: Any, query: str, *, awaited: bool = False) -> Any:
        """By a chain."""
        return self.found(component, query, awaited=awaited)


def _converted(value: Any) -> Any:
    if not isinstance(value, Document):
        return NotImplemented
    metadata = dict(value.metadata)
    if "drillrank_explanation" in metadata:
        metadata["drillrank_explanation"] = hosts.explanation(metadata["drillrank_explanation"])
    return {"id": value.id, "text": value.page_content, "metadata": metadata}


def _host(recorder: Recorder) -> LangChain:
    CONVERTERS.append(_converted)
    return LangChain(recorder)


def rerankers(recorder: Recorder) -> None:
    """Document compressors, and the cross encoder."""
    hosts.rerankers(_host(recorder))
    encoder = build(
        imported("langchain_ext:LikelihoodCrossEncoder"), model=rerank.fitted("nq"), template=rerank.UPR_TEMPLATE
    )
    for item in recorder.some(read("rerank/nq"), 10):
        pairs = [(item["question"], passage.text) for passage in candidates("nq", item, 5)]
        recorder.take(f"LikelihoodCrossEncoder/{item['id']}", lambda: encoder.score(pairs))


def retrievers(recorder: Recorder) -> None:
    """Text splitters, retrievers and chains."""
    hosts.retrievers(_host(recorder))
