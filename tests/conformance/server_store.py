"""A LangChain vector store in memory that takes filters as dictionaries, as those on servers do; Chroma's, by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from drillrank.frameworks.filters import Condition, parse_filter


class ServerStore(VectorStore):
    """Searches by a filter, finds records by ids and by metadata, and counts what it is asked.

    Args:
        embeddings: Of texts and questions.
        refuses: Operators that it does not know.

    Attributes:
        asked: How often for a search, and for records.
    """

    def __init__(self, embeddings: Embeddings, refuses: Sequence[str] = ()) -> None:
        self.asked: Counter[str] = Counter()
        self.kept = InMemoryVectorStore(embeddings)
        self._refuses = refuses

    @property
    def embeddings(self) -> Embeddings:
        return self.kept.embeddings

    @classmethod
    def from_texts(cls, texts: list[str], embedding: Embeddings, metadatas: Any = None, **kwargs: Any) -> ServerStore:
        raise NotImplementedError

    def add_documents(self, documents: list[Document], **kwargs: Any) -> list[str]:
        return self.kept.add_documents(documents, **kwargs)

    def delete(self, ids: Sequence[str] | None = None, **kwargs: Any) -> None:
        self.kept.delete(ids)

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        return self.similarity_search_by_vector(self.embeddings.embed_query(query), k, **kwargs)

    def similarity_search_by_vector(self, embedding: list[float], k: int = 4, **kwargs: Any) -> list[Document]:
        self.asked["search"] += 1
        holds = self._condition(kwargs.get("filter"))
        return self.kept.similarity_search_by_vector(
            embedding, k, filter=lambda document: holds(document.metadata) is True
        )

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        self.asked["records"] += 1
        return self.kept.get_by_ids(ids)

    def get(self, where: Mapping[str, Any] | None = None, include: Any = None) -> dict[str, list[Any]]:
        self.asked["records"] += 1
        holds = self._condition(where)
        rows = [row for row in self.kept.store.values() if holds(row["metadata"]) is True]
        names = {"ids": "id", "documents": "text", "metadatas": "metadata"}
        names |= {"embeddings": "vector"} if "embeddings" in (include or ()) else {}
        return {name: [row[key] for row in rows] for name, key in names.items()}

    def _condition(self, filter: Mapping[str, Any] | None) -> Condition:
        if unknown := set(_operators(filter)).intersection(self._refuses):
            raise ValueError(f"Unknown operator {min(unknown)}")
        return parse_filter(filter or {})


class PostFiltered(ServerStore):
    """Filters what it has fetched, and finds no records by metadata, as FAISS."""

    get = None  # type: ignore[assignment]

    def similarity_search_by_vector(
        self, embedding: list[float], k: int = 4, filter: Any = None, fetch_k: int = 20, **kwargs: Any
    ) -> list[Document]:
        holds = self._condition(filter)
        found = super().similarity_search_by_vector(embedding, k if filter is None else fetch_k)
        return [document for document in found if holds(document.metadata) is True][:k]


class OwnForm(ServerStore):
    """Takes filters of a class of its own, and finds no records by metadata, as Qdrant's."""

    get = None  # type: ignore[assignment]

    def similarity_search_by_vector(
        self, embedding: list[float], k: int = 4, filter: Any = None, **kwargs: Any
    ) -> list[Document]:
        return super().similarity_search_by_vector(embedding, k, filter=filter and filter.must)


def _operators(filter: Any) -> Iterator[str]:
    if isinstance(filter, Mapping):
        yield from filter
        for value in filter.values():
            yield from _operators(value)
    elif isinstance(filter, list):
        for one in filter:
            yield from _operators(one)
