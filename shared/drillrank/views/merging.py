"""Merge the rankings of several views into one (MC-indexing, section 3.3)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import numpy as np
import numpy.typing as npt

from drillrank.errors import InvalidInput, check_positive
from drillrank.explanation import Explanation, Term
from drillrank.settings import Preset, check_one_of, check_preset
from drillrank.views.extractive import VIEWS

ViewRanks = npt.NDArray[np.int64]
"""Rank of each section in one view, shape `(sections,)`: 1 for the best, 0 if the view does not rank the section."""
Merge = Literal["fusion", "union"]

RANK_OFFSET = 60  # of reciprocal rank fusion (Cormack et al. 2009)


@dataclass(frozen=True, slots=True)
class MergedSection:
    """A section that one or more views found.

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
    rankings: Mapping[str, Sequence[str]],
    k: int,
    weights: Mapping[str, float] | None = None,
    merge: Merge = "fusion",
) -> list[MergedSection]:
    """Return the best `k` sections of several rankings.

    MC-indexing takes the top k' ≈ 2k/3 of every view (2, 3 and 7 for k = 3, 5 and 10: Appendix E) and expects their
    union to have about k sections: that is `"union"`. With `"fusion"`, 2k/3 is rounded up, and the result has exactly k
    sections if the rankings have that many. Reciprocal rank fusion removes sections from a larger union and adds
    sections to a smaller one. Only ranks are compared, because the scores of different views have no common scale.

    Fusion with `weights` is weighted reciprocal rank fusion alone: no view has reserved places.

    Args:
        rankings: For each view, section ids from best to worst. A repeated section keeps its better rank, and the
            sections after it do not lose a rank.
        k: Number of sections to return.
        weights: Weight of each view, at least 0; 1 for a view that is not named. The sections of a view of weight 0
            come after all others.
        merge: `"fusion"` or `"union"`; see above.

    Returns:
        Sections by falling score: `min(k, number of different sections)`, or all of the union. Among equal scores the
        ranks in the views named first decide.

    Raises:
        InvalidInput: `k` is not a positive integer, a weight or its view is invalid, or `merge` is unknown.

    >>> merged = merge_views({"raw": ["a", "b", "c"], "summary": ["b", "d"]}, k=2)
    >>> [(section.section_id, section.ranks) for section in merged]
    [('b', {'raw': 2, 'summary': 1}), ('a', {'raw': 1})]
    """
    section_ids = list(dict.fromkeys(chain.from_iterable(rankings.values())))
    index_by_id = {id_: index for index, id_ in enumerate(section_ids)}
    ranks_by_view = {view: np.zeros(len(section_ids), dtype=np.int64) for view in rankings}
    for view, ranking in rankings.items():
        unique_ids = list(dict.fromkeys(ranking))
        ranks_by_view[view][[index_by_id[id_] for id_ in unique_ids]] = range(1, len(unique_ids) + 1)
    return [
        MergedSection(section_ids[section_index], score, ranks)
        for section_index, score, ranks in merge_ranks(ranks_by_view, k, weights, merge)
    ]


def merge_ranks(
    ranks_by_view: Mapping[str, ViewRanks], k: int, weights: Mapping[str, float] | None, merge: Merge
) -> list[tuple[int, float, dict[str, int]]]:
    """Merge as `merge_views` does, given ranks as arrays, which is faster for many sections.

    Args:
        ranks_by_view: For each view, the rank of each section, starting at 1, or 0 if the view does not rank it.
        k: Number of sections to return.
        weights: As for `merge_views`.
        merge: As for `merge_views`.

    Returns:
        Index of the section, its score and its ranks, by falling score.

    Raises:
        InvalidInput: as `merge_views`.

    >>> merge_ranks({"raw": np.array([1, 2, 0]), "summary": np.array([0, 1, 2])}, 1, None, "fusion")
    [(1, 0.03252247488101534, {'raw': 2, 'summary': 1})]
    """
    check_positive(k=k)
    check_weights(weights)
    check_one_of(Merge, merge=merge)
    if not ranks_by_view:
        return []
    ranks = np.array([*ranks_by_view.values()])  # [n_views, n_sections]
    sortable_ranks = np.where(ranks > 0, ranks, np.iinfo(np.int64).max)
    view_weights = np.array([[_weight(view, weights)] for view in ranks_by_view])
    # Sorted, so that the order of the views does not distinguish equal scores.
    scores = np.sort(np.where(ranks > 0, view_weights / (RANK_OFFSET + ranks), 0.0), axis=0).sum(axis=0)
    n_reserved = 0 if weights is not None and merge == "fusion" else _reserved_places(k, merge)
    is_reserved = sortable_ranks.min(axis=0) <= n_reserved
    best_first = np.lexsort((*sortable_ranks[::-1], -scores, ~is_reserved))
    is_eligible = is_reserved if merge == "union" else ranks.max(axis=0) > 0
    selected = best_first[is_eligible[best_first]]
    if merge == "fusion":
        selected = selected[:k]
    selected = selected[np.argsort(-scores[selected], kind="stable")]
    return [
        (
            section_index,
            float(scores[section_index]),
            {view: int(row[section_index]) for view, row in ranks_by_view.items() if row[section_index]},
        )
        for section_index in selected.tolist()
    ]


def explain_views(
    section: MergedSection,
    rank: int,
    name: str,
    k: int,
    weights: Mapping[str, float] | None,
    merge: Merge,
) -> Explanation:
    """Explain which views found a section, at which rank, and what each adds to its score.

    Args:
        section: A result of `merge_views`.
        rank: Rank of the section in that result; 1 for the best.
        name: Name of the section for a reader.
        k: As for `merge_views`.
        weights: As for `merge_views`.
        merge: As for `merge_views`.

    >>> merged = merge_views({"raw": ["a", "b", "c"], "summary": ["b", "d"]}, k=2)
    >>> print(explain_views(merged[0], 1, "The section", 2, None, "fusion"))
    1. The section: 0.03252
        raw view       summary view
    rank 2, weight 1 rank 1, weight 1
        +0.01613         +0.01639
    raw view +0.01613, summary view +0.01639 = 0.03252
    It has a place as one of the first 2 of a view.
    """
    terms = tuple(
        Term(f"{view} view", weight / (RANK_OFFSET + view_rank), text=f"rank {view_rank}, weight {weight:g}")
        for view, view_rank in section.ranks.items()
        for weight in [_weight(view, weights)]
    )
    n_reserved = _reserved_places(k, merge)
    if not terms:
        note = "No view ranks it: it comes last, in the order given."
    elif weights is not None and merge == "fusion":
        note = "The weighted sum decides."
    elif min(section.ranks.values()) <= n_reserved:
        note = f"It has a place as one of the first {n_reserved} of a view."
    else:
        note = f"No view has it among its first {n_reserved}: it fills up by its sum."
    return Explanation(rank, section.score, name, terms, note=note)


def _reserved_places(k: int, merge: Merge) -> int:
    """Return k' ≈ 2k/3, the number of places of each view.

    >>> [_reserved_places(k, "union") for k in (1, 3, 5, 10)]  # Appendix E: 1, 1 or 2, 3, and 6 or 7
    [1, 2, 3, 7]
    """
    return round(2 * k / 3) if merge == "union" else -(-2 * k // 3)


def complete_merge(merge: Merge | None, preset: Preset | None) -> Merge:
    """Return the way to merge, with the value of the preset or the default for None.

    Raises:
        InvalidInput: `merge` or `preset` is unknown.

    >>> complete_merge(None, "paper"), complete_merge("fusion", "paper")
    ('union', 'fusion')
    """
    check_preset(preset)
    if merge is not None:
        check_one_of(Merge, merge=merge)
        return merge
    return "union" if preset == "paper" else "fusion"


def _weight(view: str, weights: Mapping[str, float] | None) -> float:
    return float((weights or {}).get(view, 1.0))


def check_weights(weights: Mapping[str, float] | None) -> None:
    """Check that each weight belongs to a view and is a number of at least 0.

    Raises:
        InvalidInput: names the first invalid weight.

    >>> check_weights({"keyword": 5})
    Traceback (most recent call last):
    ...
    drillrank.errors.InvalidInput: weights must name views out of raw, keywords, summary, got 'keyword'.
    """
    for view, weight in (weights or {}).items():
        if view not in VIEWS:
            raise InvalidInput(f"weights must name views out of {', '.join(VIEWS)}, got {view!r:.200}.")
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < math.inf:
            raise InvalidInput(
                f"The weight of the view {view!r:.200} must be a number of at least 0, got {weight!r:.200}."
            )
