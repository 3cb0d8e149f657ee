"""From scored paths to passages: which path counts, in which order its passages come, and how many hops there are."""

from __future__ import annotations

import pytest

from drillrank.multihop.prior import PathPrior
from drillrank.multihop.search import PathSearch
from drillrank.passages import Passage
from drillrank.rerank.promptrank import PromptRank

TOWNS = [Passage(f"A town of no river, {name}.", id=name) for name in ("Aarau", "Bern", "Chur", "Davos")]


def test_the_passages_of_a_path_come_by_what_each_adds():
    """The one that explains two words before the one that explains one, wherever the path begins."""
    wide = Passage("Its harbour was filmed at dawn.", id="wide")
    film = Passage("The pier.", id="film", links=("wide",))
    for start in (film, wide):
        other = wide if start is film else film
        start, other = (Passage(p.text, id=p.id, links=(q.id,)) for p, q in ((start, other), (other, start)))
        found = PathSearch(PromptRank(), [start, other, *TOWNS]).search("pier harbour filmed dawn")
        assert [item.passage.id for item in found[:2]] == ["wide", "film"]
        assert found[0].details["path"] == found[1].details["path"]


def test_a_question_that_one_passage_answers_has_it_first():
    """No pair with a passage that explains nothing more hides it, whatever that passage links to."""
    licence = Passage("texmath is distributed under the GPL licence.", id="texmath", title="texmath README")
    node = Passage("A runtime for servers.", id="node", title="nodejs README", links=("texmath",))
    found = PathSearch(PromptRank(), [node, licence, *TOWNS]).search("Under which licence is texmath distributed?")
    assert found[0].passage.id == "texmath"


def test_passages_of_equal_text_are_two():
    first, second = (Passage("silent silent", id=name, links=links) for name, links in (("1", ("2",)), ("2", ())))
    found = PathSearch(PromptRank(), [first, second]).search("silent")
    assert {item.passage.id for item in found} == {"1", "2"}


def test_details_of_one_passage_are_not_those_of_another():
    first, second = PathSearch(PromptRank(), [Passage("a", id="b", links=("a",)), Passage("a", id="a")]).search("a")
    first.details["own"] = True
    assert "own" not in second.details


def chain(length):
    return [
        Passage(f"word{i} leads on", id=str(i), links=(str(i + 1),) if i + 1 < length else ()) for i in range(length)
    ]


@pytest.mark.parametrize(("question", "hops"), [("word0 word1 word2", 3), ("word0 word0 word0 word0", 2)])
def test_a_question_gets_the_hops_it_needs(question, hops):
    """A hop that explains nothing more costs its prior, and is the last one; a number that is given is kept to."""
    passages = [*chain(4), *(Passage(f"nothing at all {i}", id=f"x{i}") for i in range(60))]
    seen = []
    PathSearch(PromptRank(), passages, settings={"pairs": 0, "link_prior": PathPrior(single=0.9)}).search(
        question, on_hop=seen.append
    )
    assert [hop.number for hop in seen] == list(range(1, hops + 1))
    seen.clear()
    PathSearch(PromptRank(), passages, settings={"pairs": 0, "hops": 4}).search(question, on_hop=seen.append)
    assert [hop.number for hop in seen] == [1, 2, 3, 4]
