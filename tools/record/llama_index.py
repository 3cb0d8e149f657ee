"""What the calls of `hosts` need of LlamaIndex."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core import Document, VectorStoreIndex
from llama_index.core.base.response.schema import Response
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters
from pydantic import PrivateAttr

from . import hosts
from .taking import CONVERTERS, Recorder, ScriptedLLM, embed


class Words(BaseEmbedding):
    """Vectors of words."""

    def _get_text_embedding(self, text: str) -> list[float]:
        return embed([text])[0].tolist()

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


class Scripted(CustomLLM):
    """Answers by a script."""

    _script: ScriptedLLM = PrivateAttr()

    def __init__(self, script: ScriptedLLM) -> None:
        super().__init__()
        self._script = script

    @property
    def metadata(self) -> LLMMetadata:
        """Of no model."""
        return LLMMetadata(model_name="scripted")

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:  # noqa: ARG002
        """The next answer."""
        return CompletionResponse(text=self._script.complete(prompt))

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        """Not asked for."""
        raise NotImplementedError


class Ears(BaseEventHandler):
    """Hears the adapter's events, while a synchronous call runs."""

    _recorder: Recorder = PrivateAttr()

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder

    @classmethod
    def class_name(cls) -> str:
        """Its name."""
        return cls.__name__

    def handle(self, event: Any, **kwargs: Any) -> None:  # noqa: ARG002
        """Keep what an event says."""
        if not type(event).__module__.startswith("llama_index_ext"):
            return
        told = event.model_dump(exclude={"id_", "timestamp", "span_id", "tags", "class_name"})
        if "explanations" in told:
            told["explanations"] = list(map(hosts.explanation, told["explanations"]))
            told["tree"] = len(told["tree"])
        self._recorder.events.append({"event": type(event).__name__, **told})


class LlamaIndex(hosts.Host):
    """Nodes, indexes, postprocessors."""

    package, given, filters = "llama_index_ext", "nodes", "filters"
    splitter, answerer = "MultiViewNodeParser", "SelfAskQueryEngine"

    @property
    def reads(self) -> dict[str, Any]:
        """Metadata as an embedding would."""
        return {"metadata_mode": MetadataMode.EMBED, "keep_retrieval_score": False}

    @property
    def reads_of_paths(self) -> dict[str, Any]:
        """The title alone."""
        return {"metadata_mode": MetadataMode.NONE}

    def document(self, text: hosts.Text) -> Document:
        """A document."""
        return Document(text=text.text, id_=text.id, metadata=dict(text.metadata))

    def record(self, text: hosts.Text) -> NodeWithScore:
        """A node with its score."""
        node = TextNode(text=text.text, id_=text.id, metadata=dict(text.metadata))
        return NodeWithScore(node=node, score=text.score)

    def records(self, texts: Sequence[hosts.Text]) -> list[TextNode]:
        """Nodes."""
        return [TextNode(text=text.text, id_=text.id, metadata=dict(text.metadata)) for text in texts]

    def store(self, records: Sequence[Any]) -> VectorStoreIndex:
        """An index in memory."""
        return VectorStoreIndex([record.model_copy(deep=True) for record in records], embed_model=Words())

    def retriever(self, store: Any, k: int, view: str | None = None) -> Any:
        """A vector retriever, of one view if that is wanted."""
        filters = MetadataFilters(filters=[MetadataFilter(key="drillrank_view", value=view)]) if view else None
        return store.as_retriever(similarity_top_k=k, filters=filters)

    def by_key(self, records: Sequence[Any]) -> SimpleDocumentStore:
        """A document store."""
        store = SimpleDocumentStore()
        store.add_documents(list(records))
        return store

    def llm(self, script: ScriptedLLM) -> Scripted:
        """A custom LLM."""
        return Scripted(script)

    def of_tenant(self, tenant: str) -> MetadataFilters:
        """Metadata filters."""
        return MetadataFilters(filters=[MetadataFilter(key="tenant", value=tenant)])

    def reranked(self, component: Any, query: str, records: Sequence[Any], *, awaited: bool = False) -> Any:
        """By a postprocessor."""
        call = component.apostprocess_nodes if awaited else component.postprocess_nodes
        return call(list(records), query_str=query)

    def found(self, component: Any, query: str, *, awaited: bool = False) -> Any:
        """By a retriever."""
        return component.aretrieve(query) if awaited else component.retrieve(query)

    def split(self, component: Any, documents: Sequence[Any], *, awaited: bool = False) -> Any:
        """By a node parser."""
        call = component.aget_nodes_from_documents if awaited else component.get_nodes_from_documents
        return call(list(documents))

    def answered(self, component: Any, query: str, *, awaited: bool = False) -> Any:
        """By a query engine."""
        return component.aquery(query) if awaited else component.query(query)


def _converted(value: Any) -> Any:
    if isinstance(value, NodeWithScore):
        return {"id": value.node.node_id, "score": value.score, **_converted(value.node)}
    if isinstance(value, BaseNode):
        return {
            "id": value.node_id,
            "text": value.get_content(),
            "shown": value.get_content(MetadataMode.LLM),
            "indexed": value.get_content(MetadataMode.EMBED),
            "metadata": value.metadata,
            "span": [getattr(value, "start_char_idx", None), getattr(value, "end_char_idx", None)],
            "document": value.ref_doc_id,
            "relationships": {
                kind.name: [one.node_id for one in related] if isinstance(related, list) else related.node_id
                for kind, related in value.relationships.items()
            },
        }
    if isinstance(value, Response):
        return {"answer": str(value), "metadata": value.metadata, "nodes": list(value.source_nodes)}
    return NotImplemented


def _host(recorder: Recorder) -> LlamaIndex:
    CONVERTERS.append(_converted)
    get_dispatcher("root").add_event_handler(Ears(recorder))
    return LlamaIndex(recorder)


def rerankers(recorder: Recorder) -> None:
    """Node postprocessors."""
    hosts.rerankers(_host(recorder))


def retrievers(recorder: Recorder) -> None:
    """Node parsers, retrievers and query engines."""
    hosts.retrievers(_host(recorder))
