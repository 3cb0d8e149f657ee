"""Documents of two tenants, and a store that records its filters."""

from __future__ import annotations

from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import (
    Runnable,
)
from langchain_core.runnables.config import set_config_context
from langchain_core.vectorstores import VectorStore

from langchain_ext._filters import DocumentFilter

MINE = Document("Mine.", id="1", metadata={"tenant": "a", "level": 1})
THEIRS = Document("Theirs.", id="2", metadata={"tenant": "b", "level": 1})
SECRET = Document("Secret.", id="3", metadata={"tenant": "a", "level": 9})
NOBODYS = Document("Nobody's.", id="4")
ALL = [MINE, THEIRS, SECRET, NOBODYS]


class Store(VectorStore):
    """A store that takes whatever filter it is given, and remembers it."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        self.asked.append(kwargs.get("filter"))
        return []

    @classmethod
    def from_texts(cls, texts: list[str], embedding: Embeddings, metadatas: Any = None, **kwargs: Any) -> Store:
        raise NotImplementedError


STORE = Store()


def retriever(**arguments: Any) -> Runnable:
    return STORE.as_retriever(search_kwargs={"k": 3, **(arguments or {"filter": {"tenant": "a"}})})


def unfiltered() -> Runnable:
    return retriever(k=3)


def seen(source: object, own: Any = None, config: Any = None) -> list[str | None]:
    with set_config_context(config or {}) as context:
        return context.run(lambda: [found.id for found in DocumentFilter(own, source).filter_fetched(ALL)])
