"""Drilling down as a LangChain retriever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, Literal

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
    adispatch_custom_event,
    dispatch_custom_event,
)
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.vectorstores import VectorStore
from pydantic import ConfigDict, Field, InstanceOf, PrivateAttr

from drillrank import D3, LanguageModel, MonoT5, Passage, Ranked
from drillrank.drilldown.asking import AnswerBy
from drillrank.drilldown.d3 import EvidenceRanking, default_prompts
from drillrank.drilldown.drill import Drillable, Step, Strategy
from drillrank.drilldown.evidence import load_evidence_model
from drillrank.drilldown.rebuilding import Library
from drillrank.hosts.notes import notes
from drillrank.hosts.shared import Shared, shared
from drillrank.passages import check_query, check_top_n, stable_uuid
from langchain_ext._component import Component, index_fields
from langchain_ext._documents import document_names
from langchain_ext._embed import FrameworkEmbedding
from langchain_ext._llm import Filler, FrameworkLLM, PromptField
from langchain_ext._retriever import ConfiguredRetriever, Retriever, child_config, with_score
from langchain_ext._stored import StoredDocuments, aall_sections, all_sections, is_section, source_id

_OF_A_VIEW = ("view", "section_text", "previous_id", "next_id", "parent_id", "matched_views", "expanded_from")
_VIEWS = 3  # of a section in a store: to find so many documents, ask for more
STEP_EVENT, END_EVENT = "d3_step", "d3_end"


class D3Retriever(Component, ConfiguredRetriever):
    r"""Retrieves evidence paragraphs from long documents: an LLM, or likelihood, opens sections and picks in them.

    Args:
        documents: Documents, parsed as `parse_document` does with their metadata; or those of `MultiViewTextSplitter`,
            from which the section trees are rebuilt. Without a `source`, all are prepared once.
        llm: The chat model or text model that chooses sections and paragraphs, or a Runnable around one; None lets
            likelihood choose.
        source: Proposes documents or sections; those of its best results are drilled into. A vector store, of
            `MultiViewTextSplitter`'s documents for example, any retriever, or a Runnable or function. What a section
            belongs to is put together from `documents`, or by id from the vector store; without these, of the sections
            found.
        model: Language model that scores: a `load_language_model` specification, or a ready one.
        top_n: Paragraphs to return; None returns what the LLM chose, or as many as make the expected F1 largest.
            `invoke(query, top_n=...)` overrides it.
        embed: An embedding model, or a function from texts to vectors, whose cosines join the likelihood.
        section_prompt: Template with `{outline}` and `{question}`, or its text.
        paragraph_prompt: Template with `{paragraphs}` and `{question}`, or its text.

    The other fields: `model_options`, `max_documents` (of more, the best few are drilled into), `workers` (LLM calls at
    the same time, all questions together), `separator` (of `section_path`, as the splitter was told), `score_key`, and
    those of `drillrank.D3`: `paragraphs`, `monot5`, `sections`, `guard_tokens`, `summarise`, `summary_words`,
    `max_prompt_tokens`, `tokens`, `max_calls`, `sections_by`, `on_empty`, `on_failure`.

    Each result is a paragraph, text as in the source, with the document's metadata together with `section_path`,
    `start_index`, `source_id` and the score; without an LLM `section_score`; with one `prompt_tokens`,
    `completion_tokens` and `llm_calls` of the question; and `drillrank_problems`, a string, if anything went wrong. LLM
    calls are children of the retriever's run. For progress the run has custom events, seen by `astream_events` and
    callback handlers: `d3_step` for each step, `d3_end` with usage and `problems`. What goes wrong is also told in one
    `DrillrankWarning`.

    Raises:
        InvalidInput: a setting cannot be used, or the question is blank.
        LLMFailure: a call failed, and `on_failure` is `"raise"`.

    >>> manual = Document(page_content="# Battery\n\nIt lasts nine hours.\n\n# Screen\n\nClean it with a cloth.")
    >>> found = D3Retriever(documents=[manual], top_n=1).invoke("How long does the battery last?")[0]
    >>> found.page_content, found.metadata["section_path"]
    ('It lasts nine hours.', 'Battery')
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid", protected_namespaces=())

    documents: list[Document] = Field(default_factory=list)
    llm: Runnable[Any, Any] | None = Field(default=None, description="Chooses; None lets likelihood choose.")
    source: InstanceOf[VectorStore] | Retriever | None = Field(
        default=None, description="Proposes documents or sections."
    )
    model: str = Field(default="unigram", description="Specification of the language model.")
    model_options: dict[str, Any] = Field(default_factory=dict, description="Options of the language model.")
    top_n: int | None = Field(default=None, gt=0, description="Paragraphs to return.")
    embed: InstanceOf[Embeddings] | Callable[[list[str]], Any] | None = Field(
        default=None, description="Its cosines join the likelihood."
    )
    max_documents: int = Field(default=8, gt=0, description="Documents drilled into.")
    paragraphs: Strategy | None = Field(default=None, description="How paragraphs are chosen.")
    monot5: InstanceOf[MonoT5] | None = Field(default=None, description="The ranker of strategies that name it.")
    sections: int = Field(default=8, gt=0, description="How many sections are opened where likelihood chooses them.")
    guard_tokens: int = Field(default=0, ge=0, description="Tokens of paragraphs from outside the chosen sections.")
    summarise: Callable[[list[str]], Sequence[str]] | Literal["llm"] | None = Field(
        default=None, description="Summaries in the outline: sentences of the text, a function's, or the LLM's."
    )
    summary_words: int = Field(default=36, gt=0, description="Longest summary.")
    max_prompt_tokens: int = Field(default=4000, gt=0, description="Budget of a prompt.")
    tokens: Any = Field(default=None, description="What counts tokens.")
    max_calls: int = Field(default=40, gt=0, description="Most calls for one question.")
    sections_by: AnswerBy = Field(default="names", description="Whether the LLM names sections or gives numbers.")
    on_empty: Literal["nothing", "likelihood"] = Field(default="nothing", description="What an empty choice means.")
    on_failure: Literal["likelihood", "raise"] = Field(default="likelihood", description="What a failed call means.")
    workers: int = Field(default=4, gt=0, description="LLM calls at the same time.")
    section_prompt: PromptField | None = Field(default=None, description="Asks for sections.")
    paragraph_prompt: PromptField | None = Field(default=None, description="Asks for paragraphs.")
    separator: str = Field(default=" > ", description="Between the headings of section_path.")
    score_key: str | None = Field(
        default="relevance_score",
        description="Metadata key of the score; None adds nothing that depends on the question.",
    )

    _d3: D3 = PrivateAttr()
    _language_model: LanguageModel = PrivateAttr()
    _stored: StoredDocuments = PrivateAttr()
    _library: Library = PrivateAttr()
    _ready: Shared[Drillable] | None = PrivateAttr(default=None)

    def __init__(self, *, model: str | LanguageModel = "unigram", **fields: Any) -> None:
        language_model = load_evidence_model(model, **fields.pop("model_options", {}))
        fields |= {"model": language_model.spec, "model_options": language_model.options}
        super().__init__(**fields)
        sections, paragraphs = map(PromptTemplate.from_template, default_prompts(self.sections_by))
        self._language_model = language_model
        self._d3 = D3(
            FrameworkLLM(self.llm, "summarise") if self.llm is not None else None,
            language_model,
            paragraphs=self.paragraphs,
            embed=FrameworkEmbedding(self.embed) if isinstance(self.embed, Embeddings) else self.embed,
            monot5=self.monot5,
            sections=self.sections,
            documents=self.max_documents,
            guard_tokens=self.guard_tokens,
            summarise=self.summarise,
            summary_words=self.summary_words,
            max_prompt_tokens=self.max_prompt_tokens,
            tokens=self.tokens,
            max_calls=self.max_calls,
            sections_by=self.sections_by,
            on_empty=self.on_empty,
            on_failure=self.on_failure,
            workers=self.workers,
            section_prompt=Filler("choose sections", self.section_prompt or sections, "outline", "question"),
            paragraph_prompt=Filler("choose paragraphs", self.paragraph_prompt or paragraphs, "paragraphs", "question"),
        )
        self._stored = StoredDocuments(self.documents)
        self._library = Library(self._d3.prepare, self.separator)
        if self.source is None:
            self._ready = shared(
                "drill", index_fields(self, language_model), lambda: self._library.ready(self._stored.pieces())
            )

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, top_n: int | None = None
    ) -> list[Document]:
        check_query(query)
        check_top_n(top_n)
        config = child_config(run_manager)
        stored = self._stored
        if isinstance(self.source, VectorStore):
            hits = self.source.similarity_search(query, k=_VIEWS * self.max_documents)
            stored = self._proposed(hits, all_sections(self.source, query, self._unknown(hits)))
        elif self.source is not None:
            hits = self.source.invoke(query, config)
            stored = self._proposed(hits, self._unknown(hits))
        found = self._d3.retrieve(
            query,
            self._drillable(stored),
            self.top_n if top_n is None else top_n,
            llm=self._asked(config),
            on_step=lambda step: dispatch_custom_event(STEP_EVENT, asdict(step), config=config),
        )
        dispatch_custom_event(END_EVENT, _told(found), config=config)
        return self._results(found, stored)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, top_n: int | None = None
    ) -> list[Document]:
        check_query(query)
        check_top_n(top_n)
        config = child_config(run_manager)
        stored = self._stored
        if isinstance(self.source, VectorStore):
            hits = await self.source.asimilarity_search(query, k=_VIEWS * self.max_documents)
            stored = self._proposed(hits, await aall_sections(self.source, query, self._unknown(hits)))
        elif self.source is not None:
            hits = await self.source.ainvoke(query, config)
            stored = self._proposed(hits, self._unknown(hits))
        loop = asyncio.get_running_loop()
        steps: asyncio.Queue[Step | None] = asyncio.Queue()
        telling = asyncio.ensure_future(_tell(steps, config))
        try:
            found = await self._d3.aretrieve(
                query,
                await asyncio.to_thread(self._drillable, stored),
                self.top_n if top_n is None else top_n,
                llm=self._asked(config),
                on_step=lambda step: loop.call_soon_threadsafe(steps.put_nowait, step),
            )
        finally:
            steps.put_nowait(None)
            await telling
        await adispatch_custom_event(END_EVENT, _told(found), config=config)
        return self._results(found, stored)

    def _asked(self, config: RunnableConfig) -> FrameworkLLM | None:
        return None if self.llm is None else FrameworkLLM(self.llm, "summarise", config)

    def _drillable(self, stored: StoredDocuments) -> Drillable:
        return self._ready.made if self._ready else self._library.ready(stored.pieces())

    def _unknown(self, hits: Sequence[Document]) -> list[Document]:
        """The sections found whose documents have to be looked for."""
        sections = [hit for hit in hits if is_section(hit) and not self._stored.of(source_id(hit))]
        names = list(dict.fromkeys(map(source_id, sections)))[: self.max_documents]
        return [section for section in sections if source_id(section) in names]

    def _proposed(self, hits: Sequence[Document], sections: Sequence[Document]) -> StoredDocuments:
        """The documents of the best results, whole where they can be had."""
        found = StoredDocuments(sections)
        proposed = StoredDocuments()
        for hit in hits:
            if len(proposed) == self.max_documents:
                break
            own = source_id(hit) if is_section(hit) else document_names([hit])[0]
            known = [name for name in (own, str(hit.metadata.get("source_id"))) if self._stored.of(name)]
            name = known[0] if known else own
            proposed.add(name, self._stored.of(name) or found.of(name) or [hit])
        return proposed

    def _results(self, found: EvidenceRanking, stored: StoredDocuments) -> list[Document]:
        usage = {} if self.llm is None else found.usage.as_metadata()
        return [self._document(item, stored, usage) for item in found]

    def _document(self, item: Ranked[Passage], stored: StoredDocuments, usage: dict[str, int]) -> Document:
        place = item.passage.metadata
        name, origin = stored.named_at(place["document"], place["start"])
        added = {key: item.details[key] for key in ("section_score",) if key in item.details} | usage
        added |= notes(item.details)
        if self.guard_tokens:
            added["guarded"] = item.details["guarded"]
        if "problems" in item.details:
            added["drillrank_problems"] = "; ".join(item.details["problems"])
        own = {
            **{key: value for key, value in origin.metadata.items() if key not in _OF_A_VIEW},
            "section_path": item.passage.title,
            "start_index": place["start"],
            "source_id": name,
        }
        return Document(
            id=stable_uuid(name, place["start"], place["end"], *filter(None, [place.get("part")])),
            page_content=item.passage.text,
            metadata=with_score(own, self.score_key, item.score, added),
        )


def _told(found: EvidenceRanking) -> dict[str, Any]:
    return {**found.usage.as_metadata(), "problems": list(found.problems)}


async def _tell(steps: asyncio.Queue[Step | None], config: RunnableConfig) -> None:
    """Dispatch steps in their order, until there is None; callback handlers may need the threads that D3 runs on."""
    while (step := await steps.get()) is not None:
        await adispatch_custom_event(STEP_EVENT, asdict(step), config=config)
