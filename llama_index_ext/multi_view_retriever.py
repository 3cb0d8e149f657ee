"""MC-indexing retrieval as a LlamaIndex retriever."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from llama_index.core.callbacks import CallbackManager
from llama_index.core.indices.vector_store import VectorStoreIndex
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters

from drillrank.errors import DrillrankWarning, InvalidInput
from drillrank.hosts.fields import Fixed
from drillrank.passages import check_query, check_top_n
from drillrank.views import (
    VIEWS,
    Expansion,
    MergedSection,
    MultiViewIndex,
    RetrieverName,
    ViewText,
    check_expansion,
    check_weights,
    expanded,
    merge_views,
)
from llama_index_ext._waiting import aretrieved, retrieved


class MultiViewRetriever(Fixed, BaseRetriever):
    r"""Ranks sections in each view separately and merges the rankings.

    Args:
        nodes: What `MultiViewNodeParser` made of one or many documents. Without a `source`, they are indexed in memory.
        source: Where to look instead: a `VectorStoreIndex` over such nodes, asked once for each view with a metadata
            filter; a retriever for each view, as a dictionary; or a single retriever over all of them, whose results
            are ranked by the `view` in their metadata (most retrievers replace the other views by their raw node, so
            that one ranking is left).
        top_n: Sections to return.
        retriever: `"bm25"` or `"tfidf"`, one index for each view, in memory.
        weights: Of the views; None takes the best of every view (see `drillrank.views.merge_views`).
        expand: `"neighbours"` or `"parent"`: behind each section found come those around it, with its score and
            its id as metadata `expanded_from`, beyond `top_n`.
        callback_manager: As for every LlamaIndex retriever.

    Returns raw nodes, each section once; `metadata["matched_views"]` tells the views that matched and at which rank.
    Scores are sums of reciprocal ranks, between 0 and 0.05: they order one result list and mean nothing beyond it.
    Nodes that a source does not bring are taken from `nodes`, the index's docstore or its vector store; one that is
    nowhere is left out, or shown by the view that was found, with a `DrillrankWarning`.

    Raises:
        InvalidInput: a node was not made by `MultiViewNodeParser`, the raw node of a section is missing, a setting
            cannot be used, or the query is blank.

    >>> from llama_index.core import Document
    >>> from llama_index_ext import MultiViewNodeParser
    >>> text = "# Foxes\n\nThey hunt.\n\n# Whales\n\nThey sing.\n\n# Owls\n\nThey hoot.\n"
    >>> nodes = MultiViewNodeParser()([Document(text=text)])
    >>> hit = MultiViewRetriever(nodes, top_n=1).retrieve("Who sings?")[0]
    >>> hit.node.metadata["section_path"], hit.node.metadata["matched_views"]
    ('Whales', 'raw:1 keywords:1 summary:1')
    """

    def __init__(
        self,
        nodes: Sequence[BaseNode] = (),
        *,
        source: VectorStoreIndex | BaseRetriever | Mapping[str, BaseRetriever] | None = None,
        top_n: int = 5,
        retriever: RetrieverName = "bm25",
        weights: Mapping[str, float] | None = None,
        expand: Expansion | None = None,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        super().__init__(callback_manager=callback_manager)
        check_top_n(top_n)
        check_weights(weights)
        check_expansion(expand)
        self._top_n = top_n
        self._weights = weights
        self._expand = expand
        self._raw = {_section_id(node): node for node in nodes if _view(node) == "raw"}
        self._index: MultiViewIndex | None = None
        self._store = source if isinstance(source, VectorStoreIndex) else None
        self._single = source if isinstance(source, BaseRetriever) else None
        self._by_view: dict[str, BaseRetriever] = dict(source) if isinstance(source, Mapping) else {}
        if isinstance(source, VectorStoreIndex):
            self._by_view = {view: _of_view(source, view, top_n) for view in VIEWS}
        elif source is None:
            texts = [
                ViewText(_section_id(node), _view(node), node.get_content(metadata_mode=MetadataMode.EMBED))  # type: ignore[arg-type]  # the index checks the view
                for node in nodes
            ]
            self._index = MultiViewIndex(texts, retriever, weights)
        elif not isinstance(source, BaseRetriever) and not self._by_view:
            raise InvalidInput(f"source is a VectorStoreIndex, a retriever, or one for each view; not {source!r:.100}.")
        if not set(self._by_view) <= set(VIEWS):
            raise InvalidInput(f"The views of source are some of {VIEWS}; not {set(self._by_view)}.")

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        check_query(query_bundle.query_str)
        return self._merged(query_bundle, retrieved(self._sources, query_bundle))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        check_query(query_bundle.query_str)
        return await asyncio.to_thread(self._merged, query_bundle, await aretrieved(self._sources, query_bundle))

    @property
    def _sources(self) -> list[BaseRetriever]:
        return [self._single] if self._single else list(self._by_view.values())

    def _merged(self, query_bundle: QueryBundle, found: Sequence[Sequence[NodeWithScore]]) -> list[NodeWithScore]:
        known: dict[str, BaseNode] = {}
        for hit in (hit for hits in found for hit in hits):
            if _view(hit.node) == "raw" or _section_id(hit.node) not in known:
                known[_section_id(hit.node)] = hit.node
        if self._index is not None:
            sections = self._index.search(query_bundle.query_str, self._top_n)
        else:
            rankings: dict[str, list[str]] = {}
            for view, hits in zip(self._by_view or [None], found, strict=True):
                for hit in hits:
                    rankings.setdefault(view or _view(hit.node), []).append(_section_id(hit.node))
            sections = merge_views(rankings, self._top_n, self._weights)
        wanted = [section.section_id for section in sections]
        nodes = self._fetched([id_ for id_ in wanted if id_ not in known or _view(known[id_]) != "raw"], known)
        result: Iterable[tuple[MergedSection, str | None]] = ((section, None) for section in sections)
        if self._expand:
            around = {id_: self._around(nodes[id_]) for id_ in wanted if id_ in nodes}
            nodes = self._fetched([id_ for ids in around.values() for id_ in ids if id_ not in nodes], nodes)
            result = expanded(sections, lambda id_: around.get(id_, ()))
        missing = [id_ for id_ in wanted if id_ not in nodes or _view(nodes[id_]) != "raw"]
        if missing:
            warnings.warn(
                f"The raw nodes of {len(missing)} sections found are neither in the source nor in its docstore, for "
                f"example {missing[0]!r}: pass them as nodes.",
                DrillrankWarning,
                stacklevel=2,
            )
        at_hand = ((section, origin) for section, origin in result if section.section_id in nodes)
        return [self._node(nodes[section.section_id], section, origin) for section, origin in at_hand]

    def _around(self, node: BaseNode) -> list[str]:
        infos = [node.parent_node] if self._expand == "parent" else [node.prev_node, node.next_node]
        return [info.node_id for info in infos if info is not None]

    def _fetched(self, ids: Sequence[str], known: Mapping[str, BaseNode]) -> dict[str, BaseNode]:
        """The nodes known, and those of the ids that can be found elsewhere."""
        nodes = {**known, **{id_: self._raw[id_] for id_ in ids if id_ in self._raw}}
        left = [id_ for id_ in ids if id_ not in self._raw]
        if left and self._store is not None:
            found = self._store.docstore.get_nodes(left, raise_error=False)
            if len(found) < len(left):
                with suppress(NotImplementedError):  # stores that keep vectors only
                    found += self._store.vector_store.get_nodes(node_ids=left)
            nodes |= {node.node_id: node for node in found if node.node_id in left}
        return nodes

    def _node(self, raw: BaseNode, section: MergedSection, origin: str | None) -> NodeWithScore:
        added = {"matched_views": section.matched_views} if origin is None else {"expanded_from": origin}
        node = raw.model_copy(
            update={
                "metadata": {**raw.metadata, **added},
                "excluded_embed_metadata_keys": [*raw.excluded_embed_metadata_keys, *added],
                "excluded_llm_metadata_keys": [*raw.excluded_llm_metadata_keys, *added],
            }
        )
        return NodeWithScore(node=node, score=section.score)


def _of_view(index: VectorStoreIndex, view: str, top_n: int) -> BaseRetriever:
    return index.as_retriever(
        similarity_top_k=top_n, filters=MetadataFilters(filters=[MetadataFilter(key="view", value=view)])
    )


def _section_id(node: BaseNode) -> str:
    return str(_entry(node, "section_id"))


def _view(node: BaseNode) -> str:
    return str(_entry(node, "view"))


def _entry(node: BaseNode, key: str) -> object:
    if key not in node.metadata:
        raise InvalidInput(
            f"Node {node.node_id!r} has no section_id and view in its metadata: MultiViewRetriever searches the nodes "
            "that MultiViewNodeParser makes."
        )
    return node.metadata[key]
