"""Is a difference more than noise? Paired bootstrap, paired randomisation test, Holm's correction, sample size.

The test is exact at every number of questions, so that below `least_questions` nothing is ever shown; an interval of so
few may look otherwise, and decides nothing. scipy.stats.permutation_test would take seconds for what takes milliseconds
here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from drillrank.errors import InvalidInput, require
from drillrank.vectors import Floats

Verdict = Literal["better", "worse", "cannot tell"]

LEVEL = 0.95
POWER = 0.8
SAMPLES = 10_000
_SEED = 0
_EQUAL = 1e-12  # by which sums of the same numbers in another order differ
_BLOCK = 2**18  # numbers drawn at once


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
        verdict: Whether `after` is better.
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
    low, high = stats.bootstrap(
        (values,),
        np.mean,
        n_resamples=samples,
        batch=max(1, _BLOCK // n),
        confidence_level=1 - 2 * tail,
        method="percentile",
        rng=np.random.default_rng(_SEED),
    ).confidence_interval
    return float(low), float(high)


def randomisation_test(values: Floats, *, samples: int = SAMPLES) -> float:
    """The two-sided p of a mean of paired differences: how often signs drawn at random lead as far from 0.

    All signs where there are no more of them than samples; else at least 1 / (samples + 1) (Phipson and Smyth 2010).

    >>> randomisation_test(np.ones(5)), randomisation_test(np.ones(6))
    (0.0625, 0.03125)
    """
    values = values[values != 0]
    n = len(values)
    least = abs(values.sum()) - _EQUAL * n
    if 2**n <= samples:
        signs = 1 - 2 * (np.arange(2**n)[:, None] >> np.arange(n) & 1)
        return float((np.abs(signs @ values) >= least).mean())
    reached, rng = 0, np.random.default_rng(_SEED)
    for start in range(0, samples, size := max(1, _BLOCK // n)):
        signs = 1 - 2 * rng.integers(0, 2, (min(size, samples - start), n), dtype=np.int8)
        reached += int((np.abs(signs @ values) >= least).sum())
    return (reached + 1) / (samples + 1)


def holm(ps: Sequence[float]) -> list[float]:
    """Adjusted p-values, in order: at most 5 % chance of any false finding among them (Holm 1979).

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    adjusted = [0.0] * len(ps)
    largest = 0.0
    for location, index in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        largest = max(largest, min(1.0, (len(ps) - location) * ps[index]))
        adjusted[index] = largest
    return adjusted


def verdict(mean: float, adjusted_p: float) -> Verdict:
    """What a difference tells, at 5 % after the correction."""
    if adjusted_p > 1 - LEVEL:
        return "cannot tell"
    return "better" if mean > 0 else "worse"


def least_questions(pairs: int = 1) -> int:
    """Below so many questions no difference can be shown, whatever it is: all signs alike have p = 2^(1 - n).

    >>> least_questions(), least_questions(pairs=3)
    (6, 7)
    """
    return 1 + math.ceil(math.log2(pairs / (1 - LEVEL)))


def questions_that_would_tell(values: Sequence[float] | Floats, pairs: int = 1) -> int | None:
    """How many such questions show a difference of this size with a chance of 80 %; None if there is no difference.

    n = ((z(1 - α / 2m) + z(power)) σ / |mean|)², with m pairs to correct for, and no less than `least_questions`.

    >>> questions_that_would_tell([1.0, 0.0, 0.0, 0.0, -1.0, 1.0, 0.0, 1.0])
    63
    """
    differences = np.asarray(values, dtype=np.float64)
    mean = float(differences.mean())
    if abs(mean) <= _EQUAL:
        return None
    if len(differences) < 2:
        return least_questions(pairs)
    norm = require("scipy.stats", "compare").norm
    distance = norm.ppf(1 - (1 - LEVEL) / (2 * pairs)) + norm.ppf(POWER)
    return max(least_questions(pairs), math.ceil((float(distance) * float(differences.std(ddof=1)) / abs(mean)) ** 2))
