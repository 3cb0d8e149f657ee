"""Scales of scores, which change no order; where nothing matches, the length of a candidate is no evidence."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drillrank.likelihood import Likelihood, UnigramModel
from drillrank.multihop.links import passage_links
from drillrank.multihop.path_rerank import PathRerank
from drillrank.multihop.prior import PathPrior
from drillrank.multihop.search import PathSearch
from drillrank.passages import Passage, ranked
from drillrank.prompts import prompt_text
from drillrank.rerank.brmgr import BRMGR
from drillrank.rerank.formula import LikelihoodFormula
from drillrank.rerank.promptrank import PromptRank
from drillrank.rerank.scales import rescaled, selected
from drillrank.rerank.upr import UPR
from drillrank.text import terms
from tests.drillrank.multihop.graphs import INSTRUCTION, graphs
from tests.examples import examples

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


# No scale, formula or option changes the order of a ranking

QUERIES = st.sampled_from(["which red fox crossed the river?", "red-fox", "???", "well-known foxes of the river-side"])
NUMBERS = {"pairs": st.integers(0, 4), "hops": st.integers(1, 3)}
OPTIONS = st.fixed_dictionaries({**NUMBERS, "link_prior": st.none() | st.just(PathPrior())})
FORMULAS = st.builds(LikelihoodFormula, st.just("{path}"), reduce=st.sampled_from(["mean", "sum"]))


def names(ranking):
    return [item.passage.id for item in ranking]


def holds_on_every_scale(ranking):
    for scale in SCALES:
        shown = rescaled(ranking, scale)
        scores = [item.score for item in shown]
        assert names(shown) == names(ranking)
        assert scores == sorted(scores, reverse=True)
        assert scale != "softmax" or math.fsum(scores) == pytest.approx(1 if ranking else 0)


@settings(max_examples=examples(100))
@given(graphs(), QUERIES, OPTIONS, FORMULAS, st.sampled_from(["max", "mean"]), st.booleans())
def test_of_paths(hash_model, passages, query, options, formula, ensemble, lexical):
    asked = {"instructions": [INSTRUCTION, "{path} Ask:"], "settings": {"formula": formula}}
    dear = PromptRank(ensemble=ensemble, **({} if lexical else {"model": hash_model(), **asked}))
    holds_on_every_scale(PathRerank(dear, links=passage_links, settings=options).rank(query, passages))


@given(graphs(), QUERIES, st.sampled_from(["mean", "sum"]), st.booleans(), st.data())
def test_of_passages_with_the_first_stage_as_prior_or_without(hash_model, passages, query, reduce, lexical, data):
    preset = {} if lexical else {"preset": LikelihoodFormula("{title} {text}", reduce=reduce)}
    model = "unigram" if lexical else hash_model()
    scores = [data.draw(st.none() | st.floats(-9, 9)) for _ in passages]
    holds_on_every_scale(UPR(model, **preset).rank(query, passages))
    holds_on_every_scale(UPR(model, prior="retrieval", **preset).rank(query, passages, scores=scores))


@given(graphs(), graphs(), QUERIES, st.booleans(), st.floats(0, 1))
def test_of_retrieved_and_generated_passages(retrieved, generated, query, guard, share):
    holds_on_every_scale(BRMGR(guard=guard, settings={"generated_share": share}).rank(query, retrieved, generated))


@given(st.lists(st.tuples(st.floats(-9, 0), st.integers(0, 40)), max_size=6))
def test_of_candidates_whose_tokens_differ(scored):
    """A prompt's last letters may melt into the question's first token."""
    scored.sort(reverse=True)

    class Melting(UnigramModel):
        def log_likelihood_batch(self, requests, temperature, include_eos):
            prompts = [int(prompt_text(request.prompt)) for request in requests]
            return [Likelihood(["t"] * scored[i][1], np.zeros(0), scored[i][0] * scored[i][1]) for i in prompts]

    passages = [Passage(str(i)) for i in range(len(scored))]
    holds_on_every_scale(UPR(Melting(), template="{text}").rank("fox", passages))


@given(graphs(), st.sampled_from(["which red fox crossed the river?", "red fox"]))
def test_a_sum_and_a_mean_give_one_posterior(hash_model, passages, query):
    """The question has as many tokens after every path, so that a sum only stretches the scores, the prior's too."""
    tokens = len(query.split())
    mean = LikelihoodFormula("{path}")
    rankers = [
        PromptRank(hash_model(), instructions=[INSTRUCTION], settings={"formula": formula})
        for formula in (mean, replace(mean, reduce="sum"))
    ]
    rankings = [PathSearch(ranker, passages).search_paths(query) for ranker in rankers]
    averaged, added = ({item.passage.ids: item.score for item in ranking} for ranking in rankings)
    assert added == pytest.approx({path: score * tokens for path, score in averaged.items()})
    posteriors = [[item.score for item in rescaled(ranking, "softmax")] for ranking in rankings]
    assert posteriors[0] == pytest.approx(posteriors[1])


# Where a candidate shares no word with the question, its length is no evidence

QUERY = "Which fox crossed rivers?"
FOREIGN = st.lists(st.sampled_from(["whale", "town", "a", "Basel.", "chess"]), max_size=9).map(" ".join)
ANY = FOREIGN | st.lists(st.sampled_from(["foxes", "whale", "river", "town"]), max_size=9).map(" ".join)
RANKERS = {
    "UPR": lambda: UPR(),
    "UPR, fitted": lambda: UPR(UnigramModel().fit(["a fox", "whale town"])),
    "paths": lambda: PathRerank(PromptRank(), links=[]),
    "paths, likelihood alone": lambda: PathRerank(PromptRank(), links=[], settings={"link_prior": None, "hops": 3}),
}


def passages(texts):
    return [Passage(text, id=str(i)) for i, text in enumerate(texts)]


@pytest.mark.parametrize("ranker", RANKERS.values(), ids=RANKERS)
@given(texts=st.lists(FOREIGN, max_size=6))
def test_nothing_matches_and_the_input_order_stands(ranker, texts):
    ranking = ranker().rank(QUERY, passages(texts))
    assert [item.passage.id for item in ranking] == [str(i) for i in range(len(texts))]
    assert len({item.score for item in ranking}) <= 1
    assert all(item.details["nothing_matched"] for item in ranking)


@given(st.lists(ANY, max_size=6), st.booleans())
def test_what_matches_is_scored_as_ever_and_the_rest_comes_last_in_input_order(texts, fitted):
    lm = UnigramModel().fit(["a fox", "whale town"]) if fitted else UnigramModel()
    ranking = UPR(lm, template="{text}").rank(QUERY, passages(texts))
    exact = [found.total for found in lm.log_likelihood([(text, QUERY) for text in texts])]
    words = set(terms(QUERY))
    matched = [not words.isdisjoint(terms(text)) for text in texts]
    for item in ranking:
        at = item.details["position"]
        assert item.details["log_likelihood"] == pytest.approx(exact[at])
        assert item.score * item.details["tokens"] == pytest.approx(exact[at] if matched[at] else min(exact))
        assert item.details["nothing_matched"] is (not any(matched))
    unmatched = [item.details["position"] for item in ranking if not matched[item.details["position"]]]
    assert unmatched == sorted(unmatched)


def test_a_path_matches_by_any_of_its_passages():
    linked = [Passage("A long text about the town of Basel.", id="a", links=("b",)), Passage("rivers", id="b")]
    ranking = PathRerank(PromptRank()).rank(QUERY, linked)
    assert not any(item.details["nothing_matched"] for item in ranking)
