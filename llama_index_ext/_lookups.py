"""Look-ups in a LlamaIndex index, or through retrievers, for one question (see `drillrank.frameworks.store`).

What a component may return, and what it may look up, its own filter says, and that of the source that it asks.

Where a retriever or store has no asynchronous method of its own, the host's calls the synchronous one, on the event
loop: there the synchronous one is asked on a thread instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.indices.vector_store import VectorStoreIndex
from llama_index.core.retrievers import BaseRetriever, VectorIndexRetriever
from llama_index.core.schema import BaseNode, Document, IndexNode, NodeWithScore, QueryBundle
from llama_index.core.storage.docstore.types import BaseDocumentStore
from llama_index.core.vector_stores.simple import SimpleVectorStore
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
)
from llama_index.core.vector_stores.utils import build_metadata_filter_fn

from drillrank.errors import InvalidInput, WarnOnce, warn
from drillrank.frameworks.filters import (
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
from drillrank.frameworks.store import Store
from drillrank.llm import FunctionRequest, LookupRequest, Requests

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
    """The index that a source is, or that the host's retrievers over one search; of several, that of raw texts.

    What stands behind any other retriever is not guessed, nor where an index leads to other objects than nodes.
    """
    if isinstance(source, VectorStoreIndex):
        return source
    if isinstance(source, Mapping) and source:
        first, *others = map(underlying_index, source.values())
        return underlying_index(source.get("raw")) or (first if all(one is first for one in others) else None)
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
    return answered(filters)


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


_SYNCHRONOUS = (BaseRetriever._aretrieve, BasePydanticVectorStore.aquery, SimpleVectorStore.aquery)


def nodes_of(docstore: BaseDocumentStore, ids: Sequence[str]) -> FunctionRequest:
    """The nodes with these ids that a document store has."""
    return FunctionRequest(
        partial(docstore.get_nodes, list(ids), raise_error=False),
        partial(docstore.aget_nodes, list(ids), raise_error=False),
    )


DOCUMENT = "ref_doc_id"
"""Key under which a `LookupRequest` names a node's document. Stores filter by it, although metadata do not have it."""

Source = VectorStoreIndex | BaseRetriever | Mapping[str, BaseRetriever]


@dataclass(eq=False)
class StoreLookups(Store):
    """Answers the look-ups of one question; the question is embedded once at most.

    A search of an index returns nodes with scores, as the store has them: a keyword view, not what it leads to. Behind
    a retriever over an index that index is asked for nodes that are no search's.

    Args:
        query_bundle: The question.
        source: An index, a retriever, or several by name; None has nothing.
        access_filter: What may be seen.
        docstore: Is asked for nodes by id where there is no index behind the source.
        component: The component that warns if the filter hides all that a retriever brings; without a name none does.
        index: Is asked for nodes where none stands behind the source.
    """

    query_bundle: QueryBundle
    source: Source | None
    access_filter: NodeFilter
    docstore: BaseDocumentStore | None = None
    component: str = ""
    index: VectorStoreIndex | None = None

    def __post_init__(self) -> None:
        super().__init__(self.source, callable(getattr(self.source, "retrieve", None)))
        self.index = underlying_index(self.source) or self.index
        self._ranking: list[tuple[str, float]] | None = None
        self._met: dict[str, BaseNode] = {}  # nodes that the document store has brought

    def _vector(self, model: BaseEmbedding) -> Requests[list[float]]:
        """The question's; one that it brings is kept."""
        if self.query_bundle.embedding is not None:
            return self.query_bundle.embedding
        embed = partial(model.get_agg_embedding_from_queries, self.query_bundle.embedding_strs)
        return (yield from self.vector(model, embed))

    def _retrieved(self, retriever: BaseRetriever) -> Requests[list[NodeWithScore]]:
        query, afunction = self.query_bundle, getattr(retriever, "_aretrieve", None)
        if isinstance(retriever, VectorIndexRetriever):
            afunction = retriever._vector_store.aquery
            if query.embedding_strs and retriever._needs_embedding():
                # A query of its own: the host would leave its vector to the next one.
                query = replace(query, embedding=(yield from self._vector(retriever._embed_model)))
        asynchronous = hasattr(retriever, "aretrieve") and getattr(afunction, "__func__", afunction) not in _SYNCHRONOUS
        [found] = yield [
            FunctionRequest(
                partial(retriever.retrieve, query), partial(retriever.aretrieve, query) if asynchronous else None
            )
        ]
        [seen] = yield [
            FunctionRequest(partial(self.access_filter.hits, found, self.component))
        ]  # a user's filter may take long
        return seen  # type: ignore[no-any-return]

    def _searched(self, k: int, wanted: Mapping[str, str]) -> Requests[tuple[list[NodeWithScore], int]]:
        """Asks the store itself: a retriever of the host's shows traces and the log what the filter has not seen."""
        index = self.index
        assert index is not None
        store = index.vector_store
        vector = (yield from self._vector(index._embed_model)) if store.is_embedding_query else None
        if isinstance(store, SimpleVectorStore) and not store.stores_text:
            [ranking] = yield [FunctionRequest(partial(self.in_turn, self._ranked, vector, store))]
            known = store.data.metadata_dict
            of_view = [pair for pair in ranking if wanted.items() <= known.get(pair[0], {}).items()]
            return (yield from self._read(of_view, k)), 0  # which is all that there is
        ids, filters = list(index.index_struct.nodes_dict.values()), self.access_filter.for_store(**wanted)
        text = self.query_bundle.query_str
        query = VectorStoreQuery(vector, k, node_ids=ids, query_str=text, filters=filters)
        asynchronous = getattr(store.aquery, "__func__", store.aquery) not in _SYNCHRONOUS
        [result] = yield [
            FunctionRequest(partial(store.query, query), partial(store.aquery, query) if asynchronous else None)
        ]
        if result.nodes is not None:
            return (yield from self._shown(result.nodes, result.similarities)), len(result.nodes)
        ids = result.ids or []
        ranking = list(zip(ids, result.similarities or [None] * len(ids), strict=True))
        return (yield from self._read(ranking, k)), len(ids)

    def _ranked(self, vector: list[float] | None, store: SimpleVectorStore) -> list[tuple[str, float]]:
        """All that may be seen of a store in memory, best first, once for a question.

        Such a store computes every similarity whatever is wanted, and does not know all filters.
        """
        if self._ranking is None:
            assert self.index is not None
            ids = list(self.index.index_struct.nodes_dict.values())
            if isinstance(self.access_filter.filters, MetadataFilters):
                known, sees = store.data.metadata_dict, metadata_filter(self.access_filter.filters)
                ids = [id_ for id_ in ids if sees(known.get(id_, {}))]
            result = store.query(VectorStoreQuery(vector, len(ids), node_ids=ids))
            self._ranking = list(zip(result.ids or (), result.similarities or (), strict=True))
        return self._ranking

    def _read(self, ranking: Sequence[tuple[str, float | None]], k: int) -> Requests[list[NodeWithScore]]:
        """The best `k` of a ranking, of which a function may hide any share: it is read as far as need be."""
        assert self.index is not None
        found: list[NodeWithScore] = []
        start, width = 0, k
        while start < len(ranking) and len(found) < k:
            ids = [self.index.index_struct.nodes_dict[id_] for id_, _ in ranking[start : start + width]]
            [fetched] = yield [nodes_of(self.index.docstore, [id_ for id_ in ids if id_ not in self._met])]
            self._met.update((node.node_id, node) for node in fetched)
            scores = [score for _, score in ranking[start : start + width]]
            found += yield from self._shown(list(map(self._met.get, ids)), scores)
            start, width = start + width, 2 * width
        return found

    def _shown(
        self, nodes: Sequence[BaseNode | None], scores: Sequence[float | None] | None
    ) -> Requests[list[NodeWithScore]]:
        """Those that may be seen, and what they lead to, if that may."""
        assert self.index is not None
        objects, access_filter = self.index._object_map, self.access_filter

        def led_to(node: BaseNode) -> BaseNode:
            """What a node of `VectorStoreIndex(objects=...)` points to; any other one without the copy it holds."""
            found = objects.get(node.index_id) if isinstance(node, IndexNode) else None
            copied = isinstance(node, IndexNode) and node.obj is not None
            return found if isinstance(found, BaseNode) else node.model_copy(update={"obj": None}) if copied else node

        def seen() -> list[NodeWithScore]:
            pairs = zip(nodes, scores or [None] * len(nodes), strict=True)
            hits = access_filter.hits(
                [NodeWithScore(node=node, score=score) for node, score in pairs if node is not None]
            )
            return access_filter.hits([NodeWithScore(node=led_to(hit.node), score=hit.score) for hit in hits])

        [shown] = yield [FunctionRequest(seen)]
        return shown  # type: ignore[no-any-return]

    def fetch(self, request: LookupRequest) -> Requests[list[BaseNode] | None]:
        """Nodes by id or by metadata, as far as they may be seen; None where neither index nor docstore can tell."""
        if self.index is not None:
            [found] = yield [FunctionRequest(partial(_looked_up, self.index, request, self.access_filter))]
            return found  # type: ignore[no-any-return]
        if self.docstore is None or request.where is not None:
            return None
        [nodes] = yield [nodes_of(self.docstore, request.ids)]
        [permitted] = yield [FunctionRequest(partial(self.access_filter.filter_fetched, nodes))]
        return permitted  # type: ignore[no-any-return]


def _looked_up(index: VectorStoreIndex, request: LookupRequest, access_filter: NodeFilter) -> list[BaseNode] | None:
    if not index.vector_store.stores_text:
        return access_filter.filter_fetched(_of_docstore(index, request))
    try:
        if request.where is None:  # without any id, several stores bring all that they have
            found = index.vector_store.get_nodes(list(request.ids)) if request.ids else []
        else:
            found = index.vector_store.get_nodes(None, _filters(request.where, access_filter))
    except NotImplementedError:  # stores that bring nodes by search only
        return None
    return access_filter.filter_fetched(found)


def _of_docstore(index: VectorStoreIndex, request: LookupRequest) -> list[BaseNode]:
    """Nodes of an index whose vector store keeps vectors only; those deleted from the index may still be here."""
    indexed = _indexed(index)
    if request.where is None:
        return index.docstore.get_nodes([id_ for id_ in request.ids if id_ in indexed], raise_error=False)
    wanted = dict(request.where)
    documents = wanted.pop(DOCUMENT, ())
    infos = map(index.docstore.get_ref_doc_info, [documents] if isinstance(documents, str) else documents)
    ids = [id_ for info in infos if info is not None for id_ in info.node_ids] if documents else list(indexed)
    if isinstance(index.vector_store, SimpleVectorStore):  # which has the metadata beside the vectors
        known = index.vector_store.data.metadata_dict
        ids = [id_ for id_ in ids if all(_among(known.get(id_, {}).get(key), value) for key, value in wanted.items())]
    nodes = index.docstore.get_nodes([id_ for id_ in ids if id_ in indexed], raise_error=False)
    return [node for node in nodes if all(_among(node.metadata.get(key), value) for key, value in wanted.items())]


def _indexed(index: VectorStoreIndex) -> set[str]:
    """Ids of the nodes in an index; `delete_nodes` takes them out of the vector store alone, which may tell."""
    ids, vectors = index.index_struct.nodes_dict, index.vector_store
    stored = vectors.data.embedding_dict if isinstance(vectors, SimpleVectorStore) else ids
    return {node_id for id_, node_id in ids.items() if id_ in stored}


def _among(value: object, wanted: str | tuple[str, ...]) -> bool:
    return value in wanted if isinstance(wanted, tuple) else value == wanted


def _filters(where: Mapping[str, str | tuple[str, ...]], access_filter: NodeFilter) -> MetadataFilters:
    filters = access_filter.for_store() or MetadataFilters(filters=[])
    conditions: list[MetadataFilter | MetadataFilters] = [
        MetadataFilter(key=key, value=list(value), operator=FilterOperator.IN)
        if isinstance(value, tuple)
        else MetadataFilter(key=key, value=value)
        for key, value in where.items()
    ]
    # Several stores take no filters inside filters; of a document's few records the guard checks the rest.
    return MetadataFilters(filters=[*conditions, *(one for one in filters.filters if isinstance(one, MetadataFilter))])
