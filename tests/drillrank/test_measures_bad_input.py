"""Every measure gives a number from 0 to 1, or says what was wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank.errors import InvalidInput
from drillrank.evaluation.exact_match import exact_match
from drillrank.evaluation.metrics import evidence_f1, hit, recall, recall_all

ODD = st.none() | st.text(max_size=3) | st.integers(-2, 3) | st.booleans() | st.floats() | st.binary(max_size=2)
ANYTHING = ODD | st.lists(ODD, max_size=3) | st.lists(st.lists(ODD, max_size=2).map(tuple), max_size=2)
MEASURES = {
    "exact_match": lambda a, b, k: exact_match(a, b, k),
    "recall_all": lambda a, b, k: recall_all(a, b, k),
    "recall": lambda a, b, k: recall(a, b, k),
    "hit": lambda a, b, k: hit(a, b, k),
    "evidence_f1": lambda a, b, k: evidence_f1(a, b),
}


@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
@given(first=ANYTHING, second=ANYTHING, k=ODD)
def test_a_number_from_0_to_1_or_a_clear_error(measure, first, second, k):
    try:
        value = measure(first, second, k)
    except InvalidInput:
        return
    assert type(value) is float
    assert 0 <= value <= 1


@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
def test_a_string_is_no_collection(measure):
    for first, second in (("Jane Austen", ["Jane Austen"]), (["Jane Austen"], "Jane Austen")):
        with pytest.raises(InvalidInput, match="is a collection"):
            measure(first, second, 1)


def test_a_share_of_no_gold():
    with pytest.raises(InvalidInput, match="one passage at least"):
        recall(["a"], [], 1)


def test_no_annotation():
    with pytest.raises(InvalidInput, match="one annotator at least"):
        evidence_f1({1}, [])
