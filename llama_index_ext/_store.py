"""LlamaIndex's indexes and retrievers as record stores (see `drillrank.structure.record_store`).

If a retriever or store has no asynchronous method of its own, the framework calls the synchronous one on the event
loop. The synchronous one runs on a thread instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.indices.vector_store import VectorStoreIndex
from llama_index.core.retrievers import BaseRetriever, VectorIndexRetriever
from llama_index.core.schema import BaseNode, IndexNode, NodeWithScore, QueryBundle
from llama_index.core.storage.docstore.types import BaseDocumentStore
from llama_index.core.vector_stores.simple import SimpleVectorStore
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
)

from drillrank.frameworks.store import FrameworkStore
from drillrank.llm import FunctionRequest, Requests
from drillrank.passages import check_query
from drillrank.structure.stored_chunks import StoredChunk, Where
from llama_index_ext._filters import NodeFilter, metadata_condition, metadata_filter
from llama_index_ext._records import DOCUMENT, read_chunks


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


_SYNCHRONOUS = (BaseRetriever._aretrieve, BasePydanticVectorStore.aquery, SimpleVectorStore.aquery)


def nodes_of(docstore: BaseDocumentStore, ids: Sequence[str]) -> FunctionRequest:
    """The nodes with these ids that a document store has."""
    return FunctionRequest(
        partial(docstore.get_nodes, list(ids), raise_error=False),
        partial(docstore.aget_nodes, list(ids), raise_error=False),
    )


Source = VectorStoreIndex | BaseRetriever | Mapping[str, BaseRetriever]


@dataclass(eq=False)
class LlamaIndexStore(FrameworkStore):
    """Record store over an index or a retriever, for one question, which is embedded at most once.

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
        self._rankings: dict[str, list[tuple[str, float]]] = {}
        self._met: dict[str, BaseNode] = {}  # nodes that the document store has brought

    def _bundle(self, question: str) -> QueryBundle:
        text = self.query_bundle.query_str
        return self.query_bundle if text.strip() and check_query(text) == question else QueryBundle(question)

    def _vector(self, query: QueryBundle, model: BaseEmbedding) -> Requests[list[float]]:
        """The question's; one that it brings is kept."""
        if query.embedding is not None:
            return query.embedding
        embed = partial(model.get_agg_embedding_from_queries, query.embedding_strs)
        return (yield from self.embed_once(model, query.query_str, embed))

    def _retrieve(self, retriever: BaseRetriever, question: str) -> Requests[list[StoredChunk[Any]]]:
        query, afunction = self._bundle(question), getattr(retriever, "_aretrieve", None)
        if isinstance(retriever, VectorIndexRetriever):
            afunction = retriever._vector_store.aquery
            if query.embedding_strs and retriever._needs_embedding():
                # A query of its own: the host would leave its vector to the next one.
                query = replace(query, embedding=(yield from self._vector(query, retriever._embed_model)))
        asynchronous = hasattr(retriever, "aretrieve") and getattr(afunction, "__func__", afunction) not in _SYNCHRONOUS
        [found] = yield [
            FunctionRequest(
                partial(retriever.retrieve, query), partial(retriever.aretrieve, query) if asynchronous else None
            )
        ]
        [seen] = yield [
            FunctionRequest(partial(self.access_filter.hits, found, self.component))
        ]  # a user's filter may take long
        return read_chunks(seen)

    def _search_store(self, question: str, n: int, where: Where) -> Requests[tuple[list[StoredChunk[Any]], int]]:
        hits, n_hits = yield from self._search_index(self._bundle(question), n, where)
        return read_chunks(hits), n_hits

    def _search_index(
        self, query_bundle: QueryBundle, k: int, wanted: Where
    ) -> Requests[tuple[list[NodeWithScore], int]]:
        """Asks the store itself: a retriever of the host's shows traces and the log what the filter has not seen."""
        index = self.index
        assert index is not None
        store = index.vector_store
        vector = (yield from self._vector(query_bundle, index._embed_model)) if store.is_embedding_query else None
        if isinstance(store, SimpleVectorStore) and not store.stores_text:
            [ranking] = yield [
                FunctionRequest(partial(self.run_alone, self._ranked, query_bundle.query_str, vector, store))
            ]
            known = store.data.metadata_dict
            of_view = [pair for pair in ranking if _has_values(known.get(pair[0], {}), wanted)]
            return (yield from self._read(of_view, k)), 0  # which is all that there is
        ids, filters = list(index.index_struct.nodes_dict.values()), self.access_filter.for_store(**wanted)
        text = query_bundle.query_str
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

    def _ranked(self, question: str, vector: list[float] | None, store: SimpleVectorStore) -> list[tuple[str, float]]:
        """All that may be seen of a store in memory, best first, once for a question.

        Such a store computes every similarity whatever is wanted, and does not know all filters.
        """
        if question not in self._rankings:
            assert self.index is not None
            ids = list(self.index.index_struct.nodes_dict.values())
            if isinstance(self.access_filter.filters, MetadataFilters):
                known, sees = store.data.metadata_dict, metadata_filter(self.access_filter.filters)
                ids = [id_ for id_ in ids if sees(known.get(id_, {}))]
            result = store.query(VectorStoreQuery(vector, len(ids), node_ids=ids))
            self._rankings[question] = list(zip(result.ids or (), result.similarities or (), strict=True))
        return self._rankings[question]

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
            found += yield from self._shown([_copy_node(self._met.get(id_)) for id_ in ids], scores)
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

    def _get_requests(self, ids: Sequence[str]) -> Requests[list[StoredChunk[Any]] | None]:
        if self.index is not None:
            [nodes] = yield [FunctionRequest(partial(_get_nodes, self.index, ids, self.access_filter))]
            return None if nodes is None else read_chunks(nodes)
        if self.docstore is None:
            return None
        [nodes] = yield [nodes_of(self.docstore, ids)]
        [permitted] = yield [FunctionRequest(partial(self.access_filter.filter_fetched, nodes))]
        return read_chunks(permitted)

    def _find_requests(self, where: Where) -> Requests[list[StoredChunk[Any]] | None]:
        if self.index is None:
            return None
        [nodes] = yield [FunctionRequest(partial(_find_nodes, self.index, where, self.access_filter))]
        return None if nodes is None else read_chunks(nodes)


def _get_nodes(index: VectorStoreIndex, ids: Sequence[str], access_filter: NodeFilter) -> list[BaseNode] | None:
    if not index.vector_store.stores_text:
        indexed = _indexed(index)
        nodes = index.docstore.get_nodes([id_ for id_ in ids if id_ in indexed], raise_error=False)
        return access_filter.filter_fetched(nodes)
    try:
        nodes = index.vector_store.get_nodes(list(ids)) if ids else []  # without any id, several stores return all
    except NotImplementedError:  # a store that returns nodes by search only
        return None
    return access_filter.filter_fetched(nodes)


def _find_nodes(index: VectorStoreIndex, where: Where, access_filter: NodeFilter) -> list[BaseNode] | None:
    if not index.vector_store.stores_text:
        return access_filter.filter_fetched(_of_docstore(index, where))
    try:
        nodes = index.vector_store.get_nodes(None, _filters(where, access_filter))
    except NotImplementedError:
        return None
    return access_filter.filter_fetched(nodes)


def _of_docstore(index: VectorStoreIndex, where: Where) -> list[BaseNode]:
    """Nodes of an index whose vector store keeps vectors only; those deleted from the index may still be here."""
    indexed = _indexed(index)
    wanted = dict(where)
    documents = wanted.pop(DOCUMENT, ())
    infos = map(index.docstore.get_ref_doc_info, [documents] if isinstance(documents, str) else documents)
    ids = [id_ for info in infos if info is not None for id_ in info.node_ids] if documents else list(indexed)
    if isinstance(index.vector_store, SimpleVectorStore):  # which has the metadata beside the vectors
        known = index.vector_store.data.metadata_dict
        ids = [id_ for id_ in ids if _has_values(known.get(id_, {}), wanted)]
    nodes = index.docstore.get_nodes([id_ for id_ in ids if id_ in indexed], raise_error=False)
    return [node for node in nodes if _has_values(node.metadata, wanted)]


def _indexed(index: VectorStoreIndex) -> set[str]:
    """Ids of the nodes in an index; `delete_nodes` takes them out of the vector store alone, which may tell."""
    ids, vectors = index.index_struct.nodes_dict, index.vector_store
    stored = vectors.data.embedding_dict if isinstance(vectors, SimpleVectorStore) else ids
    return {node_id for id_, node_id in ids.items() if id_ in stored}


def _has_values(metadata: Mapping[str, Any], where: Where) -> bool:
    """Return True if metadata have these values."""
    return all(
        metadata.get(key) in wanted if isinstance(wanted, tuple) else metadata.get(key) == wanted
        for key, wanted in where.items()
    )


def _copy_node(node: BaseNode | None) -> BaseNode | None:
    """Return a copy, so that a caller who changes the metadata of a result does not change what is kept."""
    return None if node is None else node.model_copy(update={"metadata": dict(node.metadata)})


def _filters(where: Where, access_filter: NodeFilter) -> MetadataFilters:
    filters = access_filter.for_store() or MetadataFilters(filters=[])
    conditions: list[MetadataFilter | MetadataFilters] = list(map(metadata_condition, where, where.values()))
    # Several stores take no filters inside filters; of a document's few records the guard checks the rest.
    return MetadataFilters(filters=[*conditions, *(one for one in filters.filters if isinstance(one, MetadataFilter))])
