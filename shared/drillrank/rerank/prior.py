"""Prior probability of a passage from the first stage, as far as the likelihood does not include it already.

    log P(d | q)           = log P(q | d) + log P(d | first stage) + const
    log P(d | first stage) = (1 - R²) κ s_d + const                        "cosine": s_d is that of a sentence encoder
                           = (R² - 1) (β log rank_d + γ rank_d) + const    "retrieval": scores of any other kind

Without scores the prior is uniform. Both formulas are multiplied by `prior_weight`, which is 1 unless the user's own
questions suggest another weight (`drillrank tune`).

A cosine has a scale: exp(κ cos) estimates p(q | d) / p(q) for an encoder trained by InfoNCE. It is the token of meaning
of `st:` models (`drillrank.likelihood.encoder`), so words after a dense retriever, and a model of words and meaning
with the same encoder, are one formula and rank alike.

Other retrievers have scores in units of their own, such as BM25 or sums of reciprocal ranks. They share an order, and
ranks follow Zipf's law with a cutoff, P(d) ∝ rank^-β e^(-γ rank). So no increasing function of the scores changes the
prior. Equal scores share the mean of their log ranks. β and γ are those for which the ranking is not significantly
worse than the first stage alone on any data set (`python -m benchmarks never_worse`).

R² is the share of the log ranks' variance that a likelihood of words and meaning (`st:`) explains, so that it does not
count twice. For the prior "retrieval" both words and meaning explain it, and for "cosine" only meaning, because a
cosine does not count words. After a cosine of the same encoder R² is 1 and the prior uniform. For a likelihood without
meaning R² is 0: words that the first stage also read count twice, but half of a fusion's information is new, and that
is worth more than the error in the words.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from numbers import Real
from typing import Any, Literal

import numpy as np

from drillrank.errors import InvalidInput
from drillrank.likelihood.encoder import KAPPA
from drillrank.passages import Passage, Path
from drillrank.settings import check_one_of
from drillrank.vectors import Floats

Prior = Literal["retrieval", "cosine"]
RetrievalScores = Sequence[float | None]
Scored = tuple[float, dict[str, Any]]
"""Score of a candidate, and its details."""

# Chosen on SQuAD's and NQ's questions, without a held-out part, behind BM25, MiniLM and their fusion, 10 to 50
# candidates: the weakest of those without a significant loss at top-1, top-3 or top-5.
WEIGHT, CUTOFF = 3.0, 0.2  # β, γ
NO_PRIOR = 'This ranker has no prior, so it takes no scores. Set prior="retrieval" or prior="cosine", or remove scores.'
_COSINE_TOLERANCE = 1e-3  # by which the rounding of half precision can lift a cosine above 1
_ROUNDING = 1e-6  # of the largest score: stores keep cosines in float32


def check_prior(prior: Prior | None) -> Prior | None:
    """Check a prior, and return it.

    Raises:
        InvalidInput: The prior is not `"retrieval"`, `"cosine"` or None.
    """
    if prior is not None:
        check_one_of(Prior, prior=prior)
    return prior


@dataclass(frozen=True)
class FirstStageScores:
    """Scores of the first stage for documents: the candidates of one question, or the first passages of its paths.

    Attributes:
        log_weights: Log P(d | first stage) up to a constant, before R² reduces it, shape (documents,).
        log_ranks: Logarithms of the ranks, shape (documents,).
        by_meaning: True if the scores are cosines of meaning.
        starts: Index of the document with which each path begins; None if the documents are ranked.
    """

    log_weights: Floats
    log_ranks: Floats
    by_meaning: bool
    starts: Sequence[int] | None = None

    @staticmethod
    def read(
        prior: Prior, passages: Sequence[Passage], scores: RetrievalScores | None, weight: float = 1.0
    ) -> FirstStageScores:
        """Check scores, and convert them.

        A passage whose score is None gets the mean of the others, so its prior is neutral. If all scores are None, the
        order of the passages is that of their ranks.

        Args:
            prior: Kind of the prior.
            passages: The passages.
            scores: Score of each passage; None if all are unknown.
            weight: Factor of the prior's log-probabilities.

        Raises:
            InvalidInput: There are not as many scores as passages, or a score is not a finite number. For cosines, a
                score is not between -1 and 1, or all are missing.

        >>> passages = [Passage("a"), Passage("b"), Passage("c")]
        >>> np.exp(FirstStageScores.read("retrieval", passages, [0.4, 0.9, 0.1]).log_ranks).round(6).tolist()
        [2.0, 1.0, 3.0]
        """
        n_passages = len(passages)
        scores = [None] * n_passages if scores is None else scores
        check_paired(scores, passages)
        _check_scores(prior, passages, scores)
        scored_indices = [index for index, score in enumerate(scores) if score is not None]
        if prior == "cosine" and passages and not scored_indices:
            raise InvalidInput(
                'prior="cosine" needs the cosine of each passage and the question, got no score. Pass scores, or set '
                'prior="retrieval", which can use the order.'
            )
        if not scored_indices:
            log_ranks = np.log(np.arange(1, n_passages + 1))
            return FirstStageScores(weight * _rank_weights(log_ranks), log_ranks, by_meaning=False)
        values = np.array([scores[index] for index in scored_indices], dtype=np.float64)
        log_ranks = _fill_with_mean(_log_ranks(values), scored_indices, n_passages)
        weights = _rank_weights(log_ranks)
        if prior == "cosine":
            weights = KAPPA * _fill_with_mean(values, scored_indices, n_passages)
        return FirstStageScores(weight * weights, log_ranks, prior == "cosine")


def _check_scores(prior: Prior, passages: Sequence[Passage], scores: RetrievalScores) -> None:
    """Refuse scores that are not finite numbers or, for cosines, not cosines."""
    for index, score in enumerate(scores):
        if score is None:
            continue
        is_finite = issubclass(type(score), Real) and type(score) is not bool and math.isfinite(score)
        name = f"The first stage's score of passage {index} (id {passages[index].id!r:.200})"
        if not is_finite:
            raise InvalidInput(f"{name} must be a finite number or None, got {score!r:.200}.")
        if prior == "cosine" and abs(score) > 1 + _COSINE_TOLERANCE:
            raise InvalidInput(
                f"{name} must be a cosine, between -1 and 1, got {score!r:.200}. Set prior="
                '"retrieval" for scores on other scales.'
            )


def _rank_weights(log_ranks: Floats) -> Floats:
    weights: Floats = -WEIGHT * log_ranks - CUTOFF * np.exp(log_ranks)
    return weights


def scores_by_question(
    prior: Prior | None, scores: Sequence[RetrievalScores | None] | None, n_questions: int
) -> Sequence[RetrievalScores | None]:
    """Return the first stage's scores for each of several questions; None for a question without scores.

    Raises:
        InvalidInput: There are scores but no prior, or not as many lists of scores as questions.
    """
    if scores is None:
        return [None] * n_questions
    if prior is None:
        raise InvalidInput(NO_PRIOR)
    if len(scores) != n_questions:
        raise InvalidInput(
            f"{len(scores)} lists of scores and {n_questions} questions cannot be paired. Pass one list per question."
        )
    return scores


def check_paired(scores: Sequence[object], candidates: Sequence[Passage | Path]) -> None:
    """Refuse scores whose number is not that of the candidates.

    Raises:
        InvalidInput: The two differ in length.
    """
    if len(scores) != len(candidates):
        kind = "paths" if candidates and isinstance(candidates[0], Path) else "passages"
        raise InvalidInput(f"{len(scores)} scores and {len(candidates)} {kind} cannot be paired. Pass one score each.")


def first_stage(
    prior: Prior | None,
    candidates: Sequence[Passage] | Sequence[Path],
    scores: RetrievalScores | None,
    weight: float = 1.0,
) -> FirstStageScores | None:
    """Return the first stage's scores of passages, or of the first passages of paths. None for a uniform prior.

    Raises:
        InvalidInput: As for `FirstStageScores.read`, or paths that begin with the same passage differ in its score.
    """
    if scores is not None:
        check_paired(scores, candidates)
    if prior is None or (prior == "retrieval" and all(score is None for score in scores or ())):
        return None
    passages = [item.passages[0] if isinstance(item, Path) else item for item in candidates]
    if not candidates or not isinstance(candidates[0], Path):
        return FirstStageScores.read(prior, passages, scores, weight)
    first_path_by_id: dict[str, int] = {}  # index of the first path that begins with a passage
    for path_index, passage in enumerate(passages):
        first_path_by_id.setdefault(passage.id, path_index)
    path_indices = list(first_path_by_id.values())
    start_scores = None if scores is None else [scores[index] for index in path_indices]
    stage = FirstStageScores.read(prior, [passages[index] for index in path_indices], start_scores, weight)
    for path_index, passage in enumerate(passages):
        other_index = first_path_by_id[passage.id]
        if scores is not None and scores[path_index] != scores[other_index]:
            raise InvalidInput(
                f"Paths {other_index} and {path_index} begin with the same passage (id {passage.id!r:.200}), but "
                "their scores differ. Pass the first stage's score of the first passage for both."
            )
    number_by_id = {id_: number for number, id_ in enumerate(first_path_by_id)}
    return replace(stage, starts=[number_by_id[passage.id] for passage in passages])


def divisor(details: Mapping[str, Any]) -> int:
    """Return the divisor of a score's log-probability: the number of the target's tokens, or 1 if a formula adds up."""
    return 1 if details.get("reduce") == "sum" else max(int(details["tokens"]), 1)


def posteriors(scored: Sequence[Scored], first_stage: FirstStageScores) -> list[Scored]:
    """Multiply likelihoods by the prior. Return the score of each candidate, in order, and details with `log_prior`.

    If words and meaning are counted, the best path of each document determines what the likelihood includes already.

    >>> first_stage = FirstStageScores.read("retrieval", [Passage("a"), Passage("b")], [3.2, 1.5])
    >>> [round(score, 3) for score, _ in posteriors([(-2.0, {"tokens": 3}), (-2.0, {"tokens": 3})], first_stage)]
    [-2.032, -2.792]
    """
    starts = range(len(scored)) if first_stage.starts is None else first_stage.starts
    best_by_start: dict[int, Scored] = {}
    for start, candidate in zip(starts, scored, strict=True):
        if start not in best_by_start or candidate[0] > best_by_start[start][0]:
            best_by_start[start] = candidate
    likelihood_ranks = []
    if best_by_start and all("log_meaning" in details for _, details in best_by_start.values()):
        totals = np.array([score * divisor(details) for score, details in best_by_start.values()])
        meaning = np.array([details["log_meaning"] for _, details in best_by_start.values()])
        likelihood_ranks = [_log_ranks(totals - meaning), _log_ranks(meaning)]
    priors = log_prior(first_stage, likelihood_ranks).tolist()
    return [
        (score + priors[start] / divisor(details), {**details, "log_prior": priors[start]})
        for start, (score, details) in zip(starts, scored, strict=True)
    ]


def log_prior(first_stage: FirstStageScores, likelihood_ranks: Sequence[Floats] = ()) -> Floats:
    """Return log P(d | first stage) of all documents, natural, at most 0. The probabilities add up to 1.

    Args:
        first_stage: Scores of the first stage.
        likelihood_ranks: Log ranks of the documents by the words of the question and by meaning, if the likelihood
            counts both.

    >>> first_stage = FirstStageScores.read("retrieval", [Passage("a"), Passage("b")], [3.2, 1.5])
    >>> np.exp(log_prior(first_stage)).round(6).tolist()
    [0.90716, 0.09284]
    >>> np.exp(log_prior(first_stage, [np.log([1, 2]), np.log([2, 1])])).round(6).tolist()
    [0.5, 0.5]
    """
    if not len(first_stage.log_ranks):
        return first_stage.log_ranks
    predictors = likelihood_ranks[1:] if first_stage.by_meaning else likelihood_ranks
    explained = _explained_variance(first_stage.log_ranks, predictors) if len(predictors) else 0.0
    logits = (1 - explained) * first_stage.log_weights
    logs: Floats = logits - np.logaddexp.reduce(logits)
    return logs


def _log_ranks(scores: Floats) -> Floats:
    """Return log ranks, shape (documents,). Scores that differ by rounding only get the mean of their log ranks."""
    order = np.argsort(-scores)
    largest = np.abs(scores).max()
    falls = -np.diff(scores[order] / largest) if largest else np.zeros(len(scores) - 1)
    group = np.concatenate([[0], np.cumsum(falls > _ROUNDING)])
    means = np.bincount(group, np.log(np.arange(1, len(scores) + 1))) / np.bincount(group)
    logs = np.empty(len(scores))
    logs[order] = means[group]
    return logs


def _fill_with_mean(values: Floats, indices: Sequence[int], n_values: int) -> Floats:
    """Return an array with the values at their indices, and their mean elsewhere."""
    filled = np.full(n_values, values.mean())
    filled[indices] = values
    return filled


def _explained_variance(log_ranks: Floats, predictors: Sequence[Floats]) -> float:
    """Return R², the share of the variance that a weighted sum of predictors explains, without negative weights.

    The best weights of which none is negative are the least-squares weights of a subset of the predictors.
    """
    target, standardized = _standardize(log_ranks), list(map(_standardize, predictors))
    best = 0.0
    for size in range(1, len(standardized) + 1):
        for subset in combinations(standardized, size):
            matrix = np.stack(subset, axis=1)
            weights = np.linalg.lstsq(matrix, target, rcond=None)[0]
            if (weights >= 0).all():
                best = max(best, float(target @ matrix @ weights) / len(target))
    return best


def _standardize(log_ranks: Floats) -> Floats:
    """Return values with mean 0 and variance 1, or zeros if they do not differ."""
    if np.ptp(log_ranks) <= _ROUNDING:
        return np.zeros(len(log_ranks))
    deviations = log_ranks - log_ranks.mean()
    standardized: Floats = deviations / deviations.std()
    return standardized
