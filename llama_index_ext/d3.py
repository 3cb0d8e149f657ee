"""Drilling down as a LlamaIndex retriever."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Sequence
from typing import Any, Literal

from llama_index.core import PromptTemplate
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.callbacks import CallbackManager
from llama_index.core.indices.vector_store import VectorStoreIndex
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.prompts.mixin import PromptDictType
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import BaseNode, NodeRelationship, NodeWithScore, QueryBundle, TextNode
from llama_index.core.utils import print_text

from drillrank import D3, LanguageModel, MonoT5, Passage, Ranked
from drillrank.drilldown.asking import AnswerBy
from drillrank.drilldown.condensing import Summarise
from drillrank.drilldown.d3 import EvidenceRanking, default_prompts
from drillrank.drilldown.drill import Drillable, Step, Strategy
from drillrank.drilldown.evidence import Embed, load_evidence_model
from drillrank.drilldown.rebuilding import Library
from drillrank.errors import DrillrankWarning, InvalidInput
from drillrank.hosts.fields import Fixed
from drillrank.hosts.keys import is_section
from drillrank.hosts.notes import notes
from drillrank.passages import check_query, check_top_n, stable_uuid
from drillrank.tokens import Tokens
from llama_index_ext._embed import FrameworkEmbedding
from llama_index_ext._llm import FrameworkLLM, Prompts
from llama_index_ext._stored import StoredDocuments, document_id, sections_in
from llama_index_ext._waiting import aretrieved
from llama_index_ext.events import D3EndEvent, D3StepEvent

_OF_A_VIEW = ("view", "context", "matched_views", "expanded_from")  # of a section's node, not of its paragraphs

dispatcher = get_dispatcher(__name__)


class D3Retriever(Fixed, BaseRetriever):
    r"""Retrieves evidence paragraphs from long documents: an LLM, or likelihood, opens sections and picks in them.

    Args:
        documents: Documents, parsed as `parse_document` does with their metadata; or nodes of `MultiViewNodeParser`,
            from which the documents' section trees are rebuilt. Without a `source`, all are prepared once.
        llm: Chooses sections and paragraphs; None lets likelihood choose.
        source: Proposes documents or sections; the documents of its best results are drilled into. A
            `VectorStoreIndex`, of `MultiViewNodeParser`'s nodes for example, or any retriever. A section's document is
            put together from `documents`, the index's docstore or its vector store; without these, of the sections
            found.
        model: Language model that scores: a `load_language_model` specification, or a ready one.
        model_options: Options of that model.
        top_n: Paragraphs to return; None returns what the LLM chose, or as many as make the expected F1 largest.
        embed: An embedding model, or a function from texts to vectors, whose cosines join the likelihood.
        max_documents: Of more documents than this, the best few are drilled into.
        paragraphs: How paragraphs are chosen: see `drillrank.D3`, as for the arguments that follow, from `monot5` to
            `on_failure`.
        workers: LLM calls at the same time, all questions together.
        section_prompt: Template with `{outline}` and `{question}`; `update_prompts` changes it, too.
        paragraph_prompt: Template with `{paragraphs}` and `{question}`.
        separator: Between the headings of `section_path`, as `MultiViewNodeParser` was told.
        callback_manager: As for every LlamaIndex retriever.
        verbose: Print each step.

    Each node is a paragraph, text as in the source, with `start_char_idx` and `end_char_idx`, the document as SOURCE,
    and the document's metadata together with `section_path`; without an LLM `section_score`; with one `prompt_tokens`,
    `completion_tokens` and `llm_calls` of the question; `drillrank_problems`, a string, if anything went wrong, and
    without an LLM `drillrank_nothing_matched` if no paragraph holds a word of the question: then the
    documents' order stays. Each step is a `D3StepEvent`, usage and problems a `D3EndEvent`. What goes wrong is also
    told in one `DrillrankWarning`.

    Raises:
        InvalidInput: a setting cannot be used, or the question is blank.
        LLMFailure: a call failed, and `on_failure` is `"raise"`.

    >>> from llama_index.core import Document
    >>> manual = Document(text="# Battery\n\nIt lasts nine hours.\n\n# Screen\n\nClean it with a dry cloth.")
    >>> node = D3Retriever([manual], top_n=1).retrieve("How long does the battery last?")[0]
    >>> node.text, node.metadata["section_path"]
    ('It lasts nine hours.', 'Battery')
    """

    def __init__(
        self,
        documents: Sequence[BaseNode] = (),
        llm: LLM | None = None,
        *,
        source: VectorStoreIndex | BaseRetriever | None = None,
        model: str | LanguageModel = "unigram",
        model_options: dict[str, Any] | None = None,
        top_n: int | None = None,
        embed: BaseEmbedding | Embed | None = None,
        max_documents: int = 8,
        paragraphs: Strategy | None = None,
        monot5: MonoT5 | None = None,
        sections: int = 8,
        guard_tokens: int = 0,
        summarise: Summarise = None,
        summary_words: int = 36,
        max_prompt_tokens: int = 4000,
        tokens: Tokens = None,
        max_calls: int = 40,
        sections_by: AnswerBy = "names",
        on_empty: Literal["nothing", "likelihood"] = "nothing",
        on_failure: Literal["likelihood", "raise"] = "likelihood",
        workers: int = 4,
        section_prompt: BasePromptTemplate | None = None,
        paragraph_prompt: BasePromptTemplate | None = None,
        separator: str = " > ",
        callback_manager: CallbackManager | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(callback_manager=callback_manager, verbose=verbose)
        check_top_n(top_n)
        if source is not None and not isinstance(source, VectorStoreIndex | BaseRetriever):
            raise InvalidInput(f"source is a VectorStoreIndex or a retriever; not {source!r:.100}.")
        self._top_n = top_n
        self._with_llm = llm is not None
        self._guards = guard_tokens > 0
        self._max_documents = max_documents
        section_default, paragraph_default = default_prompts(sections_by)
        self._prompts = Prompts()
        self._d3 = D3(
            FrameworkLLM(llm, "summarise") if llm is not None else None,
            load_evidence_model(model, **(model_options or {})),
            paragraphs=paragraphs,
            embed=FrameworkEmbedding(embed) if isinstance(embed, BaseEmbedding) else embed,
            monot5=monot5,
            sections=sections,
            documents=max_documents,
            guard_tokens=guard_tokens,
            summarise=summarise,
            summary_words=summary_words,
            max_prompt_tokens=max_prompt_tokens,
            tokens=tokens,
            max_calls=max_calls,
            sections_by=sections_by,
            on_empty=on_empty,
            on_failure=on_failure,
            workers=workers,
            section_prompt=self._prompts.filler(
                "section_prompt",
                "choose sections",
                section_prompt or PromptTemplate(section_default),
                "outline",
                "question",
            ),
            paragraph_prompt=self._prompts.filler(
                "paragraph_prompt",
                "choose paragraphs",
                paragraph_prompt or PromptTemplate(paragraph_default),
                "paragraphs",
                "question",
            ),
        )
        self._index: VectorStoreIndex | None = None
        self._source: BaseRetriever | None = None
        if isinstance(source, VectorStoreIndex):  # one of sections has three views of each
            self._index, self._source = source, source.as_retriever(similarity_top_k=3 * max_documents)
        elif source is not None:
            self._source = source
        self._stored = StoredDocuments(documents)
        self._library = Library(self._d3.prepare, separator)
        self._ready = None if self._source else self._library.ready(self._stored.pieces())

    def _get_prompts(self) -> PromptDictType:
        return dict(self._prompts.templates)

    def _update_prompts(self, prompts: PromptDictType) -> None:
        self._prompts.update(prompts)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        question, stored = check_query(query_bundle.query_str), self._stored
        if self._source:
            stored = self._proposed(self._source.retrieve(query_bundle))
        documents = self._documents(stored)
        return self._nodes(self._d3.retrieve(question, documents, self._top_n, on_step=self._tell), stored)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        question, stored = check_query(query_bundle.query_str), self._stored
        if self._source:
            [hits] = await aretrieved([self._source], query_bundle)
            stored = await asyncio.to_thread(self._proposed, hits)
        documents = await asyncio.to_thread(self._documents, stored)
        found = await self._d3.aretrieve(question, documents, self._top_n, on_step=self._tell)
        return await asyncio.to_thread(self._nodes, found, stored)

    def _documents(self, stored: StoredDocuments) -> Drillable:
        return self._ready or self._library.ready(stored.pieces())

    def _proposed(self, hits: Sequence[NodeWithScore]) -> StoredDocuments:
        """The documents of the best results, whole where they can be had."""
        found = StoredDocuments(hit.node for hit in hits)
        proposed = StoredDocuments()
        lost = []
        for node in (hit.node for hit in hits):
            if len(proposed) == self._max_documents:
                break
            id_ = document_id(node)
            known = self._stored.of(id_, node.ref_doc_id)
            if not known and not proposed.of(id_):
                stored = sections_in(self._index, id_) if self._index and is_section(node.metadata) else []
                known = [*found.of(id_), *stored]
            proposed.add(known)
            if not known and not proposed.of(id_):
                lost.append(id_)
        if lost:
            warnings.warn(
                f"Sections of {len(lost)} documents were found whose raw nodes are neither in the source nor in its "
                f"docstore, for example of {lost[0]!r}: pass them as documents.",
                DrillrankWarning,
                stacklevel=2,
            )
        return proposed

    def _tell(self, step: Step) -> None:
        problems = list(step.problems)
        dispatcher.event(D3StepEvent(kind=step.kind, offered=step.offered, chosen=list(step.chosen), problems=problems))
        if self._verbose:
            told = f"{step.kind}: {len(step.chosen)} of {step.offered}: {'; '.join(step.chosen)}"
            print_text(
                "\n".join([told, *(f"  ! {problem}" for problem in problems)]), color="llama_turquoise", end="\n"
            )

    def _nodes(self, found: EvidenceRanking, stored: StoredDocuments) -> list[NodeWithScore]:
        usage = found.usage.as_metadata()
        dispatcher.event(D3EndEvent(usage=usage, problems=list(found.problems)))
        return [self._node(item, stored, usage if self._with_llm else {}) for item in found]

    def _node(self, item: Ranked[Passage], stored: StoredDocuments, usage: dict[str, int]) -> NodeWithScore:
        place = item.passage.metadata
        name, origin = stored.named_at(place["document"], place["start"])
        added = {key: item.details[key] for key in ("section_score",) if key in item.details} | usage
        added |= notes(item.details)
        if self._guards:
            added["guarded"] = item.details["guarded"]
        if "problems" in item.details:
            added["drillrank_problems"] = "; ".join(item.details["problems"])
        node = TextNode(
            id_=stable_uuid(name, place["start"], place["end"], *filter(None, [place.get("part")])),
            text=item.passage.text,
            start_char_idx=place["start"],
            end_char_idx=place["end"],
            metadata={
                **{key: value for key, value in origin.metadata.items() if key not in _OF_A_VIEW},
                "section_path": item.passage.title,
                **added,
            },
            excluded_embed_metadata_keys=[*origin.excluded_embed_metadata_keys, "section_path", *added],
            excluded_llm_metadata_keys=[*origin.excluded_llm_metadata_keys, *added],
            relationships={NodeRelationship.SOURCE: stored.source_of(origin)},
        )
        return NodeWithScore(node=node, score=item.score)
