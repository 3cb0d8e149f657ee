"""Batches by length: none too large, and no other division of the sorted items costs less."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank.likelihood.local import by_length

BUDGET, TARGET_BUDGET = 64, 12
items = st.lists(st.tuples(st.integers(0, 90), st.integers(0, 15)), max_size=8)


def fits(batch: list[int], lengths: list[int], targets: list[int]) -> bool:
    width = max(lengths[position] for position in batch)
    within = width * len(batch) <= BUDGET and sum(targets[position] for position in batch) <= TARGET_BUDGET
    return len(batch) == 1 or within


def cost(batches: list[list[int]], lengths: list[int]) -> float:
    return sum(len(batch) * max(lengths[position] for position in batch) + BUDGET / 32 for batch in batches)


@given(items)
def test_every_item_once_longest_first_in_batches_that_fit_and_cost_least(some):
    lengths, targets = [length for length, _ in some], [target for _, target in some]
    batches = list(by_length(lengths, BUDGET, targets, TARGET_BUDGET))
    order = [position for batch in batches for position in batch]
    assert sorted(order) == list(range(len(some)))
    assert [lengths[position] for position in order] == sorted(lengths, reverse=True)
    assert all(fits(batch, lengths, targets) for batch in batches)
    divisions = [
        [order[first:end] for first, end in pairwise([0, *cuts, len(order)])]
        for count in range(len(order))
        for cuts in combinations(range(1, len(order)), count)
    ]
    costs = [cost(one, lengths) for one in divisions if all(fits(batch, lengths, targets) for batch in one)]
    assert cost(batches, lengths) == pytest.approx(min(costs, default=0))


@given(st.lists(st.integers(0, 90), max_size=8))
def test_targets_count_only_where_they_are_given(lengths):
    batches = list(by_length(lengths, BUDGET))
    assert batches == list(by_length(lengths, BUDGET, [0] * len(lengths), 0))
