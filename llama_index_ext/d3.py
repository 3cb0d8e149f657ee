"""Evidence retrieval by drilling down, as a LlamaIndex retriever."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, replace
from typing import Any, Literal, cast

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.callbacks import CallbackManager
from llama_index.core.indices.vector_store import VectorStoreIndex
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.llms import LLM
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import BaseNode, NodeRelationship, NodeWithScore, QueryBundle, TextNode
from llama_index.core.utils import print_text

from drillrank import D3, LanguageModel
from drillrank.drilldown.paragraph_scores import load_evidence_model
from drillrank.drilldown.trace import StepReport
from drillrank.explanation.explanations import explains
from drillrank.frameworks.constructors import component
from drillrank.frameworks.evidence import EvidenceParagraph, EvidenceRetrieval, RetrievedEvidence
from drillrank.frameworks.metadata import PREFIX
from drillrank.frameworks.sections import check_searched
from drillrank.frameworks.settings import ResultLimit, check_switch, limit_results
from drillrank.llm import Requests, Usage
from drillrank.settings import as_settings, with_preset
from drillrank.structure import Document
from drillrank.structure.record_store import RecordStore
from drillrank.vectors import Embed
from llama_index_ext._filters import Filters, NodeFilter
from llama_index_ext._llm import FrameworkLLM, StepPrompts, embedding_of
from llama_index_ext._records import (
    annotate_node,
    check_nodes,
    check_source,
    check_type,
    copy_templates,
    read_nodes,
    refer_to,
)
from llama_index_ext._retriever import QueryRetriever
from llama_index_ext._store import LlamaIndexStore
from llama_index_ext.events import D3EndEvent, D3StepEvent, send_explanations
from llama_index_ext.settings import D3RetrieverSettings

dispatcher = get_dispatcher(__name__)


@component
@dataclass(eq=False, repr=False)
class D3Retriever(StepPrompts, QueryRetriever):
    r"""Retrieves evidence passages from long documents: sections are selected first, then passages in them.

    Args:
        documents: Documents to read, parsed as by `parse_document`. They may be documents of `read_document`, or nodes
            of `MultiViewNodeParser`, from which section trees are rebuilt. Without `source`, they are prepared now.
            With one, they add structure and offsets to its nodes, if they agree with these.
        llm: LLM that selects sections and passages. Without one, likelihood selects them.
        source: `VectorStoreIndex`, retriever, or `RecordStore` of nodes. The documents of its best results are read.
            All nodes of a document come from the index. Without an index, `documents` represent the document.
        index: Index with all nodes of the documents that a retriever finds. By default that of a retriever from
            `VectorStoreIndex.as_retriever`. The index of any other retriever is not guessed.
        filters: `MetadataFilters`, or a function from a node to True or False. They apply to the search and to all
            other nodes of a document.
        model: Language model that scores passages, or its `load_language_model` specification.
        model_options: Options of that specification.
        embed: Embedding model of the framework, specification of an encoder such as `"onnx:DIR"`, or function from
            texts to vectors. Its cosines are added to the likelihood. None takes the vectors of an index, if it has
            some.
        top_n: Maximum number of passages. None returns all that the LLM selects; without an LLM, as many as maximize
            the expected F1. `"auto"` is 5, or None with `max_tokens` or the paper's preset.
        max_tokens: Token limit of all texts together. The best passages that fit are returned. Those that are adjacent
            in a document follow each other in document order.
        preset: `"paper"` sets what the paper fixes and `settings` leave open, such as paragraphs as the unit.
        explain: True to explain the rank of each result.
        settings: Other settings: a `llama_index_ext.settings.D3RetrieverSettings`, or a mapping of its fields.
        callback_manager: Callback manager of the framework.
        verbose: True to print each step.

    `update_prompts` changes the prompts in `settings`, too.

    Each node is a passage, or a paragraph with `settings={"unit": "paragraph"}`. It has readable text, the document as
    SOURCE, and `start_char_idx` and `end_char_idx` if they are known. Its metadata are those of the node in which it
    begins. No model reads the following keys, which begin with `drillrank_`:

    - `section_path`: Headings of the section in which it begins. `section_paths`: all, if it joins several sections.
    - `best_paragraph`, `best_start`, `best_end`: Text and span of its paragraph that fits the question best.
    - `section_score`: Score of its section, without an LLM.
    - `prompt_tokens`, `completion_tokens`, `llm_calls`: Cost of the question, with an LLM.
    - `found`, `confidence`: As in `drillrank.drilldown.result.EvidenceResult`. None values are left out. A missing
      `found` does not mean "nothing": `drillrank.drilldown.confidence.describe_finding` puts it into words.
    - `nothing_matched`: True if no paragraph contains a word of the question, so that the order is the documents'.
    - `problems`: Everything that went wrong. One `DrillrankWarning` for each kind reports it, too.

    Each step sends a `D3StepEvent`, and the end a `D3EndEvent`.

    Raises:
        InvalidInput: A setting cannot be used, or the question is blank.
        LLMFailure: A call failed or its answer is unusable, and `on_failure` says to raise.

    >>> from llama_index.core import Document
    >>> manual = Document(text="# Battery\n\nIt lasts nine hours.\n\n# Screen\n\nClean it with a dry cloth.")
    >>> node = D3Retriever([manual], top_n=1).retrieve("How long does the battery last?")[0]
    >>> node.metadata["drillrank_best_paragraph"], node.metadata["drillrank_section_paths"]
    ('It lasts nine hours.', 'Battery; Screen')
    """

    documents: Sequence[BaseNode | Document] | None = None
    llm: LLM | None = None
    _: KW_ONLY
    source: VectorStoreIndex | BaseRetriever | RecordStore | None = None
    index: VectorStoreIndex | None = None
    filters: Filters | None = None
    model: str | LanguageModel = "unigram"
    model_options: dict[str, Any] | None = None
    embed: BaseEmbedding | Embed | str | None = None
    top_n: ResultLimit = "auto"
    max_tokens: int | None = None
    preset: Literal["paper"] | None = None
    explain: bool = False
    settings: D3RetrieverSettings | Mapping[str, Any] = D3RetrieverSettings()
    callback_manager: InitVar[CallbackManager | None] = None
    verbose: InitVar[bool] = False

    def __post_init__(self, callback_manager: CallbackManager | None, verbose: bool) -> None:
        BaseRetriever.__init__(self, callback_manager=callback_manager, verbose=verbose)
        self.documents = documents = check_nodes(self, self.documents or [])
        check_switch(explain=self.explain)
        self.settings = settings = with_preset(as_settings(D3RetrieverSettings, self.settings), self.preset)
        limit_results(self.top_n, self.max_tokens, settings)  # checks both now
        source = self.source
        if source is not None:
            check_source(self, source)
        check_type(self, VectorStoreIndex, index=self.index)
        prompts: Any = settings.prompts  # of LlamaIndex, or texts
        d3 = D3(
            FrameworkLLM(self.llm, "summarise") if self.llm is not None else None,
            load_evidence_model(self.model, **(self.model_options or {})),
            embed=embedding_of(self.embed),
            settings=replace(
                settings,
                section_prompt=self._step_prompt("section_prompt", prompts[0]),
                paragraph_prompt=self._step_prompt("paragraph_prompt", prompts[1]),
            ),
        )
        check_searched(type(self).__name__, self.documents, self.source)
        chunks = read_nodes(documents)
        self._evidence = EvidenceRetrieval(d3, chunks, settings=settings, explain=self.explain)
        node_filter = NodeFilter(self.filters)  # checks the filters now
        if source is None:
            self._evidence.prepare(node_filter)

    def _retrieve_requests(self, query: str, query_bundle: QueryBundle, usage: Usage) -> Requests[list[NodeWithScore]]:
        access_filter = NodeFilter(self.filters, self.source)
        store = (
            None if self.source is None else LlamaIndexStore(query_bundle, self.source, access_filter, index=self.index)
        )
        evidence = yield from self._evidence.retrieve_requests(
            query,
            store,
            access_filter=access_filter,
            top_n=limit_results(self.top_n, self.max_tokens, cast("D3RetrieverSettings", self.settings)),
            max_tokens=self.max_tokens,
            on_step=self._report,
        )
        return self._make_nodes(query, evidence)

    def _report(self, step: StepReport) -> None:
        """Send the event of a step, and print it if `verbose` is True."""
        problems = list(map(str, step.problems))
        dispatcher.event(
            D3StepEvent(kind=step.kind, n_candidates=step.n_candidates, chosen=list(step.chosen), problems=problems)
        )
        if self._verbose:
            details = "; ".join([*step.chosen, *(f"! {problem}" for problem in problems)])
            line = f"{step.kind}: {len(step.chosen)} of {step.n_candidates}: {details}"
            print_text(line, color="llama_turquoise", end="\n")

    def _make_nodes(self, question: str, evidence: RetrievedEvidence[BaseNode]) -> list[NodeWithScore]:
        """Return the evidence as nodes, and send the events of the end."""
        dispatcher.event(D3EndEvent(usage=evidence.usage, problems=evidence.problems, **evidence.judgment))
        nodes = list(map(_make_node, evidence.paragraphs))
        if explains(self.explain):
            explanations = [paragraph.explanation for paragraph in evidence.paragraphs]
            send_explanations(question, nodes, explanations, evidence.tree)
        return nodes


def _make_node(paragraph: EvidenceParagraph[BaseNode]) -> NodeWithScore:
    origin = paragraph.chunk.record
    is_document = paragraph.chunk.kind == "document" or origin.source_node is None
    hidden_keys = [key for key in paragraph.metadata if key.startswith(PREFIX)]
    node = TextNode(
        id_=paragraph.id,
        text=paragraph.text,
        start_char_idx=paragraph.start,
        end_char_idx=paragraph.end,
        metadata={"id": paragraph.id},  # equal for all questions, so that its hash is, too
        excluded_embed_metadata_keys=origin.excluded_embed_metadata_keys,
        excluded_llm_metadata_keys=origin.excluded_llm_metadata_keys,
        relationships={NodeRelationship.SOURCE: refer_to(origin) if is_document else origin.source_node},
        **copy_templates(origin),
    )
    return NodeWithScore(node=annotate_node(node, paragraph.metadata, hidden_keys), score=paragraph.score)
