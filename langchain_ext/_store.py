"""LangChain's vector stores and retrievers as record stores (see `drillrank.structure.record_store`)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.stores import BaseStore
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore, VectorStoreRetriever

from drillrank.errors import InvalidInput, warn
from drillrank.frameworks.store import FrameworkStore
from drillrank.llm import FunctionRequest, Requests
from drillrank.structure.record_store import RecordStore
from drillrank.structure.stored_chunks import StoredChunk, Where
from langchain_ext._filters import DocumentFilter
from langchain_ext._qdrant import is_qdrant, list_point_ids, move_ids, read_point_vectors
from langchain_ext._records import read_documents

_MAX_RECORDS = 10_000  # of the documents of one question

Source = VectorStore | Runnable[str, list[Document]] | RecordStore | Mapping[str, Runnable[str, list[Document]]]
"""Vector store, retriever, record store, or retrievers by view."""


def underlying_store(source: object) -> VectorStore | None:
    """Return the vector store that a source is, or that the framework's retriever over one searches.

    Of several retrievers, the one of raw texts counts. The store behind any other Runnable is not guessed.
    """
    if isinstance(source, VectorStore):
        return source
    if isinstance(source, Mapping) and source:
        first, *others = map(underlying_store, source.values())
        return underlying_store(source.get("raw")) or (first if all(other is first for other in others) else None)
    return source.vectorstore if isinstance(source, VectorStoreRetriever) else None


class LangChainStore(FrameworkStore):
    """Record store over a vector store or a retriever. Each question is embedded at most once.

    Args:
        source: Vector store, retriever, record store, or retrievers by view. None for no source. The store behind a
            retriever over a vector store is asked for records by id and by metadata.
        access_filter: Filter of the documents that the caller may see.
        config: Configuration of the run that the searches belong to.
        docstore: Store that is asked for documents if no vector store is behind the source: one with keys by id, a
            vector store by id and by metadata.
        component: Name of the component that warns if the filter removes all results of a retriever. Empty: no warning.
        question: Query by which a store that can only search finds records by metadata.
        with_vectors: True to read the vectors of records that are found by metadata, too.
    """

    def __init__(
        self,
        source: Source | None,
        access_filter: DocumentFilter,
        config: RunnableConfig | None = None,
        docstore: BaseStore[str, Document] | VectorStore | None = None,
        component: str = "",
        question: str = "",
        *,
        with_vectors: bool = False,
    ) -> None:
        super().__init__(source, isinstance(source, Runnable), access_filter)
        self.store = underlying_store(source)
        if self.store is None and isinstance(docstore, VectorStore):
            self.store = docstore
        self._key_store = docstore if self.store is None and isinstance(docstore, BaseStore) else None
        self._document_filter = access_filter
        self._config = config
        self._component = component
        self._question = question
        self._with_vectors = with_vectors
        self._fetch_k = (getattr(source, "search_kwargs", None) or {}).get("fetch_k", 0)

    # --- Search

    def _retrieve(self, retriever: Runnable[str, list[Document]], question: str) -> Requests[list[StoredChunk[Any]]]:
        [documents] = yield [FunctionRequest.of(retriever.invoke, retriever.ainvoke, question, self._config)]
        return self._read_found(self._document_filter.filter_results(documents, self._component))

    def _search_store(self, question: str, n: int, where: Where) -> Requests[tuple[list[StoredChunk[Any]], int]]:
        assert self.store is not None
        store_filter = self._document_filter.as_store_filter(self.store, where)
        documents = yield from self._search_documents(self.store, question, n, store_filter)
        if isinstance(documents, Exception):
            raise InvalidInput(
                f"{type(self.store).__name__} does not search by {store_filter!r:.100} ({documents}). Give as source "
                'its retriever with search_kwargs={"filter": ...} in its own form (one for each view, for '
                "MultiViewRetriever), and filters=... as a dictionary or a function."
            ) from documents
        return self._read_found(self._document_filter.filter_results(documents)), len(documents)

    def _search_documents(
        self, store: VectorStore, question: str, n: int, store_filter: Any
    ) -> Requests[list[Document] | Exception]:
        """Return the documents nearest to a question, or the error of a store that does not know this filter."""
        # A store that knows no filters gets no such argument.
        keywords: dict[str, Any] = {} if store_filter is None else {"filter": store_filter}
        model = store.embeddings
        search: Any
        asearch: Any
        query: Any
        if model is None or type(store).similarity_search_by_vector is VectorStore.similarity_search_by_vector:
            search, asearch, query = store.similarity_search, store.asimilarity_search, question
        else:
            query = yield from self.embed_once(model, question, partial(model.embed_query, question))
            search, asearch = store.similarity_search_by_vector, store.asimilarity_search_by_vector
        if "fetch_k" in inspect.signature(search).parameters:  # FAISS filters the documents that it has fetched
            keywords["fetch_k"] = max(n, self._fetch_k, _MAX_RECORDS if keywords else 0)
        if isinstance(store, InMemoryVectorStore):  # its asynchronous search computes on the event loop
            [documents] = yield [FunctionRequest(partial(self.run_alone, search, query, k=n, **keywords))]
        else:
            errors = (AttributeError, TypeError) if store_filter is not None else ()
            [documents] = yield [_catch(errors, search, asearch, query, k=n, **keywords)]
        return documents  # type: ignore[no-any-return]

    def read_vectors(self, chunks: Sequence[StoredChunk[Any]]) -> Sequence[Sequence[float] | None]:
        """Return the vectors of documents that this store returned."""
        ids = [chunk.record.id for chunk in chunks]
        if isinstance(self.store, InMemoryVectorStore):
            return [self.store.store.get(id_, {}).get("vector") for id_ in ids]
        if is_qdrant(self.store):
            return list(map(read_point_vectors(self.store, filter(None, ids)).get, ids))
        return super().read_vectors(chunks)

    def _read_found(self, documents: Sequence[Document]) -> list[StoredChunk[Any]]:
        return read_documents(move_ids(documents) if is_qdrant(self.store) else documents)

    # --- Documents by id and by metadata

    def _get_from_store(self, ids: Sequence[str]) -> Requests[list[StoredChunk[Any]] | None]:
        if self._key_store is not None:
            [values] = yield [FunctionRequest.of(self._key_store.mget, self._key_store.amget, ids)]
            return self._permit_fetched(_name_by_keys(ids, values))
        if self.store is None:
            return None
        ids = list_point_ids(ids) if is_qdrant(self.store) else ids
        if not ids and type(self.store).get_by_ids is not VectorStore.get_by_ids:
            return []  # without any id, some stores raise an error, and some return all records
        # A store that returns records by search only does not implement these methods.
        [documents] = yield [_catch(NotImplementedError, self.store.get_by_ids, self.store.aget_by_ids, list(ids))]
        return None if isinstance(documents, Exception) else self._permit_fetched(documents)

    def _find_in_store(self, where: Where) -> Requests[list[StoredChunk[Any]] | None]:
        store = self.store
        if store is None:
            return None
        store_filter = self._document_filter.as_store_filter(store, where)
        find = partial(_find_documents, store, where, store_filter, self._with_vectors)
        [(documents, vector_by_id)] = yield [FunctionRequest(find)]
        if documents is None:
            documents = yield from self._search_documents(store, self._question, _MAX_RECORDS, store_filter)
        if isinstance(documents, Exception):
            warn(
                f"{type(store).__name__} takes no dictionary as a filter, so its records cannot be found by metadata. "
                "drillrank read only the records that the search returned. Pass the originals as documents."
            )
            return None
        chunks = self._permit_fetched(documents)
        return (
            [replace(chunk, vector=vector_by_id.get(chunk.record.id)) for chunk in chunks] if vector_by_id else chunks
        )

    def _permit_fetched(self, documents: Sequence[Document]) -> list[StoredChunk[Any]]:
        return self._read_found(self._document_filter.filter_fetched(documents))


def _catch(
    errors: Any, function: Callable[..., Any], afunction: Callable[..., Any], *arguments: Any, **keywords: Any
) -> FunctionRequest:
    """Return the request for a call whose answer is the error if it raises one of these."""

    def call() -> Any:
        try:
            return function(*arguments, **keywords)
        except errors as error:
            return error

    async def acall() -> Any:
        try:
            return await afunction(*arguments, **keywords)
        except errors as error:
            return error

    return FunctionRequest(call, acall)


def _name_by_keys(keys: Sequence[str], values: Sequence[Document | None]) -> list[Document]:
    """Return the documents of a key-value store, with their keys as ids."""
    for value in values:
        if not isinstance(value, Document | None):
            raise InvalidInput(
                f"store must contain documents, got a {type(value).__name__}. Make a store of documents from a store "
                "of bytes with langchain_classic.storage.create_kv_docstore."
            )
    pairs = zip(keys, values, strict=True)
    return [document.model_copy(update={"id": key}) for key, document in pairs if document is not None]


def _find_documents(
    store: VectorStore, where: Where, store_filter: Any, with_vectors: bool
) -> tuple[list[Document] | None, dict[str, Sequence[float]]]:
    """Find documents by metadata in a store that supports it. A search might omit some of many documents.

    Returns:
        The documents, None if the store can only search, and vectors by id.
    """
    if isinstance(store, InMemoryVectorStore):
        records = list(store.store.values())
        for key, value in where.items():
            values = value if isinstance(value, tuple) else (value,)
            records = [record for record in records if record["metadata"].get(key) in values]
        documents = [Document(r["text"], id=r["id"], metadata=dict(r["metadata"])) for r in records]
        return documents if store_filter is None else list(filter(store_filter, documents)), {}
    get = getattr(store, "get", None)  # Chroma
    if not callable(get) or not {"where", "include"} <= inspect.signature(get).parameters.keys():
        return None, {}
    rows = get(where=store_filter, include=["documents", "metadatas", *(["embeddings"] if with_vectors else [])])
    documents = [
        Document(text or "", id=id_, metadata=metadata or {})
        for id_, text, metadata in zip(rows["ids"], rows["documents"], rows["metadatas"], strict=True)
    ]
    return documents, dict(zip(rows["ids"], rows["embeddings"], strict=True)) if with_vectors else {}
