"""Look-ups in a LlamaIndex index, or through retrievers, for one question; see `drillrank.hosts.lookups`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from llama_index.core.indices.vector_store import VectorStoreIndex
from llama_index.core.retrievers import BaseRetriever, VectorIndexRetriever
from llama_index.core.schema import BaseNode, IndexNode, NodeWithScore, QueryBundle
from llama_index.core.storage.docstore.types import BaseDocumentStore
from llama_index.core.vector_stores.simple import SimpleVectorStore
from llama_index.core.vector_stores.types import (
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQueryResult,
)

from drillrank.hosts.keys import is_old_record
from drillrank.hosts.lookups import ById, Holding, Lookup, Search, widths
from llama_index_ext._filters import Guard, index_behind, indexes_behind
from llama_index_ext._waiting import QuestionVectors, afetched, aretrieved_by

DOCUMENT = "ref_doc_id"
"""The key under which `Holding` names a node's document: stores filter by it, though it is not among the metadata."""

Source = VectorStoreIndex | BaseRetriever | Mapping[str, BaseRetriever]


class StoreLookups:
    """Answers the look-ups of one question; the question is embedded once at most.

    A search of an index returns nodes with scores, as the store has them: a keyword view, not what it leads to. Behind
    a retriever over an index that index is asked for nodes that are no search's.

    Args:
        query_bundle: The question.
        source: An index, a retriever, or several by name; None has nothing.
        guard: What may be seen.
        docstore: Is asked for nodes by id where there is no index behind the source.
        told_by: The component that warns if the filter hides all that a retriever brings; without a name none does.
    """

    def __init__(
        self,
        query_bundle: QueryBundle,
        source: Source | None,
        guard: Guard,
        docstore: BaseDocumentStore | None = None,
        told_by: str = "",
    ) -> None:
        self._question = QuestionVectors(query_bundle)
        self._guard = guard
        self._docstore = docstore
        self._told_by = told_by
        self._retrievers: dict[Any, BaseRetriever] = {}
        if isinstance(source, BaseRetriever):
            self._retrievers = {None: source}
        elif isinstance(source, Mapping):
            self._retrievers = {**source}
        self.index = index_behind(source)

    def answer(self, lookup: Lookup) -> list[Any] | None:
        """Nodes, with scores if searched for, or None where the store cannot be asked."""
        if not isinstance(lookup, Search):
            return self._fetched(lookup)
        if self.index is None or self._retrievers:
            retriever = self._retrievers[lookup.source]
            found = self._guard.hits(retriever.retrieve(self._question.query_of(retriever)), self._told_by)
            return without_copies(found, retriever, self._guard)
        for asked in widths(lookup.k):
            search = _AsStored(self.index, asked, self._guard, lookup.wanted)
            hits = search.retrieve(self._question.query_of(search))
            if len(hits) >= lookup.k or search.brought < asked:
                break
        return hits[: lookup.k]

    async def aanswer(self, lookup: Lookup) -> list[Any] | None:
        """As `answer`, without blocking the event loop."""
        if isinstance(lookup, ById) and self.index is None and self._docstore is not None:
            return self._guard.allowed(await afetched(self._docstore, lookup.ids))
        if not isinstance(lookup, Search):
            return await asyncio.to_thread(self._fetched, lookup)
        if self.index is None or self._retrievers:
            retriever = self._retrievers[lookup.source]
            found = self._guard.hits(await aretrieved_by(retriever, self._question), self._told_by)
            return await asyncio.to_thread(without_copies, found, retriever, self._guard)
        for asked in widths(lookup.k):
            search = _AsStored(self.index, asked, self._guard, lookup.wanted)
            hits = await aretrieved_by(search, self._question)
            if len(hits) >= lookup.k or search.brought < asked:
                break
        return hits[: lookup.k]

    def _fetched(self, lookup: ById | Holding) -> list[BaseNode] | None:
        if self.index is not None:
            return _looked_up(self.index, lookup, self._guard)
        if self._docstore is None or not isinstance(lookup, ById):
            return None
        return self._guard.allowed(self._docstore.get_nodes(list(lookup.ids), raise_error=False))


def without_copies(hits: list[NodeWithScore], source: BaseRetriever, guard: Guard) -> list[NodeWithScore]:
    """Hits of a retriever over several indexes, with the nodes themselves where it may have brought their copies.

    Earlier releases left a copy of the raw node in each view of it, and the host's retrievers put that in the view's
    place. Where all that the retriever brings is from one index, that is asked by those who look up raw nodes.
    """
    copied = tuple({hit.node.node_id for hit in hits if is_old_record(hit.node.metadata)})
    if not copied or index_behind(source) is not None:
        return hits
    indexes, whole = indexes_behind(source)
    answers = [_looked_up(index, ById(copied), Guard(None)) for index in indexes]
    held: dict[str, dict[str, BaseNode]] = {}
    for node in (node for answer in answers for node in answer or ()):
        held.setdefault(node.node_id, {})[node.hash] = node
    gone = whole and None not in answers
    fresh: list[NodeWithScore] = []
    for hit in hits:
        there = list(held.get(hit.node.node_id, {}).values())
        if hit.node.node_id not in copied or len(there) > 1 or not (there or gone):
            fresh.append(hit)
        elif guard.allowed(there):
            fresh.append(NodeWithScore(node=there[0], score=hit.score))
    return fresh


def _looked_up(index: VectorStoreIndex, lookup: ById | Holding, guard: Guard) -> list[BaseNode] | None:
    if not index.vector_store.stores_text:
        return guard.allowed(_of_docstore(index, lookup))
    try:
        if isinstance(lookup, ById):  # without any id, several stores bring all that they have
            found = index.vector_store.get_nodes(list(lookup.ids)) if lookup.ids else []
        else:
            found = index.vector_store.get_nodes(None, _filters(lookup, guard))
    except NotImplementedError:  # stores that bring nodes by search only
        return None
    return guard.allowed(found)


class _AsStored(VectorIndexRetriever):
    """Over an index: what may be seen, as the store has it, and so in the host's events, traces and log.

    A view that leads to a node stays itself; the copy of that node, which earlier releases left in it, is taken out.
    """

    def __init__(self, index: VectorStoreIndex, k: int, guard: Guard, wanted: Mapping[str, str]) -> None:
        ids, filters = list(index.index_struct.nodes_dict.values()), guard.for_store(**wanted)
        if guard.filters is not None and isinstance(index.vector_store, SimpleVectorStore):
            # It takes no filters inside filters, and no function, but the ids of all that may be seen.
            ids = [node.node_id for node in guard.kept(index.docstore.get_nodes(ids, raise_error=False))]
            filters = Guard(None).for_store(**wanted)
        super().__init__(
            index, similarity_top_k=k, filters=filters, node_ids=ids, callback_manager=index._callback_manager
        )
        self._guard = guard
        self.brought = 0

    # As the host's, which shows traces and the log what the guard has not seen yet.
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        result = self._vector_store.query(self._build_vector_store_query(query_bundle))
        ids = self._determine_nodes_to_fetch(result)
        return self._seen(result, self._docstore.get_nodes(ids, raise_error=False) if ids else [])

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        result = await self._vector_store.aquery(self._build_vector_store_query(query_bundle))
        ids = self._determine_nodes_to_fetch(result)
        return self._seen(result, await afetched(self._docstore, ids) if ids else [])

    def _seen(self, result: VectorStoreQueryResult, fetched: list[BaseNode]) -> list[NodeWithScore]:
        if fetched:
            result.nodes = self._insert_fetched_nodes_into_query_result(result, fetched)
        hits = self._convert_nodes_to_scored_nodes(result)
        self.brought = len(hits)
        return [NodeWithScore(node=_without_copy(hit.node), score=hit.score) for hit in self._guard.hits(hits)]


def _without_copy(node: BaseNode) -> BaseNode:
    led_to = isinstance(node, IndexNode) and node.obj is not None
    return node.model_copy(update={"obj": None}) if led_to else node


def _of_docstore(index: VectorStoreIndex, lookup: ById | Holding) -> list[BaseNode]:
    """Nodes of an index whose vector store keeps vectors only; those deleted from the index may still be here."""
    indexed = _indexed(index)
    if isinstance(lookup, ById):
        return index.docstore.get_nodes([id_ for id_ in lookup.ids if id_ in indexed], raise_error=False)
    wanted = dict(lookup.wanted)
    documents = wanted.pop(DOCUMENT, ())
    infos = map(index.docstore.get_ref_doc_info, [documents] if isinstance(documents, str) else documents)
    ids = [id_ for info in infos if info is not None for id_ in info.node_ids] if documents else list(indexed)
    nodes = index.docstore.get_nodes([id_ for id_ in ids if id_ in indexed], raise_error=False)
    return [node for node in nodes if all(_among(node.metadata.get(key), value) for key, value in wanted.items())]


def _indexed(index: VectorStoreIndex) -> set[str]:
    """Ids of the nodes in an index; `delete_nodes` takes them out of the vector store alone, which may tell."""
    ids, vectors = index.index_struct.nodes_dict, index.vector_store
    held = vectors.data.embedding_dict if isinstance(vectors, SimpleVectorStore) else ids
    return {node_id for id_, node_id in ids.items() if id_ in held}


def _among(held: object, wanted: str | tuple[str, ...]) -> bool:
    return held in wanted if isinstance(wanted, tuple) else held == wanted


def _filters(lookup: Holding, guard: Guard) -> MetadataFilters:
    filters = guard.for_store() or MetadataFilters(filters=[])
    own: list[MetadataFilter | MetadataFilters] = [
        MetadataFilter(key=key, value=list(value), operator=FilterOperator.IN)
        if isinstance(value, tuple)
        else MetadataFilter(key=key, value=value)
        for key, value in lookup.wanted.items()
    ]
    # Several stores take no filters inside filters; of a document's few records the guard checks the rest.
    return MetadataFilters(filters=[*own, *(one for one in filters.filters if isinstance(one, MetadataFilter))])
