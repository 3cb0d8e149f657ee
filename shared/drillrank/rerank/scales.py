"""Scales of scores: log-likelihood, probability, and share among the candidates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from drillrank.coverage import Coverage
from drillrank.likelihood.relevance import log_sigmoid
from drillrank.passages import Item, Ranked, check_top_n
from drillrank.rerank.prior import divisor
from drillrank.settings import check_one_of

ScoreScale = Literal["log_likelihood", "probability", "softmax"]


def log_probability(item: Ranked[Item]) -> float:
    """Return the mean log-likelihood of an entry, or the log-probability of relevance if its details have log-odds."""
    odds = item.details.get("log_odds")
    return item.score if odds is None else log_sigmoid(odds)


def rescaled(ranking: Sequence[Ranked[Item]], scale: ScoreScale) -> list[Ranked[Item]]:
    """Return a ranking with its scores on another scale, in the same order.

    Every scale is an increasing function of the scores, the same for all candidates.

    Args:
        ranking: The *whole* ranking, best first and before any cut: the posterior is over all candidates.
        scale: `"log_likelihood"` keeps the mean log-likelihood (at most 0). `"probability"` is its exponential, the
            geometric mean of the tokens' probabilities, in (0, 1]. `"softmax"` is the posterior of a candidate:
            P(c | q) = P(q | c) / Σ P(q | c'), with the likelihood of the whole question, counted in the tokens of the
            best candidate, and the prior that the score contains, or a uniform one. The posteriors add up to 1, and
            may be as small as 0.0. If a formula adds up instead of averaging, `"probability"` is that of the whole
            question. Log-odds of relevance are kept, become P(relevant), or its share in the sum of P(relevant).

    Raises:
        InvalidInput: The scale is unknown.

    >>> from drillrank import UPR
    >>> ranking = UPR().rank("red fox", ["a red fox", "a blue fox", "a cow"])
    >>> round(sum(r.score for r in rescaled(ranking, "softmax")), 6)
    1.0
    """
    check_one_of(ScoreScale, scale=scale)
    if scale == "log_likelihood" or not ranking:
        return list(ranking)
    is_posterior = scale == "softmax"
    n_tokens = divisor(ranking[0].details) if is_posterior else 1
    logs = [log_probability(item) * n_tokens for item in ranking]
    best = max(logs) if is_posterior else 0.0
    weights = [math.exp(log - best) for log in logs]
    total = math.fsum(weights) if is_posterior else 1.0
    return [replace(item, score=weight / total) for item, weight in zip(ranking, weights, strict=True)]


def selected(
    ranking: Sequence[Ranked[Item]],
    *,
    scale: ScoreScale,
    threshold: float | None = None,
    min_share: float | None = None,
    top_n: int | Coverage | None = None,
) -> list[Ranked[Item]]:
    """Rescale a whole ranking, keep scores of at least `threshold` with a softmax of `min_share`, cut after `top_n`."""
    if isinstance(top_n, Coverage):
        top_n = top_n.count([item.score for item in ranking]) or None
    check_top_n(top_n)
    results = rescaled(ranking, scale)
    if min_share is not None:
        shares = rescaled(ranking, "softmax")
        results = [item for item, share in zip(results, shares, strict=True) if share.score >= min_share]
    return [item for item in results if threshold is None or item.score >= threshold][:top_n]
