"""Retrieval over the views of sections in memory, and one ranking from several views (MC-indexing, section 3.3)."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from drillrank.errors import InvalidInput, check_positive
from drillrank.explanation import Explainable, Explanation, Explanations, Term
from drillrank.passages import check_query
from drillrank.retrieval import BM25Index, TextIndex, TfidfIndex
from drillrank.settings import check_one_of
from drillrank.structure import breadcrumb
from drillrank.text import check_language
from drillrank.views.extractive import VIEWS, View
from drillrank.views.views import SectionChunk

Ranks = npt.NDArray[np.int64]
RetrieverName = Literal["bm25", "tfidf"]
Expansion = Literal["neighbours", "parent"]

RANK_OFFSET = 60  # of reciprocal rank fusion (Cormack et al. 2009)
_RETRIEVERS: dict[str, type[BM25Index] | type[TfidfIndex]] = {"bm25": BM25Index, "tfidf": TfidfIndex}


@dataclass(frozen=True, slots=True)
class MergedSection:
    """A section as found by one or more views.

    Attributes:
        section_id: Identifier of the section.
        score: Sum of 1 / (60 + rank) over the views that rank the section, each times the view's weight; higher is
            better. Without weights at most views / 61.
        ranks: Rank of the section in each view that ranks it; 1 for the best.
    """

    section_id: str
    score: float
    ranks: Mapping[str, int]

    @property
    def best_rank(self) -> int | None:
        """The lowest rank in any view; None if no view ranks the section."""
        return min(self.ranks.values(), default=None)

    @property
    def matched_views(self) -> str:
        """The ranks on one line, for metadata that must be flat.

        >>> MergedSection("a", 0.03, {"raw": 2, "summary": 1}).matched_views
        'raw:2 summary:1'
        """
        return " ".join(f"{view}:{rank}" for view, rank in self.ranks.items())


def merge_views(
    rankings: Mapping[str, Sequence[str]], k: int, weights: Mapping[str, float] | None = None
) -> list[MergedSection]:
    """The best `k` sections of several rankings.

    MC-indexing takes the top k' = 2k/3 (here rounded up) of every view and expects their union to hold about k
    sections. Here it is exactly k as long as the rankings hold that many: a larger union loses, and a smaller one
    gains, by reciprocal rank fusion. Only ranks are compared, since the scores of different views have no common
    scale.

    With `weights` it is weighted reciprocal rank fusion alone: no view has seats of its own.

    Args:
        rankings: For each view, section ids from best to worst. A section named twice keeps its better rank, and
            takes no second one from those after it.
        k: Number of sections wanted.
        weights: How much each view counts, at least 0; 1 for a view that is not named. A view of weight 0 still
            brings sections, after all others.

    Returns:
        `min(k, number of different sections)` sections by falling score. Among equal scores the ranks in the views
        named first decide.

    Raises:
        InvalidInput: `k` is not a positive integer, or a weight is no number from 0 on.

    >>> merged = merge_views({"raw": ["a", "b", "c"], "summary": ["b", "d"]}, k=2)
    >>> [(section.section_id, section.ranks) for section in merged]
    [('b', {'raw': 2, 'summary': 1}), ('a', {'raw': 1})]
    """
    numbers: dict[str, int] = {}
    for ranking in rankings.values():
        for section_id in ranking:
            numbers.setdefault(section_id, len(numbers))
    ranks = {view: np.zeros(len(numbers), dtype=np.int64) for view in rankings}
    for view, ranking in rankings.items():
        for rank, section_id in enumerate(dict.fromkeys(ranking), start=1):
            ranks[view][numbers[section_id]] = rank
    names = list(numbers)
    return [MergedSection(names[number], score, own) for number, score, own in merge_ranks(ranks, k, weights)]


def merge_ranks(
    ranks: Mapping[str, Ranks], k: int, weights: Mapping[str, float] | None = None
) -> list[tuple[int, float, dict[str, int]]]:
    """`merge_views` for sections that are numbered: of many that are ranked only the best are looked at one by one.

    Args:
        ranks: For each view, the rank of each section, from 1 on, or 0 where the view does not rank it.
        k: Number of sections wanted.
        weights: As for `merge_views`.

    Returns:
        Number of the section, its score and its ranks, by falling score.

    Raises:
        InvalidInput: as `merge_views`.

    >>> merge_ranks({"raw": np.array([1, 2, 0]), "summary": np.array([0, 1, 2])}, k=1)
    [(1, 0.03252247488101534, {'raw': 2, 'summary': 1})]
    """
    check_positive(k=k)
    check_weights(weights)
    if not ranks:
        return []
    top = _seats(k, weights)
    of_views = np.array([*ranks.values()])
    in_order = np.where(of_views > 0, of_views, np.iinfo(np.int64).max)
    ranked = np.flatnonzero(of_views.any(axis=0))
    if len(ranked) > k:
        weight = np.array([_weight(view, weights) for view in ranks])
        sums = weight @ np.where(of_views > 0, 1 / (RANK_OFFSET + of_views), 0.0)
        seated = (in_order[:, ranked] <= top).any(axis=0)
        least = np.partition(sums[ranked], -k)[-k]
        ranked = ranked[seated | (sums[ranked] >= least * (1 - 1e-9))]
    merged = []
    for number in ranked[np.lexsort(in_order[::-1, ranked])].tolist():
        own = {view: int(of_view[number]) for view, of_view in ranks.items() if of_view[number]}
        # Exactly rounded sums, so that the order of the views cannot tell equal scores apart.
        merged.append((number, math.fsum(_weight(view, weights) / (RANK_OFFSET + own[view]) for view in own), own))
    chosen = sorted(merged, key=lambda section: (min(section[2].values()) > top, -section[1]))[:k]
    return sorted(chosen, key=lambda section: -section[1])


def explain_views(
    section: MergedSection, rank: int, name: str, k: int, weights: Mapping[str, float] | None = None
) -> Explanation:
    """Which views found a section, at which rank, and what each adds to its score.

    Args:
        section: What `merge_views` returned.
        rank: Its place there, from 1 on.
        name: What a reader knows it by.
        k: As for `merge_views`.
        weights: As for `merge_views`.

    >>> merged = merge_views({"raw": ["a", "b", "c"], "summary": ["b", "d"]}, k=2)
    >>> print(explain_views(merged[0], 1, "The section", k=2))
    1. The section: 0.03252
        raw view       summary view
    rank 2, weight 1 rank 1, weight 1
        +0.01613         +0.01639
    raw view +0.01613, summary view +0.01639 = 0.03252
    It has a place as one of the first 2 of a view.
    """
    views = tuple(
        Term(f"{view} view", weight / (RANK_OFFSET + own), text=f"rank {own}, weight {weight:g}")
        for view, own in section.ranks.items()
        for weight in [_weight(view, weights)]
    )
    first = _seats(k, weights)
    if not views:
        note = "No view ranks it: it comes last, in the order given."
    elif weights is not None:
        note = "The weighted sum decides."
    elif min(section.ranks.values()) <= first:
        note = f"It has a place as one of the first {first} of a view."
    else:
        note = f"No view has it among its first {first}: it fills up by its sum."
    return Explanation(rank, section.score, name, views, note=note)


def _seats(k: int, weights: Mapping[str, float] | None) -> int:
    """How many of the first of each view have a place before all others: 2k/3, or none where weights decide."""
    return -(-2 * k // 3) if weights is None else 0


def _weight(view: str, weights: Mapping[str, float] | None) -> float:
    return float((weights or {}).get(view, 1.0))


def check_weights(weights: Mapping[str, float] | None) -> None:
    """Reject weights that are no numbers from 0 on.

    Raises:
        InvalidInput: names the first one.
    """
    for view, weight in (weights or {}).items():
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < math.inf:
            raise InvalidInput(f"The weight of the view {view!r} must be a number from 0 on; not {weight!r}.")


def expanded(
    found: Sequence[MergedSection], around: Callable[[str], Iterable[str]]
) -> list[tuple[MergedSection, str | None]]:
    """Each section found, and after it those around it, with its score; no section twice.

    Args:
        found: Sections by falling score.
        around: From a section id to those of the sections around it.

    Returns:
        Sections, and for those that were not found the id of the one that they stand around.

    >>> found = [MergedSection("b", 0.03, {"raw": 1}), MergedSection("c", 0.02, {"raw": 2})]
    >>> [(section.section_id, origin) for section, origin in expanded(found, {"b": "ac", "c": "bd"}.get)]
    [('b', None), ('a', 'b'), ('c', None), ('d', 'c')]
    """
    seen = {section.section_id for section in found}
    result: list[tuple[MergedSection, str | None]] = []
    for section in found:
        result.append((section, None))
        for neighbour in around(section.section_id):
            if neighbour not in seen:
                seen.add(neighbour)
                result.append((MergedSection(neighbour, section.score, {}), section.section_id))
    return result


class ViewText(NamedTuple):
    """What the index reads of a `SectionChunk`, for chunks that live elsewhere, such as in a framework's nodes."""

    section_id: str
    view: View
    indexed_text: str


class MultiViewIndex:
    r"""Sections, ranked in each view separately and merged (MC-indexing, section 3.3).

    A view ranks only texts that score above 0. Sections that no view ranks come last, in the order given, with score
    0, so that a search finds `top_n` sections wherever there are as many.

    Args:
        chunks: The views of the sections of any number of documents; every section needs its raw view.
        retriever: `"bm25"` or `"tfidf"`: one index for each view, in memory.
        weights: How much each view counts; None takes the best of every view: see `drillrank.views.merge_views`.
        language: Whose stemmer words go through: one of `drillrank.text.LANGUAGES`.

    Raises:
        InvalidInput: a weight is below 0, the retriever or a view is unknown, or the raw view of a section is missing.

    >>> from drillrank.structure import parse_document
    >>> from drillrank.views import section_chunks
    >>> text = "# Foxes\n\nThey hunt.\n\n# Whales\n\nThey sing.\n\n# Owls\n\nThey hoot.\n"
    >>> chunks = section_chunks(parse_document(text), "animals")
    >>> best = MultiViewIndex(chunks).search("Who sings?", top_n=1)[0]
    >>> best.matched_views, [chunk.path for chunk in chunks if chunk.id == best.section_id]
    ('raw:1 keywords:1 summary:1', [('Whales',)])
    """

    def __init__(
        self,
        chunks: Iterable[ViewText | SectionChunk],
        retriever: RetrieverName = "bm25",
        weights: Mapping[str, float] | None = None,
        language: str = "english",
    ) -> None:
        check_one_of(RetrieverName, retriever=retriever)
        check_language(language)
        check_weights(weights)
        self.retriever = retriever
        self.weights = weights
        self.language = language
        by_view: dict[str, list[tuple[int, ViewText | SectionChunk]]] = {view: [] for view in VIEWS}
        for number, chunk in enumerate(chunks):
            if chunk.view not in by_view:
                raise InvalidInput(f"Unknown view {chunk.view!r} of section {chunk.section_id!r}; known: {VIEWS}.")
            by_view[chunk.view].append((number, chunk))
        raw = [chunk for _, chunk in by_view["raw"]]
        self._names = {chunk.section_id: breadcrumb(chunk.path) for chunk in raw if isinstance(chunk, SectionChunk)}
        self._ids = list(dict.fromkeys(chunk.section_id for chunk in raw))
        number_of = {section_id: number for number, section_id in enumerate(self._ids)}
        orphans = {chunk.section_id for of_view in by_view.values() for _, chunk in of_view} - number_of.keys()
        if orphans:
            raise InvalidInput(f"{len(orphans)} sections have no raw view, for example {min(orphans)!r}.")
        self._chunks: dict[str, Ranks] = {}
        self._sections: dict[str, Ranks] = {}
        self._indexes: dict[str, TextIndex] = {}
        for view, of_view in by_view.items():
            self._chunks[view] = np.array([number for number, _ in of_view], dtype=np.int64)
            self._sections[view] = np.array([number_of[chunk.section_id] for _, chunk in of_view], dtype=np.int64)
            self._indexes[view] = _RETRIEVERS[retriever](
                [chunk.indexed_text for _, chunk in of_view], language=language
            )

    def search(self, query: str, top_n: int = 5, among: Collection[int] | None = None) -> Explainable[MergedSection]:
        """The best sections for a query, best first, each once.

        Args:
            query: The question.
            top_n: Sections wanted.
            among: Numbers of the chunks that may be seen, in the order in which they were given; None for all. A
                section needs its raw view among them. Ranks are those among these; how rare words are is counted in
                all chunks.

        Returns:
            Sections; `explain` of them says which views found each, at which rank and with which weight.

        Raises:
            InvalidInput: the query is blank, or `top_n` is not a positive integer.
        """
        check_query(query)
        check_positive(top_n=top_n)
        seen = None if among is None else np.fromiter(among, dtype=np.int64)
        raw = self._sections["raw"]
        if seen is not None:
            raw = raw[np.isin(self._chunks["raw"], seen)]
        visible = np.zeros(len(self._ids), dtype=bool)
        visible[raw] = True
        ranks = {view: self._ranks(view, query, seen, visible) for view in VIEWS}
        merged = merge_ranks(ranks, top_n, self.weights)
        visible[[number for number, _, _ in merged]] = False
        unranked = islice(dict.fromkeys(raw[visible[raw]].tolist()), top_n - len(merged))
        found = [MergedSection(self._ids[number], score, own) for number, score, own in merged]
        found += [MergedSection(self._ids[number], 0.0, {}) for number in unranked]
        return Explainable(found, partial(self._explained, query, found, top_n))

    async def asearch(
        self, query: str, top_n: int = 5, among: Collection[int] | None = None
    ) -> Explainable[MergedSection]:
        """As `search`, without blocking the event loop."""
        return await asyncio.to_thread(self.search, query, top_n, among)

    def search_many(self, queries: Sequence[str], top_n: int = 5) -> list[Explainable[MergedSection]]:
        """`search` for each question."""
        return [self.search(query, top_n) for query in queries]

    def _explained(
        self, query: str, found: Sequence[MergedSection], top_n: int, some: Sequence[MergedSection]
    ) -> Explanations:
        ranks = {section.section_id: rank for rank, section in enumerate(found, 1)}
        names = ((one, self._names.get(one.section_id) or one.section_id) for one in some)
        return Explanations(
            (explain_views(one, ranks[one.section_id], name, top_n, self.weights) for one, name in names), query
        )

    def _ranks(self, view: str, query: str, seen: Ranks | None, visible: npt.NDArray[np.bool_]) -> Ranks:
        """Of each section in the view, from 1 on; 0 of those whose text there does not match or may not be seen."""
        scores = self._indexes[view].scores(query)
        found = np.flatnonzero(scores > 0)
        if seen is not None:
            found = found[np.isin(self._chunks[view][found], seen)]
        best_first = self._sections[view][found[np.argsort(-scores[found], kind="stable")]]
        best_first = best_first[visible[best_first]]
        first = np.sort(np.unique(best_first, return_index=True)[1])  # a section may have several texts in a view
        ranks = np.zeros(len(visible), dtype=np.int64)
        ranks[best_first[first]] = np.arange(1, len(first) + 1)
        return ranks
