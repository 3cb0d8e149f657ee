"""LlamaIndex's indexes and retrievers as record stores (see `drillrank.structure.record_store`).

If a retriever or store has no asynchronous method of its own, the framework calls the synchronous one on the event
loop. The synchronous one runs on a thread instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.indices.vector_store import VectorStoreIndex
from llama_index.core.retrievers import BaseRetriever, VectorIndexRetriever
from llama_index.core.schema import BaseNode, IndexNode, NodeWithScore, QueryBundle
from llama_index.core.storage.docstore.types import BaseDocumentStore
from llama_index.core.vector_stores.simple import SimpleVectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore, MetadataFilters, VectorStoreQuery

from drillrank.frameworks.store import FrameworkStore
from drillrank.llm import FunctionRequest, Requests
from drillrank.passages import check_query
from drillrank.structure.record_store import RecordStore
from drillrank.structure.stored_chunks import StoredChunk, Where, matches
from llama_index_ext._filters import NodeFilter, metadata_filter
from llama_index_ext._records import DOCUMENT, read_nodes

Source = VectorStoreIndex | BaseRetriever | RecordStore | Mapping[str, BaseRetriever]
"""Index, retriever, record store, or retrievers by view."""

_SYNC_ONLY = (BaseRetriever._aretrieve, BasePydanticVectorStore.aquery, SimpleVectorStore.aquery)


def underlying_index(source: object) -> VectorStoreIndex | None:
    """Return the index that a source is, or that the framework's retriever over one searches.

    Of several retrievers, the one of raw texts counts. The index behind any other retriever is not guessed, nor one
    that leads to other objects than nodes.
    """
    if isinstance(source, VectorStoreIndex):
        return source
    if isinstance(source, Mapping) and source:
        first, *others = map(underlying_index, source.values())
        return underlying_index(source.get("raw")) or (first if all(other is first for other in others) else None)
    if type(source) is not VectorIndexRetriever or not all(
        isinstance(target, BaseNode) for target in source.object_map.values()
    ):
        return None
    return source._index


def get_nodes_request(docstore: BaseDocumentStore, ids: Sequence[str]) -> FunctionRequest:
    """Return the request for the nodes with these ids in a document store."""
    return FunctionRequest.of(docstore.get_nodes, docstore.aget_nodes, list(ids), raise_error=False)


class LlamaIndexStore(FrameworkStore):
    """Record store over an index or a retriever, for one question, which is embedded at most once.

    A search of an index returns nodes as the store has them: a keyword view, not the section that it leads to.

    Args:
        query_bundle: The question, perhaps with its embedding.
        source: Index, retriever, record store, or retrievers by view. None for no source.
        access_filter: Filter of the nodes that the caller may see.
        docstore: Document store that is asked for nodes by id if no index is behind the source.
        component: Name of the component that warns if the filter removes all results of a retriever. Empty: no warning.
        index: Index that is asked for nodes if none is behind the source.
    """

    def __init__(
        self,
        query_bundle: QueryBundle,
        source: Source | None,
        access_filter: NodeFilter,
        docstore: BaseDocumentStore | None = None,
        component: str = "",
        index: VectorStoreIndex | None = None,
    ) -> None:
        super().__init__(source, callable(getattr(source, "retrieve", None)), access_filter)
        self.index = underlying_index(source) or index
        self._query_bundle = query_bundle
        self._node_filter = access_filter
        self._docstore = docstore
        self._component = component
        self._ranking_by_question: dict[str, list[tuple[str, float]]] = {}
        self._node_by_id: dict[str, BaseNode] = {}  # of the document store

    def _bundle(self, question: str) -> QueryBundle:
        text = self._query_bundle.query_str
        return self._query_bundle if text.strip() and check_query(text) == question else QueryBundle(question)

    def _embed(self, query: QueryBundle, model: BaseEmbedding) -> Requests[list[float]]:
        if query.embedding is not None:
            self._vectors[id(model), query.query_str] = query.embedding
            return query.embedding
        embed = partial(model.get_agg_embedding_from_queries, query.embedding_strs)
        return (yield from self.embed_once(model, query.query_str, embed))

    # --- Search

    def _retrieve(self, retriever: BaseRetriever, question: str) -> Requests[list[StoredChunk[Any]]]:
        query, afunction = self._bundle(question), getattr(retriever, "_aretrieve", None)
        if isinstance(retriever, VectorIndexRetriever):
            afunction = retriever._vector_store.aquery
            if query.embedding_strs and retriever._needs_embedding():
                # A new query object: the framework would leave its vector in the caller's.
                query = replace(query, embedding=(yield from self._embed(query, retriever._embed_model)))
        is_async = hasattr(retriever, "aretrieve") and getattr(afunction, "__func__", afunction) not in _SYNC_ONLY
        [hits] = yield [FunctionRequest.of(retriever.retrieve, retriever.aretrieve if is_async else None, query)]
        return read_nodes(self._node_filter.filter_hits(hits, self._component))

    def _search_store(self, question: str, n: int, where: Where) -> Requests[tuple[list[StoredChunk[Any]], int]]:
        """Search the vector store itself: the framework's retriever would log and trace nodes that are hidden."""
        index = self.index
        assert index is not None
        store, query_bundle = index.vector_store, self._bundle(question)
        vector = (yield from self._embed(query_bundle, index._embed_model)) if store.is_embedding_query else None
        if not store.stores_text and (isinstance(store, SimpleVectorStore) or _lacks_filters(store)):
            [ranking] = yield [FunctionRequest(partial(self.run_alone, self._rank_all, question, vector, store))]
            if where and isinstance(store, SimpleVectorStore):
                metadata_by_id = store.data.metadata_dict
                ranking = [pair for pair in ranking if matches(metadata_by_id.get(pair[0], {}), where)]
                where = {}
            return read_nodes((yield from self._read_ranking(ranking, n, where))), 0  # there are no others
        query = VectorStoreQuery(
            vector,
            n,
            # With a store that has texts, the index lists some kinds of nodes only; the store would filter by them.
            node_ids=None if store.stores_text else list(index.index_struct.nodes_dict.values()),
            query_str=query_bundle.query_str,
            filters=self._node_filter.as_store_filters(where, store),
        )
        is_async = getattr(store.aquery, "__func__", store.aquery) not in _SYNC_ONLY
        is_async = is_async and getattr(store, "_aclient", store) is not None  # Qdrant without a client for async calls
        [result] = yield [FunctionRequest.of(store.query, store.aquery if is_async else None, query)]
        if result.nodes is not None:
            return read_nodes(self._permit_hits(result.nodes, result.similarities)), len(result.nodes)
        ids = result.ids or []
        ranking = list(zip(ids, result.similarities or [None] * len(ids), strict=True))
        return read_nodes((yield from self._read_ranking(ranking, n, {}))), len(ids)

    def _rank_all(
        self, question: str, vector: list[float] | None, store: BasePydanticVectorStore
    ) -> list[tuple[str, float]]:
        """Rank all nodes of a store in memory, once for a question. Some stores know which ones are visible.

        Such a store computes every similarity for any search, and does not support all filters.
        """
        if question not in self._ranking_by_question:
            assert self.index is not None
            ids = list(self.index.index_struct.nodes_dict.values())
            if isinstance(store, SimpleVectorStore) and isinstance(self._node_filter.filters, MetadataFilters):
                metadata_by_id, passes = store.data.metadata_dict, metadata_filter(self._node_filter.filters)
                ids = [id_ for id_ in ids if passes(metadata_by_id.get(id_, {}))]
            if not ids:  # then some stores search all nodes, and some raise an error
                return []
            # FAISS may still have vectors of nodes that the index has deleted.
            n_vectors = getattr(store.client, "ntotal", len(ids))
            result = store.query(VectorStoreQuery(vector, n_vectors, node_ids=ids))
            ranking = zip(result.ids or (), result.similarities or (), strict=True)
            self._ranking_by_question[question] = list(ranking)
        return self._ranking_by_question[question]

    def _read_ranking(
        self, ranking: Sequence[tuple[str, float | None]], n: int, where: Where
    ) -> Requests[list[NodeWithScore]]:
        """Return the best `n` visible nodes of a ranking. A filter may hide any share, so read on demand."""
        assert self.index is not None
        node_id_by_vector_id = self.index.index_struct.nodes_dict
        ranking = [pair for pair in ranking if pair[0] in node_id_by_vector_id]
        hits: list[NodeWithScore] = []
        start, width = 0, n
        while start < len(ranking) and len(hits) < n:
            ids = [node_id_by_vector_id[id_] for id_, _ in ranking[start : start + width]]
            missing_ids = [id_ for id_ in ids if id_ not in self._node_by_id]
            [nodes] = yield [get_nodes_request(self.index.docstore, missing_ids)]
            self._node_by_id.update((node.node_id, node) for node in nodes)
            scores = [score for _, score in ranking[start : start + width]]
            copies = [_copy_node(self._node_by_id.get(id_)) for id_ in ids]
            nodes = [node if node is not None and matches(node.metadata, where) else None for node in copies]
            hits += self._permit_hits(nodes, scores)
            start, width = start + width, 2 * width
        return hits

    def _permit_hits(
        self, nodes: Sequence[BaseNode | None], scores: Sequence[float | None] | None
    ) -> list[NodeWithScore]:
        """Return the visible nodes, each as the node that it leads to if that is visible, too."""
        assert self.index is not None
        objects = self.index._object_map

        def follow(node: BaseNode) -> BaseNode:
            """Return the target of a node of `VectorStoreIndex(objects=...)`, or the node without its copy of one."""
            target = objects.get(node.index_id) if isinstance(node, IndexNode) else None
            if isinstance(target, BaseNode):
                return target
            has_copy = isinstance(node, IndexNode) and node.obj is not None
            return node.model_copy(update={"obj": None}) if has_copy else node

        pairs = zip(nodes, scores or [None] * len(nodes), strict=True)
        hits = [NodeWithScore(node=node, score=score) for node, score in pairs if node is not None]
        permitted = self._node_filter.filter_hits(hits)
        return self._node_filter.filter_hits([hit.model_copy(update={"node": follow(hit.node)}) for hit in permitted])

    def read_vectors(self, chunks: Sequence[StoredChunk[Any]]) -> Sequence[Sequence[float] | None]:
        """Return the vectors of nodes that this store returned, from the index or from the node itself."""
        store = None if self.index is None else self.index.vector_store
        vector_by_id = store.data.embedding_dict if isinstance(store, SimpleVectorStore) else {}
        return [vector_by_id.get(chunk.record.node_id, chunk.vector) for chunk in chunks]

    # --- Nodes by id and by metadata

    def _get_from_store(self, ids: Sequence[str]) -> Requests[list[StoredChunk[Any]] | None]:
        if self.index is not None:
            return (yield from self._look_up(FunctionRequest(partial(_get_nodes, self.index, ids))))
        if self._docstore is None:
            return None
        return (yield from self._look_up(get_nodes_request(self._docstore, ids)))

    def _find_in_store(self, where: Where) -> Requests[list[StoredChunk[Any]] | None]:
        if self.index is None:
            return None
        return (yield from self._look_up(FunctionRequest(partial(_find_nodes, self.index, where, self._node_filter))))

    def _look_up(self, request: FunctionRequest) -> Requests[list[StoredChunk[Any]] | None]:
        """Return the visible nodes among those that a request returns."""
        [nodes] = yield [request]
        return None if nodes is None else read_nodes(self._node_filter.filter_fetched(nodes))


def _lacks_filters(store: BasePydanticVectorStore) -> bool:
    """Return True for a store in memory that refuses all filters."""
    return type(store).__name__ in ("FaissVectorStore", "FaissMapVectorStore")


def _copy_node(node: BaseNode | None) -> BaseNode | None:
    """Return a copy, so that a caller who changes the metadata of a result does not change what is kept."""
    return None if node is None else node.model_copy(update={"metadata": dict(node.metadata)})


def _get_nodes(index: VectorStoreIndex, ids: Sequence[str]) -> list[BaseNode] | None:
    if not index.vector_store.stores_text:
        indexed_ids = _list_indexed_ids(index)
        return index.docstore.get_nodes([id_ for id_ in ids if id_ in indexed_ids], raise_error=False)
    with suppress(NotImplementedError):  # a store that returns nodes by search only
        return index.vector_store.get_nodes(list(ids)) if ids else []  # without any id, several stores return all
    return None


def _find_nodes(index: VectorStoreIndex, where: Where, node_filter: NodeFilter) -> list[BaseNode] | None:
    if not index.vector_store.stores_text:
        return _find_in_docstore(index, where)
    with suppress(NotImplementedError):
        return index.vector_store.get_nodes(None, node_filter.as_lookup_filters(where, index.vector_store))
    return None


def _find_in_docstore(index: VectorStoreIndex, where: Where) -> list[BaseNode]:
    """Return nodes of an index whose vector store has no texts. The docstore may still have deleted nodes."""
    indexed_ids = _list_indexed_ids(index)
    conditions = dict(where)
    documents = conditions.pop(DOCUMENT, ())
    ids: Iterable[str] = indexed_ids
    if documents:
        infos = map(index.docstore.get_ref_doc_info, [documents] if isinstance(documents, str) else documents)
        ids = [id_ for info in infos if info is not None for id_ in info.node_ids]
    if isinstance(index.vector_store, SimpleVectorStore):  # which has metadata next to the vectors
        metadata_by_id = index.vector_store.data.metadata_dict
        ids = [id_ for id_ in ids if matches(metadata_by_id.get(id_, {}), conditions)]
    nodes = index.docstore.get_nodes([id_ for id_ in ids if id_ in indexed_ids], raise_error=False)
    return [node for node in nodes if matches(node.metadata, conditions)]


def _list_indexed_ids(index: VectorStoreIndex) -> dict[str, None]:
    """Return the ids of the nodes in an index, in order. `delete_nodes` removes them from the vector store alone."""
    ids, store = index.index_struct.nodes_dict, index.vector_store
    stored_ids = store.data.embedding_dict if isinstance(store, SimpleVectorStore) else ids
    return {node_id: None for id_, node_id in ids.items() if id_ in stored_ids}
