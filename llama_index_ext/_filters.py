"""Filters of LlamaIndex: which nodes a component may return, and which ones it may look up next to its source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.indices.vector_store import VectorIndexRetriever
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import BaseNode, Document, NodeWithScore
from llama_index.core.vector_stores.simple import SimpleVectorStore
from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters
from llama_index.core.vector_stores.utils import build_metadata_filter_fn

from drillrank.errors import InvalidInput, WarnOnce, warn
from drillrank.frameworks.filters import (
    AccessFilter,
    Condition,
    all_of,
    any_of,
    check_depth,
    condition,
    list_parts,
    negated,
    require_sync_predicate,
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
        inside = list_parts(source, (BaseRetriever, BaseQueryEngine))
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


def _restrictions(source: object) -> list[Callable[[BaseNode], bool] | str]:
    """What a retriever of ours, or one over an index, restricts its own search by.

    What only the store understands is a string.
    """
    inherited: list[Callable[[BaseNode], bool] | str] = []
    store = getattr(getattr(source, "_index", None), "vector_store", None)
    for name in ("_filters", "_extra_filters", "filters"):
        if filters := getattr(source, name, None):
            try:
                inherited += [holds] if (holds := _predicate(filters, store)) else []
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


_warned = WarnOnce()


def _predicate(filters: object, store: object = None) -> Callable[[BaseNode], bool] | None:
    """A component's filter, or that of a search in a store."""
    if filters is None:
        return None
    if isinstance(filters, MetadataFilters):
        strict, lenient = metadata_filter(filters), metadata_filter(filters, lenient=True)
        sees = lenient if isinstance(store, SimpleVectorStore) else strict

        def holds(node: BaseNode) -> bool:
            metadata = _metadata(node)
            if sees(metadata):
                return True
            if store is not None and lenient(metadata) and _warned.new("lacks a key", [f"{filters!r:.200}"]):
                warn(
                    f"Nodes without a key of {filters!r:.200} are not looked up, as some stores hide them and some do "
                    "not. If yours shows them, write the key into every node."
                )
            return False

        return holds
    if not callable(filters):
        raise InvalidInput(
            f"filters are MetadataFilters, or a function from a node to True or False; not {filters!r:.100}."
        )
    return require_sync_predicate(filters)


def metadata_filter(filters: MetadataFilters, *, lenient: bool = False) -> Callable[[Mapping[str, Any]], bool]:
    """From metadata as stores keep them to whether they pass; leniently as the host's store in memory says it.

    There a node without the key passes "is not", depending on the host's version, and "not" any other condition.
    """
    holds = _condition(filters, lenient)
    return lambda metadata: holds(metadata) is True


def _condition(filters: MetadataFilter | MetadataFilters, lenient: bool, depth: int = 0) -> Condition:
    check_depth(depth)
    if isinstance(filters, MetadataFilter):
        key = filters.key
        holds = condition(key, _OPERATORS.get(filters.operator, filters.operator.value), filters.value)
        if not lenient:
            return holds
        absent = build_metadata_filter_fn(lambda _: {}, MetadataFilters(filters=[filters]))("")
        return lambda metadata: absent if metadata.get(key) is None else holds(metadata)
    inner = [_condition(one, lenient, depth + 1) for one in filters.filters]
    if filters.condition == FilterCondition.NOT:
        return negated(any_of(inner))
    return any_of(inner) if filters.condition == FilterCondition.OR else all_of(inner)


def _metadata(node: BaseNode) -> Mapping[str, Any]:
    """As stores keep it: under these keys they write the document's id, over a user's."""
    document = _document_id(node)
    return node.metadata if document is None else {**node.metadata, **dict.fromkeys(_OF_THE_NODE, document)}


def _document_id(node: BaseNode) -> str | None:
    return node.node_id if isinstance(node, Document) and node.ref_doc_id is None else node.ref_doc_id
