"""What a component may return, and what it may look up: its own filter, and that of the source that it asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import RouterRunnable, Runnable, RunnableBranch, RunnableConfig, RunnableSequence
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.configurable import DynamicRunnable
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore, VectorStoreRetriever

from drillrank.errors import InvalidInput
from drillrank.hosts.components import HostFields
from drillrank.hosts.filters import AccessFilter, answered, from_dictionary, one_by_one

Filter = Mapping[str, Any] | Callable[[Document], bool]
"""Metadata values and operators as vector stores take them, or a function that says which documents may be seen."""

_Predicate = Callable[[Document], bool]

# Where the host's runnables and retrievers keep others. The first hand on what they are called with.
_SAME_CALL = ("bound", "runnable", "fallbacks")
_INSIDE = (
    *("steps", "steps__", "branches", "default", "mapper", "runnables", "deps"),
    *("base_retriever", "retriever", "retrievers", "source"),
)
# Retrievers of the host's packages that bring what others do, or a store, as it is, and where they keep these.
_AS_IT_IS = {
    "ContextualCompressionRetriever": "base_retriever",
    "EnsembleRetriever": "retrievers",
    "MergerRetriever": "retrievers",
    "MultiQueryRetriever": "retriever",
    "RePhraseQueryRetriever": "retriever",
    "SelfQueryRetriever": "vectorstore",
}
_CHANGES_NOTHING = ("Rerank", "Reranker", "EmbeddingsFilter", "LLMChainFilter")  # ends of compressors' names
_NO_FILTER = ("k", "fetch_k", "lambda_mult", "score_threshold", "timeout")  # of a vector store's search


class DocumentFilter(AccessFilter[Document]):
    """Says which documents a component may see.

    Args:
        filter: The component's own; None lets everything pass.
        source: Retrievers whose filters govern what is looked up beside them.
        config: Of the run, as a retriever may be configured by it.

    Raises:
        InvalidInput: the filter is neither a dictionary nor a function, or has an operator that nobody knows.

    >>> mine = DocumentFilter({"tenant": "a"})
    >>> found = [Document("", id="1", metadata={"tenant": "a"}), Document("", id="2")]
    >>> [document.id for document in mine.filter_results(found)]
    ['1']
    """

    _records = "documents"
    _remedy = "filter=..., a dictionary or a function from a document"

    def __init__(self, filter: Filter | None, source: object = None, config: RunnableConfig | None = None) -> None:
        super().__init__(_predicate(filter))
        self.filter = filter
        for store, name, found in () if source is None else _filters_in(source, config):
            self._inherit(partial(_of_a_search, store, name, found), f"{name}={found!r:.100}")

    def filter_results(self, documents: Iterable[Document], component: str = "") -> list[Document]:
        """As the base's.

        Raises:
            InvalidInput: the source brought something else.
        """
        return super().filter_results(_documents(documents), component)

    def for_store(self, store: VectorStore, where: Mapping[str, str | tuple[str, ...]]) -> Any:
        """What a vector store filters its search by: metadata values, and the component's filter if it can take it."""
        if isinstance(store, InMemoryVectorStore):  # which asks a function of each document
            allowed = [(key, value if isinstance(value, tuple) else (value,)) for key, value in where.items()]
            passes = self._sees

            def holds(found: Document) -> bool:
                return all(found.metadata.get(key) in values for key, values in allowed) and passes(found)

            return holds if allowed or self._own is not None else None
        filters: list[dict[str, Any]] = [
            {key: {"$in": list(value)} if isinstance(value, tuple) else value} for key, value in where.items()
        ]
        if isinstance(self.filter, Mapping):
            filters += one_by_one(self.filter)
        return {"$and": filters} if len(filters) > 1 else filters[0] if filters else None


def store_behind(source: object, config: RunnableConfig | None = None) -> VectorStore | None:
    """The vector store that all documents of a source come from, as they are; None if there are several, or others."""
    if isinstance(source, VectorStore):
        return source
    if isinstance(source, VectorStoreRetriever):
        return source.vectorstore
    found = [store_behind(*inner) for inner in _sources_of(source, config)]
    return found[0] if found and all(store is found[0] for store in found) else None


def _sources_of(source: object, config: RunnableConfig | None) -> list[tuple[object, RunnableConfig | None]]:
    """Where all that a source brings comes from, as it is; empty if that is not all, or nobody knows.

    Not that of a compressor which may redact, or hide by a rule of its own: behind it, that would be undone.
    """
    inside: object = ()
    if isinstance(source, Mapping):
        inside = source
    elif isinstance(source, RunnableSequence):
        inside = source.last
    elif isinstance(source, RunnableBranch):
        inside = [*(runnable for _, runnable in source.branches), source.default]
    elif isinstance(source, RouterRunnable):
        inside = source.runnables
    elif isinstance(source, HostFields):
        inside = getattr(source, "_all_from", None)
    elif name := next((name for name in _host_names(source) if name in _AS_IT_IS), None):
        compressor = getattr(source, "base_compressor", None)
        changes = compressor is not None and not any(map(_changes_nothing, _host_names(compressor)))
        inside = () if changes else getattr(source, _AS_IT_IS[name])
    else:
        return _in_the_same_call(source, config)
    return [(inner, config) for inner in _listed([inside])]


def _host_names(value: object) -> list[str]:
    """Names of the classes of the host's packages, and of our own, that a value is of."""
    return [cls.__name__ for cls in type(value).__mro__ if cls.__module__.startswith("langchain")]


def _changes_nothing(compressor: str) -> bool:
    return compressor.endswith(_CHANGES_NOTHING)


def _documents(brought: object) -> list[Document]:
    """What a source brought, if it is documents: any Runnable may be one, so anything may come."""
    if not isinstance(brought, Iterable) or isinstance(brought, str | bytes | Mapping):
        raise InvalidInput(f"A source brings a list of documents, not a {type(brought).__name__}.")
    documents = list(brought)
    for one in documents:
        if not isinstance(one, Document):
            raise InvalidInput(f"A source brings documents; there is a {type(one).__name__} among them.")
    return documents


def _predicate(filter: object, store: object = None) -> _Predicate | None:
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


def _of_a_search(store: object, name: str, value: object) -> _Predicate | None:
    """An argument of a store's search as a predicate; only one called `filter` can be read."""
    if name != "filter":
        raise InvalidInput(f"{name} of a search is known to its store alone.")
    return _predicate(value, store)


_Found = tuple[object, str, object]
"""A restriction of a search: the store, the argument's name and its value."""


def _filters_in(
    source: object,
    config: RunnableConfig | None,
    called_with: Mapping[str, Any] = MappingProxyType({}),
    seen: frozenset[int] = frozenset(),
) -> Iterator[_Found]:
    """What a source and those inside it restrict their searches by, called with these arguments."""
    if id(source) in seen:
        return
    seen |= {id(source)}
    wrapped = _in_the_same_call(source, config)
    if wrapped:  # what else the wrapper shows is theirs
        if isinstance(source, RunnableBindingBase):
            called_with = {**source.kwargs, **called_with}
        for inner, configured in wrapped:
            yield from _filters_in(inner, configured, called_with, seen)
        return
    if isinstance(source, HostFields):
        yield None, "filter", getattr(source, "filters", None)
    arguments = getattr(source, "search_kwargs", None)
    if isinstance(arguments, Mapping):
        if isinstance(source, VectorStoreRetriever):
            arguments = {**arguments, **called_with}
        for name, value in arguments.items():
            if name not in _NO_FILTER and value is not None:
                yield getattr(source, "vectorstore", None), name, value
    inside = source.values() if isinstance(source, Mapping) else [getattr(source, name, None) for name in _INSIDE]
    for inner in _listed(inside):
        yield from _filters_in(inner, config, seen=seen)


def _in_the_same_call(source: object, config: RunnableConfig | None) -> list[tuple[object, RunnableConfig | None]]:
    """What a wrapper calls in its own place, with the configuration that it makes of the run's."""
    if isinstance(source, DynamicRunnable):
        return [source.prepare(config)]
    if isinstance(source, RunnableBindingBase):
        config = source._merge_configs(config)
    return [(inner, config) for inner in _listed(getattr(source, name, None) for name in _SAME_CALL)]


def _listed(values: Iterable[object]) -> list[object]:
    """The runnables, and vector stores, among attributes, which hold one, or several in whatever way."""
    found: list[object] = []
    for value in values:
        if isinstance(value, Mapping):
            found += _listed(value.values())
        elif isinstance(value, list | tuple):
            found += _listed(value)
        elif isinstance(value, Runnable | VectorStore):
            found.append(value)
    return found
