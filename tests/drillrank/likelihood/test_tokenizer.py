from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank.errors import InvalidInput
from drillrank.likelihood.tokenizer import allot, longest

documents = st.lists(st.tuples(st.integers(0, 40), st.none() | st.integers(0, 40)), max_size=6)
totals = st.none() | st.integers(-5, 120)


def caps_of(documents):
    return [length if limit is None else min(length, limit) for length, limit in documents]


def empties_a_document(documents, total):
    caps = caps_of(documents)
    one_each = sum(min(cap, 1) for cap in caps)
    return any(length and not cap for (length, _), cap in zip(documents, caps, strict=True)) or (
        total is not None and sum(caps) > total and one_each > max(total, 0)
    )


@given(documents, totals)
def test_shares_are_max_min_fair(documents, total):
    lengths, limits = [length for length, _ in documents], [limit for _, limit in documents]
    if empties_a_document(documents, total):
        with pytest.raises(InvalidInput, match="Nothing would be left"):
            allot(lengths, limits, total)
        return
    caps, kept = caps_of(documents), allot(lengths, limits, total)
    assert all(0 <= keep <= cap for keep, cap in zip(kept, caps, strict=True))
    assert sum(kept) == (sum(caps) if total is None else min(sum(caps), max(total, 0)))  # over nothing, and no waste
    shortened = [keep for keep, cap in zip(kept, caps, strict=True) if keep < cap]
    if shortened:  # nobody who gave way has less than anybody else, but for the remainder of the division
        assert min(shortened) >= max(kept) - 1


@pytest.mark.parametrize("total", [0, -3])
def test_of_a_budget_of_nothing_nobody_gets_anything(total):
    assert allot([0, 0], [None, 5], total) == [0, 0]
    with pytest.raises(InvalidInput, match="Nothing would be left of document 2 of 2"):
        allot([0, 3], [None, None], total)


@given(st.integers(0, 9), st.lists(st.integers(-9, 9), max_size=60), st.integers(-5, 80))
def test_a_size_is_found_that_uses_the_limit_up_or_does_not_fit_with_one_more(fits, excesses, guess):
    """Whatever a size is over, and in few tries."""
    most = fits + len(excesses)
    tried = []

    def over(size):
        assert fits < size <= most
        tried.append(size)
        return excesses[size - fits - 1]

    found = longest(over, fits, most, guess)
    assert tried[:1] == ([min(max(guess, fits + 1), most)] if excesses else [])
    assert len(tried) == len(set(tried)) <= 5 + math.log2(max(len(excesses), 1))
    assert found == fits or (found in tried and over(found) <= 0)
    assert found == most or (found > fits and over(found) == 0) or (found + 1 in tried and over(found + 1) > 0)
