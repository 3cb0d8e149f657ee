"""Intervals, tests and measures of comparisons, against independent computations."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from drillrank import Passage
from drillrank.errors import InvalidInput
from drillrank.evaluation import measures
from drillrank.evaluation.evidence import evidence_of
from drillrank.evaluation.questions import Question
from drillrank.evaluation.statistics import (
    bootstrap_interval,
    difference,
    holm,
    least_questions,
    questions_that_would_tell,
    randomisation_test,
    verdict,
)
from tests.benchmarks.nulls import null_comparisons

PROBABILITIES = st.floats(0, 1, allow_nan=False)


@pytest.mark.parametrize("size", [25, 60])
def test_intervals_hold_the_true_mean_in_95_percent_of_1000_experiments(size):
    rng = np.random.default_rng(7)
    levels, chances = np.array([-1.0, -0.5, 0.0, 0.5, 1.0]), [0.05, 0.1, 0.45, 0.2, 0.2]
    truth = float(levels @ chances)
    held = 0
    for _ in range(1_000):
        low, high = bootstrap_interval(rng.choice(levels, size, p=chances), samples=1_000)
        held += low <= truth <= high
    assert 930 <= held <= 970


def test_the_randomisation_test_is_that_of_scipy():
    rng = np.random.default_rng(3)
    for shift in (0.0, 0.1, 0.25):
        values = np.round(rng.normal(shift, 0.5, 40), 1)
        expected = stats.permutation_test(
            (values,), np.mean, permutation_type="samples", n_resamples=20_000, rng=np.random.default_rng(1), axis=0
        ).pvalue
        assert randomisation_test(values, samples=20_000) == pytest.approx(expected, abs=0.02)


def test_under_no_difference_five_percent_of_the_tests_are_wrong():
    rng = np.random.default_rng(5)
    wrong = sum(randomisation_test(rng.normal(0, 1, 30), samples=500) <= 0.05 for _ in range(1_000))
    assert 30 <= wrong <= 70


@given(st.lists(PROBABILITIES, min_size=1, max_size=12))
def test_holm_adjusts_as_its_definition_says(ps):
    order = sorted(range(len(ps)), key=lambda i: ps[i])
    for place, i in enumerate(order):
        largest = max((len(ps) - j) * ps[order[j]] for j in range(place + 1))
        assert holm(ps)[i] == pytest.approx(min(1.0, largest))


def test_so_many_questions_do_tell():
    rng = np.random.default_rng(11)
    values = np.array([1.0, 0.0, 0.0, 0.0, -1.0, 1.0, 0.0, 1.0])
    needed = questions_that_would_tell(values)
    spread = values.std(ddof=1)
    drawn = rng.normal(values.mean(), spread, (400, needed))
    told = sum(randomisation_test(row, samples=500) <= 0.05 for row in drawn)
    assert 0.74 <= told / 400 <= 0.86
    assert questions_that_would_tell(values, pairs=10) > needed
    assert questions_that_would_tell([0.5, -0.5]) is None


def test_verdicts_follow_the_adjusted_p():
    assert [verdict(0.1, 0.05), verdict(-0.1, 0.01), verdict(0.1, 0.051)] == ["better", "worse", "cannot tell"]
    assert difference([0.0, 0.0, 0.0]) == (0.0, 0.0, 0.0, 1.0, 3)
    with pytest.raises(InvalidInput, match="one finite number"):
        difference([0.5, float("nan")])


def test_measures_are_those_of_pytrec_eval_on_1000_random_runs():
    pytest.importorskip("ir_measures")
    pytrec_eval = pytest.importorskip("pytrec_eval")
    rng = np.random.default_rng(2)
    names = {
        "nDCG@10": "ndcg_cut_10",
        "RR": "recip_rank",
        "AP": "map",
        "Success@1": "success_1",
        "Success@5": "success_5",
        "R@5": "recall_5",
        "R@10": "recall_10",
    }
    pool = [f"d{i}" for i in range(40)]
    questions, gold, rankings = [], {}, {}
    for number in range(1_000):
        id_ = f"q{number}"
        gold[id_] = set(rng.choice(pool, rng.integers(1, 6), replace=False).tolist())
        rankings[id_] = rng.permutation(pool)[: rng.integers(0, 41)].tolist()
        questions.append(Question(id_, "?", gold=tuple(gold[id_])))
    found_passages = {id_: [Passage("?", id=name) for name in ids] for id_, ids in rankings.items()}
    evidence = evidence_of(questions)
    ranks = {id_: one.ranks(found_passages[id_]) for id_, one in evidence.items()}
    found = measures.values([*names, "AllR@10", "F1@5"], questions, evidence, found_passages, ranks)
    run = {id_: {name: 1.0 / (1 + rank) for rank, name in enumerate(ids)} for id_, ids in rankings.items()}
    qrels = {id_: dict.fromkeys(ids, 1) for id_, ids in gold.items()}
    said = pytrec_eval.RelevanceEvaluator(qrels, set(names.values())).evaluate(run)
    for name, called in names.items():
        expected = [said.get(q.id, {}).get(called, 0.0) for q in questions]
        np.testing.assert_allclose(found[name], expected, atol=1e-12)
    for place, question in enumerate(questions):
        wanted, ranking = gold[question.id], rankings[question.id]
        common = len(wanted & {*ranking[:5]})
        assert found["AllR@10"][place] == (wanted <= {*ranking[:10]})
        assert found["F1@5"][place] == pytest.approx(2 * common / (len(wanted) + len(ranking[:5])))


def span_recall(texts, spans, words):
    passages = [Passage(text, id=str(place)) for place, text in enumerate(texts)]
    return evidence_of([Question("1", "?", spans=tuple(spans))])["1"].span_recall(passages, words)


@given(st.lists(st.text("abc ", min_size=1, max_size=30), max_size=4), st.integers(1, 12))
def test_span_recall_is_a_share_that_grows_with_the_words_read(texts, words):
    spans = ["a b c a b c", "c c"]
    less, more = (span_recall(texts, spans, n) for n in (words, words + 5))
    assert 0 <= less <= more <= 1
    assert span_recall(["a b c a b c and c c"], spans, 100) == 1


def test_only_the_first_words_count_for_span_recall():
    texts = ["one two three four five six", "seven eight nine ten eleven twelve"]
    span = ["seven eight nine ten eleven twelve"]
    assert span_recall(texts, span, 6) == 0
    assert span_recall(texts, span, 11) == pytest.approx(23 / 29)  # characters of words
    assert span_recall(texts, span, 12) == 1


# Figures that can be trusted


@pytest.mark.parametrize(("questions", "comparisons"), [(5, 2_000), (20, 2_000), (100, 1_000)])
@pytest.mark.parametrize("values", ["reciprocal ranks", "hits", "shares"])
def test_of_systems_that_are_alike_at_most_five_percent_are_called_better_or_worse(questions, comparisons, values):
    told = null_comparisons(questions, comparisons, values)
    margin = 3 * np.sqrt(0.05 * 0.95 / comparisons)
    assert told == 0 if questions == 5 else told / comparisons <= 0.05 + margin


def test_six_questions_are_the_least_that_can_tell_and_three_pairs_need_seven():
    for pairs in (1, 3, 6):
        least = least_questions(pairs)
        [few], [enough] = (holm([randomisation_test(np.ones(n))] * pairs)[:1] for n in (least - 1, least))
        assert (verdict(1.0, few), verdict(1.0, enough)) == ("cannot tell", "better")
    assert questions_that_would_tell([1.0, 1.0]) == questions_that_would_tell([1.0]) == 6


@pytest.mark.parametrize("size", [5_000, 20_000])
def test_memory_does_not_grow_with_the_questions(size):
    values = np.random.default_rng(1).normal(size=size)  # all different: 1.25 GB at 5,000 at first
    difference(values[:10])
    tracemalloc.start()
    try:
        difference(values)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 30e6
