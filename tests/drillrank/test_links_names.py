"""Links over names that are no titles, and the choice among many links by the residual question."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank import Passage, PathSearch, PromptRank
from drillrank.multihop.mentions import NameMentions
from drillrank.multihop.path_rerank import named_links
from drillrank.passages import Path

NAMES = ("Windhoek", "Daniel Alfredson", "New York", "Basel", "Ada Holm", "Rhine")
SMALL = ("town", "river", "born", "the", "in")


@st.composite
def texts(draw, max_size=7):
    """Passages of names, each between small words, so that names of one word and of two stay apart."""
    words = st.tuples(st.sampled_from(NAMES), st.sampled_from(SMALL)).map(" ".join)
    contents = draw(
        st.lists(st.lists(words, max_size=4).map(lambda parts: " ".join(["of", *parts])), max_size=max_size)
    )
    return [Passage(text, id=str(i)) for i, text in enumerate(contents)]


def plain_chances(passages, path, question=""):
    """The walk from a name to another passage, one step at a time."""
    last = path.passages[-1]
    own = [name for name in NAMES if name in last.text and name not in question]
    led_to = [[p.id for p in passages if name in p.text and p.id != last.id] for name in own]
    led_to = [others for others in led_to if others]
    chances = Counter()
    for others in led_to:
        for other in others:
            chances[other] += 1 / len(led_to) / len(others)
    return dict(chances)


@given(texts(), st.sampled_from(["who?", "Who was born in Windhoek?", "Where is New York, and the Rhine?"]))
def test_the_chances_are_those_of_a_walk_over_names(passages, question):
    links = NameMentions().over(passages)
    for passage in passages:
        path = Path((passage,))
        found = links.follow(question, path)
        expected = plain_chances(passages, path, question)
        assert found == pytest.approx(expected)
        assert sum(found.values()) == pytest.approx(1 if expected else 0)
        assert [*found.values()] == sorted(found.values(), reverse=True)


def test_a_text_that_is_not_one_of_them_leads_to_them():
    links = NameMentions().over([Passage("He lives in Windhoek.", id="a"), Passage("Windhoek is old.", id="b")])
    path = Path((Passage("Gisvi was born in Windhoek.", id="new"),))
    assert links.follow("Where was Gisvi born?", path) == {"a": 0.5, "b": 0.5}


def test_words_that_only_begin_sentences_are_no_names_and_titles_run_into_no_text():
    passages = [
        Passage("The town is old. It lies there, and the river by it.", id="a", title="Basel"),
        Passage("The river is long, the town small, and it flows.", id="b", title="Rhine"),
        Passage("Museum of the Basel Rhine.", id="c"),
    ]
    links = NameMentions().over(passages)
    assert list(links.follow("", Path((passages[0],)))) == []
    assert list(links.follow("", Path((passages[2],)))) == []


def test_common_names_lead_nowhere_and_a_path_to_a_hundred_at_most():
    common = [Passage(f"In Europe there is town {i}.", id=str(i)) for i in range(102)]
    assert list(NameMentions().over(common).follow("", Path((common[0],)))) == []
    of_many = [Passage(f"about Europe{i // 50} in {i}", id=str(i)) for i in range(150)]
    start = Passage("about Europe0 and Europe1 and Europe2", id="start")
    assert len(NameMentions().over([start, *of_many]).follow("", Path((start,)))) == 100


def test_names_cross_where_no_title_is_mentioned():
    wesson = Passage("He played for the Houston Astros.", id="1", title="Barry Wesson")
    series = Passage("The series was won by the Houston Astros against Los Angeles.", id="2", title="2017 World Series")
    noise = [Passage(f"A series of matches that was played last year in town {i}.", id=f"n{i}") for i in range(30)]
    question = "Who did the team of Barry Wesson play in the series?"
    pool = [*noise, wesson, series]
    for links, reached in (("names", True), ("titles", False)):
        ranking = PathSearch(PromptRank(), pool, links=named_links([links])).search(question)
        assert ({item.passage.id for item in ranking[:2]} == {"1", "2"}) is reached
