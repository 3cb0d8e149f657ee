"""Explanations of scored paths, rendered from the trace."""

from __future__ import annotations

import pytest

from drillrank import Passage, Path, PathSearch, PromptRank
from drillrank.errors import InvalidInput
from drillrank.explanation.terms import PATH
from drillrank.multihop.explaining import ALIGNED, LENGTH
from drillrank.multihop.links import RetrievedLinks, passage_links
from drillrank.passages import Ranked

QUESTION = "Which fox crossed a river?"
POOL = [Passage("a fox", id="fox", title="Fox", links=("river",)), Passage("a river", id="river", title="River")]


def explain_steps(ids, links=passage_links, **settings):
    """Return the steps of a scored path as pairs of a name and a kind."""
    result = PathSearch(PromptRank(), POOL, links=links, settings={"hops": 2, **settings}).search_paths(QUESTION)
    [index] = [index for index, item in enumerate(result) if item.passage.ids == ids]
    return [(term.name, term.text) for term in result.explain()[index].term(PATH).terms]


def test_a_path_is_explained_by_its_links_its_length_and_the_alignment():
    assert explain_steps(("fox", "river")) == [("Fox", "start"), ("River", "link"), (LENGTH, "and"), (ALIGNED, "and")]


def test_a_passage_alone_has_no_alignment():
    assert explain_steps(("fox",)) == [("Fox", "start"), (LENGTH, "and")]


def test_a_pair_without_a_link_is_a_jump():
    assert explain_steps(("fox", "river"), links=[])[1] == ("River", "jump")


def test_a_retrieved_passage_is_named_after_the_retrieval():
    assert explain_steps(("fox", "river"), links=RetrievedLinks(2), pairs=0)[1] == ("River", "second retrieval")


def test_without_a_prior_only_the_steps_are_named():
    assert explain_steps(("fox", "river"), link_prior=None) == [("Fox", "start"), ("River", "link")]


def test_a_path_of_another_search_is_refused():
    search = PathSearch(PromptRank(), POOL, links=passage_links)
    other = Ranked(Path((Passage("another"),)), -1.0, 1, {"tokens": 1})
    with pytest.raises(InvalidInput, match="must contain results of this search"):
        search.explain(QUESTION, [other])
