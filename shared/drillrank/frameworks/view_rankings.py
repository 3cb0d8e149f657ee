"""Rank the records of a store or of retrievers in each view, for multi-view retrieval (MC-indexing, section 3.3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Generic, TypeVar

from drillrank.frameworks.metadata import prefixed
from drillrank.llm import FunctionRequest, Requests
from drillrank.passages import stable_uuid
from drillrank.structure.record_store import RecordStore, search_request
from drillrank.structure.stored_chunks import StoredChunk
from drillrank.views import VIEWS, View

RecordT = TypeVar("RecordT")

_SECTION_VIEWS = VIEWS[1:]  # only sections have them; a chunk of another splitter has its text only


@dataclass(frozen=True, slots=True)
class ViewHits(Generic[RecordT]):
    """Records that searches returned, ranked in each view.

    Attributes:
        rankings: Records of each view, best first. Chunks of other splitters, which have no views, are in all rankings.
        unranked: All records of the search without a view. They may contain raw records of ranked views.
    """

    rankings: dict[str, list[StoredChunk[RecordT]]]
    unranked: Sequence[StoredChunk[RecordT]] = ()

    @property
    def chunks(self) -> list[StoredChunk[RecordT]]:
        """Records of all rankings. A record may come several times."""
        return list(chain.from_iterable(self.rankings.values()))


def oversample(n_sections: int) -> int:
    """Return the number of records to search for without a view, to find `n_sections` raw records in most stores.

    Each section has a record for each view. The number is twice as large, plus a margin for small numbers.

    >>> oversample(5)
    80
    """
    return 2 * len(VIEWS) * n_sections + 50


def search_views(
    store: RecordStore, question: str, n_sections: int, views: Sequence[View] = VIEWS
) -> Requests[ViewHits[Any]]:
    """Search each view of a store that obeys limits.

    There is one search without a view, one for keywords and one for summaries if these are wanted, and one for raw
    texts if the first search returned too few of them.

    Args:
        store: The store.
        question: The question.
        n_sections: Number of records of each view.
        views: Views to rank.
    """
    section_views = [view for view in _SECTION_VIEWS if view in views]

    def search_view(view: View) -> FunctionRequest:
        return search_request(store, question, n_sections, {prefixed("view"): view})

    n_oversampled = oversample(n_sections)
    nearest, *view_hits = yield [search_request(store, question, n_oversampled), *map(search_view, section_views)]
    keys = set(map(_key, nearest))
    # An approximate index may return fewer records than it has.
    is_complete = len(nearest) < n_oversampled and all(_key(hit) in keys for hits in view_hits for hit in hits)
    rankings = {str(view): _select_view(nearest, view) for view in views}
    for view, hits in zip(section_views, view_hits, strict=True):
        rankings[view] += _select_view(hits, view)
    n_texts = len(_select_view(nearest, "raw")) + len(_select_view(nearest, None))
    if "raw" in views and not is_complete and n_texts < n_sections:
        [hits] = yield [search_view("raw")]
        rankings["raw"] += _select_view(hits, "raw")
    return ViewHits(_rank_with_other_chunks(rankings, nearest, views, n_sections), list(nearest))


def search_retrievers(
    store: RecordStore, question: str, n_sections: int, retriever_views: Sequence[View]
) -> Requests[ViewHits[Any]]:
    """Ask the retriever of each view.

    Args:
        store: Store over several retrievers, which selects one by the view that a search asks for.
        question: The question.
        n_sections: Number of records of each view. Retrievers have limits of their own.
        retriever_views: Views with a retriever.
    """
    requests = [search_request(store, question, n_sections, {prefixed("view"): view}) for view in retriever_views]
    answers = yield requests
    return ViewHits(dict(zip(map(str, retriever_views), answers, strict=True)))


def rank_hits_by_view(hits: Iterable[StoredChunk[RecordT]], views: Sequence[View] = VIEWS) -> ViewHits[RecordT]:
    """Rank the hits of a single retriever by their views."""
    nearest = list(_with_unique_ids(hits))
    hit_views = dict.fromkeys(hit.view for hit in nearest if hit.view in views)
    rankings = {str(view): _select_view(nearest, view) for view in hit_views}
    return ViewHits(_rank_with_other_chunks(rankings, nearest, views), nearest)


def _rank_with_other_chunks(
    rankings: dict[str, list[StoredChunk[RecordT]]],
    nearest: Sequence[StoredChunk[RecordT]],
    views: Sequence[View],
    n_sections: int | None = None,
) -> dict[str, list[StoredChunk[RecordT]]]:
    """Insert the chunks of other splitters in all rankings, each by its text, and remove repeated records.

    In one ranking only, they would be behind each section that two views found.

    Args:
        rankings: Records of each view.
        nearest: Records of the search without a view, best first, with the chunks of other splitters.
        views: Views to rank.
        n_sections: Number of records of each view. None keeps all.
    """
    other_chunks = _select_view(nearest, None)
    if other_chunks:
        found_rankings = {view: hits for view, hits in rankings.items() if hits}
        rankings = {views[0]: rankings.get(views[0], []), **found_rankings}
    rank_by_key = {_key(hit): rank for rank, hit in reversed(list(enumerate(nearest)))}
    ranked: dict[str, list[StoredChunk[RecordT]]] = {}
    for view, hits in rankings.items():
        in_order = sorted([*other_chunks, *hits], key=lambda hit: rank_by_key.get(_key(hit), len(nearest)))
        hit_by_key = {_key(hit): hit for hit in reversed(in_order)}
        ranked[view] = list(hit_by_key.values())[::-1][:n_sections]
    return ranked


def _select_view(hits: Iterable[StoredChunk[RecordT]], view: str | None) -> list[StoredChunk[RecordT]]:
    """Return the hits of a view. A store may ignore the filter, and users may have a metadata key of its name."""
    return [hit for hit in hits if hit.view == view]


def _with_unique_ids(hits: Iterable[StoredChunk[RecordT]]) -> Iterator[StoredChunk[RecordT]]:
    """Yield the hits, with new ids for chunks of other splitters that share an id and have different texts.

    Chunks of two stores may share an id.
    """
    text_by_id: dict[str, str] = {}
    for hit in hits:
        is_same = hit.view is not None or text_by_id.setdefault(hit.id, hit.text) == hit.text
        yield hit if is_same else replace(hit, id=stable_uuid(hit.id, hit.text))


def _key(chunk: StoredChunk[Any]) -> tuple[str, str | None]:
    return chunk.id, chunk.view
