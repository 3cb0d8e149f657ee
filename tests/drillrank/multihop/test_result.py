"""Results of a path search: sequences of entries with a trace."""

from __future__ import annotations

import dataclasses
import json
import pickle

import pytest

from drillrank import Passage, PathSearch, PromptRank
from drillrank.errors import InvalidInput
from drillrank.multihop.links import passage_links
from drillrank.multihop.path_rerank import PathRerank
from drillrank.multihop.prior import PathPrior
from drillrank.multihop.result import StopReason

QUESTION = "Which fox crossed a river of the town?"
POOL = [
    Passage("a fox", id="fox", links=("river",)),
    Passage("a river", id="river", links=("town",)),
    Passage("a town", id="town"),
]


def search_paths(question=QUESTION, passages=POOL, llm=None, **settings):
    search = PathSearch(PromptRank(), passages, links=passage_links, llm=llm, settings=settings)
    return search.search_paths(question)


def test_a_result_equals_a_list_of_its_entries():
    result = search_paths()
    assert result == list(result)
    assert list(result) == result
    assert result != result[:1]
    assert result != "paths"


def test_a_slice_is_a_result_that_can_be_explained():
    result = search_paths()
    assert result[1:3] == list(result)[1:3]
    assert result[1:3].explain() == result.explain()[1:3]
    assert result[1:3].trace is result.trace


def test_a_result_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        search_paths().ranking = ()


def test_a_pickle_keeps_ranking_and_trace_and_cannot_be_explained():
    result = search_paths()
    copied = pickle.loads(pickle.dumps(result))
    assert copied == result
    assert copied.trace.stop_reason is result.trace.stop_reason
    with pytest.raises(InvalidInput, match="does not have the model"):
        copied.explain()


def test_entries_can_be_written_as_json():
    entries = json.loads(json.dumps([dataclasses.asdict(item) for item in search_paths()]))
    assert entries[0]["score"] == search_paths()[0].score


def test_the_trace_has_the_hops_that_the_callback_receives():
    hops = []
    search = PathSearch(PromptRank(), POOL, links=passage_links)
    assert search.search_paths(QUESTION, on_hop=hops.append).trace.hops == tuple(hops)


def test_the_trace_has_the_prior_of_the_search():
    assert search_paths(link_prior=PathPrior(jump=0.2)).trace.prior == PathPrior(jump=0.2)
    assert search_paths(link_prior=None).trace.prior is None


def test_the_trace_has_the_links_by_kind():
    links_by_ids = {links.path.ids: links for links in search_paths(hops=2).trace.links}
    assert links_by_ids["fox",].chance_by_kind == (("link", {"river": 1.0}),)
    assert [passage.id for passage in links_by_ids["river",].passages] == ["town"]


@pytest.mark.parametrize(
    ("settings", "passages", "reason"),
    [
        ({"hops": 2}, POOL, StopReason.LONGEST_PATH),
        ({"hops": 3}, [], StopReason.NO_PATHS),
        ({"hops": 4, "pairs": 0}, POOL, StopReason.NO_LINKS),
        ({}, [Passage("a fox", id="fox", links=("blue",)), Passage("blue", id="blue")], StopReason.LESS_LIKELY),
    ],
    ids=lambda value: value.name if isinstance(value, StopReason) else "",
)
def test_the_trace_has_the_reason_why_the_search_ended(settings, passages, reason):
    assert search_paths("fox", passages, **settings).trace.stop_reason is reason


def test_the_trace_has_what_the_llm_named_as_missing():
    assert search_paths(llm=lambda _: "the town", hops=2).trace.missing == ("the town",)
    assert search_paths(hops=2).trace.missing == ()


def test_reranked_passages_have_the_trace_of_their_search():
    result = PathRerank(PromptRank(), links=passage_links).rank(QUESTION, POOL)
    assert result.trace.question == QUESTION
    assert result.explain()[0].name
