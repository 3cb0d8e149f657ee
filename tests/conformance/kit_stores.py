"""Stores of both frameworks for the kit of `drillrank.testing`. A subclass says which vector store is filled."""

from __future__ import annotations

from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import NodeRelationship, QueryBundle, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters

from drillrank.testing import RecordStoreTests
from langchain_ext._filters import DocumentFilter
from langchain_ext._store import LangChainStore
from llama_index_ext._filters import NodeFilter
from llama_index_ext._store import LlamaIndexStore
from tests.conformance.frameworks import NodeEmbedding


class SampleEmbeddings(Embeddings):
    """The kit's embedding function as a model of LangChain, which embeds on threads."""

    def __init__(self, embed: Any) -> None:
        self._embed = embed

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[float(number) for number in vector] for vector in self._embed(texts)]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


class FilledVectorStore:
    """How the kit fills a vector store of LangChain, by default the one in memory."""

    def make_vector_store(self, embeddings: Embeddings) -> Any:
        """Return an empty vector store."""
        return InMemoryVectorStore(embeddings)

    def make_store(self, chunks: Any, embed: Any) -> Any:
        store = self.make_vector_store(SampleEmbeddings(embed))
        self.add(store, chunks)
        return store

    def add(self, store: Any, chunks: Any) -> None:
        if documents := list(map(sample_document, chunks)):
            store.add_documents(documents, ids=[document.id for document in documents])

    def delete(self, store: Any, chunks: Any) -> None:
        store.delete([chunk.record.id for chunk in chunks])


class LangChainStoreTests(FilledVectorStore, RecordStoreTests):
    """Store kit over a vector store of LangChain."""

    def open_store(self, store: Any, tenant: str | None) -> LangChainStore:
        return LangChainStore(store, DocumentFilter(None if tenant is None else {"tenant": tenant}))


class FilledIndex:
    """How the kit fills an index of LlamaIndex, by default one with its vector store in memory."""

    def make_index(self, model: Any) -> VectorStoreIndex:
        """Return an empty index."""
        return VectorStoreIndex([], embed_model=model)

    def make_store(self, chunks: Any, embed: Any) -> VectorStoreIndex:
        index = self.make_index(NodeEmbedding(lambda text: [float(number) for number in embed([text])[0]]))
        self.add(index, chunks)
        return index

    def add(self, store: Any, chunks: Any) -> None:
        store.insert_nodes(list(map(sample_node, chunks)))

    def delete(self, store: Any, chunks: Any) -> None:
        store.delete_nodes([chunk.record.id for chunk in chunks], delete_from_docstore=True)


class LlamaIndexStoreTests(FilledIndex, RecordStoreTests):
    """Store kit over an index of LlamaIndex."""

    def open_store(self, store: Any, tenant: str | None) -> LlamaIndexStore:
        return LlamaIndexStore(QueryBundle(""), store, NodeFilter(tenant_filters(tenant)))


def tenant_filters(tenant: str | None) -> MetadataFilters | None:
    """The filters for what a tenant may see; None for all."""
    return None if tenant is None else MetadataFilters(filters=[MetadataFilter(key="tenant", value=tenant)])


def sample_document(chunk: Any) -> Document:
    """A chunk of the kit as the document that our splitter makes of it."""
    return Document(chunk.record.text, id=chunk.record.id, metadata=dict(chunk.record.metadata))


def sample_node(chunk: Any) -> TextNode:
    """A chunk of the kit as the node that our parser makes of it."""
    record = chunk.record
    node = TextNode(text=record.text, id_=record.id, metadata=dict(record.metadata))
    if record.document_id is not None:
        node.start_char_idx, node.end_char_idx = chunk.start, chunk.end
        kinds = {"parent_id": NodeRelationship.PARENT, "previous_id": NodeRelationship.PREVIOUS}
        kinds |= {"next_id": NodeRelationship.NEXT}
        node.relationships = {kinds[name]: RelatedNodeInfo(node_id=id_) for name, id_ in chunk.links.items()}
        node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=record.document_id)
    return node
