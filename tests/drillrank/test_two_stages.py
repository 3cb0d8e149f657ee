"""Sums of experts in UPR: the first expert ranks all passages, the whole sum reads the best of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank import UPR, load_language_model
from drillrank.errors import InvalidInput
from drillrank.likelihood import UnigramModel
from drillrank.likelihood.mixture import SumOfExperts

TEXTS = st.sampled_from(["a red fox", "a red fox crossed the river", "a river", "whales", "", "The red town."])
QUERIES = st.sampled_from(["red fox", "which river?", "the fox crossed", "zebra"])
LISTS = st.lists(TEXTS, max_size=8)


def of_words_and(neural, weight=2.0):
    return SumOfExperts([UnigramModel(), neural], [1.0, weight])


def shown(ranking):
    return [(item.details["position"], item.score) for item in ranking]


@given(QUERIES, LISTS, st.integers(1, 9), st.booleans())
def test_the_first_expert_chooses_what_the_sum_reads(hash_model, query, texts, read, scored):
    scores = [float(len(texts) - place) for place in range(len(texts))] if scored else None
    neural = hash_model()
    ranker = UPR(of_words_and(neural), read=read)
    ranking = ranker.rank(query, texts, scores=scores)
    first = [item.details["position"] for item in UPR(UnigramModel()).rank(query, texts, scores=scores)]
    assert len(neural.requests) == min(read, len(texts))
    by_position = {item.details["position"]: item for item in ranking}
    assert {place for place, item in by_position.items() if item.details["read"]} == set(first[:read])
    assert [item.details["position"] for item in ranking if not item.details["read"]] == first[read:]
    assert [item.details["read"] for item in ranking] == sorted((i.details["read"] for i in ranking), reverse=True)
    assert [item.score for item in ranking] == sorted((item.score for item in ranking), reverse=True)
    everything = UPR(of_words_and(hash_model()), read="all").rank(query, texts, scores=scores)
    wanted = {item.details["position"]: item.score for item in everything}
    for place in first[:read]:
        assert by_position[place].score == pytest.approx(wanted[place], abs=1e-9)


@given(st.lists(st.tuples(QUERIES, LISTS), max_size=4), st.integers(1, 4), st.booleans())
def test_many_questions_are_read_as_one_by_one(hash_model, asked, read, fitted):
    model = of_words_and(hash_model())
    ranker = UPR(model.fit(["a red fox", "the river"]) if fitted else model, read=read)
    many = ranker.rank_many([query for query, _ in asked], [texts for _, texts in asked])
    assert list(map(shown, many)) == [shown(ranker.rank(query, texts)) for query, texts in asked]


@given(QUERIES, st.lists(TEXTS, min_size=1, max_size=8), st.integers(1, 9), st.booleans())
def test_explanations_add_up_whether_a_passage_was_read_or_not(hash_model, query, texts, read, scored):
    scores = [float(place) for place in range(len(texts))] if scored else None
    ranker = UPR(of_words_and(hash_model()), read=read)
    ranking = ranker.rank(query, texts, scores=scores)
    for explanations in (ranking.explain(), ranker.explain(query, ranking, texts)):
        assert [one.total for one in explanations] == pytest.approx([item.score for item in ranking], abs=1e-6)


def test_ten_are_read_of_a_sum_with_a_neural_expert_and_all_by_other_models(hash_model):
    texts = [f"fox number {number}" for number in range(15)]
    assert sum(item.details["read"] for item in UPR(of_words_and(hash_model())).rank("fox", texts)) == 10
    for model in (hash_model(), "unigram", "unigram+unigram", SumOfExperts([hash_model(), UnigramModel()])):
        assert all("read" not in item.details for item in UPR(model).rank("fox", texts))
    whole = UPR(of_words_and(hash_model()), read="all").rank("fox", texts)
    assert all("read" not in item.details for item in whole)
    preset = UPR(of_words_and(hash_model()), preset="brmgr").rank("fox", texts)
    assert all("read" not in item.details for item in preset)


@pytest.mark.parametrize(("model", "read"), [("unigram", 5), ("unigram+unigram", 0), ("unigram+unigram", "some")])
def test_a_number_that_cannot_be_read_is_refused(model, read):
    with pytest.raises(InvalidInput, match="read"):
        UPR(load_language_model(model), read=read)
