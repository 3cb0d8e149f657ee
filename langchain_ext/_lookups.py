"""Look-ups in a LangChain vector store, or through retrievers, for one question; see `drillrank.hosts.lookups`."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.stores import BaseStore
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from drillrank.calling import awaited
from drillrank.errors import InvalidInput
from drillrank.hosts.lookups import ById, Holding, Lookup, Search, widths
from langchain_ext._filters import Guard, store_behind

_ALL = 10_000  # records of one document at most

Source = VectorStore | Runnable[str, list[Document]] | Mapping[str, Runnable[str, list[Document]]]


class StoreLookups:
    """Answers the look-ups of one question; the question is embedded once at most.

    Args:
        query: The question.
        source: A vector store, a retriever, or several by name; None has nothing. Behind a retriever over a vector
            store that store is asked what is not a search.
        guard: What may be seen.
        config: Of the run that this belongs to.
        docstore: Is asked for documents by id, or if it is a vector store for all that is no search, where there is no
            vector store behind the source.
        told_by: The component that warns if the filter hides all that a retriever brings; without a name none does.
    """

    def __init__(
        self,
        query: str,
        source: Source | None,
        guard: Guard,
        config: RunnableConfig | None = None,
        docstore: BaseStore[str, Document] | VectorStore | None = None,
        told_by: str = "",
    ) -> None:
        self._query = query
        self._guard = guard
        self._config = config
        self._retrievers: dict[Any, Runnable[str, list[Document]]] = {}
        if isinstance(source, Runnable):
            self._retrievers = {None: source}
        elif isinstance(source, Mapping):
            self._retrievers = {**source}
        self.store = store_behind(source, config)
        if self.store is None and isinstance(docstore, VectorStore):
            self.store = docstore
        self._by_key = docstore if self.store is None and isinstance(docstore, BaseStore) else None
        self._told_by = told_by
        self._vector: list[float] | None = None
        self._embedding = asyncio.Lock()

    def answer(self, lookup: Lookup) -> list[Document] | None:
        """Documents, or None where the store cannot be asked."""
        if isinstance(lookup, Search):
            if self._retrievers:
                found = self._retrievers[lookup.source].invoke(self._query, self._config)
                return self._guard.kept(found, self._told_by)
            return self._searched(lookup.k, lookup.wanted)
        if self._by_key is not None and isinstance(lookup, ById):
            return self._guard.allowed(_of_keys(lookup.ids, self._by_key.mget(lookup.ids)))
        if self.store is None:
            return None
        if isinstance(lookup, Holding):
            form = self._guard.for_store(self.store, **_values(lookup))
            held = _held(self.store, form)
            return self._guard.allowed(self._similar(_ALL, form) if held is None else held)
        try:
            return self._guard.allowed(self.store.get_by_ids(list(lookup.ids)))
        except NotImplementedError:
            return None

    async def aanswer(self, lookup: Lookup) -> list[Document] | None:
        """As `answer`, without blocking the event loop."""
        if isinstance(lookup, Search):
            if self._retrievers:
                found = await self._retrievers[lookup.source].ainvoke(self._query, self._config)
                return self._guard.kept(found, self._told_by)
            return await self._asearched(lookup.k, lookup.wanted)
        if self._by_key is not None and isinstance(lookup, ById):
            return self._guard.allowed(_of_keys(lookup.ids, await awaited(self._by_key.amget, lookup.ids)))
        if self.store is None:
            return None
        if isinstance(lookup, Holding):
            form = self._guard.for_store(self.store, **_values(lookup))
            held = await asyncio.to_thread(_held, self.store, form)
            return self._guard.allowed(await self._asimilar(_ALL, form) if held is None else held)
        try:
            return self._guard.allowed(await awaited(self.store.aget_by_ids, list(lookup.ids)))
        except NotImplementedError:
            return None

    def _searched(self, k: int, wanted: Mapping[str, str]) -> list[Document]:
        assert self.store is not None
        form = self._guard.for_store(self.store, **wanted)
        for asked in widths(k):
            hits = self._similar(asked, form)
            kept = self._guard.kept(hits)
            if len(kept) >= k or len(hits) < asked:
                break
        return kept[:k]

    async def _asearched(self, k: int, wanted: Mapping[str, str]) -> list[Document]:
        assert self.store is not None
        form = self._guard.for_store(self.store, **wanted)
        for asked in widths(k):
            hits = await self._asimilar(asked, form)
            kept = self._guard.kept(hits)
            if len(kept) >= k or len(hits) < asked:
                break
        return kept[:k]

    def _similar(self, k: int, form: Any) -> list[Document]:
        store = self.store
        assert store is not None
        named = {} if form is None else {"filter": form}  # a store that knows no filter is asked without one
        if not _embeds_before(store):
            return store.similarity_search(self._query, k=k, **named)
        if self._vector is None:
            self._vector = store.embeddings.embed_query(self._query)  # type: ignore[union-attr]
        return store.similarity_search_by_vector(self._vector, k=k, **named)

    async def _asimilar(self, k: int, form: Any) -> list[Document]:
        store = self.store
        assert store is not None
        named = {} if form is None else {"filter": form}
        if not _embeds_before(store):
            return await awaited(store.asimilarity_search, self._query, k=k, **named)
        async with self._embedding:
            if self._vector is None:
                self._vector = await awaited(store.embeddings.aembed_query, self._query)  # type: ignore[union-attr]
        return await awaited(store.asimilarity_search_by_vector, self._vector, k=k, **named)


def _of_keys(ids: Sequence[str], found: Sequence[Document | None]) -> list[Document]:
    """A document of a key-value store is called by its key, whatever id it has."""
    for value in found:
        if not isinstance(value, Document | None):
            raise InvalidInput(
                f"The docstore holds a {type(value).__name__} where a Document belongs: "
                "langchain_classic.storage.create_kv_docstore makes a store of documents of a store of bytes."
            )
    pairs = zip(ids, found, strict=True)
    return [document.model_copy(update={"id": key}) for key, document in pairs if document is not None]


def _values(lookup: Holding) -> dict[str, Any]:
    return {key: {"$in": list(value)} if isinstance(value, tuple) else value for key, value in lookup.wanted.items()}


def _held(store: VectorStore, form: Any) -> list[Document] | None:
    """Documents by their metadata alone, where a store knows how; no search, which may leave some of many out."""
    if isinstance(store, InMemoryVectorStore):
        records = list(store.store.values())
        documents = [Document(r["text"], id=r["id"], metadata=dict(r["metadata"])) for r in records]
        return documents if form is None else [document for document in documents if form(document)]
    get = getattr(store, "get", None)  # of Chroma
    if not callable(get) or not {"where", "include"} <= inspect.signature(get).parameters.keys():
        return None
    found = get(where=form, include=["documents", "metadatas"])
    rows = zip(found["ids"], found["documents"], found["metadatas"], strict=True)
    return [Document(text or "", id=id_, metadata=metadata or {}) for id_, text, metadata in rows]


def _embeds_before(store: VectorStore) -> bool:
    own = type(store).similarity_search_by_vector is not VectorStore.similarity_search_by_vector
    return own and store.embeddings is not None
