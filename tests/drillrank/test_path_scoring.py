"""The cascade: what the cheap model leaves out follows the chosen paths at the cheap model's distances."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank.likelihood import UnigramModel
from drillrank.multihop.search import PathScorer, PathWithPrior
from drillrank.passages import Path
from drillrank.rerank.promptrank import PromptRank

from .test_path_search import QUERY, graphs, ranker, whole_prompt

PRIORS = st.lists(st.floats(-9, 0), min_size=6, max_size=6)


@given(graphs(), PRIORS, st.none() | st.integers(1, 7))
def test_a_cascade_keeps_the_order_and_the_distances_of_the_cheap_model(hash_model, passages, priors, cascade):
    waiting = [PathWithPrior(Path((passage,)), prior) for passage, prior in zip(passages, priors, strict=False)]
    texts = [passage.text for passage in passages]
    model = hash_model()
    found = PathScorer(ranker(model), texts, cascade).ranked(QUERY, waiting)
    assert sorted(item.passage.ids for item in found) == sorted(item.path.ids for item in waiting)
    scores = [item.score for item in found]
    assert scores == sorted(scores, reverse=True)
    kept, pruned = found[:cascade], found[len(passages) if cascade is None else cascade :]
    tokens = len(QUERY.split())
    for item in kept:
        log_probs = model.log_probs(whole_prompt(item.passage.passages), QUERY)
        assert item.score == pytest.approx((sum(log_probs) + item.details["log_prior"]) / tokens)
        assert "model" not in item.details
    cheap = PathScorer(PromptRank(UnigramModel().fit(texts)), texts, None).ranked(QUERY, waiting)
    assert [item.passage for item in pruned] == [item.passage for item in cheap[len(kept) :]]
    for item, by_cheap in zip(pruned, cheap[len(kept) :], strict=True):
        distance = cheap[len(kept) - 1].score - by_cheap.score
        assert kept[-1].score - item.score == pytest.approx(distance, abs=1e-9)
        assert item.details["model"] == "unigram"
        assert item.details["tokens"] == tokens
        assert item.details["path"] == item.passage.ids
        assert item.details["log_prior"] == by_cheap.details["log_prior"]
