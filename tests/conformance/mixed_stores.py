"""Stores in which sections of ours and chunks of other splitters stand together, in both hosts."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.documents import Document as LangChainDocument
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import Document as LlamaIndexDocument
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters

import langchain_ext
import llama_index_ext
from drillrank.hosts.metadata import result_metadata
from tests.conformance.text_store import TextStore

Kind = Literal["new", "foreign"]
QUESTION = "question"


def nearness(text: str) -> float:
    """Of a text to the question: any number between 0 and 1, the same in every run, and another for each text."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / 2**48


def vector(text: str) -> list[float]:
    """Whose cosine with that of the question is the text's nearness."""
    near = 1.0 if text == QUESTION else nearness(text)
    return [near, math.sqrt(1 - near * near)]


class NearEmbeddings(Embeddings):
    """Of LangChain; counts questions."""

    def __init__(self) -> None:
        self.questions = 0

    def embed_query(self, text: str) -> list[float]:
        self.questions += 1
        return vector(text)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [vector(text) for text in texts]


class NearEmbedding(BaseEmbedding):
    """Of LlamaIndex; counts questions."""

    questions: int = 0

    def _get_text_embedding(self, text: str) -> list[float]:
        return vector(text)

    def _get_query_embedding(self, query: str) -> list[float]:
        self.questions += 1
        return vector(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


@dataclass
class Row:
    """A record, as the model of a store knows it."""

    kind: Kind
    tenant: str
    section: str
    view: str
    text: str


class Host:
    """A store of a host, and the rows that are in it."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.searches = 0

    def fill(self, kind: Kind, document: str, sections: int, tenant: str) -> None:
        """Store a document of so many sections, or a splitter's chunks of one."""
        heads = [f"{document} part {number}" for number in range(sections)]
        text = "".join(f"# {head}\n\nIn {head} word{number} is said.\n\n" for number, head in enumerate(heads))
        records = self.chunks(heads, document, tenant) if kind == "foreign" else self.views(text, document, tenant)
        self.add(records)
        for record in records:
            found = result_metadata(record.metadata) if kind != "foreign" else {}
            id_ = getattr(record, "id", None) or record.node_id
            section, view = found.get("section_id", id_), found.get("view", "raw")
            self.rows.append(Row(kind, tenant, section, view, self.text(record)))

    def model(self, tenant: str | None) -> dict[str, list[str]]:
        """The sections of each view, best first: the view's own records, and chunks that have no views."""
        seen = [row for row in self.rows if tenant in (None, row.tenant)]
        seen.sort(key=lambda row: -nearness(row.text))
        return {
            view: [row.section for row in seen if row.kind == "foreign" or row.view == view]
            for view in ("raw", "keywords", "summary")
            if view == "raw" or any(row.view == view for row in seen)
        }

    def chunks(self, texts: Sequence[str], document: str, tenant: str) -> list[Any]:
        """Of another splitter."""
        raise NotImplementedError

    def views(self, text: str, document: str, tenant: str) -> list[Any]:
        """Of ours."""
        raise NotImplementedError

    def add(self, records: list[Any]) -> None:
        """Store them."""
        raise NotImplementedError

    def text(self, record: Any) -> str:
        """What is embedded of a record."""
        raise NotImplementedError

    def retriever(self, k: int, tenant: str | None, form: str) -> Callable[[str], list[str]]:
        """Asks a component over the store; the ids of the sections that it finds."""
        raise NotImplementedError

    def embedded(self) -> int:
        """How many questions were embedded."""
        raise NotImplementedError


class Searched(InMemoryVectorStore):
    """Takes any filter, and counts searches."""

    searches = 0

    def similarity_search_by_vector(self, embedding: list[float], k: int = 4, **kwargs: Any) -> list[LangChainDocument]:
        self.searches += 1
        return super().similarity_search_by_vector(embedding, k, **kwargs)


class LangChain(Host):
    """A store in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.store = Searched(NearEmbeddings())

    def chunks(self, texts: Sequence[str], document: str, tenant: str) -> list[LangChainDocument]:
        metadata = {"source": document, "tenant": tenant}
        return [LangChainDocument(text, id=f"chunk of {text}", metadata=dict(metadata)) for text in texts]

    def views(self, text: str, document: str, tenant: str) -> list[LangChainDocument]:
        given = LangChainDocument(text, id=document, metadata={"tenant": tenant})
        return langchain_ext.MultiViewTextSplitter().split_documents([given])

    def add(self, records: list[LangChainDocument]) -> None:
        self.store.add_documents(records)

    def text(self, record: LangChainDocument) -> str:
        return record.page_content

    def retriever(self, k: int, tenant: str | None, form: str) -> Callable[[str], list[str]]:
        declared = {"tenant": tenant} if form == "declared" else lambda document: document.metadata["tenant"] == tenant
        made = langchain_ext.MultiViewRetriever(
            source=self.store, top_n=k, filters=None if tenant is None else declared
        )
        return lambda question: [str(document.id) for document in made.invoke(question)]

    def embedded(self) -> int:
        return self.store.embeddings.questions

    @property
    def searched(self) -> int:
        return self.store.searches


class LlamaIndex(Host):
    """An index over vectors beside a document store, or over a store of texts."""

    def __init__(self, texts: bool = False) -> None:
        super().__init__()
        self.embedding = NearEmbedding()
        self.store = TextStore() if texts else None
        storage = StorageContext.from_defaults(vector_store=self.store) if texts else None
        self.index = VectorStoreIndex([], embed_model=self.embedding, storage_context=storage)

    def chunks(self, texts: Sequence[str], document: str, tenant: str) -> list[TextNode]:
        source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document)}
        unread = {"excluded_embed_metadata_keys": ["tenant"], "metadata": {"tenant": tenant}}
        return [TextNode(text=text, id_=f"chunk of {text}", relationships=dict(source), **unread) for text in texts]

    def views(self, text: str, document: str, tenant: str) -> list[Any]:
        given = LlamaIndexDocument(
            text=text, id_=document, metadata={"tenant": tenant}, excluded_embed_metadata_keys=["tenant"]
        )
        return llama_index_ext.MultiViewNodeParser()([given])

    def add(self, records: list[Any]) -> None:
        self.index.insert_nodes(records)

    def text(self, record: Any) -> str:
        return record.get_content()

    def retriever(self, k: int, tenant: str | None, form: str) -> Callable[[str], list[str]]:
        declared: Any = MetadataFilters(filters=[MetadataFilter(key="tenant", value=tenant or "")])
        if form == "function":
            declared = lambda node: node.metadata["tenant"] == tenant  # noqa: E731
        made = llama_index_ext.MultiViewRetriever(
            source=self.index, top_n=k, filters=None if tenant is None else declared
        )
        return lambda question: [hit.node.node_id for hit in made.retrieve(question)]

    def embedded(self) -> int:
        return self.embedding.questions


HOSTS: dict[str, Callable[[], Host]] = {
    "langchain": LangChain,
    "llama_index": LlamaIndex,
    "llama_index over texts": lambda: LlamaIndex(texts=True),
}
