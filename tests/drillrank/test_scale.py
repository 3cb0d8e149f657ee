from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank.errors import InvalidInput
from drillrank.passages import Passage, ranked
from drillrank.rerank.base import log_sigmoid, rescaled, selected
from drillrank.rerank.promptrank import PromptRank
from drillrank.rerank.upr import UPR

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


@given(st.floats(-1e6, 1e6))
def test_the_logarithm_of_a_probability_given_as_log_odds(odds):
    assert log_sigmoid(odds) == pytest.approx(-np.logaddexp(0, -odds), rel=1e-12)


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
def test_only_the_scores_change(ranking, scale):
    before = [entry.score for entry in ranking]
    result = rescaled(ranking, scale)
    assert [entry.score for entry in ranking] == before
    assert [(e.passage, e.rank, e.details) for e in result] == [(e.passage, e.rank, e.details) for e in ranking]
    scores = [entry.score for entry in result]
    assert scores == sorted(scores, reverse=True)
    assert all(type(score) is float for score in scores)
    assert result is not ranking


@given(rankings)
def test_log_likelihoods_stay_as_they_are_and_are_the_default(ranking):
    assert rescaled(ranking, "log_likelihood") == selected(ranking) == ranking


@given(rankings, st.sampled_from(SCALES), st.floats(-1, 1) | st.none(), st.integers(1, 3) | st.none())
def test_selection_cuts_a_ranking_that_was_scaled_whole(ranking, scale, threshold, top_n):
    whole = rescaled(ranking, scale)
    limit = -math.inf if threshold is None else threshold
    expected = [entry for entry in whole if entry.score >= limit][:top_n]
    assert selected(ranking, scale=scale, threshold=threshold, top_n=top_n) == expected


def test_the_posterior_of_the_best_does_not_depend_on_how_many_are_kept():
    ranking = ranking_of([-1.0, -1.0, -1.0, -1.0], 5)
    assert [entry.score for entry in selected(ranking, scale="softmax", top_n=1)] == pytest.approx([0.25])


@given(rankings, st.sampled_from(SCALES))
def test_the_threshold_is_inclusive(ranking, scale):
    for position, entry in enumerate(rescaled(ranking, scale)):
        assert len(selected(ranking, scale=scale, threshold=entry.score)) > position


def test_very_unlikely_questions_still_have_a_posterior():
    ranking = ranking_of([-20.0, -20.0, -30.0], 1000)
    assert [entry.score for entry in rescaled(ranking, "softmax")] == pytest.approx([0.5, 0.5, 0])


def test_scores_of_the_rankers_can_be_scaled():
    texts = ["a red fox", "a blue fox", ""]
    passages = UPR().rank("red fox", texts)
    paths = PromptRank().rank("red fox", [])
    assert math.fsum(entry.score for entry in rescaled(passages, "softmax")) == pytest.approx(1)
    assert rescaled(paths, "softmax") == []
    without_words = rescaled(UPR().rank("???", texts), "softmax")
    assert [entry.score for entry in without_words] == pytest.approx([1 / 3] * 3)


@pytest.mark.parametrize("scale", ["logit", "", None, "Softmax"])
def test_unknown_scales_are_refused_even_for_nothing(scale):
    with pytest.raises(InvalidInput, match="scale is"):
        rescaled([], scale)


@pytest.mark.parametrize("top_n", [0, -2, True])
def test_top_n_must_keep_something(top_n):
    with pytest.raises(InvalidInput, match="top_n"):
        selected([], top_n=top_n)
