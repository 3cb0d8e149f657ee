"""MC-indexing retrieval as a LangChain retriever."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig
from langchain_core.vectorstores import VectorStore
from pydantic import ConfigDict, Field, InstanceOf, PrivateAttr

from drillrank.errors import InvalidInput
from drillrank.hosts.component import Component
from drillrank.hosts.keys import prefixed, with_own
from drillrank.hosts.lookups import Lookups, arun_lookups, run_lookups
from drillrank.hosts.merged_views import Merged, MergedViews, merged_in_memory, tell_foreign
from drillrank.hosts.settings import ViewRetrieverSettings
from drillrank.hosts.shared import Shared, shared
from drillrank.hosts.stored_sections import Given, StoredSection, by_view, raw_sections
from drillrank.hosts.view_rankings import texts_of
from drillrank.once import Told
from drillrank.passages import check_query, check_top_n
from drillrank.views import VIEWS, MergedSection, MultiViewIndex, View
from langchain_ext._filters import Filter, Guard
from langchain_ext._lookups import StoreLookups
from langchain_ext._retriever import ConfiguredRetriever, Retriever, child_config, with_score
from langchain_ext._sections import as_raw, read_section, stored_sections

_MAKER = "MultiViewTextSplitter"


class MultiViewRetriever(Component, ConfiguredRetriever, ViewRetrieverSettings):
    r"""Ranks sections in each view separately and merges the rankings.

    Args:
        documents: What `MultiViewTextSplitter` made of one or many documents. Without a `source`, they are indexed in
            memory. Beside a source they serve where no store can be asked for a section.
        source: Where to look instead: a vector store that holds such documents, searched for keywords and summaries
            with the filter `{"drillrank_view": ...}`, and once without; a retriever for each view, as a dictionary; or
            a single retriever over all of them, whose results are ranked by their view. A retriever is any Runnable or
            function from a query to documents.
        filter: Which documents may be seen: metadata values and operators as vector stores take them, or a function
            from a document to True or False. It governs every look-up, as do the filters of the source's retrievers.
        score_key: Metadata key of the score; None adds nothing that depends on the question.

    `invoke(query, top_n=...)` overrides `top_n`.

    Returns raw documents, each section once, their text as in the source; `metadata["drillrank_matched_views"]` tells
    the views that matched and at which rank. Scores are sums of reciprocal ranks, between 0 and 0.05: they order one
    result list and mean nothing beyond.

    Text and metadata are those of the section's raw record in the store at the time of the question: views are
    references, and a section whose raw record is gone is left out, with a `DrillrankWarning`. The store is asked for
    raw records and for neighbours by id or, as `langchain_core.indexing.index` gives ids of its own, by metadata; the
    one that retrievers search, too, if it is a single one. Only where there is none, `documents` stand in, unless they
    differ from what was found.

    Chunks of other splitters are ranked as they are, each as a section of its own, with a `DrillrankWarning`; they, and
    records of earlier releases, are found beside sections of this one, whenever they were stored.

    Raises:
        InvalidInput: the raw view of a section is missing, two that may be seen are one section with different texts,
            `source` is an empty dictionary, a weight is below 0, the filter cannot be used, or the query is blank.

    >>> from langchain_ext import MultiViewTextSplitter
    >>> text = "# Foxes\n\nThey hunt.\n\n# Whales\n\nThey sing.\n\n# Owls\n\nThey hoot.\n"
    >>> retriever = MultiViewRetriever(documents=MultiViewTextSplitter().split_text(text), top_n=1)
    >>> hit = retriever.invoke("Who sings?")[0]
    >>> hit.metadata["drillrank_section_path"], hit.metadata["drillrank_matched_views"]
    ('Whales', 'raw:1 keywords:1 summary:1')
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    documents: list[Document] = Field(default_factory=list)
    source: InstanceOf[VectorStore] | Retriever | dict[View, Retriever] | None = Field(
        default=None, description="Where to look; None indexes the documents in memory."
    )
    filter: Filter | None = Field(default=None, description="Which documents may be seen.")
    score_key: str | None = Field(
        default="relevance_score",
        description="Metadata key of the score; None adds nothing that depends on the question.",
    )

    _sections: list[StoredSection] = PrivateAttr()
    _raw: dict[str, StoredSection] = PrivateAttr()
    _index: Shared[MultiViewIndex] | None = PrivateAttr(default=None)
    _owners: list[int] = PrivateAttr(default_factory=list)
    _told: Told = PrivateAttr(default_factory=Told)

    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)
        Guard(self.filter)
        self._sections = stored_sections(self.documents)
        plain = self.source is None and self.filter is None
        self._raw = raw_sections(self._sections, "documents") if plain else {}
        if self.source is None:
            tell_foreign(self._sections, _MAKER, self._told)
            texts, self._owners = texts_of(self._sections, [document.page_content for document in self.documents])
            fields = {"texts": texts, "retriever": self.retriever, "weights": self.weights}
            self._index = shared("views", fields, lambda: MultiViewIndex.configured(self, texts))
        elif self.source == {}:
            raise InvalidInput(f"source needs a retriever for one of the views {VIEWS} at least.")

    @property
    def _all_from(self) -> object:
        """Where all results are from."""
        return self.source

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, top_n: int | None = None
    ) -> list[Document]:
        check_query(query)
        check_top_n(top_n)
        wanted = self.top_n if top_n is None else top_n
        if self.source is None:
            return self._in_memory(query, wanted)
        store, lookups = self._lookups(query, wanted, child_config(run_manager))
        return self._results(run_lookups(lookups, store.answer))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, top_n: int | None = None
    ) -> list[Document]:
        check_query(query)
        check_top_n(top_n)
        wanted = self.top_n if top_n is None else top_n
        if self.source is None:
            return await asyncio.to_thread(self._in_memory, query, wanted)
        store, lookups = self._lookups(query, wanted, child_config(run_manager))
        return self._results(await arun_lookups(lookups, store.aanswer))

    def _in_memory(self, query: str, top_n: int) -> list[Document]:
        assert self._index is not None
        sections, among = self._sections, None
        if self.filter is not None:
            guard = Guard(self.filter)
            seen = {number for number, document in enumerate(self.documents) if guard.kept([document])}
            among = {number for number, owner in enumerate(self._owners) if owner in seen}
            sections = [sections[number] for number in sorted(seen)]
        raw = self._raw if among is None else raw_sections(sections, "documents")
        found = self._index.made.search(query, top_n, among)
        return self._results(merged_in_memory(found, raw, self.expand, among is not None))

    def _lookups(self, query: str, top_n: int, config: RunnableConfig) -> tuple[StoreLookups, Lookups[list[Merged]]]:
        source = self.source
        assert source is not None
        guard = Guard(self.filter, source, config)
        views = MergedViews(
            top_n=top_n,
            weights=self.weights,
            expand=self.expand,
            source="store" if isinstance(source, VectorStore) else list(source) if isinstance(source, dict) else None,
            read=read_section,
            given=Given(by_view(self._sections, guard.visible), "documents", guard.allowed, self._told),
            restricted=guard.restriction,
            resolved=False,
            maker=_MAKER,
            told=self._told,
        )
        return StoreLookups(query, source, guard, config), views.lookups()  # type: ignore[arg-type]  # a dictionary by view

    def _results(self, found: Iterable[Merged]) -> list[Document]:
        return [self._document(*merged) for merged in found]

    def _document(self, section: StoredSection, merged: MergedSection, origin: str | None) -> Document:
        document = as_raw(section.record, section.text) if section.view else section.record
        metadata = with_own(document.metadata, matched_views=None, expanded_from=None)
        name, value = ("matched_views", merged.matched_views) if origin is None else ("expanded_from", origin)
        metadata = with_score(metadata, self.score_key, merged.score, {prefixed(name): value})
        return document.model_copy(update={"metadata": metadata})
