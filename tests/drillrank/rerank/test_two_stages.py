"""Ranking in two stages with any two rankers."""

from __future__ import annotations

import asyncio
import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank import UPR, MonoT5, Relevance
from drillrank.errors import InvalidInput
from drillrank.likelihood import UnigramModel
from drillrank.rerank.explaining import UNREAD
from drillrank.rerank.two_stages import TwoStageRanker
from tests.drillrank.conftest import HashModel

QUERIES = st.sampled_from(["red fox", "which river?", "zebra"])
TEXTS = st.lists(st.sampled_from(["a red fox", "a river", "whales", "", "the red river", "a fox crossed"]), max_size=8)


def rankers(name):
    second = {"relevance": lambda: Relevance(HashModel()), "likelihood": lambda: UPR(HashModel(), prior=None),
              "monot5": lambda: MonoT5(HashModel())}  # fmt: skip
    return UPR(), second[name]()


def by_position(ranking):
    return {item.details["position"]: item for item in ranking}


@pytest.mark.parametrize("name", ["relevance", "likelihood", "monot5"])
@given(QUERIES, TEXTS, st.integers(1, 9), st.booleans())
def test_the_second_ranker_scores_the_best_of_the_first_and_they_rank_above_the_rest(name, query, texts, read, scored):
    scores = [float(index % 3) for index in range(len(texts))] if scored else None
    first, second = rankers(name)
    ranking = TwoStageRanker(first, second, read).rank(query, texts, scores=scores)
    by_first = first.rank(query, texts, scores=scores)
    read_positions = [item.details["position"] for item in by_first[:read]]
    by_second = by_position(second.rank(query, texts))
    items = by_position(ranking)
    assert {position for position, item in items.items() if item.details["read"]} == set(read_positions)
    for position in read_positions:
        log_prior = items[position].details.get("log_prior", 0.0)
        tokens = items[position].details["tokens"]
        assert items[position].score == pytest.approx(by_second[position].score + log_prior / tokens, abs=1e-9)
    unread = [item.details["position"] for item in ranking if not item.details["read"]]
    assert unread == [item.details["position"] for item in by_first[read:]]  # in the order of the first ranker
    gaps = [math.dist([items[a].score], [items[b].score]) for a, b in pairwise(unread)]
    first_items = by_position(by_first)
    assert gaps == pytest.approx([first_items[a].score - first_items[b].score for a, b in pairwise(unread)], abs=1e-9)
    lowest = min((item.score for item in ranking if item.details["read"]), default=math.inf)
    assert all(items[position].score < lowest for position in unread)


@pytest.mark.parametrize("name", ["relevance", "likelihood", "monot5"])
@given(QUERIES, TEXTS, st.integers(1, 9), st.booleans())
def test_explanations_add_up(name, query, texts, read, scored):
    scores = [float(index % 3) for index in range(len(texts))] if scored else None
    ranking = TwoStageRanker(*rankers(name), read).rank(query, texts, scores=scores)
    for item, explanation in zip(ranking, ranking.explain(), strict=True):
        assert explanation.total == pytest.approx(item.score, abs=1e-6)
        assert (explanation.rank, explanation.score) == (item.rank, item.score)
        assert bool(explanation.term(UNREAD).value) <= (not item.details["read"])


def test_many_questions_are_ranked_as_one_by_one_and_async():
    ranker = TwoStageRanker(*rankers("relevance"), 2)
    queries, lists = ["red fox", "which river?", "zebra"], [["a red fox", "whales", "a river"], [], ["a river"] * 3]
    alone = [[(i.passage, i.score) for i in ranker.rank(*pair)] for pair in zip(queries, lists, strict=True)]
    many = ranker.rank_many(queries, lists)
    assert [[(i.passage, i.score) for i in ranking] for ranking in many] == alone
    in_tasks = asyncio.run(ranker.arank_many(queries, lists))
    assert [[(i.passage, i.score) for i in ranking] for ranking in in_tasks] == alone


def test_a_fitted_model_is_left_as_it_is():
    words = UnigramModel()
    TwoStageRanker(UPR(words), Relevance(HashModel()), 1).rank("red fox", ["a red fox", "a river"])
    assert words.wants_fit


@pytest.mark.parametrize("read", [0, -1, True, 2.5])
def test_a_number_that_cannot_be_read_is_refused(read):
    with pytest.raises(InvalidInput, match="read"):
        TwoStageRanker(*rankers("relevance"), read)
