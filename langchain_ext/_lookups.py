"""Look-ups in a LangChain vector store, or through retrievers, for one question (see `drillrank.frameworks.store`).

What a component may return, and what it may look up, its own filter says, and that of the source that it asks.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.config import ensure_config
from langchain_core.runnables.configurable import DynamicRunnable
from langchain_core.stores import BaseStore
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore, VectorStoreRetriever

from drillrank.errors import InvalidInput, warn
from drillrank.frameworks.filters import AccessFilter, answered, from_dictionary, one_by_one, parts_of
from drillrank.frameworks.store import Store
from drillrank.llm import FunctionRequest, LookupRequest, Requests

Filter = Mapping[str, Any] | Callable[[Document], bool]
"""Metadata values and operators as vector stores take them, or a function that says which documents may be seen."""

_NO_FILTER = ("k", "fetch_k", "lambda_mult", "score_threshold", "timeout")  # of a vector store's search


class DocumentFilter(AccessFilter[Document]):
    """Says which documents a component may see.

    Args:
        filter: The component's own; None lets everything pass.
        source: Asked beside it; the filters of the retrievers that it is, or holds, govern what is looked up.

    Raises:
        InvalidInput: the filter is neither a dictionary nor a function, or has an operator that nobody knows.

    >>> mine = DocumentFilter({"tenant": "a"})
    >>> found = [Document("", id="1", metadata={"tenant": "a"}), Document("", id="2")]
    >>> [document.id for document in mine.filter_results(found)]
    ['1']
    """

    def __init__(self, filter: Filter | None, source: object = None) -> None:
        inside = parts_of(source, (Runnable, VectorStore), _inside)
        super().__init__(_predicate(filter), [one for part in inside for one in _restrictions(part)])
        self.filter = filter

    def filter_results(self, documents: Iterable[Document], component: str = "") -> list[Document]:
        """As the base's.

        Raises:
            InvalidInput: the source brought something else.
        """
        if not isinstance(documents, Iterable) or isinstance(documents, str | bytes | Mapping):
            raise InvalidInput(
                f"A source brings, and a reranker takes, a list of documents, not a {type(documents).__name__}."
            )
        found = list(documents)  # any Runnable may be a source, so anything may come
        for one in found:
            if not isinstance(one, Document):
                raise InvalidInput(
                    f"A source brings, and a reranker takes, documents; there is a {type(one).__name__} among them."
                )
        return super().filter_results(found, component)

    def for_store(self, store: VectorStore, where: Mapping[str, str | tuple[str, ...]]) -> Any:
        """What a vector store filters its search by: metadata values, and the component's filter if it can take it."""
        if isinstance(store, InMemoryVectorStore):  # which asks a function of each document
            permitted = [(key, value if isinstance(value, tuple) else (value,)) for key, value in where.items()]
            passes = self._component_filter

            def holds(found: Document) -> bool:
                named = all(found.metadata.get(key) in values for key, values in permitted)
                return named and (passes is None or passes(found))

            return holds if permitted or passes is not None else None
        filters: list[dict[str, Any]] = [
            {key: {"$in": list(value)} if isinstance(value, tuple) else value} for key, value in where.items()
        ]
        if isinstance(self.filter, Mapping):
            filters += one_by_one(self.filter)
        return {"$and": filters} if len(filters) > 1 else filters[0] if filters else None


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


def _inside(part: Runnable[Any, Any]) -> Iterable[Any]:
    """What a Runnable holds: as the run's configuration has it, and what a function of its own asks."""
    if isinstance(part, DynamicRunnable):
        return [part.prepare(ensure_config())[0]]
    if isinstance(part, RunnableBindingBase) and isinstance(part.bound, VectorStoreRetriever):
        return [part.bound.model_copy(update={"search_kwargs": {**part.bound.search_kwargs, **part.kwargs}})]
    return [*vars(part).values(), *getattr(part, "deps", ())]


def _restrictions(source: object) -> list[Callable[[Document], bool] | str]:
    """What a retriever of ours, one over a store, or what a Runnable is bound to, restricts its own search by.

    A filter that only the store understands is a string.
    """
    inherited: list[Callable[[Document], bool] | str] = []
    if isinstance(source, DynamicRunnable):  # which shows its default's attributes as its own
        return inherited
    store = getattr(source, "vectorstore", None)
    if isinstance(source, RunnableBindingBase):
        searches: Mapping[str, Any] = {"filter": source.kwargs.get("filter")}
        if isinstance(source.bound, VectorStoreRetriever):  # called with these
            searches = {}
    elif isinstance(arguments := getattr(source, "search_kwargs", None), Mapping):
        searches = arguments
    else:
        searches = {"filter": getattr(source, "filters", None)}
    for name, value in searches.items():
        if name not in _NO_FILTER and value is not None:
            try:
                holds = _predicate(value, store) if name == "filter" else None
            except InvalidInput:
                holds = None
            inherited.append(holds or f"{name}={value!r:.100}")
    return inherited


def _predicate(filter: object, store: object = None) -> Callable[[Document], bool] | None:
    if filter is None:
        return None
    if isinstance(filter, Mapping):
        holds = from_dictionary(filter)
        return lambda document: holds(document.metadata) is True
    if not callable(filter):
        raise InvalidInput(
            f"A filter is a dictionary, or a function from a document to True or False; not {filter!r:.100}."
        )
    if store is not None and not isinstance(store, InMemoryVectorStore):  # whose filters read the metadata alone
        of_metadata = answered(filter)
        return lambda document: of_metadata(document.metadata)
    return answered(filter)


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
        [found] = yield [FunctionRequest(partial(retriever.invoke, *arguments), partial(retriever.ainvoke, *arguments))]
        [seen] = yield [
            FunctionRequest(partial(self.access_filter.filter_results, found, self.component))
        ]  # a user's filter may take long
        return seen  # type: ignore[no-any-return]

    def _searched(self, k: int, wanted: Mapping[str, str]) -> Requests[tuple[list[Document], int]]:
        assert self.store is not None
        form = self.access_filter.for_store(self.store, wanted)
        hits = yield from self._similar(self.store, k, form)
        if isinstance(hits, Exception):
            raise InvalidInput(
                f"{type(self.store).__name__} does not search by {form!r:.100} ({hits}): as source give its retriever "
                'with search_kwargs={"filter": ...} of its own form, to MultiViewRetriever one for each view, and '
                "filters=... beside it, a dictionary or a function."
            ) from hits
        [seen] = yield [FunctionRequest(partial(self.access_filter.filter_results, hits))]
        return seen, len(hits)

    def fetch(self, request: LookupRequest) -> Requests[list[Document] | None]:
        """Documents by id or by metadata, as far as they may be seen; None where no store can tell."""
        if self._by_key is not None and request.where is None:
            [found] = yield [
                FunctionRequest(partial(self._by_key.mget, request.ids), partial(self._by_key.amget, request.ids))
            ]
            return (yield from self._permitted(_of_keys(request.ids, found)))
        store = self.store
        if store is None:
            return None
        if request.where is not None:
            form = self.access_filter.for_store(store, request.where)
            [documents] = yield [FunctionRequest(partial(_by_metadata, store, form))]
            if documents is None:
                documents = yield from self._similar(store, _ALL, form)
            if isinstance(documents, Exception):
                warn(
                    f"{type(store).__name__} takes no dictionary as a filter: nothing is looked up there by metadata, "
                    "and what was found stands alone. Pass the originals as documents."
                )
                return None
            return (yield from self._permitted(documents))
        ids = list(request.ids)
        # Not implemented where a store brings records by search only.
        [found] = yield [_call(NotImplementedError, store.get_by_ids, store.aget_by_ids, ids)]
        return None if isinstance(found, Exception) else (yield from self._permitted(found))

    def _permitted(self, found: Sequence[Document]) -> Requests[list[Document]]:
        [permitted] = yield [FunctionRequest(partial(self.access_filter.filter_fetched, found))]
        return permitted  # type: ignore[no-any-return]

    def _similar(self, store: VectorStore, k: int, form: Any) -> Requests[list[Document] | Exception]:
        """The nearest; an error where the store does not know what to do with the form of the filter."""
        named: dict[str, Any] = {} if form is None else {"filter": form}  # what knows no filter is asked without one
        model = store.embeddings
        search: Any
        asearch: Any
        query: Any
        if model is None or type(store).similarity_search_by_vector is VectorStore.similarity_search_by_vector:
            search, asearch, query = store.similarity_search, store.asimilarity_search, self.query
        else:
            query = yield from self.vector(model, partial(model.embed_query, self.query))
            search, asearch = store.similarity_search_by_vector, store.asimilarity_search_by_vector
        if "fetch_k" in inspect.signature(search).parameters:  # as FAISS, which filters what it has fetched
            fetch_k = (getattr(self.source, "search_kwargs", None) or {}).get("fetch_k", 0)
            named["fetch_k"] = max(k, fetch_k, _ALL if named else 0)
        if isinstance(store, InMemoryVectorStore):  # its asynchronous search computes on the event loop
            [found] = yield [FunctionRequest(partial(self.in_turn, search, query, k=k, **named))]
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
