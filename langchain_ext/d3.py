"""Drilling down as a LangChain retriever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import asdict, replace
from typing import Any, ClassVar, Literal, cast

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
    adispatch_custom_event,
    dispatch_custom_event,
)
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.vectorstores import VectorStore
from pydantic import Field

from drillrank import D3, LanguageModel
from drillrank.drilldown.paragraph_scores import load_evidence_model
from drillrank.drilldown.trace import StepReport
from drillrank.frameworks.components import EXPLAIN, ModelFields
from drillrank.frameworks.evidence import EvidenceParagraph, EvidenceRetrieval, RetrievedEvidence
from drillrank.frameworks.metadata import PREFIX, RANKING_KEYS
from drillrank.frameworks.sections import check_searched
from drillrank.frameworks.settings import ResultLimit, limit_results
from drillrank.passages import check_query, check_top_n
from drillrank.vectors import Embed
from langchain_ext._filters import DocumentFilter, Filter
from langchain_ext._llm import FrameworkLLM, embedding_of, step_prompt
from langchain_ext._records import index_fields, read_given
from langchain_ext._retriever import ConfiguredRetriever, Retriever, child_config
from langchain_ext._store import LangChainStore
from langchain_ext.settings import D3RetrieverSettings

_START = "start_index"  # LangChain's name of an offset
STEP_EVENT, END_EVENT = "d3_step", "d3_end"


class D3Retriever(ModelFields, ConfiguredRetriever):
    r"""Retrieves evidence passages from long documents: an LLM, or likelihood, opens sections and picks in them.

    Args:
        documents: Documents, parsed as `parse_document` does with their metadata; or those of `MultiViewTextSplitter`,
            from which the section trees are rebuilt. Without a `source`, all are prepared once.
        llm: The chat model or text model that chooses sections and paragraphs, or a Runnable around one; None lets
            likelihood choose.
        source: Proposes documents, sections or chunks of any splitter; the documents of its best results are drilled
            into. A vector store, any retriever, or a Runnable or function. What a section or chunk belongs to is put
            together from the vector store, by `drillrank_source_id` or `source`; from `documents` only where there is
            none and what was found agrees with them; else they lend chunks their structure and offsets.
        store: Where documents of what a retriever finds are looked up; that of a retriever that
            `VectorStore.as_retriever` made by default. Behind any other Runnable none is guessed.
        filters: What may be seen: metadata values and operators, as vector stores take them, or a function from a
            document to True or False. It governs the search and whatever is looked up beside it.
        model: Language model that scores: a `load_language_model` specification, or a ready one.
        embed: An embedding model of the framework, an encoder's specification such as `"onnx:DIR"`, or a function from
            texts to vectors. Its cosines join the likelihood. None takes the vectors of an index or store, if it has some.
        top_n: Maximum number of passages. None returns all that the LLM chose; without an LLM, as many as maximize the
            expected F1. `"auto"` is 5, or None with `max_tokens` or the paper's preset. `invoke(query, top_n=...)`
            overrides it.
        max_tokens: Token limit of all texts together, for the budget of a reader. The best passages that fit are
            returned; those that are adjacent in a document follow each other in document order.
        preset: `"paper"` sets what the paper fixes and `settings` leave open, such as paragraphs as the unit.
        explain: Whether results say why they stand where they stand.
        model_options: Options of the language model.
        settings: What is rarely touched: `langchain_ext.settings.D3RetrieverSettings`, or a mapping of its fields.

    Each result is a passage, or a paragraph with `settings={"unit": "paragraph"}`: readable text, with the metadata of
    the record that it stands in, and the score; `start_index`, counted from the page where pages were given, unless
    that key is the user's own; and, under names that begin with `drillrank_`, `section_path`, of the section in which
    it begins, `section_paths`, if it joins several, `source_id`, `start` and `end`; without an LLM `section_score`;
    with one `prompt_tokens`, `completion_tokens` and `llm_calls` of the question; `best_paragraph`, `best_start` and
    `best_end`, text and span of the passage's paragraph that fits the question best; `found` and `confidence`, as in
    `drillrank.drilldown.result.EvidenceResult`, where they are not None; `problems`, a string, if anything went wrong,
    and without an LLM `nothing_matched` if no paragraph holds a word of the question: then the documents' order stays.
    There are offsets only where they are known: chunks of other splitters need `add_start_index=True`, or the originals
    as `documents`. LLM calls are children of the retriever's run. For progress the run has custom events, seen by
    `astream_events` and callback handlers: `d3_step` for each step, `d3_end` with usage, `problems`, `found` and
    `confidence`. A missing `found` does not mean "nothing": `drillrank.drilldown.confidence.describe_finding` puts it
    into words for an agent. What goes wrong is also told in one `DrillrankWarning`.

    Raises:
        InvalidInput: a setting cannot be used, or the question is blank.
        LLMFailure: a call failed, and `on_failure` is `"raise"`.

    >>> manual = Document(page_content="# Battery\n\nIt lasts nine hours.\n\n# Screen\n\nClean it with a cloth.")
    >>> found = D3Retriever([manual], top_n=1).invoke("How long does the battery last?")[0]
    >>> found.metadata["drillrank_best_paragraph"], found.metadata["drillrank_section_paths"]
    ('It lasts nine hours.', 'Battery; Screen')
    """

    documents: list[Document] | None = Field(default=None, kw_only=False, description="What is read.")
    llm: Runnable[Any, Any] | None = Field(default=None, description="Chooses; None lets likelihood choose.")
    source: VectorStore | Retriever | None = Field(default=None, description="Proposes documents or sections.")
    store: VectorStore | None = Field(default=None, description="Where what a retriever finds is looked up.")
    filters: Filter | None = Field(default=None, description="What may be seen of what is stored.")
    embed: Embeddings | Embed | str | None = Field(
        default=None, description="An embedding model, an encoder's specification, or a function."
    )
    top_n: ResultLimit = Field(default="auto", description='Passages to return; None sets no limit, "auto" is 5.')
    max_tokens: int | None = Field(default=None, description="Token limit of all texts together.")
    preset: Literal["paper"] | None = Field(default=None, description="Settings that the paper fixes.")
    explain: bool = Field(default=False, description=EXPLAIN)
    settings: D3RetrieverSettings | dict[str, Any] = Field(
        default=D3RetrieverSettings(), description="What is rarely touched."
    )

    _load: ClassVar[Callable[..., LanguageModel]] = staticmethod(load_evidence_model)

    @property
    def _settings(self) -> D3RetrieverSettings:
        settings: Any = self.settings  # a mapping was converted
        return settings.with_preset(self.preset)  # type: ignore[no-any-return]

    def _build_core(self) -> EvidenceRetrieval[Document]:
        settings = self._settings
        limit_results("auto", self.max_tokens, settings)  # checks max_tokens now
        check_searched(self)
        section_prompt, paragraph_prompt = cast("tuple[Any, Any]", settings.prompts)  # of LangChain, or texts
        d3 = D3(
            FrameworkLLM(self.llm, "summarise") if self.llm is not None else None,
            self.language_model,
            embed=embedding_of(self.embed),
            settings=replace(
                settings,
                section_prompt=step_prompt("section_prompt", section_prompt),
                paragraph_prompt=step_prompt("paragraph_prompt", paragraph_prompt),
            ),
        )
        retrieval = EvidenceRetrieval(
            d3,
            read_given(self.documents or []),
            settings=settings,
            explain=self.explain,
            cache_fields=index_fields(self, self.language_model),
        )
        if self.source is None:
            retrieval.prepare(DocumentFilter(self.filters))
        return retrieval

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, top_n: int | None = None
    ) -> list[Document]:
        config = child_config(run_manager)
        evidence = self.core.retrieve(
            **self._arguments(query, top_n, config),
            on_step=lambda step: dispatch_custom_event(STEP_EVENT, _describe_step(step), config=config),
        )
        dispatch_custom_event(END_EVENT, _describe_end(evidence), config=config)
        return list(map(self._make_document, evidence.paragraphs))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, top_n: int | None = None
    ) -> list[Document]:
        config = child_config(run_manager)
        events = _EventSender(config)
        try:
            evidence = await self.core.aretrieve(**self._arguments(query, top_n, config), on_step=events.send)
        finally:
            await events.wait()
        await adispatch_custom_event(END_EVENT, _describe_end(evidence), config=config)
        return list(map(self._make_document, evidence.paragraphs))

    def _arguments(self, query: str, top_n: int | None, config: RunnableConfig) -> dict[str, Any]:
        """Return the arguments of `EvidenceRetrieval.retrieve` for a question."""
        check_top_n(top_n)
        question, store = check_query(query), None
        access = DocumentFilter(self.filters, self.source)
        if self.source is not None:
            with_vectors = self.embed is None and self._settings.uses_index_vectors
            store = LangChainStore(
                self.source, access, config, self.store, question=question, with_vectors=with_vectors
            )
        return {
            "question": question,
            "store": store,
            "access": access,
            "top_n": limit_results(self.top_n, self.max_tokens, self._settings) if top_n is None else top_n,
            "max_tokens": self.max_tokens,
            "llm": None if self.llm is None else FrameworkLLM(self.llm, "summarise", config),
        }

    def _make_document(self, paragraph: EvidenceParagraph[Document]) -> Document:
        key, chunk, metadata = self._settings.score_key, paragraph.chunk, paragraph.metadata
        position: dict[str, Any] = {"source_id": paragraph.document, "start": paragraph.start, "end": paragraph.end}
        if paragraph.explanation is not None:
            position["explanation"] = paragraph.explanation.to_dict()
        metadata |= {PREFIX + name: value for name, value in position.items() if value is not None}
        # LangChain's key of an offset, unless the user has another value there.
        is_offset = isinstance(metadata.get(_START, 0), int)
        if chunk.kind == "section":
            is_offset = metadata.get(_START, chunk.start) == chunk.record.metadata.get(PREFIX + "start")
        if is_offset:
            metadata.pop(_START, None)
            metadata |= {} if paragraph.start is None else {_START: paragraph.start - paragraph.page_start}
        if key is None:  # nothing that depends on the question
            metadata = {name: value for name, value in metadata.items() if name not in RANKING_KEYS}
        else:
            metadata[key] = paragraph.score
        return Document(id=paragraph.id, page_content=paragraph.text, metadata=metadata)


def _describe_step(step: StepReport) -> dict[str, Any]:
    """Return the data of a step's event."""
    return {"kind": step.kind, "n_candidates": step.n_candidates, "chosen": step.chosen, "problems": step.problems}


def _describe_end(evidence: RetrievedEvidence[Document]) -> dict[str, Any]:
    """Return the data of the event at the end."""
    tree = {"tree": list(map(asdict, evidence.tree))} if evidence.tree else {}
    return {**evidence.usage, "problems": evidence.problems, **evidence.judgment, **tree}


class _EventSender:
    """Sends the events of steps on the event loop, in their order.

    The threads that report steps do not wait for it, because event handlers may need these threads.
    """

    def __init__(self, config: RunnableConfig) -> None:
        self._config = config
        self._loop, self._turn = asyncio.get_running_loop(), asyncio.Lock()
        self._events: list[Future[None]] = []

    def send(self, step: StepReport) -> None:
        """Send the event of a step. Call it on any thread."""
        self._events.append(asyncio.run_coroutine_threadsafe(self._send_in_turn(step), self._loop))

    async def _send_in_turn(self, step: StepReport) -> None:
        async with self._turn:
            await adispatch_custom_event(STEP_EVENT, _describe_step(step), config=self._config)

    async def wait(self) -> None:
        """Wait until all events have been sent."""
        await asyncio.gather(*map(asyncio.wrap_future, self._events))
