"""MC-indexing retrieval as a LangChain retriever."""

from __future__ import annotations

import asyncio
import warnings
from collections import ChainMap
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.runnables import Runnable
from langchain_core.vectorstores import VectorStore
from pydantic import ConfigDict, Field, InstanceOf, PrivateAttr

from drillrank.errors import DrillrankWarning, InvalidInput
from drillrank.hosts.shared import Shared, shared
from drillrank.passages import check_query, check_top_n
from drillrank.views import (
    VIEWS,
    Expansion,
    MergedSection,
    MultiViewIndex,
    RetrieverName,
    View,
    ViewText,
    check_weights,
    expanded,
    merge_views,
)
from langchain_ext._component import Component
from langchain_ext._retriever import ConfiguredRetriever, Retriever, child_config, with_score
from langchain_ext._sections import asearched, astored_sections, metadata_filter, searched, stored_sections


class MultiViewRetriever(Component, ConfiguredRetriever):
    r"""Ranks sections in each view separately and merges the rankings.

    Args:
        documents: What `MultiViewTextSplitter` made of one or many documents. Without a `source`, they are indexed in
            memory.
        source: Where to look instead: a vector store that holds such documents, asked once for each view with the
            filter `{"view": ...}`; a retriever for each view, as a dictionary; or a single retriever over all of
            them, whose results are ranked by the `view` in their metadata. A retriever is any Runnable or
            function from a query to documents.
        top_n: Sections to return. `invoke(query, top_n=...)` overrides it.
        retriever: `"bm25"` or `"tfidf"`, one index for each view, in memory.
        weights: Of the views; None takes the best of every view (see `drillrank.views.merge_views`).
        expand: `"neighbours"` or `"parent"`: behind each section found come those around it, with its score and
            its id as metadata `expanded_from`, beyond `top_n`.
        score_key: Metadata key of the score; None adds nothing that depends on the question.

    Returns raw documents, each section once, their text as in the source; `metadata["matched_views"]` tells the views
    that matched and at which rank. Scores are sums of reciprocal ranks, between 0 and 0.05: they order one result
    list and mean nothing beyond. Neighbours and parents are taken from `documents` or from the vector store, by id or,
    as `langchain_core.indexing.index` gives ids of its own, by metadata; those that are in neither are left out, with
    a `DrillrankWarning`.

    Raises:
        InvalidInput: a document was not made by `MultiViewTextSplitter`, the raw view of a section is missing,
            `source` is an empty dictionary, a weight is below 0, or the query is blank.

    >>> from langchain_ext import MultiViewTextSplitter
    >>> text = "# Foxes\n\nThey hunt.\n\n# Whales\n\nThey sing.\n\n# Owls\n\nThey hoot.\n"
    >>> retriever = MultiViewRetriever(documents=MultiViewTextSplitter().split_text(text), top_n=1)
    >>> hit = retriever.invoke("Who sings?")[0]
    >>> hit.metadata["section_path"], hit.metadata["matched_views"]
    ('Whales', 'raw:1 keywords:1 summary:1')
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    documents: list[Document] = Field(default_factory=list)
    source: InstanceOf[VectorStore] | Retriever | dict[View, Retriever] | None = Field(
        default=None, description="Where to look; None indexes the documents in memory."
    )
    top_n: int = Field(default=5, gt=0, description="Sections to return.")
    retriever: RetrieverName = Field(default="bm25", description="Index of each view, in memory.")
    weights: dict[str, float] | None = Field(default=None, description="Of the views.")
    expand: Expansion | None = Field(default=None, description="What comes behind each section found.")
    score_key: str | None = Field(
        default="relevance_score",
        description="Metadata key of the score; None adds nothing that depends on the question.",
    )

    _raw: dict[str, Document] = PrivateAttr()
    _index: Shared[MultiViewIndex] | None = PrivateAttr(default=None)

    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)
        check_weights(self.weights)
        raw = (document for document in self.documents if _view(document) == "raw")
        self._raw = {_section_id(document): _as_raw(document) for document in raw}
        if self.source is None:
            texts = [
                ViewText(_section_id(document), _view(document), document.page_content)  # type: ignore[arg-type]  # the index checks the view
                for document in self.documents
            ]
            fields = {"texts": texts, "retriever": self.retriever, "weights": self.weights}
            self._index = shared("views", fields, lambda: MultiViewIndex(texts, self.retriever, self.weights))
        elif self.source == {}:
            raise InvalidInput(f"source needs a retriever for one of the views {VIEWS} at least.")

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, top_n: int | None = None
    ) -> list[Document]:
        check_query(query)
        check_top_n(top_n)
        k = self.top_n if top_n is None else top_n
        config = child_config(run_manager)
        found: dict[str, list[Document]] = {}
        if isinstance(self.source, VectorStore):
            filters = [metadata_filter(self.source, "view", view) for view in VIEWS]
            found = dict(zip(VIEWS, searched(self.source, query, k, filters), strict=True))
        elif isinstance(self.source, Runnable):
            found = _by_view(self.source.invoke(query, config))
        elif self.source is not None:
            found = {view: retriever.invoke(query, config) for view, retriever in self.source.items()}
        sections, known = self._ranked(query, found, k)
        around, absent = self._around(sections, known)
        return self._results(sections, around, ChainMap(self._stored(query, absent), known))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, top_n: int | None = None
    ) -> list[Document]:
        check_query(query)
        check_top_n(top_n)
        k = self.top_n if top_n is None else top_n
        config = child_config(run_manager)
        found: dict[str, list[Document]] = {}
        if isinstance(self.source, VectorStore):
            filters = [metadata_filter(self.source, "view", view) for view in VIEWS]
            found = dict(zip(VIEWS, await asearched(self.source, query, k, filters), strict=True))
        elif isinstance(self.source, Runnable):
            found = _by_view(await self.source.ainvoke(query, config))
        elif self.source is not None:
            lists = await asyncio.gather(*(retriever.ainvoke(query, config) for retriever in self.source.values()))
            found = dict(zip(self.source, lists, strict=True))
        sections, known = await asyncio.to_thread(self._ranked, query, found, k)
        around, absent = self._around(sections, known)
        return self._results(sections, around, ChainMap(await self._astored(query, absent), known))

    def _ranked(
        self, query: str, found: Mapping[str, Sequence[Document]], k: int
    ) -> tuple[list[MergedSection], MutableMapping[str, Document]]:
        """The best sections, and by id what is at hand of them and others."""
        if self._index is not None:
            return self._index.made.search(query, k), self._raw
        rankings = {view: [_section_id(document) for document in hits] for view, hits in found.items()}
        known = {_section_id(document): _as_raw(document) for hits in found.values() for document in hits}
        return merge_views(rankings, k, self.weights), ChainMap(self._raw, known)

    def _around(
        self, sections: Sequence[MergedSection], known: Mapping[str, Document]
    ) -> tuple[dict[str, list[str]], list[str]]:
        """The ids of the sections around each section found, and those of them that are not at hand."""
        names = {None: (), "parent": ("parent_id",), "neighbours": ("previous_id", "next_id")}[self.expand]
        around = {}
        for section in sections:
            metadata = known[section.section_id].metadata
            around[section.section_id] = [str(metadata[name]) for name in names if name in metadata]
        return around, list(dict.fromkeys(id_ for ids in around.values() for id_ in ids if id_ not in known))

    def _stored(self, query: str, ids: Sequence[str]) -> dict[str, Document]:
        """Sections by id out of the vector store."""
        if ids and isinstance(self.source, VectorStore):
            return _by_section(ids, stored_sections(self.source, query, ids))
        return _by_section(ids, ())

    async def _astored(self, query: str, ids: Sequence[str]) -> dict[str, Document]:
        if ids and isinstance(self.source, VectorStore):
            return _by_section(ids, await astored_sections(self.source, query, ids))
        return _by_section(ids, ())

    def _results(
        self, sections: Sequence[MergedSection], around: Mapping[str, Sequence[str]], known: Mapping[str, Document]
    ) -> list[Document]:
        return [
            self._document(known[section.section_id], section, origin)
            for section, origin in expanded(sections, around.__getitem__)
            if section.section_id in known
        ]

    def _document(self, raw: Document, section: MergedSection, origin: str | None) -> Document:
        added = {"matched_views": section.matched_views} if origin is None else {"expanded_from": origin}
        metadata = with_score(raw.metadata, self.score_key, section.score, added)
        return raw.model_copy(update={"metadata": metadata})


def _by_section(ids: Sequence[str], found: Sequence[Document]) -> dict[str, Document]:
    sections = {_section_id(document): _as_raw(document) for document in found}
    missing = [id_ for id_ in ids if id_ not in sections]
    if missing:
        warnings.warn(
            f"{len(missing)} sections around those found are not at hand, for example {missing[0]!r}: pass the "
            "splitter's documents, too.",
            DrillrankWarning,
            stacklevel=2,
        )
    return sections


def _by_view(documents: Iterable[Document]) -> dict[str, list[Document]]:
    found: dict[str, list[Document]] = {}
    for document in documents:
        found.setdefault(_view(document), []).append(document)
    return found


def _as_raw(document: Document) -> Document:
    """The section itself, from any of its views."""
    metadata = {**document.metadata, "view": "raw"}
    text = metadata.pop("section_text", document.page_content)
    return document.model_copy(update={"id": _section_id(document), "page_content": text, "metadata": metadata})


def _section_id(document: Document) -> str:
    return str(_entry(document, "section_id"))


def _view(document: Document) -> str:
    return str(_entry(document, "view"))


def _entry(document: Document, key: str) -> object:
    if key not in document.metadata:
        raise InvalidInput(
            f"Document {document.id!r} has no section_id and view in its metadata: MultiViewRetriever searches the "
            "documents that MultiViewTextSplitter makes."
        )
    return document.metadata[key]
