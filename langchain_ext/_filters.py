"""Filters of LangChain: which documents a component may return, and which ones it may look up next to its source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.config import ensure_config
from langchain_core.runnables.configurable import DynamicRunnable
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore, VectorStoreRetriever

from drillrank.errors import InvalidInput
from drillrank.frameworks.filters import (
    AccessFilter,
    list_parts,
    parse_filter,
    require_sync_predicate,
    split_conditions,
)
from drillrank.structure.stored_chunks import Where, matches
from langchain_ext._qdrant import is_qdrant, parse_qdrant_filter, qdrant_filter

Filter = Mapping[str, Any] | Callable[[Document], bool]
"""Metadata values and operators as vector stores take them, or a function that returns True for visible documents."""

_UNRESTRICTIVE = ("k", "fetch_k", "lambda_mult", "score_threshold", "timeout")  # arguments of a store's search


class DocumentFilter(AccessFilter[Document]):
    """Filter of the documents that a component may see.

    Args:
        filter: The component's own filter; None lets every document pass.
        source: Source of the component. The filters of its retrievers apply to documents that are looked up next to it.

    Raises:
        InvalidInput: The filter is not a dictionary or a function, or has an unknown operator.

    >>> of_tenant = DocumentFilter({"tenant": "a"})
    >>> documents = [Document("", id="1", metadata={"tenant": "a"}), Document("", id="2")]
    >>> [document.id for document in of_tenant.filter_results(documents)]
    ['1']
    """

    def __init__(self, filter: Filter | None, source: object = None) -> None:
        parts = list_parts(source, (Runnable, VectorStore), _list_inner_parts)
        super().__init__(_build_predicate(filter), [inner for part in parts for inner in _list_restrictions(part)])
        self.filter = filter

    def filter_results(self, documents: Iterable[Document], component: str = "") -> list[Document]:
        """Return the documents that pass the component's own filter.

        Raises:
            InvalidInput: The source returned something else than documents.
        """
        # A source may be any Runnable, which may return anything.
        if not isinstance(documents, Iterable) or isinstance(documents, str | bytes | Mapping):
            raise InvalidInput(
                f"A source must return, and a reranker needs, a list of documents, got a {type(documents).__name__}."
            )
        results = list(documents)
        for result in results:
            if not isinstance(result, Document):
                raise InvalidInput(
                    f"A source must return, and a reranker needs, documents, got a {type(result).__name__} among them."
                )
        return super().filter_results(results, component)

    def as_store_filter(self, store: VectorStore, where: Where) -> Any:
        """Return the filter of a store's search: metadata values, and the component's filter if the store can take it.

        None means no filter.
        """
        if isinstance(store, InMemoryVectorStore):  # calls a function with each document
            passes = self._component_filter
            if not where and passes is None:
                return None
            return lambda document: matches(document.metadata, where) and (passes is None or passes(document))
        filters: list[dict[str, Any]] = [
            {key: {"$in": list(value)} if isinstance(value, tuple) else value} for key, value in where.items()
        ]
        if isinstance(self.filter, Mapping):
            filters += split_conditions(self.filter)
        if is_qdrant(store):
            return qdrant_filter(store, filters)
        return {"$and": filters} if len(filters) > 1 else filters[0] if filters else None


def _list_inner_parts(part: Runnable[Any, Any]) -> Iterable[Any]:
    """Return the parts of a Runnable: as the run's configuration selects them, and those that a function calls."""
    if isinstance(part, DynamicRunnable):
        return [part.prepare(ensure_config())[0]]
    if isinstance(part, RunnableBindingBase) and isinstance(part.bound, VectorStoreRetriever):
        return [part.bound.model_copy(update={"search_kwargs": {**part.bound.search_kwargs, **part.kwargs}})]
    return [*vars(part).values(), *getattr(part, "deps", ())]


def _list_restrictions(source: object) -> list[Callable[[Document], bool] | str]:
    """Return the restrictions of a retriever's search. One that only the store understands is a string."""
    restrictions: list[Callable[[Document], bool] | str] = []
    if isinstance(source, DynamicRunnable):  # its attributes are those of its default
        return restrictions
    store = getattr(source, "vectorstore", None)
    if isinstance(source, RunnableBindingBase):
        is_store_retriever = isinstance(source.bound, VectorStoreRetriever)  # gets these as arguments of its search
        arguments: Mapping[str, Any] = {} if is_store_retriever else {"filter": source.kwargs.get("filter")}
    elif isinstance(search_kwargs := getattr(source, "search_kwargs", None), Mapping):
        arguments = search_kwargs
    else:
        arguments = {"filter": getattr(source, "filters", None)}
    for name, value in arguments.items():
        if name not in _UNRESTRICTIVE and value is not None:
            try:
                predicate = _build_predicate(value, store) if name == "filter" else None
            except InvalidInput:
                predicate = None
            restrictions.append(predicate or f"{name}={value!r:.100}")
    return restrictions


def _build_predicate(filter: object, store: object = None) -> Callable[[Document], bool] | None:
    """Return the function that evaluates a filter of a component, or of a search in a store."""
    if filter is None:
        return None
    if isinstance(store, VectorStore) and is_qdrant(store) and hasattr(filter, "must_not"):
        filter = parse_qdrant_filter(filter, store.metadata_payload_key)  # type: ignore[attr-defined]
    if isinstance(filter, Mapping):
        is_met = parse_filter(filter)
        return lambda document: is_met(document.metadata) is True
    if not callable(filter):
        raise InvalidInput(
            f"A filter must be a dictionary, or a function from a document to True or False, got {filter!r:.100}."
        )
    passes = require_sync_predicate(filter)
    if store is not None and not isinstance(store, InMemoryVectorStore):  # whose filters read the metadata alone
        return lambda document: passes(document.metadata)
    return passes
