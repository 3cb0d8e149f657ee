"""Where a candidate shares no word with the question, its length is no evidence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank.likelihood import UnigramModel
from drillrank.multihop.path_rerank import PathRerank
from drillrank.passages import Passage
from drillrank.rerank.promptrank import PromptRank
from drillrank.rerank.upr import UPR
from drillrank.text import terms

QUERY = "Which fox crossed rivers?"
FOREIGN = st.lists(st.sampled_from(["whale", "town", "a", "Basel.", "chess"]), max_size=9).map(" ".join)
ANY = FOREIGN | st.lists(st.sampled_from(["foxes", "whale", "river", "town"]), max_size=9).map(" ".join)
RANKERS = {
    "UPR": lambda: UPR(),
    "UPR, fitted": lambda: UPR(UnigramModel().fit(["a fox", "whale town"])),
    "paths": lambda: PathRerank(PromptRank(), links=[]),
    "paths, likelihood alone": lambda: PathRerank(PromptRank(), links=[], settings={"link_prior": None, "hops": 3}),
    "paths, cascade": lambda: PathRerank(PromptRank(), links=[], settings={"cascade": 1}),
}


def passages(texts):
    return [Passage(text, id=str(i)) for i, text in enumerate(texts)]


@pytest.mark.parametrize("ranker", RANKERS.values(), ids=RANKERS)
@given(texts=st.lists(FOREIGN, max_size=6))
def test_nothing_matches_and_the_input_order_stands(ranker, texts):
    ranking = ranker().rank(QUERY, passages(texts))
    assert [item.passage.id for item in ranking] == [str(i) for i in range(len(texts))]
    assert len({item.score for item in ranking}) <= 1
    assert all(item.details["nothing_matched"] for item in ranking)


@given(st.lists(ANY, max_size=6), st.booleans())
def test_what_matches_is_scored_as_ever_and_the_rest_comes_last_in_input_order(texts, fitted):
    lm = UnigramModel().fit(["a fox", "whale town"]) if fitted else UnigramModel()
    ranking = UPR(lm, template="{text}").rank(QUERY, passages(texts))
    exact = [found.total for found in lm.log_likelihood([(text, QUERY) for text in texts])]
    words = set(terms(QUERY))
    matched = [not words.isdisjoint(terms(text)) for text in texts]
    for item in ranking:
        at = item.details["position"]
        assert item.details["log_likelihood"] == pytest.approx(exact[at])
        assert item.score * item.details["tokens"] == pytest.approx(exact[at] if matched[at] else min(exact))
        assert item.details["nothing_matched"] is (not any(matched))
    unmatched = [item.details["position"] for item in ranking if not matched[item.details["position"]]]
    assert unmatched == sorted(unmatched)


def test_a_path_matches_by_any_of_its_passages():
    linked = [Passage("A long text about the town of Basel.", id="a", links=("b",)), Passage("rivers", id="b")]
    ranking = PathRerank(PromptRank()).rank(QUERY, linked)
    assert not any(item.details["nothing_matched"] for item in ranking)
