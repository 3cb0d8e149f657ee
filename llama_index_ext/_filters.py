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
from drillrank.structure.stored_chunks import Where

Filters = MetadataFilters | Callable[[BaseNode], bool]
"""Metadata filters of LlamaIndex, or a function that returns True for nodes that may be seen."""

_NAME_BY_OPERATOR = {
    FilterOperator.EQ: "eq",
    FilterOperator.NE: "ne",
    FilterOperator.GT: "gt",
    FilterOperator.GTE: "gte",
    FilterOperator.LT: "lt",
    FilterOperator.LTE: "lte",
}  # the values of the others are their names
_DOCUMENT_KEYS = ("ref_doc_id", "doc_id", "document_id")  # keys under which stores keep the id of a node's document
_UNRESTRICTIVE = ("mmr_threshold", "mmr_prefetch_factor", "mmr_prefetch_k", "timeout")  # arguments of a store's search


class NodeFilter(AccessFilter[BaseNode]):
    """Filter of the nodes that a component may see.

    Args:
        filters: The component's own filter; None lets every node pass.
        source: Source of the component. The filters of its retrievers apply to nodes that are looked up next to it.

    Raises:
        InvalidInput: `filters` is not a filter of LlamaIndex or a function, or has an unknown operator.

    >>> from llama_index.core.schema import TextNode
    >>> of_tenant = NodeFilter(MetadataFilters(filters=[MetadataFilter(key="tenant", value="a")]))
    >>> nodes = [TextNode(id_="1", metadata={"tenant": "a"}), TextNode(id_="2")]
    >>> [node.id_ for node in of_tenant.filter_results(nodes)]
    ['1']
    """

    def __init__(self, filters: Filters | None, source: object = None) -> None:
        parts = list_parts(source, (BaseRetriever, BaseQueryEngine))
        super().__init__(_build_predicate(filters), [filter for part in parts for filter in _list_restrictions(part)])
        self.filters = filters

    def filter_hits(self, hits: Iterable[NodeWithScore], component: str = "") -> list[NodeWithScore]:
        """Return the hits whose nodes pass `filter_results`."""
        hits = list(hits)
        permitted = set(map(id, self.filter_results((hit.node for hit in hits), component)))
        return [hit for hit in hits if id(hit.node) in permitted]

    def as_store_filters(self, where: Where, store: object = None) -> MetadataFilters | None:
        """Return the filters of a store's search: metadata values, and the component's filters. None for none."""
        filters = _list_value_filters(where, only_lists=_writes_sql(store))
        if isinstance(self.filters, MetadataFilters) and self.filters.filters:
            # Several stores take no filters inside filters, so flatten them where that has the same meaning.
            is_flat = self.filters.condition in (None, FilterCondition.AND) or len(self.filters.filters) == 1
            is_negated = self.filters.condition == FilterCondition.NOT
            filters += self.filters.filters if is_flat and not is_negated else [self.filters]
        store_filters = MetadataFilters(filters=filters) if filters else None
        return _escape_quotes(store_filters) if store_filters is not None and _writes_sql(store) else store_filters

    def as_lookup_filters(self, where: Where, store: object = None) -> MetadataFilters:
        """Return filters for the few records of a document, without those that several stores do not support.

        `filter_fetched` applies the rest.
        """
        store_filters = self.as_store_filters(where, store)
        filters = store_filters.filters if store_filters is not None else []
        return MetadataFilters(filters=[filter for filter in filters if isinstance(filter, MetadataFilter)])


def _list_value_filters(where: Where, *, only_lists: bool) -> list[MetadataFilter | MetadataFilters]:
    return [
        MetadataFilter(key=key, value=[value] if isinstance(value, str) else list(value), operator=FilterOperator.IN)
        if only_lists or isinstance(value, tuple)
        else MetadataFilter(key=key, value=value)
        for key, value in where.items()
    ]


def _writes_sql(store: object) -> bool:
    """Return True for the store of PostgreSQL, which writes values into SQL as they are.

    Ids and metadata of documents are such values, so that a quote in one would end the value and begin SQL. Besides, it
    compares a single value that looks like a number as a number, and fails if another record has none.
    """
    return any(kind.__module__.startswith("llama_index.vector_stores.postgres") for kind in type(store).__mro__)


def _escape_quotes(filters: MetadataFilters) -> MetadataFilters:
    """Return filters whose values SQLAlchemy's `text` and PostgreSQL read as the original values."""

    def escape(value: Any) -> Any:
        if isinstance(value, list):
            return [escape(item) for item in value]
        return value.replace("'", "''").replace(":", "\\:") if isinstance(value, str) else value

    escaped: list[MetadataFilter | MetadataFilters] = [
        _escape_quotes(filter)
        if isinstance(filter, MetadataFilters)
        else filter.model_copy(update={"value": escape(filter.value)})
        for filter in filters.filters
    ]
    return filters.model_copy(update={"filters": escaped})


def _list_restrictions(source: object) -> list[Callable[[BaseNode], bool] | str]:
    """Return the restrictions of a retriever's search. One that only the store understands is a string."""
    restrictions: list[Callable[[BaseNode], bool] | str] = []
    store = getattr(getattr(source, "_index", None), "vector_store", None)
    for name in ("_filters", "_extra_filters", "filters"):
        if filters := getattr(source, name, None):
            try:
                predicate = _build_predicate(filters, store)
                restrictions += [] if predicate is None else [predicate]
            except InvalidInput:
                restrictions.append(f"filters={filters!r:.100}")
    if not isinstance(source, VectorIndexRetriever):
        return restrictions
    if document_ids := frozenset(source._doc_ids or ()):
        restrictions.append(lambda node: _document_id(node) in document_ids)
    node_ids = frozenset(source._node_ids or ())  # an index's own retriever has all ids of the index
    if node_ids and not node_ids.issuperset(source._index.index_struct.nodes_dict.values()):
        restrictions.append(lambda node: node.node_id in node_ids)
    arguments = {**source._kwargs, **(source._kwargs.get("vector_store_kwargs") or {}), "vector_store_kwargs": None}
    restrictions += [
        f"{name}={value!r:.100}"
        for name, value in arguments.items()
        if name not in _UNRESTRICTIVE and value is not None
    ]
    return restrictions


_warned = WarnOnce()


def _build_predicate(filters: object, store: object = None) -> Callable[[BaseNode], bool] | None:
    """Return the function that evaluates a filter of a component, or of a search in a store."""
    if filters is None:
        return None
    if isinstance(filters, MetadataFilters):
        strict, lenient = metadata_filter(filters), metadata_filter(filters, lenient=True)
        passes_store = lenient if isinstance(store, SimpleVectorStore) else strict

        def passes(node: BaseNode) -> bool:
            metadata = _stored_metadata(node)
            if passes_store(metadata):
                return True
            if store is not None and lenient(metadata) and _warned.new("lacks a key", [f"{filters!r:.200}"]):
                warn(
                    "Nodes without a key of the retriever's filters are not looked up: some stores hide them, others "
                    "do not. If yours shows them, write the key into every node."
                )
            return False

        return passes
    if not callable(filters):
        raise InvalidInput(
            f"filters must be MetadataFilters, or a function from a node to True or False, got {filters!r:.100}."
        )
    return require_sync_predicate(filters)


def metadata_filter(filters: MetadataFilters, *, lenient: bool = False) -> Callable[[Mapping[str, Any]], bool]:
    """Return the function from stored metadata to True if they pass the filters.

    Args:
        filters: The filters.
        lenient: Evaluate as the framework's store in memory does. There, a node without the key passes "is not",
            depending on the framework's version, and "not" of any other condition.
    """
    is_met = _build_condition(filters, lenient)
    return lambda metadata: is_met(metadata) is True


def _build_condition(filters: MetadataFilter | MetadataFilters, lenient: bool, depth: int = 0) -> Condition:
    check_depth(depth)
    if isinstance(filters, MetadataFilter):
        key = filters.key
        operator_name = _NAME_BY_OPERATOR.get(filters.operator, filters.operator.value)
        is_met = condition(key, operator_name, filters.value)
        if not lenient:
            return is_met
        without_key = build_metadata_filter_fn(lambda _: {}, MetadataFilters(filters=[filters]))("")
        return lambda metadata: without_key if metadata.get(key) is None else is_met(metadata)
    conditions = [_build_condition(inner, lenient, depth + 1) for inner in filters.filters]
    if filters.condition == FilterCondition.NOT:
        return negated(any_of(conditions))
    return any_of(conditions) if filters.condition == FilterCondition.OR else all_of(conditions)


def _stored_metadata(node: BaseNode) -> Mapping[str, Any]:
    """Return metadata as stores keep them: the document's id replaces a user's value under these keys."""
    document = _document_id(node)
    return node.metadata if document is None else {**node.metadata, **dict.fromkeys(_DOCUMENT_KEYS, document)}


def _document_id(node: BaseNode) -> str | None:
    return node.node_id if isinstance(node, Document) and node.ref_doc_id is None else node.ref_doc_id
