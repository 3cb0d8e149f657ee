from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from drillrank.likelihood.prefix_trie import Plan, Row, TokenSequence, common_prefix, plan

ids = st.lists(st.integers(0, 2), min_size=2, max_size=12)
widths = st.sampled_from([1, 8, 10_000])


def sequences_of(lists: list[list[int]], prefix: int = 0) -> list[TokenSequence]:
    sequences, slot = [], 0
    for number, tokens in enumerate(lists):
        whole = [7] * prefix + tokens
        start = 1 + (number * 5) % (len(whole) - 1)
        sequences.append(TokenSequence(whole, start, slot))
        slot += len(whole) - start
    return sequences


def path_to(row: Row, node: int, stem: list[int]) -> list[int]:
    """Tokens from the first one to a node."""
    path = []
    while node >= 0:
        path.append(row.ids[node])
        node = row.parents[node]
    return stem + path[::-1]


def reads_of(todo: Plan) -> dict[int, tuple[list[int], int]]:
    """What is read for each slot: all tokens that predict it, and the token predicted."""
    found: dict[int, tuple[list[int], int]] = {}
    rows = [(row, []) for row in todo.rows] + [(row, stem.ids) for stem in todo.stems for row in stem.rows]
    for row, stem in rows:
        for read in row.reads:
            assert read.slot not in found, "computed twice"
            assert read.node >= 0
            found[read.slot] = (path_to(row, read.node, stem), read.token)
        for node, depth in enumerate(row.depths):
            assert depth == len(path_to(row, node, stem)) - 1
    return found


def tokens_of(todo: Plan) -> int:
    return sum(len(row.ids) for row in todo.rows) + sum(
        len(stem.ids) + sum(len(row.ids) for row in stem.rows) for stem in todo.stems
    )


@given(st.lists(ids, min_size=1, max_size=12), st.sampled_from([0, 70]), widths, st.booleans())
def test_every_target_token_is_predicted_from_exactly_what_stands_before_it(lists, prefix, width, share):
    sequences = sequences_of(lists, prefix)
    found = reads_of(plan(sequences, share=share, width=width))
    expected = {
        sequence.slot + place: (sequence.ids[:depth], sequence.ids[depth])
        for sequence in sequences
        for place, depth in enumerate(range(sequence.target_start, len(sequence.ids)))
    }
    assert found == expected


@given(st.lists(ids, min_size=1, max_size=12), st.sampled_from([0, 70]), widths)
def test_sharing_never_costs_tokens(lists, prefix, width):
    sequences = sequences_of(lists, prefix)
    plainly = plan(sequences, share=False, width=width)
    assert tokens_of(plan(sequences, share=True, width=width)) <= tokens_of(plainly)
    assert tokens_of(plainly) == sum(len(sequence.ids) - 1 for sequence in sequences)  # the last predicts nothing
    assert all(row.is_chain for row in plainly.rows)


def test_demonstrations_are_a_stem_of_all_candidates_and_a_path_is_shared_by_its_instructions():
    demonstrations = list(range(1000, 1400))
    sequences = []
    for path in range(8):
        words = [path * 200 + i for i in range(150)]
        sequences += [TokenSequence([*demonstrations, *words, 5000 + i, 9, 9], 551, 0) for i in range(5)]
    todo = plan(sequences, share=True, width=768)
    [stem] = todo.stems
    assert stem.ids == demonstrations
    assert not todo.rows
    assert sorted(len(row.ids) for row in stem.rows) == [150 + 5 * 2] * 8


def test_strangers_do_not_share_a_row():
    sequences = [TokenSequence([1, *[start + i for i in range(150)]], 140, 0) for start in range(10, 3000, 200)]
    todo = plan(sequences, share=True, width=768)
    assert not todo.stems
    assert len(todo.rows) == len(sequences)
    assert all(row.is_chain for row in todo.rows)


@given(ids, ids)
def test_common_prefix(one, other):
    common = common_prefix(one, other)
    assert one[:common] == other[:common]
    assert common == min(len(one), len(other)) or one[common] != other[common]
