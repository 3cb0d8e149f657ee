"""Drilling down as a LangChain retriever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from typing import Any, ClassVar

from langchain_core.callbacks import adispatch_custom_event, dispatch_custom_event
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.vectorstores import VectorStore
from pydantic import Field

from drillrank import D3, LanguageModel
from drillrank.drilldown.drill import Step
from drillrank.drilldown.evidence import load_evidence_model
from drillrank.hosts.components import EXPLAIN, ModelFields
from drillrank.hosts.drill import Drilled, Drilling, Evidence
from drillrank.hosts.metadata import reasons, result_metadata, with_result_metadata
from drillrank.hosts.records import ChunkRecord
from drillrank.hosts.views import check_searched
from drillrank.llm import Call, Requests, Usage, arun, run
from drillrank.vectors import Embed
from langchain_ext._filters import DocumentFilter, Filter
from langchain_ext._llm import FrameworkLLM, embedding_of, filler
from langchain_ext._lookups import StoreLookups
from langchain_ext._records import READING, given_chunks, index_fields
from langchain_ext._retriever import AskedRetriever, Retriever, with_score
from langchain_ext.settings import D3RetrieverSettings

_START = "start_index"  # the host's name for an offset
STEP_EVENT, END_EVENT = "d3_step", "d3_end"


class D3Retriever(ModelFields, AskedRetriever):
    r"""Retrieves evidence paragraphs from long documents: an LLM, or likelihood, opens sections and picks in them.

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
        embed: An embedding model, or a function from texts to vectors, whose cosines join the likelihood.
        top_n: Most paragraphs to return; None returns what the LLM chose, or as many as make the expected F1 largest.
            `invoke(query, top_n=...)` overrides it.
        explain: Whether results say why they stand where they stand.
        model_options: Options of the language model.
        settings: What is rarely touched: `langchain_ext.settings.D3RetrieverSettings`, or a mapping of its fields.

    Each result is a paragraph, text as stored, with the metadata of the record that it stands in, and the score;
    `start_index`, unless that key is the user's own; and, under names that begin with `drillrank_`, `section_path`,
    `source_id`, `start` and `end`; without an LLM `section_score`; with one `prompt_tokens`, `completion_tokens` and
    `llm_calls` of the question; `problems`, a string, if anything went wrong, and without an LLM `nothing_matched` if
    no paragraph holds a word of the question: then the documents' order stays. There are offsets only where they are
    known: chunks of other splitters need `add_start_index=True`, or the originals as `documents`. LLM
    calls are children of the retriever's run. For progress the run has custom events, seen by `astream_events` and
    callback handlers: `d3_step` for each step, `d3_end` with usage and `problems`. What goes wrong is also told in one
    `DrillrankWarning`.

    Raises:
        InvalidInput: a setting cannot be used, or the question is blank.
        LLMFailure: a call failed, and `on_failure` is `"raise"`.

    >>> manual = Document(page_content="# Battery\n\nIt lasts nine hours.\n\n# Screen\n\nClean it with a cloth.")
    >>> found = D3Retriever([manual], top_n=1).invoke("How long does the battery last?")[0]
    >>> found.page_content, found.metadata["drillrank_section_path"]
    ('It lasts nine hours.', 'Battery')
    """

    documents: list[Document] | None = Field(default=None, kw_only=False, description="What is read.")
    llm: Runnable[Any, Any] | None = Field(default=None, description="Chooses; None lets likelihood choose.")
    source: VectorStore | Retriever | None = Field(default=None, description="Proposes documents or sections.")
    store: VectorStore | None = Field(default=None, description="Where what a retriever finds is looked up.")
    filters: Filter | None = Field(default=None, description="What may be seen of what is stored.")
    embed: Embeddings | Embed | None = Field(
        default=None, description="An embedding model, or a function from texts to vectors."
    )
    top_n: int | None = Field(default=5, description="Paragraphs to return; None leaves it to the method.")
    explain: bool = Field(default=False, description=EXPLAIN)
    settings: D3RetrieverSettings | dict[str, Any] = Field(
        default=D3RetrieverSettings(), description="What is rarely touched."
    )

    _load: ClassVar[Callable[..., LanguageModel]] = staticmethod(load_evidence_model)

    def _make(self) -> Drilling[Document]:
        check_searched(self, self.documents, self.source)
        documents = self.documents or []
        prompts: Any = self._settings.prompts  # the host's, or texts
        d3 = D3(
            FrameworkLLM(self.llm, "summarise") if self.llm is not None else None,
            self.language_model,
            embed=embedding_of(self.embed),
            settings=replace(
                self._settings,
                section_prompt=filler("section_prompt", prompts[0]),
                paragraph_prompt=filler("paragraph_prompt", prompts[1]),
            ),
        )
        guard = DocumentFilter(self.filters)  # says now what is wrong with it
        return Drilling(
            d3,
            self._settings,
            documents,
            given_chunks(documents),
            READING,
            asks_llm=self.llm is not None,
            explains=self.explain,
            given_alone=guard if self.source is None else None,
            fields=index_fields(self, self.language_model),
        )

    def _found(self, query: str, top_n: int | None, config: RunnableConfig, usage: Usage) -> Requests[list[Document]]:
        guard = DocumentFilter(self.filters, self.source)
        store = StoreLookups(query, self.source, guard, config, self.store)
        llm = None if self.llm is None else FrameworkLLM(self.llm, "summarise", config)
        drilled = partial(self.method.retrieve, query, store, guard, top_n, llm=llm)
        [found] = yield [Call(partial(_drill, drilled, config), partial(_adrill, drilled, config))]
        told = {**found.usage, "problems": found.problems}
        if found.tree:
            told["tree"] = list(map(asdict, found.tree))
        arguments: dict[str, Any] = {"name": END_EVENT, "data": told, "config": config}
        yield [Call(partial(dispatch_custom_event, **arguments), partial(adispatch_custom_event, **arguments))]
        return list(map(self._document, found.evidence))

    def _document(self, evidence: Evidence[Document]) -> Document:
        paragraph = evidence.paragraph
        metadata = with_result_metadata(
            _with_start(paragraph.chunk, evidence.metadata, paragraph.start),
            **evidence.place,
            source_id=paragraph.document.name[1],
            start=paragraph.start,
            end=paragraph.end,
        )
        return Document(
            id=paragraph.id,
            page_content=paragraph.text,
            metadata=with_score(
                metadata, self._settings.score_key, evidence.score, evidence.told | reasons(evidence.explanation)
            ),
        )


def _with_start(chunk: ChunkRecord[Document], metadata: dict[str, Any], start: int | None) -> dict[str, Any]:
    """The user's metadata with the host's key for an offset, unless that key is the user's own."""
    cut_by_us = chunk.kind == "section"
    if cut_by_us and metadata.get(_START, chunk.start) != result_metadata(chunk.record.metadata).get("start"):
        return metadata
    if not cut_by_us and not isinstance(metadata.get(_START, 0), int):  # no offset, whatever it is
        return metadata
    metadata.pop(_START, None)
    return metadata if start is None else {**metadata, _START: start}


def _drill(drilled: Callable[..., Requests[Drilled[Document]]], config: RunnableConfig) -> Drilled[Document]:
    """Drill down, and dispatch each step."""
    return run(drilled(on_step=lambda step: dispatch_custom_event(STEP_EVENT, asdict(step), config=config)))


async def _adrill(drilled: Callable[..., Requests[Drilled[Document]]], config: RunnableConfig) -> Drilled[Document]:
    loop = asyncio.get_running_loop()
    steps: asyncio.Queue[Step | None] = asyncio.Queue()
    telling = asyncio.ensure_future(_tell(steps, config))
    try:
        return await arun(drilled(on_step=lambda step: loop.call_soon_threadsafe(steps.put_nowait, step)))
    finally:
        steps.put_nowait(None)
        await telling


async def _tell(steps: asyncio.Queue[Step | None], config: RunnableConfig) -> None:
    """Dispatch steps in their order, until there is None; callback handlers may need the threads that D3 runs on."""
    while (step := await steps.get()) is not None:
        await adispatch_custom_event(STEP_EVENT, asdict(step), config=config)
