"""The prior of a passage: what the first stage thought of it, as far as the likelihood does not know it already.

    log P(d | q)           = log P(q | d) + log P(d | first stage) + const
    log P(d | first stage) = (1 - R²) κ s_d + const                        "cosine": s_d is that of a sentence encoder
                           = (R² - 1) (β log rank_d + γ rank_d) + const    "retrieval": scores of any other kind

where scores are given; otherwise the prior is uniform. Both are multiplied by `prior_weight`, which is 1 unless
questions of one's own say otherwise (`drillrank tune`).

A cosine has a scale: exp(κ cos) is what an encoder trained by InfoNCE takes for p(q | d) / p(q). It is the token of
meaning of `st:` models (`drillrank.likelihood.encoder`), so that words after a dense retriever and a
model of words and meaning with the same encoder are one formula, and rank alike.

Other retrievers score in units of their own: BM25, sums of reciprocal ranks. What they share is an order, and ranks
follow Zipf's law with a cutoff, P(d) ∝ rank^-β e^(-γ rank): no increasing function of the scores changes anything.
Equal scores share the mean of their log ranks. β and γ are those under which the ranking is nowhere significantly worse
than the first stage alone (`python -m tests.benchmarks never_worse`).

R² is the share of the log ranks' variance that a likelihood of words and meaning (`st:`) explains, so that it is not
counted twice: by words and meaning of a ranking, by meaning alone of a cosine, which is no count of words. After a
cosine of the same encoder it is 1 and the prior uniform. To a likelihood without meaning R² is 0: words that the first
stage read, too, count twice, but half of what a fusion says is news, and is worth more than the words are overrated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from numbers import Real
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from drillrank.errors import InvalidInput
from drillrank.likelihood.encoder import KAPPA
from drillrank.passages import Passage, Path
from drillrank.rerank.base import RetrievalScores, Scored, divisor

Prior = Literal["retrieval", "cosine"]
Floats = npt.NDArray[np.float64]

# Chosen on SQuAD's and NQ's questions, no part held out, behind BM25, MiniLM and their fusion, 10 to 50 candidates:
# of those without a significant loss at top-1, top-3 or top-5, the gentlest.
WEIGHT, CUTOFF = 3.0, 0.2  # β, γ
NO_PRIOR = 'Scores of the first stage count with prior="retrieval" or prior="cosine"; this ranker has no prior.'
_COSINE = 1e-3  # by which the rounding of half precision can lift a cosine above 1
_ROUNDING = 1e-6  # of the largest score: stores keep cosines in float32


def check_prior(prior: Prior | None) -> Prior | None:
    """The prior itself, once it is known to be one.

    Raises:
        InvalidInput: it is neither `"retrieval"` nor `"cosine"` nor None.
    """
    if prior not in (*get_args(Prior), None):
        raise InvalidInput(f'The prior of passages is "retrieval", "cosine" or None, not {prior!r:.200}.')
    return prior


def check_prior_weight(weight: float) -> None:
    """Refuse what is no positive number.

    Raises:
        InvalidInput: says what was given.
    """
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < math.inf:
        raise InvalidInput(f"prior_weight is a positive number, 1 for the prior as it is; not {weight!r:.200}.")


def scores_by_question(
    prior: Prior | None, scores: Sequence[RetrievalScores | None] | None, questions: int
) -> Sequence[RetrievalScores | None]:
    """The first stage's scores for each of several questions; None for a question where none is known.

    Raises:
        InvalidInput: there are scores and no prior, or not as many lists of scores as questions.
    """
    if scores is None:
        return [None] * questions
    if prior is None:
        raise InvalidInput(NO_PRIOR)
    if len(scores) != questions:
        raise InvalidInput(f"{len(scores)} lists of scores and {questions} questions cannot be paired.")
    return scores


class FirstStage(NamedTuple):
    """What the first stage says of the candidates of one question.

    Attributes:
        log_weights: Log P(d | first stage) up to a constant, all of it counted, shape (candidates,).
        log_ranks: Logarithms of the ranks, shape (candidates,).
        by_meaning: Whether the scores are cosines of meaning.
    """

    log_weights: Floats
    log_ranks: Floats
    by_meaning: bool

    @staticmethod
    def read(
        prior: Prior, passages: Sequence[Passage], scores: RetrievalScores | None, weight: float = 1.0
    ) -> FirstStage:
        """Scores, checked.

        A passage whose score is None has the mean of the others: nothing speaks for it or against it. Where all are
        None, or `scores` is, the passages are in the order of their ranks.

        Raises:
            InvalidInput: the two differ in length, a score is not a finite number, or, for cosines, one is not between
                -1 and 1 or all are missing.

        >>> passages = [Passage("a"), Passage("b"), Passage("c")]
        >>> np.exp(FirstStage.read("retrieval", passages, [0.4, 0.9, 0.1]).log_ranks).round(6).tolist()
        [2.0, 1.0, 3.0]
        """
        given = _checked(passages, scores)
        places = [place for place, score in enumerate(given) if score is not None]
        known = np.array([score for score in given if score is not None], dtype=np.float64)
        if prior == "cosine":
            if passages and not places:
                raise InvalidInput(
                    'prior="cosine" needs scores, the cosine of each passage and the question, and there are none: '
                    'give them, or prior="retrieval", which can do with the order.'
                )
            for place, score in zip(places, known.tolist(), strict=True):
                if abs(score) > 1 + _COSINE:
                    raise InvalidInput(
                        f"The first stage's score of passage {place} (id {passages[place].id!r}) is {given[place]!r}, "
                        'which is no cosine: give prior="retrieval" for scores on other scales.'
                    )
        count = len(given)
        ranks = _filled(_log_ranks(known), places, count) if places else np.log(np.arange(1, count + 1))
        by_meaning = prior == "cosine" and bool(places)
        weights = KAPPA * _filled(known, places, count) if by_meaning else -WEIGHT * ranks - CUTOFF * np.exp(ranks)
        return FirstStage(weight * weights, ranks, by_meaning)


def first_stage(
    prior: Prior | None, passages: Sequence[Passage], scores: RetrievalScores | None, weight: float
) -> FirstStage | None:
    """What the first stage says; None for the uniform prior, where it says nothing.

    Raises:
        InvalidInput: as for `FirstStage.read`.
    """
    if scores is not None:
        check_paired(scores, passages)
    if prior is None or (prior == "retrieval" and all(score is None for score in scores or ())):
        return None
    return FirstStage.read(prior, passages, scores, weight)


def check_paired(scores: RetrievalScores, passages: Sequence[Passage]) -> None:
    """Refuse scores that are not as many as the passages.

    Raises:
        InvalidInput: the two differ in length.
    """
    if len(scores) != len(passages):
        raise InvalidInput(f"{len(scores)} scores and {len(passages)} passages cannot be paired.")


def _checked(passages: Sequence[Passage], scores: RetrievalScores | None) -> list[float | None]:
    given: list[float | None] = [None] * len(passages) if scores is None else list(scores)
    check_paired(given, passages)
    for place, (passage, score) in enumerate(zip(passages, given, strict=True)):
        if score is not None and not _is_finite(score):
            raise InvalidInput(
                f"The first stage's score of passage {place} (id {passage.id!r}) is {score!r}: give a finite number, "
                "or None where there is none."
            )
    return given


def _is_finite(score: Any) -> bool:
    return issubclass(type(score), Real) and type(score) is not bool and math.isfinite(score)


def _filled(known: Floats, places: Sequence[int], count: int) -> Floats:
    """Values at their places, their mean elsewhere."""
    values = np.full(count, known.mean())
    values[places] = known
    return values


def posteriors(scored: Sequence[Scored], first_stage: FirstStage) -> list[Scored]:
    """Scores by likelihood, with the prior: of each candidate, in order; the details hold `log_prior`.

    >>> first_stage = FirstStage.read("retrieval", [Passage("a"), Passage("b")], [3.2, 1.5])
    >>> [round(score, 3) for score, _ in posteriors([(-2.0, {"tokens": 3}), (-2.0, {"tokens": 3})], first_stage)]
    [-2.032, -2.792]
    """
    priors = log_prior(first_stage, _words_and_meaning(scored)).tolist()
    return [
        (score + prior / divisor(details), {**details, "log_prior": prior})
        for (score, details), prior in zip(scored, priors, strict=True)
    ]


def _words_and_meaning(scored: Sequence[Scored]) -> list[Floats]:
    """Log rank of every candidate by words and by meaning, shape (candidates,); nothing where it has no meaning."""
    if not scored or any("log_meaning" not in details for _, details in scored):
        return []
    totals = np.array([score * divisor(details) for score, details in scored])
    meaning = np.array([details["log_meaning"] for _, details in scored])
    return [_log_ranks(totals - meaning), _log_ranks(meaning)]


def log_prior(first_stage: FirstStage, by_likelihood: Sequence[Floats] = ()) -> Floats:
    """Log P(d | first stage) of all candidates, natural, at most 0; the probabilities add up to 1.

    Args:
        first_stage: What the first stage says.
        by_likelihood: Log ranks of the candidates by the words of the question and by meaning, where both are counted.

    >>> first_stage = FirstStage.read("retrieval", [Passage("a"), Passage("b")], [3.2, 1.5])
    >>> np.exp(log_prior(first_stage)).round(6).tolist()
    [0.90716, 0.09284]
    >>> np.exp(log_prior(first_stage, [np.log([1, 2]), np.log([2, 1])])).round(6).tolist()
    [0.5, 0.5]
    """
    if not len(first_stage.log_ranks):
        return first_stage.log_ranks
    known = by_likelihood[1:] if first_stage.by_meaning else by_likelihood
    logits = (1 - _explained(first_stage.log_ranks, known)) * first_stage.log_weights
    logs: Floats = logits - np.logaddexp.reduce(logits)
    return logs


def _log_ranks(scores: Floats) -> Floats:
    """Of scores that differ by no more than rounding, each has the mean of their log ranks."""
    order = np.argsort(-scores)
    largest = np.abs(scores).max()
    falls = -np.diff(scores[order] / largest) if largest else np.zeros(len(scores) - 1)
    group = np.concatenate([[0], np.cumsum(falls > _ROUNDING)])
    means = np.bincount(group, np.log(np.arange(1, len(scores) + 1))) / np.bincount(group)
    logs = np.empty(len(scores))
    logs[order] = means[group]
    return logs


def _explained(ranks: Floats, known: Sequence[Floats]) -> float:
    """R²: the share of the variance that a sum of what is known explains; what speaks against it explains nothing.

    The best weights of which none is negative are the least-squares weights of some of the parts.
    """
    own, parts = _standardised(ranks), [_standardised(part) for part in known]
    best = 0.0
    for size in range(1, len(parts) + 1):
        for some in combinations(parts, size):
            together = np.stack(some, axis=1)
            weights = np.linalg.lstsq(together, own, rcond=None)[0]
            if (weights >= 0).all():
                best = max(best, float(own @ together @ weights) / len(own))
    return best


def _standardised(ranks: Floats) -> Floats:
    """Mean 0 and variance 1; 0 for all where the ranks do not differ."""
    if np.ptp(ranks) <= _ROUNDING:
        return np.zeros(len(ranks))
    deviations = ranks - ranks.mean()
    standardised: Floats = deviations / deviations.std()
    return standardised


class PathStarts(NamedTuple):
    """What the first stage says of the documents that paths begin with.

    Attributes:
        first_stage: Of each document, in the order of the paths.
        places: Of each, where in the list of paths those are that begin with it.
    """

    first_stage: FirstStage
    places: list[list[int]]

    @staticmethod
    def read(
        prior: Prior | None, paths: Sequence[Path], scores: RetrievalScores | None, weight: float = 1.0
    ) -> PathStarts | None:
        """Scores of the paths' first documents, one for each path, checked; None where they say nothing.

        Raises:
            InvalidInput: as for `FirstStage.read`, or paths that begin with the same document differ in its score.
        """
        if scores is not None and len(scores) != len(paths):
            raise InvalidInput(f"{len(scores)} scores and {len(paths)} paths cannot be paired.")
        places: dict[str, list[int]] = {}
        for place, path in enumerate(paths):
            places.setdefault(path.ids[0], []).append(place)
        starts = [paths[same[0]].passages[0] for same in places.values()]
        known = None if scores is None else [scores[same[0]] for same in places.values()]
        first = first_stage(prior, starts, known, weight)
        for same in places.values():
            if scores is not None and any(scores[place] != scores[same[0]] for place in same):
                raise InvalidInput(
                    f"Paths {same[0]} and {same[-1]} begin with the same passage (id {paths[same[0]].ids[0]!r:.200}), "
                    "but their scores differ: the score of a path is the first stage's of its first passage."
                )
        return None if first is None else PathStarts(first, list(places.values()))

    def posteriors(self, scored: Sequence[Scored]) -> list[Scored]:
        """Scores of the paths by likelihood, with the prior, in order; the details hold `log_prior`."""
        best = [max((scored[place] for place in same), key=lambda item: item[0]) for same in self.places]
        found = list(scored)
        for same, (_, details) in zip(self.places, posteriors(best, self.first_stage), strict=True):
            log_prior = details["log_prior"]
            for place in same:
                score, known = scored[place]
                found[place] = (score + log_prior / divisor(known), {**known, "log_prior": log_prior})
        return found
