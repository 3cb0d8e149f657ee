"""Retrievers: over views (MC-indexing), and together with what an LLM generates (BRMGR)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass
from functools import partial
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.callbacks import CallbackManager
from llama_index.core.indices.vector_store import VectorStoreIndex
from llama_index.core.llms import LLM
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle

from drillrank import LanguageModel
from drillrank.errors import check_positive, warn
from drillrank.explanation.explanations import explains
from drillrank.frameworks.constructors import component
from drillrank.frameworks.metadata import prefixed, with_result_metadata
from drillrank.frameworks.store import retrieve_and_generate
from drillrank.frameworks.views import ViewRetrieval
from drillrank.llm import FunctionRequest, Requests, Usage
from drillrank.passages import check_top_n
from drillrank.rerank.prior import Prior
from drillrank.settings import as_settings
from drillrank.structure.record_store import RecordStore
from drillrank.structure.stored_chunks import StoredChunk
from drillrank.vectors import Embed
from drillrank.views import VIEWS, Expansion, Merge, MergedSection, RetrieverName, View
from llama_index_ext._filters import Filters, NodeFilter
from llama_index_ext._llm import FrameworkLLM, embedding_of
from llama_index_ext._records import annotate_node, check_nodes, check_source, read_chunks, read_content
from llama_index_ext._retriever import QueryRetriever
from llama_index_ext._store import LlamaIndexStore, underlying_index
from llama_index_ext.events import send_explanations
from llama_index_ext.rerank import BRMGRRerank, GeneratedNode
from llama_index_ext.settings import BRMGRRetrieverSettings

Source = VectorStoreIndex | BaseRetriever | RecordStore | Mapping[View, BaseRetriever]


@component
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
        embed: An embedding model of the framework, an encoder's specification such as `"onnx:DIR"`, or a function from
            texts to vectors. Without a source, semantic similarity then replaces lexical matching.
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
    embed: BaseEmbedding | Embed | str | None = None
    merge: Merge = "fusion"
    views: Sequence[View] = VIEWS
    top_n: int = 5
    expand: Expansion | None = None
    explain: bool = False
    callback_manager: InitVar[CallbackManager | None] = None

    def __post_init__(self, callback_manager: CallbackManager | None) -> None:
        BaseRetriever.__init__(self, callback_manager=callback_manager)
        check_positive(top_n=self.top_n)
        self.documents = documents = check_nodes(self, self.documents or [])
        if isinstance(self.source, Mapping):
            for retriever in self.source.values():
                check_source(self, retriever, takes_store=False)
        elif self.source is not None:
            check_source(self, self.source)
        NodeFilter(self.filters)  # says now what is wrong with them
        self._views = ViewRetrieval(
            self,
            read_chunks(documents),
            lambda: [read_content(node, MetadataMode.EMBED) for node in documents],
            maker="MultiViewNodeParser",
            embed=embedding_of(self.embed),
        )

    def _found(self, query: str, query_bundle: QueryBundle, usage: Usage) -> Requests[list[NodeWithScore]]:
        access_filter = NodeFilter(self.filters, self.source)
        store = LlamaIndexStore(query_bundle, self.source, access_filter)  # type: ignore[arg-type]  # a mapping by view
        found = yield from self._views.retrieve(query, store, access_filter, self.top_n)
        nodes = [_node(*merged) for merged, _ in found]
        if explains(self.explain):
            send_explanations(query, nodes, [why for _, why in found])
        return nodes


def _node(section: StoredChunk[BaseNode], merged: MergedSection, origin: str | None) -> NodeWithScore:
    matched = merged.matched_views if origin is None else None
    metadata = with_result_metadata(section.record.metadata, matched_views=matched, expanded_from=origin)
    added = [prefixed(name) for name in ("matched_views", "expanded_from")]
    node = annotate_node(section.record, metadata, [key for key in added if key in metadata])
    node.embedding = None  # some stores bring vectors by id, none by a search
    return NodeWithScore(node=node, score=merged.score)


@component
@dataclass(eq=False, repr=False)
class BRMGRRetriever(QueryRetriever):
    """Retrieves nodes, lets an LLM write some more, and merges the two (see `BRMGRRerank`).

    Args:
        source: Any LlamaIndex retriever.
        llm: Writes the passages; None takes `Settings.llm` at each query.
        n_generated: Passages to ask for, one call each.
        model: Language model that ranks: a `load_language_model` specification, or a ready one.
        model_options: Options of that model.
        top_n: Nodes to return; None returns all.
        filters: The host's `MetadataFilters`, or a function from a node to True or False: what else the retriever
            brings is left out.
        prior: What the scores of the retriever's nodes say, as for `UPRRerank`.
        guard: Drop generated nodes that no retrieved one supports, as for `BRMGRRerank`.
        generated_share: The largest share of generated nodes among those returned.
        explain: Whether results say why they stand where they stand.
        settings: What is rarely touched: `llama_index_ext.settings.BRMGRRetrieverSettings`, or a mapping of its fields.
        callback_manager: As for every LlamaIndex retriever.

    Generated nodes are made for one query and stored nowhere. Give the LLM a time limit: a call that exceeds it fails.
    `settings.on_failure` says if a failed call raises an error, or the other nodes are merged without it.

    Raises:
        InvalidInput: a setting cannot be used, or the question is blank.
        LLMFailure: A call failed or its answer has no word, and `on_failure` says to raise.

    >>> from llama_index.core.llms import MockLLM
    >>> from llama_index.core import Document
    >>> from llama_index_ext import D3Retriever
    >>> inner = D3Retriever([Document(text="Emma is a novel that Jane Austen wrote.")])
    >>> found = BRMGRRetriever(inner, MockLLM(), n_generated=1).retrieve("Who wrote Emma?")  # answers with the prompt
    >>> [node.metadata.get("drillrank_origin", "retrieved") for node in found]
    ['generated', 'retrieved']
    """

    source: BaseRetriever
    llm: LLM | None = None
    n_generated: int = 3
    _: KW_ONLY
    model: str | LanguageModel = "unigram"
    model_options: dict[str, Any] | None = None
    top_n: int | None = 5
    filters: Filters | None = None
    prior: Prior | None = "retrieval"
    guard: bool | float = False
    generated_share: float = 1.0
    explain: bool = False
    settings: BRMGRRetrieverSettings | Mapping[str, Any] = BRMGRRetrieverSettings()
    callback_manager: InitVar[CallbackManager | None] = None

    def __post_init__(self, callback_manager: CallbackManager | None) -> None:
        BaseRetriever.__init__(self, callback_manager=callback_manager)
        self.settings = self._settings = as_settings(BRMGRRetrieverSettings, self.settings)
        check_source(self, self.source)
        check_positive(n_generated=self.n_generated)
        check_top_n(self.top_n)
        NodeFilter(self.filters)  # says now what is wrong with them
        self._writes = FrameworkLLM(self.llm, "write a passage")
        if self.prior == "cosine":
            _check_cosines(self.source)
        names = ("model", "top_n", "prior", "guard", "generated_share", "explain", "settings", "callback_manager")
        self._rerank = BRMGRRerank(
            model_options=self.model_options or {}, **{name: getattr(self, name) for name in names}
        )

    @property
    def _workers(self) -> int:
        return self._settings.workers

    def _framework_llm(self) -> FrameworkLLM:
        return self._writes

    def _found(self, query: str, query_bundle: QueryBundle, usage: Usage) -> Requests[list[NodeWithScore]]:
        access_filter = NodeFilter(self.filters, self.source)
        store = LlamaIndexStore(query_bundle, self.source, access_filter, component=type(self).__name__)
        found, written = yield from retrieve_and_generate(
            self._settings, query, self.n_generated, store, self.top_n or 10
        )
        retrieved = [NodeWithScore(node=hit.record, score=hit.score) for hit in found]
        generated = [NodeWithScore(node=GeneratedNode(id_=one.id, text=one.text)) for one in written]
        rerank, arguments = self._rerank, ([*retrieved, *generated], query_bundle)
        [merged] = yield [
            FunctionRequest(
                partial(rerank.postprocess_nodes, *arguments), partial(rerank.apostprocess_nodes, *arguments)
            )
        ]
        return merged  # type: ignore[no-any-return]


def _check_cosines(source: BaseRetriever) -> None:
    """Warn where the store behind a retriever says that it scores with something else than cosines."""
    index = underlying_index(source)
    store = index and index.vector_store
    metric = str(getattr(store, "similarity_metric", "") or "").lower()  # of Milvus and those like it
    if type(store).__name__ in ("ChromaVectorStore", "FaissVectorStore") or metric in ("l2", "euclidean"):
        warn(
            f'BRMGRRetriever: prior="cosine" takes scores for cosines; those of {type(store).__name__} are made of '
            'distances. Give prior="retrieval", which takes their ranks.'
        )
