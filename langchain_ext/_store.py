"""LangChain's vector stores and retrievers as record stores (see `drillrank.structure.record_store`)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.stores import BaseStore
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore, VectorStoreRetriever

from drillrank.errors import InvalidInput, warn
from drillrank.frameworks.store import FrameworkStore
from drillrank.llm import FunctionRequest, Requests
from drillrank.structure.stored_chunks import StoredChunk, Where
from langchain_ext._filters import DocumentFilter
from langchain_ext._records import found_chunks


def underlying_store(source: object) -> VectorStore | None:
    """The vector store that a source is, or that the host's retrievers over one search; of several, that of raw texts.

    What stands behind any other Runnable is not guessed.
    """
    if isinstance(source, VectorStore):
        return source
    if isinstance(source, Mapping) and source:
        first, *others = map(underlying_store, source.values())
        return underlying_store(source.get("raw")) or (first if all(one is first for one in others) else None)
    return source.vectorstore if isinstance(source, VectorStoreRetriever) else None


_ALL = 10_000  # records of the documents of one question at most

Source = VectorStore | Runnable[str, list[Document]] | Mapping[str, Runnable[str, list[Document]]]


@dataclass(eq=False)
class LangChainStore(FrameworkStore):
    """Record store over a vector store or a retriever. Each question is embedded at most once.

    Args:
        source: A vector store, a retriever, or several by name; None has nothing. Behind a retriever over a vector
            store that store is asked what is not a search.
        access_filter: What may be seen.
        config: Of the run that this belongs to.
        docstore: Is asked for documents by id, or if it is a vector store for all that is no search, where there is no
            vector store behind the source.
        component: The component that warns if the filter hides all that a retriever brings; without a name none does.
        question: Query by which records are found by metadata, in a store that can only search.
    """

    source: Source | None
    access_filter: DocumentFilter
    config: RunnableConfig | None = None
    docstore: BaseStore[str, Document] | VectorStore | None = None
    component: str = ""
    question: str = ""

    def __post_init__(self) -> None:
        super().__init__(self.source, isinstance(self.source, Runnable))
        self.store = underlying_store(self.source)
        if self.store is None and isinstance(self.docstore, VectorStore):
            self.store = self.docstore
        self._by_key = self.docstore if self.store is None and isinstance(self.docstore, BaseStore) else None

    def _retrieve(self, retriever: Runnable[str, list[Document]], question: str) -> Requests[list[StoredChunk[Any]]]:
        arguments = question, self.config
        [found] = yield [FunctionRequest(partial(retriever.invoke, *arguments), partial(retriever.ainvoke, *arguments))]
        [seen] = yield [
            FunctionRequest(partial(self.access_filter.filter_results, found, self.component))
        ]  # a user's filter may take long
        return found_chunks(seen)

    def _search_store(self, question: str, n: int, where: Where) -> Requests[tuple[list[StoredChunk[Any]], int]]:
        assert self.store is not None
        form = self.access_filter.for_store(self.store, where)
        hits = yield from self._similar(self.store, question, n, form)
        if isinstance(hits, Exception):
            raise InvalidInput(
                f"{type(self.store).__name__} does not search by {form!r:.100} ({hits}): as source give its retriever "
                'with search_kwargs={"filter": ...} of its own form, to MultiViewRetriever one for each view, and '
                "filters=... beside it, a dictionary or a function."
            ) from hits
        [seen] = yield [FunctionRequest(partial(self.access_filter.filter_results, hits))]
        return found_chunks(seen), len(hits)

    def _get_requests(self, ids: Sequence[str]) -> Requests[list[StoredChunk[Any]] | None]:
        if self._by_key is not None:
            [found] = yield [FunctionRequest(partial(self._by_key.mget, ids), partial(self._by_key.amget, ids))]
            return (yield from self._permitted(_of_keys(ids, found)))
        if self.store is None:
            return None
        # Not implemented where a store brings records by search only.
        [found] = yield [_call(NotImplementedError, self.store.get_by_ids, self.store.aget_by_ids, list(ids))]
        return None if isinstance(found, Exception) else (yield from self._permitted(found))

    def _find_requests(self, where: Where) -> Requests[list[StoredChunk[Any]] | None]:
        store = self.store
        if store is None:
            return None
        form = self.access_filter.for_store(store, where)
        [documents] = yield [FunctionRequest(partial(_by_metadata, store, where, form))]
        if documents is None:
            documents = yield from self._similar(store, self.question, _ALL, form)
        if isinstance(documents, Exception):
            warn(
                f"{type(store).__name__} takes no dictionary as a filter: nothing is looked up there by metadata, "
                "and what was found stands alone. Pass the originals as documents."
            )
            return None
        return (yield from self._permitted(documents))

    def _permitted(self, found: Sequence[Document]) -> Requests[list[StoredChunk[Any]]]:
        [permitted] = yield [FunctionRequest(partial(self.access_filter.filter_fetched, found))]
        return found_chunks(permitted)

    def _similar(self, store: VectorStore, question: str, k: int, form: Any) -> Requests[list[Document] | Exception]:
        """The nearest; an error where the store does not know what to do with the form of the filter."""
        named: dict[str, Any] = {} if form is None else {"filter": form}  # what knows no filter is asked without one
        model = store.embeddings
        search: Any
        asearch: Any
        query: Any
        if model is None or type(store).similarity_search_by_vector is VectorStore.similarity_search_by_vector:
            search, asearch, query = store.similarity_search, store.asimilarity_search, question
        else:
            query = yield from self.embed_once(model, question, partial(model.embed_query, question))
            search, asearch = store.similarity_search_by_vector, store.asimilarity_search_by_vector
        if "fetch_k" in inspect.signature(search).parameters:  # as FAISS, which filters what it has fetched
            fetch_k = (getattr(self.source, "search_kwargs", None) or {}).get("fetch_k", 0)
            named["fetch_k"] = max(k, fetch_k, _ALL if named else 0)
        if isinstance(store, InMemoryVectorStore):  # its asynchronous search computes on the event loop
            [found] = yield [FunctionRequest(partial(self.run_alone, search, query, k=k, **named))]
        else:
            errors = (AttributeError, TypeError) if form is not None else ()
            [found] = yield [_call(errors, search, asearch, query, k=k, **named)]
        return found  # type: ignore[no-any-return]


def _call(
    errors: Any, ask: Callable[..., Any], aask: Callable[..., Any], *arguments: Any, **named: Any
) -> FunctionRequest:
    """A question to a store, which is answered by the error itself where it is one of these."""

    def answer() -> Any:
        try:
            return ask(*arguments, **named)
        except errors as error:
            return error

    async def aanswer() -> Any:
        try:
            return await aask(*arguments, **named)
        except errors as error:
            return error

    return FunctionRequest(answer, aanswer)


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


def _by_metadata(store: VectorStore, where: Where, form: Any) -> list[Document] | None:
    """Documents by their metadata alone, where a store knows how; no search, which may leave some of many out."""
    if isinstance(store, InMemoryVectorStore):
        records = list(store.store.values())
        for key, value in where.items():
            values = value if isinstance(value, tuple) else (value,)
            records = [record for record in records if record["metadata"].get(key) in values]
        documents = [Document(r["text"], id=r["id"], metadata=dict(r["metadata"])) for r in records]
        return documents if form is None else [document for document in documents if form(document)]
    get = getattr(store, "get", None)  # of Chroma
    if not callable(get) or not {"where", "include"} <= inspect.signature(get).parameters.keys():
        return None
    found = get(where=form, include=["documents", "metadatas"])
    rows = zip(found["ids"], found["documents"], found["metadatas"], strict=True)
    return [Document(text or "", id=id_, metadata=metadata or {}) for id_, text, metadata in rows]
