"""MC-indexing retrieval as a LangChain retriever."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from pydantic import ConfigDict, Field, InstanceOf, PrivateAttr

from drillrank.errors import DrillrankWarning, InvalidInput
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


class MultiViewRetriever(BaseRetriever):
    r"""Ranks sections in each view separately and merges the rankings.

    Args:
        documents: What `MultiViewTextSplitter` made of one or many documents. Without a `source`, they are indexed in
            memory.
        source: Where to look instead: a vector store that holds such documents, asked once for each view with the
            filter `{"view": ...}`; a retriever for each view, as a dictionary; or a single retriever over all of
            them, whose results are ranked by the `view` in their metadata.
        top_n: Sections to return. `invoke(query, top_n=...)` overrides it.
        retriever: `"bm25"` or `"tfidf"`, one index for each view, in memory.
        weights: Of the views; None takes the best of every view (see `drillrank.views.merge_views`).
        expand: `"neighbours"` or `"parent"`: behind each section found come those around it, with its score and
            its id as metadata `expanded_from`, beyond `top_n`.
        score_key: Metadata key of the score.

    Returns raw documents, each section once, their text as in the source; `metadata["matched_views"]` tells the views
    that matched and at which rank. Scores are sums of reciprocal ranks, between 0 and 0.05: they order one result
    list and mean nothing beyond. Neighbours and parents are taken from `documents` or by id from the vector store;
    those that are in neither are left out, with a `DrillrankWarning`.

    Raises:
        InvalidInput: a document was not made by `MultiViewTextSplitter`, the raw view of a section is missing, a
            weight is below 0, or the query is blank.

    >>> from langchain_ext import MultiViewTextSplitter
    >>> text = "# Foxes\n\nThey hunt.\n\n# Whales\n\nThey sing.\n\n# Owls\n\nThey hoot.\n"
    >>> retriever = MultiViewRetriever(documents=MultiViewTextSplitter().split_text(text), top_n=1)
    >>> hit = retriever.invoke("Who sings?")[0]
    >>> hit.metadata["section_path"], hit.metadata["matched_views"]
    ('Whales', 'raw:1 keywords:1 summary:1')
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    documents: list[Document] = Field(default_factory=list)
    source: InstanceOf[VectorStore] | InstanceOf[BaseRetriever] | dict[View, InstanceOf[BaseRetriever]] | None = Field(
        default=None, description="Where to look; None indexes the documents in memory."
    )
    top_n: int = Field(default=5, gt=0, description="Sections to return.")
    retriever: RetrieverName = Field(default="bm25", description="Index of each view, in memory.")
    weights: dict[str, float] | None = Field(default=None, description="Of the views.")
    expand: Expansion | None = Field(default=None, description="What comes behind each section found.")
    score_key: str = Field(default="relevance_score", description="Metadata key of the score.")

    _raw: dict[str, Document] = PrivateAttr()
    _index: MultiViewIndex | None = PrivateAttr(default=None)

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
            self._index = MultiViewIndex(texts, self.retriever, self.weights)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, top_n: int | None = None
    ) -> list[Document]:
        check_query(query)
        check_top_n(top_n)
        k = self.top_n if top_n is None else top_n
        config: Any = {"callbacks": run_manager.get_child()}
        found: dict[str, list[Document]] = {}
        if isinstance(self.source, VectorStore):
            found = {
                view: self.source.similarity_search(query, k=k, filter=_filter(self.source, view)) for view in VIEWS
            }
        elif isinstance(self.source, BaseRetriever):
            found = _by_view(self.source.invoke(query, config))
        elif self.source is not None:
            found = {view: retriever.invoke(query, config) for view, retriever in self.source.items()}
        return self._merged(query, found, k)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, top_n: int | None = None
    ) -> list[Document]:
        check_query(query)
        check_top_n(top_n)
        k = self.top_n if top_n is None else top_n
        config: Any = {"callbacks": run_manager.get_child()}
        found: dict[str, list[Document]] = {}
        if isinstance(self.source, VectorStore):
            store = self.source
            calls = (store.asimilarity_search(query, k=k, filter=_filter(store, view)) for view in VIEWS)
            found = dict(zip(VIEWS, await asyncio.gather(*calls), strict=True))
        elif isinstance(self.source, BaseRetriever):
            found = _by_view(await self.source.ainvoke(query, config))
        elif self.source is not None:
            lists = await asyncio.gather(*(retriever.ainvoke(query, config) for retriever in self.source.values()))
            found = dict(zip(self.source, lists, strict=True))
        return await asyncio.to_thread(self._merged, query, found, k)

    def _merged(self, query: str, found: Mapping[str, Sequence[Document]], k: int) -> list[Document]:
        if self._index is not None:
            sections = self._index.search(query, k)
        else:
            rankings = {view: [_section_id(document) for document in hits] for view, hits in found.items()}
            sections = merge_views(rankings, k, self.weights)
        known = {_section_id(document): _as_raw(document) for hits in found.values() for document in reversed(hits)}
        wanted = (section.section_id for section in sections)
        known |= {id_: self._raw[id_] for id_ in wanted if id_ in self._raw}
        result: Iterable[tuple[MergedSection, str | None]] = ((section, None) for section in sections)
        if self.expand:
            names = ("parent_id",) if self.expand == "parent" else ("previous_id", "next_id")
            around = {
                section.section_id: [
                    known[section.section_id].metadata[name]
                    for name in names
                    if name in known[section.section_id].metadata
                ]
                for section in sections
            }
            self._fetch([id_ for ids in around.values() for id_ in ids if id_ not in known], known)
            result = expanded(sections, around.__getitem__)
        return [
            self._document(known[section.section_id], section, origin)
            for section, origin in result
            if section.section_id in known
        ]

    def _fetch(self, ids: Sequence[str], known: dict[str, Document]) -> None:
        """Add what stands around the sections found."""
        known |= {id_: self._raw[id_] for id_ in ids if id_ in self._raw}
        left = [id_ for id_ in dict.fromkeys(ids) if id_ not in known]
        if left and isinstance(self.source, VectorStore):
            with suppress(NotImplementedError):
                known |= {_section_id(document): _as_raw(document) for document in self.source.get_by_ids(left)}
        missing = [id_ for id_ in left if id_ not in known]
        if missing:
            warnings.warn(
                f"{len(missing)} sections around those found are not at hand, for example {missing[0]!r}: pass the "
                "splitter's documents, too.",
                DrillrankWarning,
                stacklevel=2,
            )

    def _document(self, raw: Document, section: MergedSection, origin: str | None) -> Document:
        added = {"matched_views": section.matched_views} if origin is None else {"expanded_from": origin}
        return raw.model_copy(update={"metadata": {**raw.metadata, **added, self.score_key: section.score}})


def _filter(store: VectorStore, view: str) -> Any:
    """The usual filter by metadata; the host's store in memory takes a function."""
    if isinstance(store, InMemoryVectorStore):
        return lambda document: document.metadata.get("view") == view
    return {"view": view}


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
