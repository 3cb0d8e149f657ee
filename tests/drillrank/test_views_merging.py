"""Merging: exactly k sections, the best of every view among them, and no order of the views preferred but for ties."""

from __future__ import annotations

import copy
from itertools import groupby, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank.errors import InvalidInput
from drillrank.views import MergedSection, expanded, merge_views

rankings_of_views = st.dictionaries(
    st.sampled_from(["raw", "keywords", "summary"]), st.lists(st.sampled_from("abcdefghijklmnop"), max_size=16)
)
sizes = st.integers(1, 20)


@given(rankings_of_views, sizes)
def test_k_different_sections_come_back_wherever_there_are_as_many(rankings, k):
    before = copy.deepcopy(rankings)
    ids = [section.section_id for section in merge_views(rankings, k)]
    everything = set().union(*rankings.values())
    assert len(ids) == len(set(ids)) == min(k, len(everything))
    assert set(ids) <= everything
    assert rankings == before


@given(rankings_of_views, sizes)
def test_ranks_and_scores_are_those_of_the_rankings(rankings, k):
    merged = merge_views(rankings, k)
    distinct = {view: list(dict.fromkeys(ranking)) for view, ranking in rankings.items()}
    for section in merged:
        expected = {
            view: ids.index(section.section_id) + 1 for view, ids in distinct.items() if section.section_id in ids
        }
        assert section.ranks == expected
        assert section.best_rank == min(expected.values())
        assert section.matched_views == " ".join(f"{view}:{rank}" for view, rank in expected.items())
        assert type(section.score) is float
        assert section.score == pytest.approx(sum(1 / (60 + rank) for rank in expected.values()))
    scores = [section.score for section in merged]
    assert scores == sorted(scores, reverse=True)


@given(rankings_of_views, sizes)
def test_the_top_two_thirds_of_k_of_every_view_come_first(rankings, k):
    top = (2 * k + 2) // 3
    union = {id_ for ranking in rankings.values() for id_ in list(dict.fromkeys(ranking))[:top]}
    found = {section.section_id for section in merge_views(rankings, k)}
    assert union <= found if len(union) <= k else found <= union


@given(rankings_of_views, sizes, st.randoms(use_true_random=False))
def test_the_order_of_the_views_decides_ties_only(rankings, k, random):
    shuffled = dict(random.sample(list(rankings.items()), len(rankings)))
    ours, theirs = merge_views(rankings, k), merge_views(shuffled, k)
    assert [section.score for section in ours] == [section.score for section in theirs]
    if len(ours) < k:  # otherwise a tie at the border may let another section in
        for merged in (ours, theirs):
            merged.sort(key=lambda section: (-section.score, section.section_id))
        assert ours == theirs


@given(rankings_of_views, sizes)
def test_equal_scores_keep_the_order_of_the_first_view_that_ranks_them(rankings, k):
    for _, tied in groupby(merge_views(rankings, k), key=lambda section: section.score):
        single = [section for section in tied if len(section.ranks) == 1]
        views = [list(rankings).index(next(iter(section.ranks))) for section in single]
        assert views == sorted(views)


@given(rankings_of_views, sizes)
def test_a_section_named_again_changes_nothing(rankings, k):
    assert merge_views({view: ranking + ranking[::-1] for view, ranking in rankings.items()}, k) == merge_views(
        rankings, k
    )


def test_agreement_of_views_outweighs_one_high_rank():
    merged = merge_views({"raw": ["a", "b"], "keywords": ["c", "b"], "summary": ["d", "b"]}, 4)
    assert [section.section_id for section in merged] == ["b", "a", "c", "d"]


def test_a_section_at_the_top_of_one_view_stays_in_wherever_others_rank_it():
    summary = ["a", "c", "d", "e", "f", "g", "h", "i", "j", "b"]
    merged = merge_views({"raw": ["a", "b", "d"], "keywords": ["b", "a", "d"], "summary": summary}, 3)
    assert {section.section_id for section in merged} == {"a", "b", "c"}


def test_a_section_below_the_top_of_every_view_waits_for_those_above():
    merged = merge_views({"raw": ["a", "b", "d"], "keywords": ["a", "c", "d"]}, 2)
    assert [section.section_id for section in merged] == ["a", "b"]


def test_the_same_ranks_in_other_views_give_the_very_same_score():
    fill = [f"x{i}" for i in range(20)]
    lists = [[*fill[:at], "a", *fill[at:]] for at in (0, 1, 6)]  # their order tells in a plain sum
    scores = {
        section.score
        for order in permutations(lists)
        for section in merge_views(dict(zip("rks", order, strict=True)), 30)
        if section.section_id == "a"
    }
    assert len(scores) == 1


def test_a_section_that_no_view_ranks_has_no_rank():
    assert MergedSection("a", 0.0, {}).best_rank is None


@pytest.mark.parametrize("k", [0, -1, 1.5, True, None])
def test_k_must_be_a_positive_integer(k):
    with pytest.raises(InvalidInput, match="k must be a whole number"):
        merge_views({"raw": ["a"]}, k)


weights_of_views = st.dictionaries(st.sampled_from(["raw", "keywords", "summary"]), st.floats(0, 10))


@given(rankings_of_views, sizes, weights_of_views)
def test_weighted_fusion_is_the_weighted_sum_of_reciprocal_ranks(rankings, k, weights):
    scores: dict[str, float] = {}
    for view, ranking in rankings.items():
        for rank, id_ in enumerate(dict.fromkeys(ranking), start=1):
            scores[id_] = scores.get(id_, 0) + weights.get(view, 1) / (60 + rank)
    merged = merge_views(rankings, k, weights)
    assert [section.score for section in merged] == pytest.approx(sorted(scores.values(), reverse=True)[:k])
    assert all(section.score == pytest.approx(scores[section.section_id]) for section in merged)


def test_with_weights_no_view_has_seats_of_its_own():
    merged = merge_views({"raw": ["a", "b", "c"], "summary": ["z"]}, 3, {"summary": 0})
    assert [section.section_id for section in merged] == ["a", "b", "c"]


@pytest.mark.parametrize("weight", [-0.1, float("nan"), float("inf"), "1", None, True])
def test_weights_are_numbers_from_0_on(weight):
    with pytest.raises(InvalidInput, match="weight of the view 'raw'"):
        merge_views({"raw": ["a"]}, 1, {"raw": weight})


def test_a_weight_of_no_view_is_refused():
    with pytest.raises(InvalidInput, match="raw, keywords, summary; there is no view 'keyword'"):
        merge_views({"keywords": ["a"]}, 1, {"keyword": 5})


@given(rankings_of_views, sizes)
def test_the_union_is_the_first_two_thirds_of_k_of_every_view(rankings, k):
    top = (2 * k + 2) // 3
    union = {id_ for ranking in rankings.values() for id_ in list(dict.fromkeys(ranking))[:top]}
    merged = merge_views(rankings, k, merge="union")
    assert {section.section_id for section in merged} == union
    assert len(merged) == len(union)
    of_all = {section.section_id: section for section in merge_views(rankings, 100)}
    assert all(section == of_all[section.section_id] for section in merged)


def test_merging_must_be_known():
    with pytest.raises(InvalidInput, match="merge"):
        merge_views({"raw": ["a"]}, 1, merge="best")


@given(rankings_of_views, sizes, st.dictionaries(st.sampled_from("abcdefgh"), st.lists(st.sampled_from("abcdxyz"))))
def test_expansion_adds_what_is_around_once_and_moves_nothing(rankings, k, neighbours):
    found = merge_views(rankings, k)
    result = expanded(found, lambda id_: neighbours.get(id_, ()))
    assert [section for section, origin in result if origin is None] == found
    ids = [section.section_id for section, _ in result]
    assert len(set(ids)) == len(ids)
    everything = {section.section_id for section in found}
    everything |= {id_ for section in found for id_ in neighbours.get(section.section_id, ())}
    assert set(ids) == everything
    scores = {section.section_id: section.score for section in found}
    at = None
    for section, origin in result:
        if origin is None:
            at = section.section_id
        else:
            assert origin == at
            assert section.section_id in neighbours[origin]
            assert (section.score, section.ranks) == (scores[origin], {})
