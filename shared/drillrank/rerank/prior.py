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
from collections.abc import Mapping, Sequence
from itertools import combinations
from numbers import Real
from typing import Any, Literal, NamedTuple

import numpy as np

from drillrank.errors import InvalidInput
from drillrank.likelihood.encoder import KAPPA
from drillrank.passages import Passage, Path
from drillrank.settings import check_one_of
from drillrank.vectors import Floats

Prior = Literal["retrieval", "cosine"]
RetrievalScores = Sequence[float | None]
Scored = tuple[float, dict[str, Any]]  # a score, and what led to it

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
    if prior is not None:
        check_one_of(Prior, prior=prior)
    return prior


class FirstStage(NamedTuple):
    """What the first stage says of documents: the candidates of one question, or what its paths begin with.

    Attributes:
        log_weights: Log P(d | first stage) up to a constant, all of it counted, shape (documents,).
        log_ranks: Logarithms of the ranks, shape (documents,).
        by_meaning: Whether the scores are cosines of meaning.
        starts: Of each path, the number of the document that it begins with; None where the documents are ranked.
    """

    log_weights: Floats
    log_ranks: Floats
    by_meaning: bool
    starts: Sequence[int] | None = None

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
        count = len(passages)
        scores = [None] * count if scores is None else scores
        check_paired(scores, passages)
        for location, score in enumerate(scores):
            if score is None:
                continue
            finite = issubclass(type(score), Real) and type(score) is not bool and math.isfinite(score)
            if not finite or (prior == "cosine" and abs(score) > 1 + _COSINE):
                why = ', which is no cosine: give prior="retrieval" for scores on other scales.'
                why = why if finite else ": give a finite number, or None where there is none."
                named = f"passage {location} (id {passages[location].id!r:.200})"
                raise InvalidInput(f"The first stage's score of {named} is {score!r:.200}{why}")
        places = [location for location, score in enumerate(scores) if score is not None]
        if prior == "cosine" and passages and not places:
            instead = 'give them, or prior="retrieval", which can do with the order.'
            raise InvalidInput(f'prior="cosine" needs scores, the cosine of each passage and the question: {instead}')
        if not places:
            ranks = np.log(np.arange(1, count + 1))
            return FirstStage(weight * (-WEIGHT * ranks - CUTOFF * np.exp(ranks)), ranks, by_meaning=False)
        known = np.array([scores[location] for location in places], dtype=np.float64)
        ranks = _filled(_log_ranks(known), places, count)
        by_rank = -WEIGHT * ranks - CUTOFF * np.exp(ranks)
        weights = KAPPA * _filled(known, places, count) if prior == "cosine" else by_rank
        return FirstStage(weight * weights, ranks, prior == "cosine")


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


def check_paired(scores: Sequence[object], candidates: Sequence[Passage | Path]) -> None:
    """Refuse scores that are not as many as the candidates.

    Raises:
        InvalidInput: the two differ in length.
    """
    if len(scores) != len(candidates):
        of = "paths" if candidates and isinstance(candidates[0], Path) else "passages"
        raise InvalidInput(f"{len(scores)} scores and {len(candidates)} {of} cannot be paired.")


def first_stage(
    prior: Prior | None,
    candidates: Sequence[Passage] | Sequence[Path],
    scores: RetrievalScores | None,
    weight: float = 1.0,
) -> FirstStage | None:
    """What the first stage says of passages, or of the first passages of paths; None where that is nothing.

    Raises:
        InvalidInput: as for `FirstStage.read`, or paths that begin with the same passage differ in its score.
    """
    if scores is not None:
        check_paired(scores, candidates)
    if prior is None or (prior == "retrieval" and all(score is None for score in scores or ())):
        return None
    passages = [item.passages[0] if isinstance(item, Path) else item for item in candidates]
    if not candidates or not isinstance(candidates[0], Path):
        return FirstStage.read(prior, passages, scores, weight)
    places: dict[str, int] = {}  # of the first path that begins with it
    for location, passage in enumerate(passages):
        places.setdefault(passage.id, location)
    known = None if scores is None else [scores[location] for location in places.values()]
    stage = FirstStage.read(prior, [passages[location] for location in places.values()], known, weight)
    for location, passage in enumerate(passages):
        if scores is not None and scores[location] != scores[places[passage.id]]:
            raise InvalidInput(
                f"Paths {places[passage.id]} and {location} begin with the same passage (id {passage.id!r:.200}), but "
                "their scores differ: the score of a path is the first stage's of its first passage."
            )
    numbers = {name: number for number, name in enumerate(places)}
    return stage._replace(starts=[numbers[passage.id] for passage in passages])


def divisor(details: Mapping[str, Any]) -> int:
    """What a log-probability was divided by to make a score: the target's tokens, or 1 where a formula adds them up."""
    return 1 if details.get("reduce") == "sum" else max(int(details["tokens"]), 1)


def posteriors(scored: Sequence[Scored], first_stage: FirstStage) -> list[Scored]:
    """Scores by likelihood, with the prior: of each candidate, in order; the details hold `log_prior`.

    Where words and meaning are counted, the best path of each document says what is known of it.

    >>> first_stage = FirstStage.read("retrieval", [Passage("a"), Passage("b")], [3.2, 1.5])
    >>> [round(score, 3) for score, _ in posteriors([(-2.0, {"tokens": 3}), (-2.0, {"tokens": 3})], first_stage)]
    [-2.032, -2.792]
    """
    starts = range(len(scored)) if first_stage.starts is None else first_stage.starts
    best: dict[int, Scored] = {}
    for start, one in zip(starts, scored, strict=True):
        if start not in best or one[0] > best[start][0]:
            best[start] = one
    known = []
    if best and all("log_meaning" in details for _, details in best.values()):
        totals = np.array([score * divisor(details) for score, details in best.values()])
        meaning = np.array([details["log_meaning"] for _, details in best.values()])
        known = [_log_ranks(totals - meaning), _log_ranks(meaning)]
    priors = log_prior(first_stage, known).tolist()
    return [
        (score + priors[start] / divisor(details), {**details, "log_prior": priors[start]})
        for start, (score, details) in zip(starts, scored, strict=True)
    ]


def log_prior(first_stage: FirstStage, by_likelihood: Sequence[Floats] = ()) -> Floats:
    """Log P(d | first stage) of all documents, natural, at most 0; the probabilities add up to 1.

    Args:
        first_stage: What the first stage says.
        by_likelihood: Log ranks of the documents by the words of the question and by meaning, where both are counted.

    >>> first_stage = FirstStage.read("retrieval", [Passage("a"), Passage("b")], [3.2, 1.5])
    >>> np.exp(log_prior(first_stage)).round(6).tolist()
    [0.90716, 0.09284]
    >>> np.exp(log_prior(first_stage, [np.log([1, 2]), np.log([2, 1])])).round(6).tolist()
    [0.5, 0.5]
    """
    if not len(first_stage.log_ranks):
        return first_stage.log_ranks
    known = by_likelihood[1:] if first_stage.by_meaning else by_likelihood
    explained = _explained(first_stage.log_ranks, known) if len(known) else 0.0
    logits = (1 - explained) * first_stage.log_weights
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


def _filled(known: Floats, places: Sequence[int], count: int) -> Floats:
    """Values at their places, their mean elsewhere."""
    values = np.full(count, known.mean())
    values[places] = known
    return values


def _explained(ranks: Floats, known: Sequence[Floats]) -> float:
    """R²: the share of the variance that a sum of what is known explains; what speaks against it explains nothing.

    The best weights of which none is negative are the least-squares weights of some of the parts.
    """
    target, parts = _standardised(ranks), [_standardised(part) for part in known]
    best = 0.0
    for size in range(1, len(parts) + 1):
        for some in combinations(parts, size):
            together = np.stack(some, axis=1)
            weights = np.linalg.lstsq(together, target, rcond=None)[0]
            if (weights >= 0).all():
                best = max(best, float(target @ together @ weights) / len(target))
    return best


def _standardised(ranks: Floats) -> Floats:
    """Mean 0 and variance 1; 0 for all where the ranks do not differ."""
    if np.ptp(ranks) <= _ROUNDING:
        return np.zeros(len(ranks))
    deviations = ranks - ranks.mean()
    standardised: Floats = deviations / deviations.std()
    return standardised
