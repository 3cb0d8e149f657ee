"""Look-ups in a LangChain vector store, or through retrievers, for one question; see `drillrank.hosts.store`."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.stores import BaseStore
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from drillrank.errors import InvalidInput
from drillrank.hosts.store import Store
from drillrank.llm import Call, Fetch, Requests
from langchain_ext._filters import DocumentFilter, underlying_store

_ALL = 10_000  # records of one document at most

Source = VectorStore | Runnable[str, list[Document]] | Mapping[str, Runnable[str, list[Document]]]


@dataclass(eq=False)
class StoreLookups(Store):
    """Answers the look-ups of one question; the question is embedded once at most.

    Args:
        query: The question.
        source: A vector store, a retriever, or several by name; None has nothing. Behind a retriever over a vector
            store that store is asked what is not a search.
        access_filter: What may be seen.
        config: Of the run that this belongs to.
        docstore: Is asked for documents by id, or if it is a vector store for all that is no search, where there is no
            vector store behind the source.
        component: The component that warns if the filter hides all that a retriever brings; without a name none does.
    """

    query: str
    source: Source | None
    access_filter: DocumentFilter
    config: RunnableConfig | None = None
    docstore: BaseStore[str, Document] | VectorStore | None = None
    component: str = ""

    def __post_init__(self) -> None:
        super().__init__(self.source, isinstance(self.source, Runnable))
        self.store = underlying_store(self.source)
        if self.store is None and isinstance(self.docstore, VectorStore):
            self.store = self.docstore
        self._by_key = self.docstore if self.store is None and isinstance(self.docstore, BaseStore) else None

    def _retrieved(self, retriever: Runnable[str, list[Document]]) -> Requests[list[Document]]:
        arguments = self.query, self.config
        [found] = yield [Call(partial(retriever.invoke, *arguments), partial(retriever.ainvoke, *arguments))]
        [seen] = yield [
            Call(partial(self.access_filter.filter_results, found, self.component))
        ]  # a user's filter may take long
        return seen  # type: ignore[no-any-return]

    def _searched(self, k: int, wanted: Mapping[str, str]) -> Requests[tuple[list[Document], int]]:
        assert self.store is not None
        hits = yield from self._similar(self.store, k, self.access_filter.for_store(self.store, wanted))
        [seen] = yield [Call(partial(self.access_filter.filter_results, hits))]
        return seen, len(hits)

    def fetch(self, request: Fetch) -> Requests[list[Document] | None]:
        """Documents by id or by metadata, as far as they may be seen; None where no store can tell."""
        if self._by_key is not None and request.where is None:
            [found] = yield [Call(partial(self._by_key.mget, request.ids), partial(self._by_key.amget, request.ids))]
            return (yield from self._permitted(_of_keys(request.ids, found)))
        store = self.store
        if store is None:
            return None
        if request.where is not None:
            form = self.access_filter.for_store(store, request.where)
            [documents] = yield [Call(partial(_by_metadata, store, form))]
            if documents is None:
                documents = yield from self._similar(store, _ALL, form)
            return (yield from self._permitted(documents))
        ids = list(request.ids)
        [found] = yield [Call(partial(_by_ids, store, ids), partial(_aby_ids, store, ids))]
        return None if found is None else (yield from self._permitted(found))

    def _permitted(self, found: Sequence[Document]) -> Requests[list[Document]]:
        [permitted] = yield [Call(partial(self.access_filter.filter_fetched, found))]
        return permitted  # type: ignore[no-any-return]

    def _similar(self, store: VectorStore, k: int, form: Any) -> Requests[list[Document]]:
        named = {} if form is None else {"filter": form}  # a store that knows no filter is asked without one
        model = store.embeddings
        search: Any
        asearch: Any
        query: Any
        if model is None or type(store).similarity_search_by_vector is VectorStore.similarity_search_by_vector:
            search, asearch, query = store.similarity_search, store.asimilarity_search, self.query
        else:
            query = yield from self.vector(model, partial(model.embed_query, self.query))
            search, asearch = store.similarity_search_by_vector, store.asimilarity_search_by_vector
        if isinstance(store, InMemoryVectorStore):  # its asynchronous search computes on the event loop
            [found] = yield [Call(partial(self.in_turn, search, query, k=k, **named))]
        else:
            [found] = yield [Call(partial(search, query, k=k, **named), partial(asearch, query, k=k, **named))]
        return found  # type: ignore[no-any-return]


def _by_ids(store: VectorStore, ids: list[str]) -> list[Document] | None:
    """None of a store that brings records by search only."""
    try:
        return store.get_by_ids(ids)
    except NotImplementedError:
        return None


async def _aby_ids(store: VectorStore, ids: list[str]) -> list[Document] | None:
    try:
        return await store.aget_by_ids(ids)
    except NotImplementedError:
        return None


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


def _by_metadata(store: VectorStore, form: Any) -> list[Document] | None:
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
