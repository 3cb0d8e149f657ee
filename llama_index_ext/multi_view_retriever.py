"""MC-indexing retrieval as a LlamaIndex retriever."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.callbacks import CallbackManager
from llama_index.core.indices.vector_store import VectorStoreIndex
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle

from drillrank.errors import check_positive
from drillrank.explanation.explanations import explains
from drillrank.hosts.metadata import prefixed, with_result_metadata
from drillrank.hosts.sections import StoredSection
from drillrank.hosts.views import ViewRetrieval
from drillrank.llm import Requests, Usage
from drillrank.vectors import Embed
from drillrank.views import VIEWS, Expansion, Merge, MergedSection, RetrieverName, View
from llama_index_ext._filters import Filters, NodeFilter
from llama_index_ext._llm import embedding_of
from llama_index_ext._lookups import StoreLookups
from llama_index_ext._records import check_retriever, checked_nodes, read_section, unread
from llama_index_ext._retriever import QueryRetriever
from llama_index_ext.events import send_explanations

Source = VectorStoreIndex | BaseRetriever | Mapping[View, BaseRetriever]


@dataclass(eq=False, repr=False)
class MultiViewRetriever(QueryRetriever):
    r"""Ranks sections in each view separately and merges the rankings.

    Args:
        documents: What `MultiViewNodeParser` made of documents. Without a `source`, they are indexed in memory; beside
            a source they serve where no index can be asked for a section.
        source: Where to look instead: a `VectorStoreIndex` over such nodes, searched for keywords and summaries with a
            metadata filter, and once without; a retriever for each view, as a dictionary; or a single retriever over
            all of them, whose results are ranked by their view.
        filters: Which nodes may be seen: `MetadataFilters`, or a function from a node to True or False. They govern
            every look-up, as do those of the retrievers that `index.as_retriever` made.
        retriever: `"bm25"` or `"tfidf"`: one index for each view, where nodes are indexed in memory.
        weights: How much each view counts; None takes the best of every view: see `drillrank.views.merge_views`.
        language: Whose stemmer words go through, where an index in memory is searched.
        embed: Ranks by meaning in place of words where no source is searched: an embedding model, or a function from
            texts to vectors.
        merge: `"fusion"`, or `"union"` as in the paper, about `top_n` sections: see `drillrank.views.merge_views`.
        views: The views that are searched.
        top_n: Sections to return.
        expand: `"neighbours"` or `"parent"`: after each section found come those around it, with its score and its id
            as metadata `drillrank_expanded_from`, beyond `top_n`.
        explain: Whether results say why they stand where they stand.
        callback_manager: As for every LlamaIndex retriever.

    Returns raw nodes, each section once; `metadata["drillrank_matched_views"]` tells the views that matched and at
    which rank. Scores are sums of reciprocal ranks, between 0 and 0.05: they order one result list and mean nothing
    beyond it.

    Text and metadata are those of the raw node in the index at the time of the question: views are references, and a
    section whose raw node is gone is left out, with a `DrillrankWarning`. The index is asked for raw nodes and for
    neighbours by id; that of the source, or of retrievers that `index.as_retriever` made. Behind any other retriever
    none is guessed: there `documents` stand in, unless they differ from what was found.

    Nodes of other parsers are ranked as they are, each as a section of its own, with a `DrillrankWarning`; they
    are found beside sections, whenever they were stored.

    Raises:
        InvalidInput: the raw node of a section is missing, two that may be seen are one section with different texts, a
            setting cannot be used, or the query is blank.

    >>> from llama_index.core import Document
    >>> from llama_index_ext import MultiViewNodeParser
    >>> text = "# Foxes\n\nThey hunt.\n\n# Whales\n\nThey sing.\n\n# Owls\n\nThey hoot.\n"
    >>> nodes = MultiViewNodeParser()([Document(text=text)])
    >>> hit = MultiViewRetriever(nodes, top_n=1).retrieve("Who sings?")[0]
    >>> hit.node.metadata["drillrank_section_path"], hit.node.metadata["drillrank_matched_views"]
    ('Whales', 'raw:1 keywords:1 summary:1')
    """

    documents: Sequence[BaseNode] | None = None
    _: KW_ONLY
    source: Source | None = None
    filters: Filters | None = None
    retriever: RetrieverName = "bm25"
    weights: Mapping[str, float] | None = None
    language: str = "english"
    embed: BaseEmbedding | Embed | None = None
    merge: Merge = "fusion"
    views: Sequence[View] = VIEWS
    top_n: int = 5
    expand: Expansion | None = None
    explain: bool = False
    callback_manager: InitVar[CallbackManager | None] = None

    def __post_init__(self, callback_manager: CallbackManager | None) -> None:
        BaseRetriever.__init__(self, callback_manager=callback_manager)
        check_positive(top_n=self.top_n)
        self.documents = documents = checked_nodes(self, self.documents or [])
        if self.source is not None and not isinstance(self.source, VectorStoreIndex | Mapping):
            check_retriever(self, self.source)
        NodeFilter(self.filters)  # says now what is wrong with them
        self._views = ViewRetrieval(
            self,
            list(map(read_section, documents)),
            lambda: [node.get_content(metadata_mode=MetadataMode.EMBED) for node in documents],
            read_section,
            store=VectorStoreIndex,
            maker="MultiViewNodeParser",
            embed=embedding_of(self.embed),
        )

    def _found(self, query: str, query_bundle: QueryBundle, usage: Usage) -> Requests[list[NodeWithScore]]:
        access_filter = NodeFilter(self.filters, self.source)
        store = StoreLookups(query_bundle, self.source, access_filter)  # type: ignore[arg-type]  # a mapping by view
        found = yield from self._views.retrieve(query, store, access_filter, self.top_n)
        nodes = [_node(*merged) for merged, _ in found]
        if explains(self.explain):
            send_explanations(query, nodes, [why for _, why in found])
        return nodes


def _node(section: StoredSection, merged: MergedSection, origin: str | None) -> NodeWithScore:
    matched = merged.matched_views if origin is None else None
    metadata = with_result_metadata(section.record.metadata, matched_views=matched, expanded_from=origin)
    added = [prefixed(name) for name in ("matched_views", "expanded_from")]
    node = unread(section.record, metadata, [key for key in added if key in metadata])
    node.embedding = None  # some stores bring vectors by id, none by a search
    return NodeWithScore(node=node, score=merged.score)
