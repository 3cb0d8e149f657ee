"""One result list from several views of the same sections (MC-indexing, section 3.3)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from drillrank.errors import InvalidInput
from drillrank.explanation import Explanation, Term

Ranks = npt.NDArray[np.int64]

RANK_OFFSET = 60  # of reciprocal rank fusion (Cormack et al. 2009)


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
    if not isinstance(k, int) or isinstance(k, bool) or k < 1:
        raise InvalidInput(f"k is the number of sections wanted, a positive integer; not {k!r}.")
    check_weights(weights)
    weight = {view: _weight(view, weights) for view in ranks}
    top = seats(k, weights)
    # Exactly rounded sums, so that the order of the views cannot tell equal scores apart.
    merged = [
        (number, math.fsum(weight[view] / (RANK_OFFSET + rank) for view, rank in own.items()), own)
        for number, own in _shortlist(ranks, weight, k, top)
    ]
    chosen = sorted(merged, key=lambda section: (min(section[2].values()) > top, -section[1]))[:k]
    return sorted(chosen, key=lambda section: -section[1])


def _shortlist(
    ranks: Mapping[str, Ranks], weight: Mapping[str, float], k: int, top: int
) -> Iterator[tuple[int, dict[str, int]]]:
    """Sections with their ranks, among them the best `k`; first those that the first view ranks, as it ranks them."""
    if not ranks:
        return
    of_views = np.array([*ranks.values()])
    in_order = np.where(of_views > 0, of_views, np.iinfo(np.int64).max)
    ranked = np.flatnonzero(of_views.any(axis=0))
    sums = np.array([*weight.values()]) @ np.where(of_views > 0, 1 / (RANK_OFFSET + of_views), 0.0)
    if len(ranked) > k:
        seated = (in_order[:, ranked] <= top).any(axis=0)
        least = np.partition(sums[ranked], -k)[-k]
        ranked = ranked[seated | (sums[ranked] >= least * (1 - 1e-9))]
    for number in ranked[np.lexsort(in_order[::-1, ranked])].tolist():
        yield number, {view: int(of_view[number]) for view, of_view in ranks.items() if of_view[number]}


def seats(k: int, weights: Mapping[str, float] | None) -> int:
    """How many of the first of each view have a place before all others: 2k/3, or none where weights decide."""
    return -(-2 * k // 3) if weights is None else 0


def _weight(view: str, weights: Mapping[str, float] | None) -> float:
    return 1.0 if weights is None else float(weights.get(view, 1.0))


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
    weighted = ((view, own, _weight(view, weights)) for view, own in section.ranks.items())
    views = tuple(
        Term(f"{view} view", weight / (RANK_OFFSET + own), text=f"rank {own}, weight {weight:g}")
        for view, own, weight in weighted
    )
    first = seats(k, weights)
    if not views:
        note = "No view ranks it: it comes last, in the order given."
    elif weights is not None:
        note = "The weighted sum decides."
    elif min(section.ranks.values()) <= first:
        note = f"It has a place as one of the first {first} of a view."
    else:
        note = f"No view has it among its first {first}: it fills up by its sum."
    return Explanation(rank, section.score, name, views, note=note)


def check_weights(weights: Mapping[str, float] | None) -> None:
    """Reject weights that are no numbers from 0 on.

    Raises:
        InvalidInput: names the first one.
    """
    for view, weight in (weights or {}).items():
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < math.inf:
            raise InvalidInput(f"The weight of the view {view!r} must be a number from 0 on; not {weight!r}.")
