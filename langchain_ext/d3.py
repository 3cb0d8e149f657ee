"""Drilling down as a LangChain retriever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, ClassVar, Literal

from langchain_core.callbacks import CallbackManagerForRetrieverRun, adispatch_custom_event, dispatch_custom_event
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.vectorstores import VectorStore
from pydantic import Field, field_validator

from drillrank import D3, LanguageModel, structure
from drillrank.drilldown.paragraph_scores import load_evidence_model
from drillrank.drilldown.trace import StepReport
from drillrank.frameworks.components import EXPLAIN, ModelFields
from drillrank.frameworks.drill import Evidence, EvidenceRetrieval, FoundEvidence
from drillrank.frameworks.inputs import clean_question
from drillrank.frameworks.metadata import PREFIX, RANKING_KEYS
from drillrank.frameworks.settings import ResultLimit, limit_results
from drillrank.llm import FunctionRequest, Requests, Usage, arun, run
from drillrank.passages import check_top_n
from drillrank.structure.record_store import RecordStore
from drillrank.vectors import Embed
from langchain_ext._filters import DocumentFilter, Filter
from langchain_ext._llm import FrameworkLLM, embedding_of, step_prompt
from langchain_ext._records import index_fields, read_given
from langchain_ext._retriever import QueryRetriever, Retriever, child_config
from langchain_ext._store import LangChainStore
from langchain_ext.loader import convert_document
from langchain_ext.settings import D3RetrieverSettings

_START = "start_index"  # the host's name for an offset
STEP_EVENT, END_EVENT = "d3_step", "d3_end"


class D3Retriever(ModelFields, QueryRetriever):
    r"""Retrieves evidence passages from long documents: an LLM, or likelihood, opens sections and picks in them.

    Args:
        documents: Documents, parsed as `parse_document` does with their metadata; those of `read_document`; or those
            of `MultiViewTextSplitter`, from which the section trees are rebuilt. Without a `source`, all are prepared
            once.
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
            texts to vectors. Its cosines join the likelihood.
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
        LLMFailure: A call failed or its answer is unusable, and `on_failure` says to raise.

    >>> manual = Document(page_content="# Battery\n\nIt lasts nine hours.\n\n# Screen\n\nClean it with a cloth.")
    >>> found = D3Retriever([manual], top_n=1).invoke("How long does the battery last?")[0]
    >>> found.metadata["drillrank_best_paragraph"], found.metadata["drillrank_section_paths"]
    ('It lasts nine hours.', 'Battery; Screen')
    """

    documents: Sequence[Document | structure.Document] | None = Field(
        default=None, kw_only=False, description="What is read."
    )
    llm: Runnable[Any, Any] | None = Field(default=None, description="Chooses; None lets likelihood choose.")
    source: VectorStore | Retriever | RecordStore | None = Field(
        default=None, description="Proposes documents or sections."
    )
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

    @field_validator("documents", mode="before")
    @classmethod
    def _convert(cls, documents: Any) -> Any:
        is_list = isinstance(documents, Iterable) and not isinstance(documents, str | Document)
        return list(map(convert_document, documents)) if is_list else documents

    _load: ClassVar[Callable[..., LanguageModel]] = staticmethod(load_evidence_model)

    @property
    def _settings(self) -> D3RetrieverSettings:
        settings: Any = self.settings  # a mapping was converted
        return settings.with_preset(self.preset)  # type: ignore[no-any-return]

    @property
    def _default_top_n(self) -> int | None:
        return limit_results(self.top_n, self.max_tokens, self._settings)

    def _build_core(self) -> EvidenceRetrieval[Document]:
        limit_results("auto", self.max_tokens, self._settings)  # checks it now
        prompts: Any = self._settings.prompts  # the host's, or texts
        d3 = D3(
            FrameworkLLM(self.llm, "summarise") if self.llm is not None else None,
            self.language_model,
            embed=embedding_of(self.embed),
            settings=replace(
                self._settings,
                section_prompt=step_prompt("section_prompt", prompts[0]),
                paragraph_prompt=step_prompt("paragraph_prompt", prompts[1]),
            ),
        )
        return EvidenceRetrieval(
            self,
            d3,
            read_given(map(convert_document, self.documents or [])),
            DocumentFilter(self.filters),
            index_fields(self, self.language_model),
        )

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, top_n: int | None = None
    ) -> list[Document]:
        if self.source is not None or self.llm is not None:
            return super()._get_relevant_documents(query, run_manager=run_manager, top_n=top_n)
        check_top_n(top_n)
        config, access = child_config(run_manager), None if self.filters is None else DocumentFilter(self.filters)
        found = self.core.retrieve(
            clean_question(query),
            access,
            self._default_top_n if top_n is None else top_n,
            max_tokens=self.max_tokens,
            on_step=lambda step: dispatch_custom_event(STEP_EVENT, _event(step), config=config),
        )
        dispatch_custom_event(**self._end(found, config))
        return list(map(self._document, found.evidence))

    def _found(self, query: str, top_n: int | None, config: RunnableConfig, usage: Usage) -> Requests[list[Document]]:
        access = DocumentFilter(self.filters, self.source)
        store = None if self.source is None else LangChainStore(self.source, access, config, self.store, question=query)
        llm = None if self.llm is None else FrameworkLLM(self.llm, "summarise", config)
        make_requests = partial(self.core.requests, query, store, access, top_n, max_tokens=self.max_tokens, llm=llm)
        [found] = yield [FunctionRequest(partial(_run, make_requests, config), partial(_arun, make_requests, config))]
        end = self._end(found, config)
        yield [FunctionRequest(partial(dispatch_custom_event, **end), partial(adispatch_custom_event, **end))]
        return list(map(self._document, found.evidence))

    def _end(self, found: FoundEvidence[Document], config: RunnableConfig) -> dict[str, Any]:
        """The event of the end."""
        tree = {"tree": list(map(asdict, found.tree))} if found.tree else {}
        data = {**found.usage, "problems": found.problems, **found.judgment, **tree}
        return {"name": END_EVENT, "data": data, "config": config}

    def _document(self, evidence: Evidence[Document]) -> Document:
        key, chunk, metadata = self._settings.score_key, evidence.chunk, evidence.metadata
        location: dict[str, Any] = {"source_id": evidence.document, "start": evidence.start, "end": evidence.end}
        if evidence.explanation is not None:
            location["explanation"] = evidence.explanation.to_dict()
        metadata |= {PREFIX + name: value for name, value in location.items() if value is not None}
        # The host's key for an offset, unless that key is the user's own.
        is_offset = isinstance(metadata.get(_START, 0), int)
        if chunk.kind == "section":
            is_offset = metadata.get(_START, chunk.start) == chunk.record.metadata.get(PREFIX + "start")
        if is_offset:
            metadata.pop(_START, None)
            metadata |= {} if evidence.start is None else {_START: evidence.start - evidence.page_start}
        if key is None:  # nothing that depends on the question
            metadata = {name: value for name, value in metadata.items() if name not in RANKING_KEYS}
        else:
            metadata[key] = evidence.score
        return Document(id=evidence.id, page_content=evidence.text, metadata=metadata)


def _event(step: StepReport) -> dict[str, Any]:
    """Return the data of a step's event."""
    return {"kind": step.kind, "offered": step.n_candidates, "chosen": step.chosen, "problems": step.problems}


def _run(
    make_requests: Callable[..., Requests[FoundEvidence[Document]]], config: RunnableConfig
) -> FoundEvidence[Document]:
    """Find evidence, and dispatch each step."""
    return run(make_requests(on_step=lambda step: dispatch_custom_event(STEP_EVENT, _event(step), config=config)))


async def _arun(
    make_requests: Callable[..., Requests[FoundEvidence[Document]]], config: RunnableConfig
) -> FoundEvidence[Document]:
    loop, turn, sent = asyncio.get_running_loop(), asyncio.Lock(), []

    async def send(step: StepReport) -> None:
        async with turn:  # in their order
            await adispatch_custom_event(STEP_EVENT, _event(step), config=config)

    def on_step(step: StepReport) -> None:  # waits for nobody: handlers may need the threads that D3 runs on
        sent.append(asyncio.run_coroutine_threadsafe(send(step), loop))

    try:
        return await arun(make_requests(on_step=on_step))
    finally:
        await asyncio.gather(*map(asyncio.wrap_future, sent))
