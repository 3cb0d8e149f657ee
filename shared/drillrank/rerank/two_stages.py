"""Ranking in two stages: a fast ranker scores all candidates, and a slow one the best of them."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from drillrank.errors import check_positive
from drillrank.explanation import Explanation, Explanations, Term
from drillrank.passages import Item, Ranked, read_query
from drillrank.rerank.base import Candidates, CandidateScores, Rankable, Ranker
from drillrank.rerank.explaining import PRIOR, UNREAD
from drillrank.rerank.prior import Scored, divisor

if TYPE_CHECKING:
    from typing_extensions import Self

T = TypeVar("T")
Mask = npt.NDArray[np.bool_]


class TwoStageRanker(Ranker[Rankable, Item]):
    """Ranks all candidates with a fast ranker, and the best of them with a slow one.

    Candidates that the slow ranker did not read rank below all that it read, in the order of the fast ranker and with
    the same distances. The prior of the fast ranker counts in both stages.

    Args:
        first: Ranker that scores all candidates.
        second: Ranker that scores the best `read` of them.
        read: Number of candidates that the second ranker scores.

    `details` are those of the ranker that gave the score, with `read` (True if the second ranker scored the
    candidate), and `log_prior` if the first ranker has a prior.

    Raises:
        InvalidInput: `read` is below 1.

    >>> from drillrank import UPR
    >>> ranker = TwoStageRanker(UPR(), UPR("unigram+unigram"), read=1)
    >>> texts = ["Basel lies on the Rhine.", "Emma is a novel that Jane Austen wrote."]
    >>> [(item.passage.text[:5], item.details["read"]) for item in ranker.rank("Who wrote Emma?", texts)]
    [('Emma ', True), ('Basel', False)]
    """

    def __init__(self, first: Ranker[Rankable, Item], second: Ranker[Rankable, Item], read: int = 10) -> None:
        check_positive(read=read)
        self.first: Ranker[Rankable, Item] = first
        self.second: Ranker[Rankable, Item] = second
        self.read = read
        self.language_model = second.language_model
        self.prior, self.prior_weight = first.prior, first.prior_weight

    async def run_in_worker(self, function: Callable[[], T]) -> T:
        """Call a function on a thread that waits for the models of both rankers."""
        return await asyncio.to_thread(function)

    def _candidates(self, items: Iterable[Rankable], /) -> list[Item]:
        return self.second._candidates(items)

    def fitted(self, items: Iterable[Item]) -> Self:
        """Return a copy with both rankers fitted to the candidates."""
        known_items = list(items)
        return type(self)(self.first.fitted(known_items), self.second.fitted(known_items), self.read)

    def score(self, candidate_lists: Sequence[Candidates[Item]], /) -> list[CandidateScores]:
        """Score all candidates with the first ranker, and the best of each list with the second one."""
        if len(candidate_lists) > 1 and self._learns_from_candidates:
            return [self.score([candidates])[0] for candidates in candidate_lists]
        ranker = self.fitted(candidate_lists[0].items) if self._learns_from_candidates else self
        by_first = ranker.first.score(candidate_lists)
        read_masks = [_best_mask([score for score, _ in result.scored], self.read) for result in by_first]
        stages = ranker._read(candidate_lists, by_first, read_masks)
        return [
            CandidateScores(stage.join(), partial(stage.explain, candidates.query))
            for candidates, stage in zip(candidate_lists, stages, strict=True)
        ]

    def explain(
        self, query: str, ranking: Sequence[Ranked[Item]], candidates: Iterable[Rankable] | None = None
    ) -> Explanations:
        """Explain the scores of a ranking, as `LikelihoodRanker.explain` does; `details["read"]` tells the stages."""
        items = [item.passage for item in ranking] if candidates is None else self._candidates(candidates)
        indices = range(len(items)) if candidates is None else [item.details["position"] for item in ranking]
        read_mask = np.zeros(len(items), dtype=np.bool_)
        entries = []
        for item, index in zip(ranking, indices, strict=True):
            read_mask[index] = item.details.get("read", True)
            entries.append(replace(item, details={**item.details, "position": index}))
        candidate_list = Candidates(read_query(query), items)
        ranker = self.fitted(items) if self._learns_from_candidates else self
        [stage] = ranker._read([candidate_list], ranker.first.score([candidate_list]), [read_mask])
        return stage.explain(query, entries)

    @property
    def _learns_from_candidates(self) -> bool:
        return self.first.language_model.wants_fit or self.second.language_model.wants_fit

    def _read(
        self,
        candidate_lists: Sequence[Candidates[Item]],
        by_first: Sequence[CandidateScores],
        read_masks: Sequence[Mask],
    ) -> list[_TwoScores]:
        """Let the second ranker score the candidates of the masks, without the prior, which the first one counts."""
        subsets = [
            Candidates(candidates.query, [candidates.items[index] for index in np.flatnonzero(mask).tolist()])
            for candidates, mask in zip(candidate_lists, read_masks, strict=True)
        ]
        return list(map(_TwoScores, by_first, self.second.score(subsets), read_masks))


@dataclass(frozen=True)
class _TwoScores:
    """Scores of the candidates of one question by two rankers.

    Attributes:
        by_first: Scores of all candidates.
        by_second: Scores of the candidates that the second ranker read, in input order.
        read_mask: True for these candidates, shape (candidates,).
    """

    by_first: CandidateScores
    by_second: CandidateScores
    read_mask: Mask

    def join(self) -> list[Scored]:
        """Return one score for each candidate. What was not read ranks below what was read."""
        scored = list(self.by_first.scored)
        read_indices = np.flatnonzero(self.read_mask).tolist()
        lowest_by_first = min((scored[index][0] for index in read_indices), default=0.0)
        for index, (score, details) in zip(read_indices, self.by_second.scored, strict=True):
            prior = {name: value for name, value in scored[index][1].items() if name == "log_prior"}
            scored[index] = (score + sum(prior.values()) / divisor(details), {**details, **prior, "read": True})
        lowest = min((scored[index][0] for index in read_indices), default=0.0)
        for index in np.flatnonzero(~self.read_mask).tolist():
            score, details = scored[index]
            below = min(score + lowest - lowest_by_first, math.nextafter(lowest, -math.inf))
            changed = {name: False for name in details if name == "nothing_matched"} | {"read": False}
            scored[index] = (below, {**details, **changed})
        return scored

    def explain(self, query: str, ranking: Sequence[Ranked[Any]]) -> Explanations:
        """Explain entries, each by the ranker that scored it."""
        subset_indices = np.cumsum(self.read_mask) - 1  # [n_candidates]
        read, unread = [], []
        for item in ranking:
            index, details = item.details["position"], dict(item.details)
            log_prior = details.pop("log_prior", 0.0)
            if self.read_mask[index]:
                details["position"] = int(subset_indices[index])
                read.append(replace(item, score=item.score - log_prior / divisor(details), details=details))
            else:
                score, details_by_first = self.by_first.scored[index]
                if "log_prior" not in details_by_first:
                    score += log_prior / divisor(details)
                unread.append(replace(item, score=score))
        by_second, by_first = iter(self.by_second.explain(read)), iter(self.by_first.explain(unread))
        explanations = []
        for item in ranking:
            if self.read_mask[item.details["position"]]:
                explanation, name, value = next(by_second), PRIOR, item.details.get("log_prior", 0.0)
            else:
                explanation, name = next(by_first), UNREAD
                value = (item.score - explanation.score) * explanation.per
            explanations.append(_add_term(explanation, item.score, name, value))
        return Explanations(explanations, query)


def _best_mask(scores: Sequence[float], n_best: int) -> Mask:
    """Return True for the best candidates. Ties keep the input order."""
    mask = np.zeros(len(scores), dtype=np.bool_)
    mask[sorted(range(len(scores)), key=scores.__getitem__, reverse=True)[:n_best]] = True
    return mask


def _add_term(explanation: Explanation, score: float, name: str, value: float) -> Explanation:
    """Return the explanation of a score to which a term was added, unless it is 0."""
    added = (Term(name, value),) if value else ()
    return replace(explanation, score=score, terms=(*explanation.terms, *added))
