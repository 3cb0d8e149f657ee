"""Is a difference more than noise? Paired bootstrap, paired randomisation test, Holm's correction, sample size.

The measures of a few thousand questions take few distinct values, so that both resamplings draw how often each value
occurs, not which question it is: the same distributions as those of scipy.stats.bootstrap and permutation_test, in a
fraction of the time. The tables of quantiles are scipy's; ranx, which has the tests, too, would bring a compiler.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from drillrank.errors import InvalidInput, require

Floats = npt.NDArray[np.float64]
Verdict = Literal["helps", "hurts", "cannot tell"]

LEVEL = 0.95
POWER = 0.8
SAMPLES = 10_000
_SEED = 0
_EQUAL = 1e-12  # by which sums of the same numbers in another order differ


class Difference(NamedTuple):
    """What one component brings over another, on the questions that both were asked.

    Attributes:
        mean: Mean difference per question.
        low: Lower end of its 95 % interval.
        high: Upper end.
        p: Of the paired randomisation test, two-sided.
        questions: How many.
    """

    mean: float
    low: float
    high: float
    p: float
    questions: int


class Pair(NamedTuple):
    """One component beside another, under one measure.

    Attributes:
        before: A component.
        after: The other one; a difference above 0 speaks for it.
        measure: Under which.
        difference: With its interval and test.
        adjusted_p: Corrected for the number of pairs (Holm).
        verdict: Whether `after` helps.
        needed: How many such questions would tell with a chance of 80 %; None where there is no difference.
    """

    before: str
    after: str
    measure: str
    difference: Difference
    adjusted_p: float
    verdict: Verdict
    needed: int | None


def difference(differences: Sequence[float] | Floats) -> Difference:
    """Interval and test of paired differences, one for each question.

    Raises:
        InvalidInput: there is none, or one is no finite number.

    >>> found = difference([0.5, 0.0, 0.5, 1.0, 0.0, 0.5, 0.5, 0.0, 1.0, 0.5])
    >>> found.mean, found.low > 0, found.p < 0.05
    (0.45, True, True)
    """
    values = np.asarray(differences, dtype=np.float64)
    if not values.size or not np.isfinite(values).all():
        raise InvalidInput("A difference needs one finite number for each question, and one question at least.")
    low, high = bootstrap_interval(values)
    return Difference(float(values.mean()), low, high, randomisation_test(values), len(values))


def bootstrap_interval(values: Floats, *, samples: int = SAMPLES) -> tuple[float, float]:
    """The 95 % interval of a mean by resampling the questions.

    Percentiles are those that Student's t asks for, since plain ones are too narrow for few questions (Hesterberg 2015,
    the expanded percentile interval): α' / 2 = Φ(-sqrt(n / (n - 1)) t).
    """
    n = len(values)
    if n < 2 or np.ptp(values) <= _EQUAL:
        return float(values.mean()), float(values.mean())
    stats = require("scipy.stats", "compare")
    tail = float(stats.norm.cdf(-math.sqrt(n / (n - 1)) * stats.t.ppf((1 + LEVEL) / 2, n - 1)))
    distinct, counts = np.unique(values, return_counts=True)
    drawn = np.random.default_rng(_SEED).multinomial(n, counts / n, size=samples) @ distinct / n
    low, high = np.quantile(drawn, [tail, 1 - tail])
    return float(low), float(high)


def randomisation_test(values: Floats, *, samples: int = SAMPLES) -> float:
    """The two-sided p of a mean of paired differences: how often signs drawn at random lead as far from 0.

    At least 1 / (samples + 1) (Phipson and Smyth 2010).
    """
    sizes, counts = np.unique(np.abs(values[values != 0]), return_counts=True)
    if not len(sizes):
        return 1.0
    positive = np.random.default_rng(_SEED).binomial(counts, 0.5, size=(samples, len(counts)))
    drawn = np.abs((2 * positive - counts) @ sizes)
    reached = int((drawn >= abs(values.sum()) - _EQUAL * len(values)).sum())
    return (reached + 1) / (samples + 1)


def holm(ps: Sequence[float]) -> list[float]:
    """Adjusted p-values, in order: at most 5 % chance of any false finding among them (Holm 1979).

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    adjusted = [0.0] * len(ps)
    largest = 0.0
    for place, index in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        largest = max(largest, min(1.0, (len(ps) - place) * ps[index]))
        adjusted[index] = largest
    return adjusted


def verdict(mean: float, adjusted_p: float) -> Verdict:
    """What a difference tells, at 5 % after the correction."""
    if adjusted_p > 1 - LEVEL:
        return "cannot tell"
    return "helps" if mean > 0 else "hurts"


def questions_that_would_tell(values: Sequence[float] | Floats, pairs: int = 1) -> int | None:
    """How many such questions show a difference of this size with a chance of 80 %; None if there is no difference.

    n = ((z(1 - α / 2m) + z(power)) σ / |mean|)², with m pairs to correct for.

    >>> questions_that_would_tell([1.0, 0.0, 0.0, 0.0, -1.0, 1.0, 0.0, 1.0])
    63
    """
    differences = np.asarray(values, dtype=np.float64)
    mean = float(differences.mean())
    if abs(mean) <= _EQUAL or len(differences) < 2:
        return None
    norm = require("scipy.stats", "compare").norm
    reach = norm.ppf(1 - (1 - LEVEL) / (2 * pairs)) + norm.ppf(POWER)
    return max(2, math.ceil((float(reach) * float(differences.std(ddof=1)) / abs(mean)) ** 2))
