"""Multi-view retrieval (MC-indexing, section 3.3) over the sections of a store, of retrievers, or in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from drillrank.errors import InvalidInput, WarnOnce, warn
from drillrank.explanation import Explanation
from drillrank.explanation.explanations import explains
from drillrank.frameworks.filters import AccessFilter
from drillrank.frameworks.memory_views import InMemoryViews, ViewSearchSettings
from drillrank.frameworks.metadata import result_metadata, with_result_metadata
from drillrank.frameworks.pages import PAGE_KEYS, with_pages_of_span
from drillrank.frameworks.sections import (
    check_searched,
    fetch_documents,
    fetch_raw_sections,
    first_raw_by_id,
    select_substitutes,
    warn_missing,
)
from drillrank.frameworks.settings import check_switch
from drillrank.frameworks.view_rankings import ViewHits, rank_hits_by_view, search_retrievers, search_views
from drillrank.llm import Requests
from drillrank.structure.record_store import RecordStore, search_request
from drillrank.structure.stored_chunks import StoredChunk
from drillrank.vectors import Embed
from drillrank.views import (
    VIEWS,
    ExpandedSection,
    MergedSection,
    SectionExpander,
    View,
    complete_merge,
    explain_views,
    merge_views,
)

RecordT = TypeVar("RecordT")

_RETRIEVAL_NAMES = ("matched_views", "expanded_from")
_UNRESTRICTED: AccessFilter[Any] = AccessFilter(None, ())


@dataclass(frozen=True)
class FoundSection(ExpandedSection[RecordT]):
    """Section that a retrieval returns.

    Attributes:
        explanation: Explanation of the score. None if none is wanted.
    """

    explanation: Explanation | None = None

    @property
    def metadata(self) -> dict[str, Any]:
        """Metadata of the record, without those of an earlier question.

        If sections were joined, offsets, path and pages are those of the joined text.
        """
        chunk = self.chunk
        metadata: Mapping[str, Any] = _record_metadata(chunk)
        names: dict[str, Any] = dict.fromkeys(_RETRIEVAL_NAMES)
        if self.members:
            first_metadata = _record_metadata(self.members[0])
            page_metadata = {key: first_metadata[key] for key in PAGE_KEYS if key in first_metadata}
            metadata = with_pages_of_span({**metadata, **page_metadata}, chunk.pages, chunk.start, chunk.end)
            names |= {"start": chunk.start, "end": chunk.end}
            if chunk.path != result_metadata(metadata).get("section_path"):
                names |= {"section_path": chunk.path, "section_level": None}
        return with_result_metadata(metadata, **names)

    @property
    def retrieval_metadata(self) -> dict[str, Any]:
        """Metadata that say how the section was found."""
        values = self.merged.matched_views, self.expanded_from
        return with_result_metadata({}, **dict(zip(_RETRIEVAL_NAMES, values, strict=True)))


class ViewRetrieval(Generic[RecordT]):
    r"""Ranks sections in each view separately, merges the rankings and returns raw sections.

    A store that obeys limits is searched for each view by metadata. A retriever for each view is asked for its view.
    The results of a single retriever are ranked by their views. Without a store, the sections are indexed in memory.

    Args:
        sections: Views of sections. They are searched if `texts` are passed. Otherwise they represent sections whose
            raw records no store can be asked for.
        texts: Text to index of each of the sections. None searches a store.
        settings: Views, weights, and indexes in memory.
        embed: Function from texts to vectors, for an index in memory. None: lexical matching.
        expander: Joins each section that was found with the sections around it. None returns it as it is.
        explain: True explains the results.
        is_filtered: True if questions come with an access filter. The first question then builds the index in memory.
        retriever_views: Views with a retriever of their own. None if the source is a store or a single retriever.
        splitter: Name of the component that makes views, in warnings.

    Raises:
        InvalidInput: A setting is invalid, `embed` is passed without `texts`, or two sections in memory have the same
            id and different texts.

    >>> from drillrank.llm import run
    >>> from drillrank.structure.stored_chunks import StoredChunk
    >>> class Records(RecordStore):
    ...     def __init__(self, *chunks):
    ...         self.chunks = chunks
    ...     def search(self, question, n, where=None):
    ...         return [chunk for chunk in self.chunks if chunk.view == (where or {}).get("drillrank_view", chunk.view)]
    ...     def get(self, ids):
    ...         return [chunk for chunk in self.chunks if chunk.id in ids]
    ...     def find(self, where):
    ...         return self.search("", 0, where)
    >>> text_by_view = {"raw": "# Whales\n\nThey sing.\n", "keywords": "Whales\nsing"}
    >>> chunks = [StoredChunk(text, "7", text, ("", "animals"), view=view) for view, text in text_by_view.items()]
    >>> retrieval = ViewRetrieval(settings=ViewSearchSettings(views=["raw", "keywords"]))
    >>> [section] = run(retrieval.retrieve_requests("Who sings?", Records(*chunks)))
    >>> section.chunk.text, section.merged.matched_views
    ('# Whales\n\nThey sing.\n', 'raw:1 keywords:1')
    """

    def __init__(
        self,
        sections: Sequence[StoredChunk[RecordT]] = (),
        texts: Sequence[str] | None = None,
        *,
        settings: ViewSearchSettings = ViewSearchSettings(),
        embed: Embed | None = None,
        expander: SectionExpander | None = None,
        explain: bool = False,
        is_filtered: bool = False,
        retriever_views: Sequence[View] | None = None,
        splitter: str = "MultiViewChunker",
    ) -> None:
        check_switch(explain=explain)
        if retriever_views is not None and (not retriever_views or not set(retriever_views) <= set(VIEWS)):
            raise InvalidInput(
                f"source must name views out of {', '.join(VIEWS)}, got {list(retriever_views)!r:.200}. Pass a "
                "dictionary from views to retrievers."
            )
        if embed is not None and texts is None:
            raise InvalidInput(
                f"embed requires documents in memory, got embed={embed!r:.100} with a source, which has its own "
                "embedding. Remove embed."
            )
        self._sections = sections
        self._settings = settings
        self._expander = expander
        self._is_explained = explain
        self._retriever_views = retriever_views
        self._splitter = splitter
        self._warned = WarnOnce()
        self._memory: InMemoryViews[RecordT] | None = None
        if texts is not None:
            self._warn_about_other_chunks(sections)
            self._memory = InMemoryViews(sections, texts, settings, embed, is_filtered=is_filtered)

    def retrieve_requests(
        self,
        question: str,
        store: RecordStore | None = None,
        *,
        access_filter: AccessFilter[Any] = _UNRESTRICTED,
        top_n: int = 5,
    ) -> Requests[list[FoundSection[RecordT]]]:
        """Return the sections that a question is about, best first, each once. A generator for `run` and `arun`.

        Args:
            question: The question.
            store: Store of the views, which returns only what the caller may see. None searches the sections in memory.
            access_filter: Filter of the sections in memory.
            top_n: Maximum number of sections.
        """
        if self._memory is not None or store is None:
            merged, raw_by_id = self._search_memory(question, top_n, access_filter)
        else:
            stores = _Stores(store, access_filter, self._sections)
            # 1. Search each view separately.
            hits = yield from self._search_store(question, store, top_n)
            self._warn_about_other_chunks(hits.chunks)
            # 2. Fetch the raw section of each view that was found.
            raw_by_id = yield from self._fetch_sections(hits, stores)
            # 3. Merge the rankings.
            rankings = {
                view: [hit.id for hit in view_hits if hit.id in raw_by_id] for view, view_hits in hits.rankings.items()
            }
            merged = merge_views(rankings, top_n, self._settings.weights, self._settings.merge)
            self._warn_about_missing_views(hits, merged, stores)
            if self._expander is not None:
                raw_by_id |= yield from self._fetch_surroundings(merged, raw_by_id, hits, stores, self._expander)
        # 4. Expand the sections that were found.
        return self._expand(merged, raw_by_id, top_n)

    def _search_memory(
        self, question: str, top_n: int, access_filter: AccessFilter[Any]
    ) -> tuple[Sequence[MergedSection], dict[str, StoredChunk[RecordT]]]:
        if self._memory is None:
            raise InvalidInput("store must be a RecordStore, got None. Pass a store, or texts to index in memory.")
        merged, raw_by_id = self._memory.search(question, top_n, access_filter)
        if not merged and access_filter.restricts:
            _warn("nothing was found: the index is empty, or the filter removes everything")
        return merged, raw_by_id

    def _search_store(self, question: str, store: RecordStore, top_n: int) -> Requests[ViewHits[RecordT]]:
        views = self._settings.views
        if store.obeys_limits:
            return (yield from search_views(store, question, top_n, views))
        if self._retriever_views is not None:
            searched_views = [view for view in self._retriever_views if view in views]
            return (yield from search_retrievers(store, question, top_n, searched_views))
        [retriever_hits] = yield [search_request(store, question, top_n)]
        return rank_hits_by_view(retriever_hits, views)

    def _fetch_sections(self, hits: ViewHits[RecordT], stores: _Stores) -> Requests[dict[str, StoredChunk[RecordT]]]:
        """Return the raw sections of the hits by id, and warn about missing ones."""
        chunks = hits.chunks
        ids = dict.fromkeys(chunk.id for chunk in chunks)
        raw_by_id = first_raw_by_id((*chunks, *hits.unranked), ids)
        fetched, store_answers = yield from stores.fetch([id_ for id_ in ids if id_ not in raw_by_id], chunks)
        raw_by_id |= fetched
        if not (store_answers and stores.access_filter.restricts):  # otherwise they may be hidden: do not reveal them
            where = "is no longer in the store" if store_answers else "cannot be looked up: pass documents, too"
            missing_ids = [id_ for id_ in ids if id_ not in raw_by_id]
            warn_missing("MultiViewRetriever", self._warned.new("raw", missing_ids), where)
        return raw_by_id

    def _fetch_surroundings(
        self,
        merged: Sequence[MergedSection],
        raw_by_id: Mapping[str, StoredChunk[RecordT]],
        hits: ViewHits[RecordT],
        stores: _Stores,
        expander: SectionExpander,
    ) -> Requests[dict[str, StoredChunk[RecordT]]]:
        """Return the raw sections that an expansion may join, and warn about missing ones."""
        chunks = [chunk for section in merged if (chunk := raw_by_id[section.section_id]).view is not None]
        around: dict[str, StoredChunk[RecordT]] = {}
        if expander.expand == "parent":
            around = yield from fetch_documents(stores.store, chunks)
        document_by_id = {
            id_: chunk.document for chunk in chunks for name, id_ in chunk.links.items() if name in expander.link_names
        }
        missing_ids = [id_ for id_ in document_by_id if id_ not in raw_by_id and id_ not in around]
        fetched, _ = yield from stores.fetch(missing_ids, hits.chunks)
        documents = [document_by_id[id_] for id_ in missing_ids if id_ not in fetched]
        if not stores.access_filter.restricts and self._warned.new("surroundings", documents):
            _warn("sections around those found are missing, so that their text is not complete. Store all sections")
        return {id_: chunk for id_, chunk in (around | fetched).items() if id_ not in raw_by_id}

    def _expand(
        self, merged: Sequence[MergedSection], raw_by_id: Mapping[str, StoredChunk[RecordT]], top_n: int
    ) -> list[FoundSection[RecordT]]:
        """Return the results with their explanations, expanded if wanted."""
        sections = [_with_own_view(section, raw_by_id[section.section_id]) for section in merged]
        if self._expander is None:
            expanded = [ExpandedSection(raw_by_id[section.section_id], section) for section in sections]
        else:
            expanded = self._expander.expand_sections(sections, raw_by_id)
        return [
            FoundSection(
                **vars(section),
                explanation=self._explain(section.merged, raw_by_id[section.merged.section_id], rank, top_n),
            )
            for rank, section in enumerate(expanded, 1)
        ]

    def _explain(
        self, section: MergedSection, chunk: StoredChunk[RecordT], rank: int, top_n: int
    ) -> Explanation | None:
        if not explains(self._is_explained):
            return None
        name = str(result_metadata(_record_metadata(chunk)).get("section_path") or chunk.id)
        return explain_views(section, rank, name, top_n, self._settings.weights, self._settings.merge)

    def _warn_about_missing_views(
        self, hits: ViewHits[RecordT], merged: Sequence[MergedSection], stores: _Stores
    ) -> None:
        """Warn if nothing was found, or if a store returned no raw texts, although it has other views of sections."""
        lacks_raw = "raw" in self._settings.views and not any(c.is_raw for c in (*hits.chunks, *hits.unranked))
        if stores.access_filter.restricts:  # a reason would reveal that hidden sections exist
            if not merged:
                _warn("nothing was found: the source is empty, or the filter removes everything")
        elif not hits.chunks and hits.unranked:
            _warn(f"nothing was found: the source returned records, but none of the views {list(self._settings.views)}")
        elif not hits.chunks and stores.store.obeys_limits:
            _warn("nothing was found: the source is empty")
        elif bool(merged) and lacks_raw and stores.store.obeys_limits and self._warned.new("no raw", [self._splitter]):
            _warn(
                "the source has raw records, but its searches return none. Check its filters and what it embeds, or "
                "remove 'raw' from views"
            )

    def _warn_about_other_chunks(self, chunks: Iterable[StoredChunk[RecordT]]) -> None:
        if any(chunk.view is None for chunk in chunks) and self._warned.new("other chunks", [self._splitter]):
            _warn(
                f"there are chunks that {self._splitter} did not make. They are ranked by their text alone, without "
                f"keywords and summaries. Split the documents with {self._splitter} to have these"
            )


def build_view_retrieval(
    component: Any,
    sections: Sequence[StoredChunk[RecordT]],
    text_of: Callable[[RecordT], str],
    embed: Embed | None,
    splitter: str,
) -> ViewRetrieval[RecordT]:
    """Return the retrieval of a `MultiViewRetriever`.

    Args:
        component: The retriever.
        sections: Its documents.
        text_of: Function from a document to the text that an index in memory has of it.
        embed: Embedding function of the retriever. None: lexical matching.
        splitter: Name of the component that makes views, in warnings.

    Raises:
        InvalidInput: The component has nothing to search, or as for `ViewRetrieval`.
    """
    source, settings = component.source, component._settings
    check_searched(type(component).__name__, sections, source)
    merge = complete_merge(component.merge, component.preset)
    return ViewRetrieval(
        sections,
        None if source is not None else [text_of(section.record) for section in sections],
        settings=ViewSearchSettings(component.views, component.weights, merge, component.retriever, settings.language),
        embed=embed,
        expander=settings.build_expander(component.expand),
        explain=component.explain,
        is_filtered=component.filters is not None,
        retriever_views=list(source) if isinstance(source, Mapping) else None,
        splitter=splitter,
    )


@dataclass(frozen=True, slots=True)
class _Stores:
    """Stores that a question may read raw sections from.

    Attributes:
        store: Store of the question's caller.
        access_filter: Filter of what the caller may see.
        sections: Sections that represent those whose raw records the store cannot be asked for.
    """

    store: RecordStore
    access_filter: AccessFilter[Any]
    sections: Sequence[StoredChunk[Any]]

    def fetch(
        self, ids: Sequence[str], hits: Sequence[StoredChunk[Any]]
    ) -> Requests[tuple[dict[str, StoredChunk[Any]], bool]]:
        """Return raw sections by id, and True if the store could be asked for all of them."""
        if not ids:
            return {}, True
        fetched, store_answers = yield from fetch_raw_sections(self.store, ids)
        if store_answers:
            return fetched, True
        return select_substitutes(self.sections, ids, hits, self.access_filter), False


def _record_metadata(chunk: StoredChunk[Any]) -> Mapping[str, Any]:
    """Return the metadata of a chunk's record, with those of drillrank. Records of some stores have none."""
    return getattr(chunk.record, "metadata", {})


def _with_own_view(section: MergedSection, chunk: StoredChunk[Any]) -> MergedSection:
    """Return a section whose ranks name only the view that it has: chunks of other splitters are in all rankings."""
    if chunk.view is not None or section.best_rank is None:
        return section
    return replace(section, ranks={"raw": section.ranks.get("raw", section.best_rank)})


def _warn(message: str) -> None:
    warn(f"MultiViewRetriever: {message}.")
