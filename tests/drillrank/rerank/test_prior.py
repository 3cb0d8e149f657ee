"""The first stage as prior of UPR."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy.optimize import nnls

from drillrank.errors import InvalidInput
from drillrank.likelihood import Likelihood, UnigramModel
from drillrank.passages import Passage
from drillrank.rerank.prior import FirstStageScores, posteriors
from drillrank.rerank.upr import UPR
from tests.drillrank.helpers import refuses

TEXTS = st.sampled_from(
    ["a red fox", "a red fox crossed the river", "a river", "whales", "", "The town lies on a red river."]
)
QUERIES = st.sampled_from(["red fox", "which river?", "???", "the fox crossed", "zebra"])
SCORES = st.integers(-2000, 2000).map(lambda score: score / 2)  # further apart than rounding
PAIRS = st.lists(st.tuples(TEXTS, SCORES), max_size=8)
ONE_OF_BOTH = st.booleans()
NO_NUMBERS = st.sampled_from([math.nan, math.inf, -math.inf, "0.5", True, [1.0], np.float32("nan"), 1j])


def shown(ranking):
    return [(item.passage.text, item.score, item.rank, item.details) for item in ranking]


def order(ranking):
    return [item.details["position"] for item in ranking]


def upr(hash_model, lexical, **options):
    return UPR("unigram" if lexical else hash_model(), **options)


def apart(pairs):
    return [text for text, _ in pairs], [score for _, score in pairs]


def logs_of(values):
    falling = sorted(values, reverse=True)
    ranks = {value: [rank for rank, other in enumerate(falling, 1) if other == value] for value in values}
    return [math.fsum(map(math.log, ranks[value])) / len(ranks[value]) for value in values]


def formula(scores, explained=0.0):
    """The documented formula in plain Python."""
    weights = [math.exp(-(1 - explained) * (3 * log + 0.2 * math.exp(log))) for log in logs_of(scores)]
    return [math.log(weight / math.fsum(weights)) for weight in weights]


class Unasked(UnigramModel):
    def log_likelihood_lists(self, *_, **__):
        raise AssertionError("the model was asked")


@given(QUERIES, PAIRS, ONE_OF_BOTH)
def test_the_score_is_the_posterior_by_the_formula(hash_model, query, pairs, lexical):
    texts, scores = apart(pairs)
    assume(texts)
    alone = sorted(upr(hash_model, lexical).rank(query, texts), key=lambda item: item.details["position"])
    tokens = [max(item.details["tokens"], 1) for item in alone]
    priors = formula(scores)
    wanted = [item.score + prior / count for item, prior, count in zip(alone, priors, tokens, strict=True)]
    found = upr(hash_model, lexical, prior="retrieval").rank(query, texts, scores=scores)
    assert [item.details["log_prior"] for item in found] == pytest.approx([priors[i] for i in order(found)], abs=1e-6)
    assert [item.score for item in found] == pytest.approx([wanted[i] for i in order(found)], abs=1e-6)
    assert all(item.score <= 0 and type(item.score) is float is type(item.details["log_prior"]) for item in found)
    assert [item.score for item in found] == sorted((item.score for item in found), reverse=True)
    assert sorted(order(found)) == list(range(len(texts)))
    assert shown(UPR().rank(query, texts, scores=scores)) == shown(
        UPR(prior="retrieval").rank(query, texts, scores=scores)
    )  # scores count by default


@pytest.mark.parametrize("kind", ["retrieval", "cosine", "order"])
@given(st.lists(st.tuples(st.integers(-10, 10), st.integers(-9, 0), st.integers(-9, 0)), min_size=3, max_size=8))
@example([(3, -1, -5), (2, -2, -1), (1, -3, -5), (0, -4, -2)])
def test_words_and_meaning_are_taken_out_of_a_ranking_and_meaning_alone_of_a_cosine(kind, rows):
    given_, words, meaning = (list(map(float, column)) for column in zip(*rows, strict=True))
    scores = [-float(place) for place in range(len(rows))] if kind == "order" else [score / 10 for score in given_]
    prior = "cosine" if kind == "cosine" else "retrieval"
    stage = FirstStageScores.read(prior, [Passage("a")] * len(rows), None if kind == "order" else scores)
    scored = [((word + meant) / 5, {"tokens": 5, "log_meaning": meant}) for _, word, meant in rows]
    own, *known = (np.array(logs_of(values)) for values in (scores, words, meaning))
    parts = [(part - part.mean()) / (part.std() or 1) for part in (own, *known[prior == "cosine" :])]
    residual = nnls(np.stack(parts[1:], axis=1), parts[0])[1]
    explained = 1 - residual**2 / len(rows) if np.ptp(own) else 0.0
    logits = (1 - explained) * (20 * np.array(scores) if prior == "cosine" else -3 * own - 0.2 * np.exp(own))
    expected = logits - np.logaddexp.reduce(logits)
    found = [details["log_prior"] for _, details in posteriors(scored, stage)]
    assert found == pytest.approx(expected.tolist(), abs=1e-6)


@pytest.mark.parametrize(
    ("tokens", "details"),
    [
        (["red", "fox", "<meaning>"], {"log_meaning": -2.5}),
        (["red", "fox", "fox"], {}),
        (["<meaning>", "fox"], {}),
        ([], {}),
    ],
)
def test_the_token_of_meaning_is_told_where_there_is_one(hash_model, tokens, details):
    log_probs = np.array([-1.0, -3.0, -2.5][: len(tokens)])

    class Says(hash_model):
        def log_likelihood_batch(self, requests, temperature, include_eos):
            return [Likelihood(tokens, log_probs, float(log_probs.sum())) for _ in requests]

    [found] = UPR(Says()).rank("red fox", ["a red fox"])
    assert {name: value for name, value in found.details.items() if name == "log_meaning"} == details


@given(QUERIES, st.lists(TEXTS, max_size=8), SCORES, ONE_OF_BOTH)
def test_equal_scores_are_the_uniform_prior(hash_model, query, texts, score, lexical):
    """The rounding of a store's float32 makes no difference, either."""
    without = order(upr(hash_model, lexical).rank(query, texts))
    ranker = upr(hash_model, lexical, prior="retrieval")
    assert shown(ranker.rank(query, texts, scores=[None] * len(texts))) == shown(ranker.rank(query, texts))
    for scores in ([score] * len(texts), [1 + 1e-7 * (place % 2) for place in range(len(texts))]):
        found = ranker.rank(query, texts, scores=scores)
        assert order(found) == without
        assert [item.details["log_prior"] for item in found] == pytest.approx(
            [-math.log(max(len(texts), 1))] * len(texts)
        )


@given(QUERIES, PAIRS, st.data())
def test_a_missing_score_says_nothing_for_or_against_a_passage(query, pairs, data):
    """It neither changes the ranks of the others nor has a rank of its own."""
    texts, scores = apart(pairs)
    some = [data.draw(st.sampled_from([score, None])) for score in scores]
    assume(any(score is not None for score in some))
    passages = list(map(Passage, texts))
    logs = FirstStageScores.read("retrieval", passages, some).log_ranks
    known = [place for place, score in enumerate(some) if score is not None]
    alone = FirstStageScores.read(
        "retrieval", [passages[place] for place in known], [some[place] for place in known]
    ).log_ranks
    assert logs[known].tolist() == alone.tolist()
    assert logs == pytest.approx(
        [alone.mean() if score is None else log for log, score in zip(logs, some, strict=True)]
    )
    assert len(UPR(prior="retrieval").rank(query, passages, scores=some)) == len(passages)


@given(QUERIES, st.lists(st.tuples(TEXTS, st.floats(-1, 1)), max_size=8), ONE_OF_BOTH)
def test_a_cosine_is_one_more_token_of_the_question(hash_model, query, pairs, lexical):
    """Whose log-probability is 20 times the cosine, without the constant that makes it a distribution."""
    texts, cosines = apart(pairs)
    alone = upr(hash_model, lexical).rank(query, texts)
    wanted = {
        item.details["position"]: item.score * max(item.details["tokens"], 1) + 20 * cosines[item.details["position"]]
        for item in alone
    }
    found = upr(hash_model, lexical, prior="cosine").rank(query, texts, scores=cosines)
    totals = {item.details["position"]: item.score * max(item.details["tokens"], 1) for item in found}
    assert math.fsum(math.exp(item.details["log_prior"]) for item in found) == pytest.approx(1 if texts else 0)
    assert all(item.score <= 0 for item in found)
    for place in totals:
        assert totals[place] - totals[0] == pytest.approx(wanted[place] - wanted[0], abs=1e-6)


PASSAGES, COSINE = [Passage("a", id="one"), Passage("b", id="two")], UPR(Unasked(), prior="cosine")
NO_COSINE = r"passage 1 \(id 'two'\) must be a cosine, .* other scales\.$"
test_what_is_no_cosine_is_refused = refuses(
    *((lambda wrong=wrong: COSINE.rank("red fox", PASSAGES, scores=[0.5, wrong]), NO_COSINE) for wrong in (17.5, -1.1)),
    *((lambda nothing=nothing: COSINE.rank("red fox", PASSAGES, scores=nothing), "needs the cosine")
      for nothing in (None, [None, None])),
)  # fmt: skip


def test_what_is_a_cosine_but_for_rounding_or_missing_is_used():
    assert len(UPR(prior="cosine").rank("red fox", PASSAGES, scores=[1.001, None])) == 2
    assert UPR(prior="cosine").rank("red fox", []) == []


@given(st.lists(SCORES, max_size=4), NO_NUMBERS, st.integers(0, 4))
def test_a_score_that_is_no_finite_number_is_refused_and_its_passage_named(scores, wrong, place):
    place = min(place, len(scores))
    scores.insert(place, wrong)
    passages = [Passage("a red fox", id=f"fox-{number}") for number in range(len(scores))]
    with pytest.raises(InvalidInput, match=rf"passage {place} \(id 'fox-{place}'\) must be"):
        UPR(Unasked(), prior="retrieval").rank("red fox", passages, scores=scores)


ranker = UPR(Unasked(), prior="retrieval")
test_what_makes_no_prior_is_refused = refuses(
    (lambda: ranker.rank("red fox", ["a", "b"], scores=[1.0]), "1 scores and 2 passages"),
    (lambda: ranker.rank_many(["red fox"], [["a"]], scores=[[1.0], [2.0]]), "2 lists of scores and 1 questions"),
    (lambda: ranker.rank_many(["fox", "cow"], [["a"]], scores=[[1.0]]), "2 queries and 1 lists"),
    (lambda: UPR(prior=None).rank("red fox", ["a"], scores=[1.0]), 'prior="retrieval" or prior="cosine"'),
    *((lambda prior=prior: UPR(prior=prior), "prior") for prior in ("uniform", True, 1, "Retrieval")),
)
