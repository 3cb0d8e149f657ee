"""Evidence retrieval by drilling down, as a LangChain retriever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
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
from pydantic import Field, field_validator

from drillrank import D3, LanguageModel, structure
from drillrank.drilldown.d3 import OnStep
from drillrank.drilldown.paragraph_scores import load_evidence_model
from drillrank.drilldown.trace import StepReport
from drillrank.frameworks.components import EXPLAIN, ModelFields
from drillrank.frameworks.evidence import EvidenceParagraph, EvidenceRetrieval, RetrievedEvidence
from drillrank.frameworks.inputs import clean_question
from drillrank.frameworks.metadata import PREFIX, RANKING_KEYS
from drillrank.frameworks.sections import check_searched
from drillrank.frameworks.settings import ResultLimit, limit_results
from drillrank.llm import Requests, arun, run
from drillrank.passages import check_top_n
from drillrank.settings import with_preset
from drillrank.structure.record_store import RecordStore
from drillrank.vectors import Embed
from langchain_ext._filters import DocumentFilter, Filter
from langchain_ext._llm import FrameworkLLM, embedding_of, step_prompt
from langchain_ext._records import index_fields, read_distinct_documents
from langchain_ext._retriever import ConfiguredRetriever, Retriever, child_config
from langchain_ext._store import LangChainStore
from langchain_ext.loader import convert_document
from langchain_ext.settings import D3RetrieverSettings

_START = "start_index"  # LangChain's name of an offset
STEP_EVENT, END_EVENT = "d3_step", "d3_end"


class D3Retriever(ModelFields, ConfiguredRetriever):
    r"""Retrieves evidence passages from long documents: sections are selected first, then passages in them.

    Args:
        documents: Documents to read, parsed as by `parse_document`. They may be documents of `read_document`, or those
            of `MultiViewTextSplitter`, from which section trees are rebuilt. Without `source`, they are prepared now.
            With one, they add structure and offsets to its chunks, if they agree with these.
        llm: Chat model or text model that selects sections and passages, or a Runnable around one. Without one,
            likelihood selects them.
        source: Vector store, retriever, Runnable or function, or `RecordStore` of documents. The documents of its best
            results are read. All chunks of a document come from the vector store, by `drillrank_source_id` or
            `source`. Without a vector store, `documents` represent the document.
        store: Vector store with all chunks of the documents that a retriever finds. By default that of a retriever
            from `VectorStore.as_retriever`. The store of any other Runnable is not guessed.
        filters: Metadata values and operators as vector stores take them, or a function from a document to True or
            False. They apply to the search and to all other chunks of a document.
        model: Language model that scores passages, or its `load_language_model` specification.
        embed: Embedding model of the framework, specification of an encoder such as `"onnx:DIR"`, or function from
            texts to vectors. Its cosines are added to the likelihood. None takes the vectors of a store, if it returns
            some.
        top_n: Maximum number of passages. None returns all that the LLM selects; without an LLM, as many as maximize
            the expected F1. `"auto"` is 5, or None with `max_tokens` or the paper's preset.
            `invoke(query, top_n=...)` overrides it.
        max_tokens: Token limit of all texts together. The best passages that fit are returned. Those that are adjacent
            in a document follow each other in document order.
        preset: `"paper"` sets what the paper fixes and `settings` leave open, such as paragraphs as the unit.
        explain: True to explain the rank of each result.
        model_options: Options of the model's specification.
        settings: Other settings: a `langchain_ext.settings.D3RetrieverSettings`, or a mapping of its fields.

    Each result is a passage, or a paragraph with `settings={"unit": "paragraph"}`. It has readable text, and the
    metadata of the document in which it begins, with the score. `start_index` is its offset, counted from the page if
    pages were given, unless the user has another value there. The following keys begin with `drillrank_`:

    - `source_id`, `start`, `end`: Id of its document, and its span. Chunks of other splitters have offsets only with
      `add_start_index=True`, or with the originals as `documents`.
    - `section_path`: Headings of the section in which it begins. `section_paths`: all, if it joins several sections.
    - `best_paragraph`, `best_start`, `best_end`: Text and span of its paragraph that fits the question best.
    - `section_score`: Score of its section, without an LLM.
    - `prompt_tokens`, `completion_tokens`, `llm_calls`: Cost of the question, with an LLM.
    - `found`, `confidence`: As in `drillrank.drilldown.result.EvidenceResult`. None values are left out. A missing
      `found` does not mean "nothing": `drillrank.drilldown.confidence.describe_finding` puts it into words.
    - `nothing_matched`: True if no paragraph contains a word of the question, so that the order is the documents'.
    - `problems`: Everything that went wrong. One `DrillrankWarning` for each kind reports it, too.

    LLM calls are children of the retriever's run. The run sends custom events to `astream_events` and callback
    handlers: `d3_step` for each step, and `d3_end` with usage, `problems`, `found` and `confidence`.

    Raises:
        InvalidInput: A setting cannot be used, or the question is blank.
        LLMFailure: A call failed or its answer is unusable, and `on_failure` says to raise.

    >>> manual = Document(page_content="# Battery\n\nIt lasts nine hours.\n\n# Screen\n\nClean it with a cloth.")
    >>> found = D3Retriever([manual], top_n=1).invoke("How long does the battery last?")[0]
    >>> found.metadata["drillrank_best_paragraph"], found.metadata["drillrank_section_paths"]
    ('It lasts nine hours.', 'Battery; Screen')
    """

    documents: Sequence[Document | structure.Document] | None = Field(
        default=None, kw_only=False, description="Documents to read."
    )
    llm: Runnable[Any, Any] | None = Field(default=None, description="LLM that selects; None for likelihood.")
    source: VectorStore | Retriever | RecordStore | None = Field(
        default=None, description="Store or retriever of documents."
    )
    store: VectorStore | None = Field(default=None, description="Vector store behind a retriever.")
    filters: Filter | None = Field(default=None, description="Filter of stored documents.")
    embed: Embeddings | Embed | str | None = Field(
        default=None, description="An embedding model, an encoder's specification, or a function."
    )
    top_n: ResultLimit = Field(default="auto", description='Passages to return; None sets no limit, "auto" is 5.')
    max_tokens: int | None = Field(default=None, description="Token limit of all texts together.")
    preset: Literal["paper"] | None = Field(default=None, description="Settings that the paper fixes.")
    explain: bool = Field(default=False, description=EXPLAIN)
    settings: D3RetrieverSettings | dict[str, Any] = Field(default=D3RetrieverSettings(), description="Other settings.")

    @field_validator("documents", mode="before")
    @classmethod
    def _convert(cls, documents: Any) -> Any:
        is_list = isinstance(documents, Iterable) and not isinstance(documents, str | Document)
        return list(map(convert_document, documents)) if is_list else documents

    _load: ClassVar[Callable[..., LanguageModel]] = staticmethod(load_evidence_model)

    @property
    def _settings(self) -> D3RetrieverSettings:
        settings: Any = self.settings  # a mapping was converted
        return with_preset(settings, self.preset)  # type: ignore[no-any-return]

    def _build_core(self) -> EvidenceRetrieval[Document]:
        settings = self._settings
        limit_results("auto", self.max_tokens, settings)  # checks max_tokens now
        check_searched(type(self).__name__, self.documents, self.source)
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
            read_distinct_documents(map(convert_document, self.documents or [])),
            settings=settings,
            explain=self.explain,
            cache_fields=index_fields(self, self.language_model),
        )
        document_filter = DocumentFilter(self.filters)  # checks the filters now
        if self.source is None:
            retrieval.prepare(document_filter)
        return retrieval

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, top_n: int | None = None
    ) -> list[Document]:
        config = child_config(run_manager)
        evidence = run(
            self._retrieve_requests(
                query,
                top_n,
                config,
                lambda step: dispatch_custom_event(STEP_EVENT, _describe_step(step), config=config),
            )
        )
        dispatch_custom_event(END_EVENT, _describe_end(evidence), config=config)
        return list(map(self._make_document, evidence.paragraphs))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, top_n: int | None = None
    ) -> list[Document]:
        config = child_config(run_manager)
        events = _EventSender(config)
        try:
            evidence = await arun(self._retrieve_requests(query, top_n, config, events.send))
        finally:
            await events.wait()
        await adispatch_custom_event(END_EVENT, _describe_end(evidence), config=config)
        return list(map(self._make_document, evidence.paragraphs))

    def _retrieve_requests(
        self, query: str, top_n: int | None, config: RunnableConfig, on_step: OnStep
    ) -> Requests[RetrievedEvidence[Document]]:
        check_top_n(top_n)
        question, store = clean_question(query), None
        access_filter = DocumentFilter(self.filters, self.source)
        if self.source is not None:
            with_vectors = self.embed is None and self._settings.uses_index_vectors
            store = LangChainStore(
                self.source, access_filter, config, self.store, question=question, with_vectors=with_vectors
            )
        return self.core.retrieve_requests(  # type: ignore[no-any-return]
            question,
            store,
            access_filter=access_filter,
            top_n=limit_results(self.top_n, self.max_tokens, self._settings) if top_n is None else top_n,
            max_tokens=self.max_tokens,
            llm=None if self.llm is None else FrameworkLLM(self.llm, "summarise", config),
            on_step=on_step,
        )

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
    problems = tuple(map(str, step.problems))
    return {"kind": step.kind, "n_candidates": step.n_candidates, "chosen": step.chosen, "problems": problems}


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
