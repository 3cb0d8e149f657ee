"""The scale on which a likelihood score is shown, and the cut by threshold and number.

A ranking is made once, by its scores. Every scale is one increasing function of them, the same for all candidates, so
that no scale can change the order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

from drillrank.errors import InvalidInput
from drillrank.passages import Item, Ranked, check_top_n

ScoreScale = Literal["log_likelihood", "probability", "softmax"]


def divisor(details: Mapping[str, Any]) -> int:
    """What a log-probability was divided by to make a score: the target's tokens, or 1 where a formula adds them up."""
    return 1 if details.get("reduce") == "sum" else max(int(details["tokens"]), 1)


def log_sigmoid(odds: float) -> float:
    """The logarithm of the probability that log-odds stand for, exact where the probability rounds to 0 or 1.

    >>> log_sigmoid(-1000.0)
    -1000.0
    """
    return min(odds, 0.0) - math.log1p(math.exp(-abs(odds)))


def log_probability(item: Ranked[Item]) -> float:
    """The mean log-likelihood that a score is, or the log-probability of relevance where it is log-odds."""
    odds = item.details.get("log_odds")
    return item.score if odds is None else log_sigmoid(odds)


def rescaled(ranking: Sequence[Ranked[Item]], scale: ScoreScale) -> list[Ranked[Item]]:
    """The same ranking with its scores, mean log-likelihoods, on another scale; the order never changes.

    Args:
        ranking: The *whole* ranking, best first and before any cut: the posterior is over all candidates.
        scale: `"log_likelihood"` leaves the mean log-likelihood (at most 0). `"probability"` is its exponential,
            the geometric mean of the tokens' probabilities, in (0, 1]. `"softmax"` is the posterior of a candidate
            under the prior that its score holds, uniform unless a ranker says otherwise: P(c | q) = P(q | c) /
            Σ P(q | c'), with the likelihood of the whole question, counted in the tokens of the best candidate; the
            candidates' values add up to 1, and hopeless ones can be as small as 0.0. Where a formula adds up instead
            of averaging, `"probability"` is that of the whole question. Log-odds of relevance stay as they are, become
            P(relevant), or its share of the sum of all candidates' P(relevant).

    Raises:
        InvalidInput: an unknown scale.

    >>> from drillrank import UPR
    >>> ranking = UPR().rank("red fox", ["a red fox", "a blue fox", "a cow"])
    >>> round(sum(r.score for r in rescaled(ranking, "softmax")), 6)
    1.0
    """
    if scale not in get_args(ScoreScale):
        raise InvalidInput(f"The score scale is one of {', '.join(get_args(ScoreScale))}; not {scale!r}.")
    if scale == "log_likelihood" or not ranking:
        return list(ranking)
    if scale == "probability":
        scores = [math.exp(log_probability(item)) for item in ranking]
    else:
        tokens = divisor(ranking[0].details)
        totals = [log_probability(item) * tokens for item in ranking]
        best = max(totals)
        weights = [math.exp(value - best) for value in totals]
        everything = math.fsum(weights)
        scores = [weight / everything for weight in weights]
    return [replace(item, score=score) for item, score in zip(ranking, scores, strict=True)]


def selected(
    ranking: Sequence[Ranked[Item]],
    *,
    scale: ScoreScale = "log_likelihood",
    threshold: float | None = None,
    top_n: int | None = None,
) -> list[Ranked[Item]]:
    """Rescale a whole ranking, then keep scores of at least `threshold`, then the first `top_n`."""
    check_top_n(top_n)
    kept = [item for item in rescaled(ranking, scale) if threshold is None or item.score >= threshold]
    return kept[:top_n]
