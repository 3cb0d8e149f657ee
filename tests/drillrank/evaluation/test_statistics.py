"""Intervals and tests of comparisons, against independent computations and on systems that are alike."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from drillrank.errors import InvalidInput
from drillrank.evaluation.statistics import (
    bootstrap_interval,
    difference,
    holm,
    least_questions,
    questions_that_would_tell,
    randomisation_test,
    verdict,
)


def test_intervals_hold_the_true_mean_in_95_percent_of_1000_experiments():
    rng = np.random.default_rng(7)
    levels, chances = np.array([-1.0, -0.5, 0.0, 0.5, 1.0]), [0.05, 0.1, 0.45, 0.2, 0.2]
    truth = float(levels @ chances)
    drawn = (rng.choice(levels, 25, p=chances) for _ in range(1_000))
    held = sum(low <= truth <= high for low, high in (bootstrap_interval(one, samples=1_000) for one in drawn))
    assert 930 <= held <= 970


def test_the_randomisation_test_is_that_of_scipy():
    rng = np.random.default_rng(3)
    for shift in (0.0, 0.1, 0.25):
        values = np.round(rng.normal(shift, 0.5, 40), 1)
        expected = stats.permutation_test(
            (values,), np.mean, permutation_type="samples", n_resamples=20_000, rng=np.random.default_rng(1), axis=0
        ).pvalue
        assert randomisation_test(values, samples=20_000) == pytest.approx(expected, abs=0.02)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_adjusts_as_its_definition_says(ps):
    order = sorted(range(len(ps)), key=lambda i: ps[i])
    for place, i in enumerate(order):
        largest = max((len(ps) - j) * ps[order[j]] for j in range(place + 1))
        assert holm(ps)[i] == pytest.approx(min(1.0, largest))


def test_so_many_questions_do_tell():
    rng = np.random.default_rng(11)
    values = np.array([1.0, 0.0, 0.0, 0.0, -1.0, 1.0, 0.0, 1.0])
    needed = questions_that_would_tell(values)
    drawn = rng.normal(values.mean(), values.std(ddof=1), (400, needed))
    told = sum(randomisation_test(row, samples=500) <= 0.05 for row in drawn)
    assert 0.74 <= told / 400 <= 0.86
    assert questions_that_would_tell(values, pairs=10) > needed
    assert questions_that_would_tell([0.5, -0.5]) is None
    assert questions_that_would_tell([1.0, 1.0]) == questions_that_would_tell([1.0]) == 6


def test_verdicts_follow_the_adjusted_p_and_six_questions_are_the_least_that_can_tell():
    assert [verdict(0.1, 0.05), verdict(-0.1, 0.01), verdict(0.1, 0.051)] == ["better", "worse", "cannot tell"]
    assert difference([0.0, 0.0, 0.0]) == (0.0, 0.0, 0.0, 1.0, 3)
    with pytest.raises(InvalidInput, match="must be finite numbers"):
        difference([0.5, float("nan")])
    for pairs in (1, 3, 6):
        least = least_questions(pairs)
        [few], [enough] = (holm([randomisation_test(np.ones(n))] * pairs)[:1] for n in (least - 1, least))
        assert (verdict(1.0, few), verdict(1.0, enough)) == ("cannot tell", "better")


@pytest.mark.parametrize(("questions", "comparisons"), [(5, 1_000), (20, 1_000), (100, 300)])
@pytest.mark.parametrize("choices", [[0.0, 1.0], np.linspace(0, 1, 1_001)], ids=["hits", "shares"])
def test_of_systems_that_are_alike_at_most_five_percent_are_called_better_or_worse(questions, comparisons, choices):
    rng = np.random.default_rng(questions)
    differences = np.subtract(*rng.choice(choices, (2, comparisons, questions)))
    called = sum(verdict(row.mean(), randomisation_test(row)) != "cannot tell" for row in differences)
    margin = 3 * np.sqrt(0.05 * 0.95 / comparisons)
    assert called == 0 if questions == 5 else called / comparisons <= 0.05 + margin


def test_memory_does_not_grow_with_the_questions():
    values = np.random.default_rng(1).normal(size=5_000)  # all different: 1.25 GB at first
    difference(values[:10])
    tracemalloc.start()
    try:
        difference(values)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 30e6
