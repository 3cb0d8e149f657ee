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
        inside = list_parts(source, (Runnable, VectorStore), _inside)
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
            filters += split_conditions(self.filter)
        return {"$and": filters} if len(filters) > 1 else filters[0] if filters else None


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
        holds = parse_filter(filter)
        return lambda document: holds(document.metadata) is True
    if not callable(filter):
        raise InvalidInput(
            f"A filter is a dictionary, or a function from a document to True or False; not {filter!r:.100}."
        )
    if store is not None and not isinstance(store, InMemoryVectorStore):  # whose filters read the metadata alone
        of_metadata = require_sync_predicate(filter)
        return lambda document: of_metadata(document.metadata)
    return require_sync_predicate(filter)
