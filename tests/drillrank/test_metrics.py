from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank.evaluation.metrics import evidence_f1, hit, recall, recall_all

items = st.integers(0, 6)


@given(st.lists(items, unique=True), st.sets(items, min_size=1), st.integers(1, 8))
def test_recall_of_all_and_hit_by_counting(ranking, gold, k):
    found = len(gold.intersection(ranking[:k]))
    assert recall_all(ranking, gold, k) == float(found == len(gold))
    assert hit(ranking, gold, k) == float(found > 0)
    assert recall(ranking, gold, k) == found / len(gold)


@given(st.sets(items), st.lists(st.sets(items), min_size=1, max_size=3))
def test_evidence_f1_is_the_best_harmonic_mean(predicted, annotations):
    expected = []
    for gold in annotations:
        common = len(predicted & gold)
        precision = common / len(predicted) if predicted else float(not gold)
        recall = common / len(gold) if gold else float(not predicted)
        expected.append(2 * precision * recall / (precision + recall) if precision + recall else 0.0)
    assert evidence_f1(predicted, annotations) == pytest.approx(max(expected))
