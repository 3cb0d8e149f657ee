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
from drillrank.frameworks.settings import ResultLimit, count_merged
from drillrank.frameworks.source_passages import retrieve_and_generate
from drillrank.frameworks.views import FoundSection, build_view_retrieval
from drillrank.llm import FunctionRequest, Requests, Usage
from drillrank.rerank.brmgr import BRMGRPreset
from drillrank.rerank.prior import Prior
from drillrank.settings import Preset, as_settings
from drillrank.structure.record_store import RecordStore
from drillrank.vectors import Embed
from drillrank.views import VIEWS, Expansion, Merge, RetrieverName, View
from llama_index_ext._filters import Filters, NodeFilter
from llama_index_ext._llm import FrameworkLLM, embedding_of
from llama_index_ext._records import annotate_node, check_nodes, check_source, read_content, read_nodes
from llama_index_ext._retriever import QueryRetriever
from llama_index_ext._store import LlamaIndexStore, underlying_index
from llama_index_ext.events import send_explanations
from llama_index_ext.rerank import BRMGRRerank, GeneratedNode
from llama_index_ext.settings import BRMGRRetrieverSettings, MultiViewRetrieverSettings

Source = VectorStoreIndex | BaseRetriever | RecordStore | Mapping[View, BaseRetriever]


@component
@dataclass(eq=False, repr=False)
class MultiViewRetriever(QueryRetriever):
    r"""Ranks sections in each view separately and merges the rankings.

    Args:
        documents: Nodes of `MultiViewNodeParser`. Without a `source`, they are indexed in memory. With one, they
            represent sections whose raw nodes no index can be asked for.
        source: Where to search instead: a `VectorStoreIndex` over such nodes, a retriever whose results are ranked by
            their views, a retriever for each view, as a dictionary, or a `RecordStore`. An index is searched for
            keywords and summaries with a metadata filter, and once without.
        filters: `MetadataFilters`, or a function from a node to True or False. They apply to all look-ups, as do those
            of retrievers that `index.as_retriever` made.
        retriever: `"bm25"` or `"tfidf"`: index of each view in memory.
        weights: Weight of each view. None takes the best of every view: see `drillrank.views.merge_views`.
        embed: Embedding model of the framework, an encoder's specification such as `"onnx:DIR"`, or a function from
            texts to vectors. Without a source, semantic similarity then replaces lexical matching.
        merge: `"fusion"`, or `"union"` as in the paper, about `top_n` sections: see `drillrank.views.merge_views`. None
            is fusion, or union with the preset.
        views: Views to search.
        top_n: Maximum number of results.
        expand: `"parent"` returns, for each section that was found, the section around it: its parent with all
            subsections, or, without a parent, its own subsections. `"neighbours"` adds the previous and the next
            section. See below. None returns the section itself.
        preset: `"paper"` sets what the paper fixes and other arguments leave open: the union of the best of each view.
        explain: True explains the results.
        settings: Settings that rarely change: `llama_index_ext.settings.MultiViewRetrieverSettings`, or a mapping.
        callback_manager: Callback manager, as in every LlamaIndex retriever.

    The results are raw nodes, each section once. `metadata["drillrank_matched_views"]` contains the views that found it
    and its rank in each. Scores are sums of reciprocal ranks between 0 and 0.05. They order one list of results and
    mean nothing beyond it.

    Text and metadata are those of the raw node in the index at the time of the question, because views are references.
    A section whose raw node is missing is left out, with a `DrillrankWarning`. Raw nodes are looked up by id in the
    index of the source, or of retrievers that `index.as_retriever` made. For other retrievers, `documents` contain
    them, unless they differ from what was found.

    With `expand`, contiguous sections are joined to one text, up to `settings={"max_expanded_tokens": ...}`. If the
    section around the one that was found is larger, it is returned in part. Each section is in one result at most, so
    that sections with one parent are one result, and there may be fewer than `top_n`. Text, `drillrank_start`,
    `drillrank_end` and pages are those of the joined text, and `drillrank_expanded_from` is the id of the section that
    was found. Sections that the filter hides, or that are missing in the store, end the text before or after them.

    Nodes of other parsers are ranked as they are, each as a section of its own, with a `DrillrankWarning`.

    Raises:
        InvalidInput: The raw node of a section is missing, two visible nodes are one section with different texts, a
            setting is invalid, or the query is blank.

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
    embed: BaseEmbedding | Embed | str | None = None
    merge: Merge | None = None
    views: Sequence[View] = VIEWS
    top_n: int = 5
    expand: Expansion | None = None
    preset: Preset | None = None
    explain: bool = False
    settings: MultiViewRetrieverSettings | Mapping[str, Any] = MultiViewRetrieverSettings()
    callback_manager: InitVar[CallbackManager | None] = None

    def __post_init__(self, callback_manager: CallbackManager | None) -> None:
        BaseRetriever.__init__(self, callback_manager=callback_manager)
        self.settings = self._settings = as_settings(MultiViewRetrieverSettings, self.settings)
        check_positive(top_n=self.top_n)
        self.documents = documents = check_nodes(self, self.documents or [])
        if isinstance(self.source, Mapping):
            for retriever in self.source.values():
                check_source(self, retriever, takes_store=False)
        elif self.source is not None:
            check_source(self, self.source)
        NodeFilter(self.filters)  # says now what is wrong with them
        text_of = partial(read_content, mode=MetadataMode.EMBED)
        self._views = build_view_retrieval(
            self, read_nodes(documents), text_of, embedding_of(self.embed), "MultiViewNodeParser"
        )

    def _retrieve_requests(self, query: str, query_bundle: QueryBundle, usage: Usage) -> Requests[list[NodeWithScore]]:
        access_filter = NodeFilter(self.filters, self.source)
        store = LlamaIndexStore(query_bundle, self.source, access_filter)  # type: ignore[arg-type]  # a mapping by view
        sections = yield from self._views.retrieve_requests(query, store, access_filter=access_filter, top_n=self.top_n)
        nodes = list(map(_build_node, sections))
        if explains(self.explain):
            send_explanations(query, nodes, [section.explanation for section in sections])
        return nodes


def _build_node(section: FoundSection[BaseNode]) -> NodeWithScore:
    record, metadata = section.chunk.record, section.metadata | section.retrieval_metadata
    node: Any = annotate_node(record, metadata, [key for key in metadata if key not in record.metadata])
    node.embedding = None  # some stores return vectors by id, none by a search
    if section.members:
        node.set_content(section.chunk.text)
        node.start_char_idx, node.end_char_idx = section.chunk.start, section.chunk.end
    return NodeWithScore(node=node, score=section.merged.score)


@component
@dataclass(eq=False, repr=False)
class BRMGRRetriever(QueryRetriever):
    """Retrieves nodes, lets an LLM write more of them, and merges both (see `BRMGRRerank`).

    Args:
        source: Any LlamaIndex retriever, an index or a record store. The latter two are searched for `top_n` nodes, or
            10 without a limit. The views of a section count as one node, its raw one.
        llm: LLM that writes the passages. None takes `Settings.llm` at each query.
        n_generated: Number of passages that the LLM writes, with one call each. None is 3, or 10 with a preset.
        model: Language model that ranks: a `load_language_model` specification, or a language model.
        model_options: Options of that model.
        top_n: Maximum number of results. None returns all. `"auto"` is 5, or None with a preset.
        filters: `MetadataFilters`, or a function from a node to True or False, for the retrieved nodes.
        prior: Prior from the scores of the retrieved nodes, as for `UPRRerank`.
        guard: Drop generated nodes that no retrieved one supports, as for `BRMGRRerank`.
        preset: `"paper"` sets what the paper fixes, as for `drillrank.BRMGR`, and merges all of 10 retrieved and 10
            generated passages. The LLM samples them with one prompt at a temperature of 0.95, if it has a field
            `temperature`. Otherwise it answers ten prompts, with a `DrillrankWarning`.
        explain: True explains the results.
        settings: Settings that rarely change: `llama_index_ext.settings.BRMGRRetrieverSettings`, or a mapping.
        callback_manager: Callback manager, as in every LlamaIndex retriever.

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

    source: BaseRetriever | VectorStoreIndex | RecordStore
    llm: LLM | None = None
    n_generated: int | None = None
    _: KW_ONLY
    model: str | LanguageModel = "unigram"
    model_options: dict[str, Any] | None = None
    top_n: ResultLimit = "auto"
    filters: Filters | None = None
    prior: Prior | None = "retrieval"
    guard: bool | float = False
    preset: BRMGRPreset | None = None
    explain: bool = False
    settings: BRMGRRetrieverSettings | Mapping[str, Any] = BRMGRRetrieverSettings()
    callback_manager: InitVar[CallbackManager | None] = None

    def __post_init__(self, callback_manager: CallbackManager | None) -> None:
        BaseRetriever.__init__(self, callback_manager=callback_manager)
        self.settings = self._settings = as_settings(BRMGRRetrieverSettings, self.settings)
        check_source(self, self.source)
        self._counts = count_merged(self.top_n, self.n_generated, self.preset)
        NodeFilter(self.filters)  # says now what is wrong with them
        self._temperature = self._settings.sampling_temperature(self.preset)
        self._writes = FrameworkLLM(self.llm, "write a passage", self._temperature)
        if self.prior == "cosine":
            _check_cosines(self.source)
        names = ("model", "prior", "guard", "preset", "explain", "settings", "callback_manager")
        fields = {name: getattr(self, name) for name in names}
        self._rerank = BRMGRRerank(model_options=self.model_options or {}, top_n=self._counts.top_n, **fields)

    def _run_arguments(self, query_bundle: QueryBundle) -> dict[str, Any]:
        return {**super()._run_arguments(query_bundle), "workers": self._settings.workers}

    def _framework_llm(self) -> FrameworkLLM:
        return self._writes

    def _retrieve_requests(self, query: str, query_bundle: QueryBundle, usage: Usage) -> Requests[list[NodeWithScore]]:
        access_filter = NodeFilter(self.filters, self.source)
        store = LlamaIndexStore(query_bundle, self.source, access_filter, component=type(self).__name__)
        prompts = self._settings.choose_prompts(self._temperature, self._writes.takes_temperature)
        chunks, passages = yield from retrieve_and_generate(self._settings, query, self._counts, prompts, store)
        retrieved = [NodeWithScore(node=chunk.record, score=chunk.score) for chunk in chunks]
        generated = [NodeWithScore(node=GeneratedNode(id_=passage.id, text=passage.text)) for passage in passages]
        rerank, nodes = self._rerank, [*retrieved, *generated]
        [merged] = yield [FunctionRequest.of(rerank.postprocess_nodes, rerank.apostprocess_nodes, nodes, query_bundle)]
        return merged  # type: ignore[no-any-return]


def _check_cosines(source: object) -> None:
    """Warn if the store of a source says that its scores are not cosines."""
    index = underlying_index(source)
    store = index and index.vector_store
    metric = str(getattr(store, "similarity_metric", "") or "").lower()  # of Milvus and those like it
    if type(store).__name__ in ("ChromaVectorStore", "FaissVectorStore") or metric in ("l2", "euclidean"):
        warn(
            f'BRMGRRetriever: prior="cosine" reads scores as cosines, but {type(store).__name__} makes them from '
            'distances. Use prior="retrieval", which reads their ranks.'
        )
