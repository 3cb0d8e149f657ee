"""Links over mentions: of titles, and of names that two texts share."""

from __future__ import annotations

import pickle
import re
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank import Passage, PathSearch, PromptRank
from drillrank.multihop.link_names import named_links
from drillrank.multihop.mentions import NameMentions, TitleMentions
from drillrank.passages import Path

pieces = st.sampled_from(["New", "York", "City", "new", "St", "AC", "DC", "Zürich", ".", "/", "-", "'s"])
glue = st.sampled_from([" ", " ", " ", "", "\n", "  "])
phrases = st.lists(st.tuples(pieces, glue), max_size=4).map(lambda parts: "".join(map("".join, parts)))
titles = st.tuples(phrases, st.sampled_from(["", "", " (film)", " (1999) (film)", "(x)"])).map("".join)
pools = st.lists(st.tuples(titles, st.lists(phrases, max_size=5).map(" ".join)), min_size=1, max_size=6)


def short(title):
    return re.sub(r"\([^()]*\)\s*$", "", title).strip()


def words(text):
    return re.findall(r"\w+|[^\w\s]", text)


def pattern(title):
    """The title at word borders; white space may stand between any two of its tokens, and must between two words."""
    tokens = words(title)
    expression = re.escape(tokens[0])
    for left, right in pairwise(tokens):
        both_are_words = left[-1].isalnum() and right[0].isalnum()
        expression += (r"\s+" if both_are_words else r"\s*") + re.escape(right)
    front = r"(?<!\w)" if tokens[0][0].isalnum() else ""
    back = r"(?!\w)" if tokens[-1][-1].isalnum() else ""
    return f"(?={front}{expression}{back})"


@given(pools)
def test_mentions_are_those_of_one_regular_expression_per_title(pool):
    passages = [Passage(text, id=str(i), title=title) for i, (title, text) in enumerate(pool)]
    mentioned = TitleMentions().bind(passages)
    for passage in passages:
        found = [
            (match.start(), -len(words(short(other.title))), order)
            for order, other in enumerate(passages)
            if len(short(other.title)) >= 4 and words(short(other.title)) != words(short(passage.title))
            for match in re.finditer(pattern(short(other.title)), passage.text)
        ]
        expected = dict.fromkeys(str(order) for _, _, order in sorted(found))
        assert list(mentioned(passage)) == list(expected)


LONGEST, TOO_LONG = "word " * 63 + "end", "word " * 64 + "end"


def long_titles():
    return TitleMentions().bind([Passage("text", id=name, title=name) for name in (LONGEST, TOO_LONG)])


def test_a_title_longer_than_any_mention_is_not_looked_for():
    assert list(long_titles()(Passage(TOO_LONG + "."))) == [LONGEST]


def test_links_over_long_titles_can_be_pickled():
    assert list(pickle.loads(pickle.dumps(long_titles()))(Passage(TOO_LONG + "."))) == [LONGEST]


# Links over names that are not titles

NAMES = ("Windhoek", "Daniel Alfredson", "New York", "Basel", "Ada Holm", "Rhine")
SMALL = ("town", "river", "born", "the", "in")


@st.composite
def texts(draw, max_size=7):
    """Passages of names, each between small words, so that names of one word and of two stay apart."""
    words = st.tuples(st.sampled_from(NAMES), st.sampled_from(SMALL)).map(" ".join)
    contents = st.lists(words, max_size=4).map(lambda parts: " ".join(["of", *parts]))
    return [Passage(text, id=str(i)) for i, text in enumerate(draw(st.lists(contents, max_size=max_size)))]


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
    links = NameMentions().bind(passages)
    for passage in passages:
        path = Path((passage,))
        found = links.follow(question, path)
        expected = plain_chances(passages, path, question)
        assert found == pytest.approx(expected)
        assert sum(found.values()) == pytest.approx(1 if expected else 0)
        assert [*found.values()] == sorted(found.values(), reverse=True)


def test_a_text_that_is_not_one_of_them_leads_to_them():
    links = NameMentions().bind([Passage("He lives in Windhoek.", id="a"), Passage("Windhoek is old.", id="b")])
    path = Path((Passage("Gisvi was born in Windhoek.", id="new"),))
    assert links.follow("Where was Gisvi born?", path) == {"a": 0.5, "b": 0.5}


PLACES = [
    Passage("The town is old. It lies there, and the river by it.", id="a", title="Basel"),
    Passage("The river is long, the town small, and it flows.", id="b", title="Rhine"),
    Passage("Museum of the Basel Rhine.", id="c"),
]


def test_words_that_only_begin_sentences_are_not_names():
    assert list(NameMentions().bind(PLACES).follow("", Path((PLACES[0],)))) == []


def test_titles_do_not_run_into_the_text():
    assert list(NameMentions().bind(PLACES).follow("", Path((PLACES[2],)))) == []


def test_names_in_more_than_a_hundred_passages_lead_nowhere():
    passages = [Passage(f"In Europe there is town {i}.", id=str(i)) for i in range(102)]
    assert list(NameMentions().bind(passages).follow("", Path((passages[0],)))) == []


def test_names_in_a_hundred_other_passages_are_followed():
    passages = [Passage(f"In Europe there is town {i}.", id=str(i)) for i in range(101)]
    assert len(NameMentions().bind(passages).follow("", Path((passages[0],)))) == 100


def test_a_path_leads_to_a_hundred_passages_at_most():
    others = [Passage(f"about Europe{i // 50} in {i}", id=str(i)) for i in range(150)]
    start = Passage("about Europe0 and Europe1 and Europe2", id="start")
    assert len(NameMentions().bind([start, *others]).follow("", Path((start,)))) == 100


def test_names_cross_where_no_title_is_mentioned():
    wesson = Passage("He played for the Houston Astros.", id="1", title="Barry Wesson")
    series = Passage("The series was won by the Houston Astros against Los Angeles.", id="2", title="2017 World Series")
    noise = [Passage(f"A series of matches that was played last year in town {i}.", id=f"n{i}") for i in range(30)]
    question = "Who did the team of Barry Wesson play in the series?"
    pool = [*noise, wesson, series]
    for links, reached in (("names", True), ("titles", False)):
        ranking = PathSearch(PromptRank(), pool, links=named_links([links])).search(question)
        assert ({item.passage.id for item in ranking[:2]} == {"1", "2"}) is reached
