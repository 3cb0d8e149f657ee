"""What a component may return, and what it may look up: its own filter, and that of the source that it asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.indices.vector_store import VectorStoreIndex
from llama_index.core.retrievers import BaseRetriever, VectorIndexRetriever
from llama_index.core.schema import BaseNode, Document, NodeWithScore
from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

from drillrank.errors import InvalidInput
from drillrank.hosts.filters import (
    AccessFilter,
    Condition,
    all_of,
    answered,
    any_of,
    check_depth,
    condition,
    negated,
    parts_of,
)

Filters = MetadataFilters | Callable[[BaseNode], bool]
"""The host's filters, or a function that says which nodes may be seen."""

_OPERATORS = {
    FilterOperator.EQ: "eq",
    FilterOperator.NE: "ne",
    FilterOperator.GT: "gt",
    FilterOperator.GTE: "gte",
    FilterOperator.LT: "lt",
    FilterOperator.LTE: "lte",
}  # the others are called what they are
_OF_THE_NODE = ("ref_doc_id", "doc_id", "document_id")  # keys under which stores know a node's document
_NO_FILTER = ("mmr_threshold", "mmr_prefetch_factor", "mmr_prefetch_k", "timeout")  # of a vector store's search


class NodeFilter(AccessFilter[BaseNode]):
    """Says which nodes a component may see.

    Args:
        filters: The component's own; None lets everything pass.
        source: Asked beside it; the filters of the retrievers that it is, or holds, govern what is looked up.

    Raises:
        InvalidInput: `filters` is neither of the host's kind nor a function, or has an operator that nobody knows.

    >>> from llama_index.core.schema import TextNode
    >>> mine = NodeFilter(MetadataFilters(filters=[MetadataFilter(key="tenant", value="a")]))
    >>> [node.id_ for node in mine.filter_results([TextNode(id_="1", metadata={"tenant": "a"}), TextNode(id_="2")])]
    ['1']
    """

    def __init__(self, filters: Filters | None, source: object = None) -> None:
        inside = parts_of(source, (BaseRetriever, BaseQueryEngine))
        super().__init__(_predicate(filters), [one for part in inside for one in _restrictions(part)])
        self.filters = filters

    def hits(self, found: Iterable[NodeWithScore], component: str = "") -> list[NodeWithScore]:
        """`filter_results` for what the source brought, with scores."""
        hits = list(found)
        seen = set(map(id, self.filter_results((hit.node for hit in hits), component)))
        return [hit for hit in hits if id(hit.node) in seen]

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


def underlying_index(source: object) -> VectorStoreIndex | None:
    """The index that a source is, or that the host's retrievers over one search.

    What stands behind any other retriever is not guessed, nor where an index leads to other objects than nodes.
    """
    if isinstance(source, VectorStoreIndex):
        return source
    if isinstance(source, Mapping) and source:
        first, *others = map(underlying_index, source.values())
        return first if all(one is first for one in others) else None
    if type(source) is not VectorIndexRetriever or not all(
        isinstance(led_to, BaseNode) for led_to in source.object_map.values()
    ):
        return None
    return source._index


def _restrictions(source: object) -> list[Callable[[BaseNode], bool] | str]:
    """What a retriever of ours, or one over an index, restricts its own search by.

    What only the store understands is a string.
    """
    inherited: list[Callable[[BaseNode], bool] | str] = []
    for name in ("_filters", "_extra_filters", "filters"):
        if filters := getattr(source, name, None):
            try:
                inherited += [holds] if (holds := _predicate(filters)) else []
            except InvalidInput:
                inherited.append(f"filters={filters!r:.100}")
    if not isinstance(source, VectorIndexRetriever):
        return inherited
    if documents := frozenset(source._doc_ids or ()):
        inherited.append(lambda node: _document_id(node) in documents)
    nodes = frozenset(source._node_ids or ())  # those of an index's own retriever are all of its nodes
    if nodes and not nodes.issuperset(source._index.index_struct.nodes_dict.values()):
        inherited.append(lambda node: node.node_id in nodes)
    arguments = {**source._kwargs, **(source._kwargs.get("vector_store_kwargs") or {}), "vector_store_kwargs": None}
    inherited += [
        f"{name}={value!r:.100}" for name, value in arguments.items() if name not in _NO_FILTER and value is not None
    ]
    return inherited


def _predicate(filters: object) -> Callable[[BaseNode], bool] | None:
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
