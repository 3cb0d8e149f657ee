"""Test whether a difference is more than noise: paired bootstrap, paired randomization test, Holm's correction.

The test is exact for every number of questions. Below `least_questions`, no difference is ever significant, although an
interval may exclude 0. scipy.stats.permutation_test takes seconds for what takes milliseconds here.
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
_EQUAL = 1e-12  # sums of the same numbers in another order differ by less
_BLOCK = 2**18  # numbers drawn at the same time


class Difference(NamedTuple):
    """Difference between two components, over the questions that both answered.

    Attributes:
        mean: Mean difference per question.
        low: Lower end of the 95 % interval of the mean.
        high: Upper end of the interval.
        p: Two-sided p-value of the paired randomization test.
        questions: Number of questions.
    """

    mean: float
    low: float
    high: float
    p: float
    questions: int


class Pair(NamedTuple):
    """Comparison of two components by one measure.

    Attributes:
        before: Name of a component.
        after: Name of another component, which is better if the difference is above 0.
        measure: Name of the measure.
        difference: The difference with its interval and test.
        adjusted_p: The p-value, corrected for the number of pairs (Holm).
        verdict: "better" or "worse" for `after`, or "cannot tell".
        needed: Number of such questions that show the difference with a probability of 80 %; None for equal components.
    """

    before: str
    after: str
    measure: str
    difference: Difference
    adjusted_p: float
    verdict: Verdict
    needed: int | None


def difference(differences: Sequence[float] | Floats) -> Difference:
    """Return the interval and the test of paired differences, one for each question.

    Raises:
        InvalidInput: There are no differences, or one is not a finite number.

    >>> gain = difference([0.5, 0.0, 0.5, 1.0, 0.0, 0.5, 0.5, 0.0, 1.0, 0.5])
    >>> gain.mean, gain.low > 0, gain.p < 0.05
    (0.45, True, True)
    """
    values = np.asarray(differences, dtype=np.float64)
    if not values.size or not np.isfinite(values).all():
        raise InvalidInput(f"differences must be finite numbers, at least one, got {differences!r:.200}. Check them.")
    low, high = bootstrap_interval(values)
    return Difference(float(values.mean()), low, high, randomisation_test(values), len(values))


def bootstrap_interval(values: Floats, *, samples: int = SAMPLES) -> tuple[float, float]:
    """Return the 95 % interval of a mean by resampling the questions.

    Plain percentiles are too narrow for few questions. The percentiles are those of Student's t (Hesterberg 2015, the
    expanded percentile interval): α' / 2 = Φ(-sqrt(n / (n - 1)) t).
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
    """Return the two-sided p of a mean of paired differences: the share of random signs whose mean is as far from 0.

    The test takes all signs if there are at most `samples` of them. Otherwise p is at least 1 / (samples + 1) (Phipson
    and Smyth 2010).

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
    """Return adjusted p-values, in order: the probability of any false positive is at most 5 % (Holm 1979).

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    adjusted = [0.0] * len(ps)
    largest = 0.0
    for n_smaller, index in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        largest = max(largest, min(1.0, (len(ps) - n_smaller) * ps[index]))
        adjusted[index] = largest
    return adjusted


def verdict(mean: float, adjusted_p: float) -> Verdict:
    """Return the verdict on a difference, at a level of 5 % after the correction."""
    if adjusted_p > 1 - LEVEL:
        return "cannot tell"
    return "better" if mean > 0 else "worse"


def least_questions(pairs: int = 1) -> int:
    """Return the smallest number of questions at which a difference can be significant.

    n equal signs have p = 2^(1 - n).

    >>> least_questions(), least_questions(pairs=3)
    (6, 7)
    """
    return 1 + math.ceil(math.log2(pairs / (1 - LEVEL)))


def questions_that_would_tell(values: Sequence[float] | Floats, pairs: int = 1) -> int | None:
    """Return the number of such questions that show this difference with a probability of 80 %; None for a mean of 0.

    n = ((z(1 - α / 2m) + z(power)) σ / |mean|)², with m pairs to correct for, and at least `least_questions`.

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
