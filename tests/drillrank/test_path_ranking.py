"""From scored paths to passages: the best path's score, and the posterior of all paths for the order within one."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank.multihop.path_ranking import ranked_passages
from drillrank.multihop.search import PathSearch
from drillrank.passages import Passage, Path, Ranked
from drillrank.rerank.promptrank import PromptRank

NAMES = "abcde"
paths_of = st.lists(
    st.tuples(
        st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True),
        st.floats(-30, 0, allow_nan=False),
    ),
    max_size=12,
    unique_by=lambda item: tuple(item[0]),
)


def scored(items, tokens=4, **details):
    found = [
        Ranked(Path(tuple(Passage(name, id=name) for name in names)), score, 1, {"tokens": tokens, **details})
        for names, score in items
    ]
    return sorted(found, key=lambda item: -item.score)


def test_posteriors_that_a_float_cannot_hold_still_order_the_passages_of_a_path():
    found = ranked_passages(scored([("ab", -300.0), ("b", -300.01)]))
    assert [item.passage.id for item in found] == ["b", "a"]


@given(paths_of, st.sampled_from(["mean", "sum"]), st.integers(1, 60))
def test_best_path_first_then_the_posterior_of_all_paths(items, reduce, tokens):
    paths = scored(items, tokens, reduce=reduce)
    found = ranked_passages(paths)
    assert {item.passage.id for item in found} == {name for names, _ in items for name in names}
    assert [item.rank for item in found] == list(range(1, len(found) + 1))
    size = tokens if reduce == "mean" else 1
    mass = {
        name: math.fsum(math.exp(size * item.score) for item in paths if name in item.passage.ids) for name in NAMES
    }
    best = {item.passage.id: next(path for path in paths if item.passage.id in path.passage.ids) for item in found}
    for item in found:
        assert item.score == best[item.passage.id].score
    for one, other in pairwise(found):
        assert one.score >= other.score
        if best[one.passage.id] is best[other.passage.id] and min(mass.values()) > 1e-300:
            assert mass[one.passage.id] >= mass[other.passage.id] * (1 - 1e-9)


def test_where_nothing_tells_them_apart_the_path_does():
    [first, second] = ranked_passages(scored([(["b", "a"], -1.0)]))
    assert (first.passage.id, second.passage.id) == ("b", "a")
    first.details["own"] = True
    assert "own" not in second.details


def test_details_of_an_underflow():
    found = ranked_passages(scored([(["a"], -1.0), (["b", "c"], -900.0), (["c"], -950.0)], tokens=50))
    assert [item.passage.id for item in found] == ["a", "b", "c"]


def chain(length):
    return [
        Passage(f"word{i} leads on", id=str(i), links=(str(i + 1),) if i + 1 < length else ()) for i in range(length)
    ]


@pytest.mark.parametrize(("question", "hops"), [("word0 word1 word2", 3), ("word0 word0 word0 word0", 2)])
def test_a_question_gets_the_hops_it_needs(question, hops):
    """A hop that explains nothing more costs its prior, and is the last one; a number that is given is kept to."""
    passages = [*chain(4), *(Passage(f"nothing at all {i}", id=f"x{i}") for i in range(60))]
    seen = []
    PathSearch(PromptRank(), passages, settings={"pairs": 0}).search(question, on_hop=seen.append)
    assert [hop.number for hop in seen] == list(range(1, hops + 1))
    seen.clear()
    PathSearch(
        PromptRank(),
        passages,
        settings={"pairs": 0, "hops": 4},
    ).search(question, on_hop=seen.append)
    assert [hop.number for hop in seen] == [1, 2, 3, 4]
