"""What a component may return, and what it may look up: its own filter, and that of the source that it asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.indices.vector_store import VectorStoreIndex
from llama_index.core.retrievers import (
    BaseRetriever,
    QueryFusionRetriever,
    RecursiveRetriever,
    RouterRetriever,
    TransformRetriever,
    VectorIndexAutoRetriever,
    VectorIndexRetriever,
)
from llama_index.core.schema import BaseNode, Document, NodeWithScore
from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

from drillrank.errors import InvalidInput
from drillrank.hosts.filters import AccessFilter, Condition, all_of, answered, any_of, check_depth, condition, negated

Filters = MetadataFilters | Callable[[BaseNode], bool]
"""The host's filters, or a function that says which nodes may be seen."""

_Predicate = Callable[[BaseNode], bool]
_End = VectorStoreIndex | VectorIndexRetriever | VectorIndexAutoRetriever

_OPERATORS = {
    FilterOperator.EQ: "eq",
    FilterOperator.NE: "ne",
    FilterOperator.GT: "gt",
    FilterOperator.GTE: "gte",
    FilterOperator.LT: "lt",
    FilterOperator.LTE: "lte",
}  # the others are called what they are
_OF_THE_NODE = ("ref_doc_id", "doc_id", "document_id")  # keys under which stores know a node's document
# Where retrievers keep what restricts their searches,
_FILTERS = ("_filters", "_extra_filters", "filters")
_NO_FILTER = ("mmr_threshold", "mmr_prefetch_factor", "mmr_prefetch_k", "timeout")  # of a vector store's search
# and others: fusion, routing, recursion, merging, transformed queries, views, documents drilled into.
_INSIDE = (
    *("_retriever", "_retrievers", "_retriever_dict", "_query_engine_dict", "_vector_retriever", "_base_retriever"),
    *("object_map", "_source", "_single", "_by_view", "retriever", "source"),
)


class NodeFilter(AccessFilter[BaseNode]):
    """Says which nodes a component may see.

    Args:
        filters: The component's own; None lets everything pass.
        source: Retrievers whose filters govern what is looked up beside them.

    Raises:
        InvalidInput: `filters` is neither of the host's kind nor a function, or has an operator that nobody knows.

    >>> from llama_index.core.schema import TextNode
    >>> mine = NodeFilter(MetadataFilters(filters=[MetadataFilter(key="tenant", value="a")]))
    >>> [node.id_ for node in mine.filter_results([TextNode(id_="1", metadata={"tenant": "a"}), TextNode(id_="2")])]
    ['1']
    """

    _records = "nodes"
    _remedy = "filters=..., MetadataFilters or a function from a node"

    def __init__(self, filters: Filters | None, source: object = None) -> None:
        super().__init__(_predicate(filters))
        self.filters = filters
        for found in () if source is None else _filters_in(source):
            self._inherit(partial(_predicate, found), f"{found!r:.200}")
        self._documents = None if source is None else _documents_of(source)

    @property
    def restriction(self) -> str:
        """As the base's; stores that search without minding `doc_ids` find too little of these documents."""
        if self._documents is None:
            return super().restriction
        by_ids = "the restriction to doc_ids (not all stores search by these: give the retriever filters on 'doc_id')"
        alone = self._own is None and len(self._inherited) == 1
        return by_ids if alone else f"{super().restriction} or {by_ids}"

    def hits(self, found: Iterable[NodeWithScore], component: str = "") -> list[NodeWithScore]:
        """`kept` for what the source brought, with scores; of documents that it is to search, whatever it brings."""
        found = list(found)
        mine = self._documents
        seen = [hit for hit in found if self._sees(hit.node) and (mine is None or _document_id(hit.node) in mine)]
        self._tell(found, seen, component)
        return seen

    def for_store(self, **wanted: str) -> MetadataFilters | None:
        """What a store filters its search by: metadata values, and the component's filters if a store can take them."""
        filters: list[MetadataFilter | MetadataFilters] = [
            MetadataFilter(key=key, value=value) for key, value in wanted.items()
        ]
        if isinstance(self.filters, MetadataFilters) and self.filters.filters:
            # Several stores take no filters inside filters: these are flat where that means the same.
            flat = self.filters.condition in (None, FilterCondition.AND) or len(self.filters.filters) == 1
            inner = self.filters.filters if flat and self.filters.condition != FilterCondition.NOT else [self.filters]
            filters += inner
        return MetadataFilters(filters=filters) if filters else None


def index_behind(source: object) -> VectorStoreIndex | None:
    """The index that all records of a source come from, as they are; None if there are several, or other things."""
    indexes, whole = indexes_behind(source)
    return indexes[0] if whole and len(indexes) == 1 else None


def indexes_behind(source: object) -> tuple[list[VectorStoreIndex], bool]:
    """All indexes that records of a source come from, and whether none comes from anything else."""
    ends, whole = _ends(source)
    indexes = [end if isinstance(end, VectorStoreIndex) else end._index for end in ends]
    return list({id(index): index for index in indexes}.values()), whole


def _documents_of(source: object) -> frozenset[str] | None:
    """Ids of the documents that a source is to search; None if it may bring others."""
    ends, whole = _ends(source)
    ids = [end._doc_ids if isinstance(end, VectorIndexRetriever) else None for end in ends]
    return frozenset(id_ for of_one in ids for id_ in of_one or ()) if whole and all(ids) else None


def _ends(source: object) -> tuple[list[_End], bool]:
    """The indexes and retrievers over one that a source asks in the end, and whether it brings nothing else."""
    if _leads_on(source):
        return [], False
    if isinstance(source, _End):
        return [source], True
    found = list(map(_ends, _sources_of(source)))
    return [end for ends, _ in found for end in ends], bool(found) and all(whole for _, whole in found)


def _sources_of(source: object) -> Iterable[object]:
    """Where all that a source brings comes from, as it is; empty if that is not all, or nobody knows.

    Not those of an `AutoMergingRetriever`, which brings nodes out of a document store, too.
    """
    if isinstance(source, Mapping):
        return source.values()
    if isinstance(source, TransformRetriever):
        return [source._retriever]
    if isinstance(source, QueryFusionRetriever | RouterRetriever):
        return source._retrievers
    if isinstance(source, RecursiveRetriever):
        return () if source._node_dict or source._query_engine_dict else source._retriever_dict.values()
    ours = getattr(source, "_all_from", None)  # as components of ours say it
    return () if ours is None else [ours]


def _leads_on(source: object) -> bool:
    """Whether a retriever's results lead to others, or to engines; a node's copy is no other node."""
    objects = source.object_map if isinstance(source, BaseRetriever) else {}
    return any(not isinstance(led_to, BaseNode) for led_to in objects.values())


def _predicate(filters: object) -> _Predicate | None:
    if filters is None:
        return None
    if isinstance(filters, MetadataFilters):
        sees = metadata_filter(filters)
        return lambda node: sees(_metadata(node))
    if not callable(filters):
        raise InvalidInput(
            f"filters are MetadataFilters, or a function from a node to True or False; not {filters!r:.100}."
        )
    return answered(filters)


def metadata_filter(filters: MetadataFilters) -> Callable[[Mapping[str, Any]], bool]:
    """From metadata as stores keep them to whether they pass."""
    holds = _condition(filters)
    return lambda metadata: holds(metadata) is True


def _condition(filters: MetadataFilter | MetadataFilters, depth: int = 0) -> Condition:
    check_depth(depth)
    if isinstance(filters, MetadataFilter):
        return condition(filters.key, _OPERATORS.get(filters.operator, filters.operator.value), filters.value)
    inner = [_condition(one, depth + 1) for one in filters.filters]
    if filters.condition == FilterCondition.NOT:
        return negated(any_of(inner))
    return any_of(inner) if filters.condition == FilterCondition.OR else all_of(inner)


def _metadata(node: BaseNode) -> Mapping[str, Any]:
    """As stores keep it: under these keys they write the document's id, over a user's."""
    document = _document_id(node)
    return node.metadata if document is None else {**node.metadata, **dict.fromkeys(_OF_THE_NODE, document)}


def _document_id(node: BaseNode) -> str | None:
    return node.node_id if isinstance(node, Document) and node.ref_doc_id is None else node.ref_doc_id


def _filters_in(source: object, seen: frozenset[int] = frozenset()) -> Iterator[object]:
    """What a source and those inside it restrict their searches by."""
    if isinstance(source, Mapping | list | tuple):
        for inner in source.values() if isinstance(source, Mapping) else source:
            yield from _filters_in(inner, seen)
    elif isinstance(source, BaseRetriever | BaseQueryEngine) and id(source) not in seen:
        yield from (filters for name in _FILTERS if (filters := getattr(source, name, None)) is not None)
        if documents := getattr(source, "_doc_ids", None):
            yield _among(_document_id, frozenset(documents))
        nodes = frozenset(getattr(source, "_node_ids", None) or ())
        index = getattr(source, "_index", None)  # whose own retrievers are given all of its nodes
        if nodes and not (
            isinstance(index, VectorStoreIndex) and nodes.issuperset(index.index_struct.nodes_dict.values())
        ):
            yield _among(_node_id, nodes)
        if isinstance(source, VectorIndexRetriever):
            given = {**source._kwargs, **(source._kwargs.get("vector_store_kwargs") or {}), "vector_store_kwargs": None}
            others = {name: value for name, value in given.items() if name not in _NO_FILTER}
            yield from (f"{name}={value!r}" for name, value in others.items() if value is not None)
        for name in _INSIDE:
            yield from _filters_in(getattr(source, name, None), seen | {id(source)})


def _node_id(node: BaseNode) -> str:
    return node.node_id


def _among(id_of: Callable[[BaseNode], str | None], allowed: frozenset[str]) -> _Predicate:
    return lambda node: id_of(node) in allowed
