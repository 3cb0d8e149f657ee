from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank.passages import Passage, ranked
from drillrank.rerank.base import rescaled, selected

SCALES = ("log_likelihood", "probability", "softmax")


def ranking_of(means, tokens):
    items = [Passage(str(i)) for i in range(len(means))]
    return ranked(items, means, [{"tokens": tokens} for _ in means])


rankings = st.builds(ranking_of, st.lists(st.floats(-1, 0), max_size=6), st.integers(1, 30))


@given(rankings)
def test_softmax_is_the_posterior_over_the_candidates(ranking):
    scores = [entry.score for entry in rescaled(ranking, "softmax")]
    likelihoods = [math.exp(entry.score * entry.details["tokens"]) for entry in ranking]
    assert scores == pytest.approx([value / math.fsum(likelihoods) for value in likelihoods])
    assert math.fsum(scores) == pytest.approx(1 if ranking else 0)


@given(rankings)
def test_probability_is_the_geometric_mean_of_the_tokens(ranking):
    scores = [entry.score for entry in rescaled(ranking, "probability")]
    assert scores == pytest.approx([math.exp(entry.score) for entry in ranking])


@given(st.lists(st.floats(-30, 30), min_size=1, max_size=6))
def test_log_odds_become_probabilities_of_relevance_or_their_shares(odds):
    """Whatever the scores are: some presets show another function of the odds."""
    odds = sorted(odds, reverse=True)
    details = [{"tokens": 1, "log_odds": value} for value in odds]
    ranking = ranked([Passage(str(value)) for value in odds], [value / 5 for value in odds], details)
    probabilities = [1 / (1 + math.exp(-value)) for value in odds]
    shares = [value / math.fsum(probabilities) for value in probabilities]
    assert [entry.score for entry in rescaled(ranking, "probability")] == pytest.approx(probabilities)
    assert [entry.score for entry in rescaled(ranking, "softmax")] == pytest.approx(shares)


@given(rankings, st.sampled_from(SCALES))
def test_the_threshold_is_inclusive(ranking, scale):
    for position, entry in enumerate(rescaled(ranking, scale)):
        assert len(selected(ranking, scale=scale, threshold=entry.score)) > position
