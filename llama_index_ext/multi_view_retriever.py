"""MC-indexing retrieval as a LlamaIndex retriever."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from llama_index.core.callbacks import CallbackManager
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle

from drillrank.errors import InvalidInput
from drillrank.passages import check_top_n
from drillrank.views import MergedSection, MultiViewIndex, RetrieverName, ViewText


class MultiViewRetriever(BaseRetriever):
    r"""Ranks sections in each view separately and merges the rankings, over an index in memory.

    Args:
        nodes: What `MultiViewNodeParser` made of one or many documents.
        top_n: Sections to return.
        retriever: `"bm25"` or `"tfidf"`, one index for each view.
        callback_manager: As for every LlamaIndex retriever.

    Returns raw nodes, each section once; `metadata["matched_views"]` tells the views that matched and at which rank.
    Scores are sums of reciprocal ranks, between 0 and 0.05: they order one result list and mean nothing beyond it.

    Raises:
        InvalidInput: a node was not made by `MultiViewNodeParser`, the raw node of a section is missing, or `top_n`
            is below 1.

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
        nodes: Sequence[BaseNode],
        *,
        top_n: int = 5,
        retriever: RetrieverName = "bm25",
        callback_manager: CallbackManager | None = None,
    ) -> None:
        super().__init__(callback_manager=callback_manager)
        check_top_n(top_n)
        self._top_n = top_n
        self._raw: dict[str, BaseNode] = {}
        texts = []
        for node in nodes:
            if "section_id" not in node.metadata or "view" not in node.metadata:
                raise InvalidInput(
                    f"Node {node.node_id!r} has no section_id and view in its metadata: MultiViewRetriever searches "
                    "the nodes that MultiViewNodeParser makes."
                )
            if node.metadata["view"] == "raw":
                self._raw[node.metadata["section_id"]] = node
            text = node.get_content(metadata_mode=MetadataMode.EMBED)
            texts.append(ViewText(node.metadata["section_id"], node.metadata["view"], text))
        self._index = MultiViewIndex(texts, retriever)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [self._node(section) for section in self._index.search(query_bundle.query_str, self._top_n)]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)

    def _node(self, section: MergedSection) -> NodeWithScore:
        raw = self._raw[section.section_id]
        node = raw.model_copy(
            update={
                "metadata": {**raw.metadata, "matched_views": section.matched_views},
                "excluded_embed_metadata_keys": [*raw.excluded_embed_metadata_keys, "matched_views"],
                "excluded_llm_metadata_keys": [*raw.excluded_llm_metadata_keys, "matched_views"],
            }
        )
        return NodeWithScore(node=node, score=section.score)
