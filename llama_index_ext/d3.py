"""Drilling down as a LlamaIndex retriever."""

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
from drillrank.frameworks.drill import Evidence, EvidenceRetrieval, FoundEvidence
from drillrank.frameworks.inputs import clean_question
from drillrank.frameworks.metadata import PREFIX
from drillrank.frameworks.settings import ResultLimit, check_switch, limit_results
from drillrank.llm import Requests, Usage
from drillrank.settings import as_settings
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
    read_chunks,
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
    r"""Retrieves evidence passages from long documents: an LLM, or likelihood, opens sections and picks in them.

    Args:
        documents: Documents, parsed as `parse_document` does with their metadata; those of `read_document`; or nodes of
            `MultiViewNodeParser`, from which the documents' section trees are rebuilt. Without a `source`, all are
            prepared once.
        llm: Chooses sections and paragraphs; None lets likelihood choose.
        source: Proposes documents, sections, or nodes of any parser; the documents of its best results are drilled
            into. A `VectorStoreIndex`, or any retriever. A node's document is put together from the index; from
            `documents` only where there is none and what was found agrees with them; else they lend nodes their
            structure and offsets.
        index: Where documents of what a retriever finds are looked up; that of a retriever that
            `VectorStoreIndex.as_retriever` made by default. Behind any other retriever none is guessed.
        filters: What may be seen: the host's `MetadataFilters`, or a function from a node to True or False. They
            govern the search and whatever is looked up beside it.
        model: Language model that scores: a `load_language_model` specification, or a ready one.
        model_options: Options of that model.
        embed: An embedding model of the framework, an encoder's specification such as `"onnx:DIR"`, or a function from
            texts to vectors. Its cosines join the likelihood.
        top_n: Maximum number of passages. None returns all that the LLM chose; without an LLM, as many as maximize the
            expected F1. `"auto"` is 5, or None with `max_tokens` or the paper's preset.
        max_tokens: Token limit of all texts together, for the budget of a reader. The best passages that fit are
            returned; those that are adjacent in a document follow each other in document order.
        preset: `"paper"` sets what the paper fixes and `settings` leave open, such as paragraphs as the unit.
        explain: Whether results say why they stand where they stand.
        settings: What is rarely touched: `llama_index_ext.settings.D3RetrieverSettings`, or a mapping of its fields.
        callback_manager: As for every LlamaIndex retriever.
        verbose: Print each step.

    `update_prompts` changes the prompts in `settings`, too.

    Each node is a passage, or a paragraph with `settings={"unit": "paragraph"}`: readable text, with `start_char_idx`
    and `end_char_idx` where they are known, the document as SOURCE, and the metadata of the node that it stands in
    together with, under names that begin with `drillrank_`, `section_path`, of the section in which it begins, and
    `section_paths`, if it joins several; without an LLM `section_score`; with one `prompt_tokens`, `completion_tokens`
    and `llm_calls` of the question; `best_paragraph`, `best_start` and `best_end`, text and span of the passage's
    paragraph that fits the question best; `found` and `confidence`, as in `drillrank.drilldown.result.EvidenceResult`,
    where they are not None; `problems`, a string, if anything went wrong, and without an LLM `nothing_matched` if no
    paragraph holds a word of the question: then the documents' order stays. No model reads these. Each step is a
    `D3StepEvent`, usage, problems, `found` and `confidence` a `D3EndEvent`. A missing `found` does not mean "nothing":
    `drillrank.drilldown.confidence.describe_finding` puts it into words for an agent. What goes wrong is also told in
    one `DrillrankWarning`.

    Raises:
        InvalidInput: a setting cannot be used, or the question is blank.
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
        self.settings = settings = as_settings(D3RetrieverSettings, self.settings).with_preset(self.preset)
        limit_results(self.top_n, self.max_tokens, settings)  # checks them now
        source = self.source
        if source is not None and not isinstance(source, VectorStoreIndex):
            check_source(self, source)
        check_type(self, VectorStoreIndex, index=self.index)
        prompts: Any = settings.prompts  # the host's, or texts
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
        self._evidence = EvidenceRetrieval(self, d3, read_chunks(documents), NodeFilter(self.filters))

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if self.source is not None:
            return super()._retrieve(query_bundle)
        query = clean_question(query_bundle.query_str)
        access = None if self.filters is None else NodeFilter(self.filters)
        found = self._evidence.retrieve(
            query, access, self._result_limit, max_tokens=self.max_tokens, on_step=self._report
        )
        return self._nodes(query, found)

    def _found(self, query: str, query_bundle: QueryBundle, usage: Usage) -> Requests[list[NodeWithScore]]:
        access = NodeFilter(self.filters, self.source)
        store = None if self.source is None else LlamaIndexStore(query_bundle, self.source, access, index=self.index)
        found = yield from self._evidence.requests(
            query, store, access, self._result_limit, max_tokens=self.max_tokens, on_step=self._report
        )
        return self._nodes(query, found)

    @property
    def _result_limit(self) -> int | None:
        return limit_results(self.top_n, self.max_tokens, cast("D3RetrieverSettings", self.settings))

    def _report(self, step: StepReport) -> None:
        problems = list(step.problems)
        dispatcher.event(
            D3StepEvent(kind=step.kind, offered=step.n_candidates, chosen=list(step.chosen), problems=problems)
        )
        if self._verbose:
            shown = "; ".join([*step.chosen, *(f"! {problem}" for problem in problems)])
            print_text(
                f"{step.kind}: {len(step.chosen)} of {step.n_candidates}: {shown}", color="llama_turquoise", end="\n"
            )

    def _nodes(self, query: str, found: FoundEvidence[BaseNode]) -> list[NodeWithScore]:
        end = D3EndEvent(usage=found.usage, problems=found.problems, found=found.found, confidence=found.confidence)
        dispatcher.event(end)
        nodes = list(map(_node, found.evidence))
        if explains(self.explain):
            send_explanations(query, nodes, [evidence.explanation for evidence in found.evidence], found.tree)
        return nodes


def _node(evidence: Evidence[BaseNode]) -> NodeWithScore:
    origin = evidence.chunk.record
    whole = evidence.chunk.kind == "document" or origin.source_node is None
    ours = [key for key in evidence.metadata if key.startswith(PREFIX)]
    paragraph = TextNode(
        id_=evidence.id,
        text=evidence.text,
        start_char_idx=evidence.start,
        end_char_idx=evidence.end,
        metadata={"id": evidence.id},  # which is what it has in common for all questions
        excluded_embed_metadata_keys=origin.excluded_embed_metadata_keys,
        excluded_llm_metadata_keys=origin.excluded_llm_metadata_keys,
        relationships={NodeRelationship.SOURCE: refer_to(origin) if whole else origin.source_node},
        **copy_templates(origin),
    )
    return NodeWithScore(node=annotate_node(paragraph, evidence.metadata, ours), score=evidence.score)
