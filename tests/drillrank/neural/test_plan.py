"""Which sequences are computed on a common stem: each once, on what they begin with, and never at a higher price."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from drillrank.likelihood.torch_engine import common_prefix, plan

ids = st.lists(st.integers(0, 2), min_size=2, max_size=12)


def tokens_of(stems, sequences):
    """What is computed: each stem once, and as much as 64 tokens for each; all that follows."""
    return sum(
        stem.length + 64 * (stem.length > 0) + sum(len(sequences[i]) - stem.length for i in stem.members)
        for stem in stems
    )


@given(st.lists(ids, max_size=12), st.sampled_from([0, 40, 70]))
def test_every_sequence_stands_once_on_what_it_begins_with(lists, prefix):
    sequences = [[7] * prefix + one for one in lists]
    rooms = [(number * 5) % len(one) for number, one in enumerate(sequences)]
    stems = plan(sequences, rooms)
    assert sorted(i for stem in stems for i in stem.members) == list(range(len(sequences)))
    for stem in stems:
        first = sequences[stem.members[0]][: stem.length]
        for i in stem.members:
            assert sequences[i][: stem.length] == first
            assert stem.length <= rooms[i]
    assert tokens_of(stems, sequences) <= sum(map(len, sequences))


@given(st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=3), min_size=1, max_size=6))
def test_no_other_division_of_the_sorted_sequences_costs_less(lists):
    sequences = sorted([token for token in one for _ in range(40)] + [9] for one in lists)
    rooms = [len(one) - 1 for one in sequences]
    costs = []
    for cuts in product([False, True], repeat=len(sequences) - 1):
        groups = [[0]]
        for i, cut in enumerate(cuts, start=1):
            if cut:
                groups.append([i])
            else:
                groups[-1].append(i)
        cost = 0
        for group in groups:
            length = min([common_prefix(sequences[group[0]], sequences[group[-1]]), *(rooms[i] for i in group)])
            whole = sum(len(sequences[i]) for i in group)
            cost += min(whole, whole - (len(group) - 1) * length + 64)
        costs.append(cost)
    assert tokens_of(plan(sequences, rooms), sequences) == min(costs)


def test_demonstrations_are_a_stem_of_all_candidates_and_a_path_is_one_of_its_instructions():
    demonstrations = list(range(1000, 1400))
    paths = [[*demonstrations, *range(path * 200, path * 200 + 150)] for path in range(8)]
    once = [[*path, 5000, 9, 9] for path in paths]
    [stem] = plan(once, [551] * 8)
    assert (stem.length, len(stem.members)) == (400, 8)
    five = [[*path[400:], 5000 + i, 9, 9] for path in paths for i in range(5)]
    assert sorted(len(stem.members) for stem in plan(five, [151] * 40)) == [5] * 8


def test_chains_of_beginnings_are_planned_without_recursion():
    sequences = [list(range(length)) for length in range(1, 2000)]
    assert len({i for stem in plan(sequences, [len(one) - 1 for one in sequences]) for i in stem.members}) == 1999


@given(ids, ids)
def test_common_prefix(one, other):
    common = common_prefix(one, other)
    assert one[:common] == other[:common]
    assert common == min(len(one), len(other)) or one[common] != other[common]
