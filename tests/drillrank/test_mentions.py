"""Links over mentions: of titles, of other names of what a passage is about, and of names that two texts share."""

from __future__ import annotations

import pickle
import re
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from drillrank import Passage, PathSearch, PromptRank
from drillrank.multihop.aliases import find_aliases, inflect_title
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


def test_a_title_longer_than_any_mention_is_not_looked_for_and_an_index_of_long_ones_can_be_pickled():
    longest, too_long = "word " * 63 + "end", "word " * 64 + "end"
    index = TitleMentions().bind([Passage("text", id=name, title=name) for name in (longest, too_long)])
    for same in (index, pickle.loads(pickle.dumps(index))):
        assert list(same(Passage(too_long + "."))) == [longest]


# Other names of what a passage is about, and links over them

CAPITALISED = ("World", "Health", "Organization", "Åland", "Union", "Bureau", "Marine")
names = st.lists(st.sampled_from(CAPITALISED), min_size=2, max_size=5, unique=True)


def mentions(text: str, *passages: Passage, **options: bool) -> list[str]:
    return list(TitleMentions(**options).bind(passages)(Passage(text, id="text")))


@given(names, st.sampled_from(["of", "for the", "and"]), st.integers(1, 4), st.sampled_from(["", "."]))
def test_an_acronym_leads_where_the_passage_gives_it_away(words, small, place, dot):
    place = min(place, len(words) - 1)
    name = " ".join([*words[:place], small, *words[place:]])
    acronym = dot.join(word[0] for word in words) + dot
    given_away = [
        Passage("It was founded in 1948.", id="title", title=f"{name} ({acronym})"),
        Passage(f"The {name} ({acronym}) was founded in 1948.", id="opening", title=name),
    ]
    for passage in given_away:
        assert find_aliases(passage) == [acronym]
        assert mentions(f"A body of the {acronym}, it met.", passage) == [passage.id]
        assert mentions(f"A body of the {acronym.lower()}x, it met.", passage) == []
        assert mentions("It met.", Passage(passage.text, id="x", title="Assembly")) == []
    spelled = Passage(f"In law, {name} ({acronym}) is a body.", id="short", title=acronym)
    assert mentions(f"He led the {name}.", spelled) == ["short"]


@given(names, names)
def test_parentheses_that_do_not_begin_the_names_words_are_no_acronym(words, others):
    assume([word[0] for word in words] != [word[0] for word in others])
    acronym = "".join(word[0] for word in others)
    assert (
        find_aliases(Passage(f"The {' '.join(words)} ({acronym}) met.", title=f"{' '.join(words)} ({acronym})")) == []
    )


def test_a_title_goes_before_another_passages_alias():
    film = Passage("The Silent Pier, also known as Thick Fog, is a film.", id="film", title="The Silent Pier")
    fog = Passage("It is thick.", id="fog", title="Thick Fog")
    assert mentions("She saw Thick Fog and the Silent Pier.", film, fog) == ["fog", "film"]
    assert mentions("She saw Thick Fog.", film) == ["film"]
    assert mentions("She saw Thick Fog.", film, aliases=False) == []


@pytest.mark.parametrize(("small", "known"), [(2, True), (3, False)])
def test_an_acronym_stands_for_twelve_words_at_most(small, known):
    name = " ".join(["Aa", *["of"] * small, *(f"{letter}{letter.lower()}" for letter in "BCDEFGHIJ")])
    found = find_aliases(Passage(f"It is the {name} (ABCDEFGHIJ).", title="ABCDEFGHIJ"))
    assert found == ([name] if known else [])


@pytest.mark.parametrize(
    "opening",
    ["X, also known as Fog, is", "X, also known as the thing, is", "X, also known as King of all the world, is"],
)
def test_ordinary_words_and_broken_names_are_no_alias(opening):
    assert find_aliases(Passage(opening, title="X")) == []


@pytest.mark.parametrize(
    "listed", [["Bombay", "City of Dreams"], "Bombay, City of Dreams", ("Bombay", "City of Dreams")]
)
def test_metadata_list_aliases(listed):
    mumbai = Passage("A port.", id="mumbai", title="Mumbai", metadata={"aliases": listed})
    assert find_aliases(mumbai) == ["Bombay", "City of Dreams"]
    assert mentions("He left the City of Dreams.", mumbai) == ["mumbai"]


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("Access token", "Two access tokens expire."),
        ("Access policy (draft)", "Access policies apply."),
        ("Message bus", "Our message buses are fast."),
        ("Entry point", "The entry point of the library."),
    ],
)
def test_kinds_of_things_are_mentioned_small_and_in_the_plural(title, text):
    page = Passage("A page.", id="page", title=title)
    assert mentions(text, page) == []
    assert mentions(text, page, inflected=True) == ["page"]


@given(st.text(max_size=60), st.text(max_size=200))
def test_any_title_and_text_can_be_read(title, text):
    passage = Passage(text, title=title)
    names = find_aliases(passage) + inflect_title(passage)
    assert all(isinstance(name, str) and name.strip() for name in names)
    TitleMentions(inflected=True).bind([passage])(passage)


# Links over names that are no titles, and the choice among many links by the residual question

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


def test_words_that_only_begin_sentences_are_no_names_and_titles_run_into_no_text():
    passages = [
        Passage("The town is old. It lies there, and the river by it.", id="a", title="Basel"),
        Passage("The river is long, the town small, and it flows.", id="b", title="Rhine"),
        Passage("Museum of the Basel Rhine.", id="c"),
    ]
    links = NameMentions().bind(passages)
    assert list(links.follow("", Path((passages[0],)))) == []
    assert list(links.follow("", Path((passages[2],)))) == []


def test_common_names_lead_nowhere_and_a_path_to_a_hundred_at_most():
    common = [Passage(f"In Europe there is town {i}.", id=str(i)) for i in range(102)]
    assert list(NameMentions().bind(common).follow("", Path((common[0],)))) == []
    of_many = [Passage(f"about Europe{i // 50} in {i}", id=str(i)) for i in range(150)]
    start = Passage("about Europe0 and Europe1 and Europe2", id="start")
    assert len(NameMentions().bind([start, *of_many]).follow("", Path((start,)))) == 100


def test_names_cross_where_no_title_is_mentioned():
    wesson = Passage("He played for the Houston Astros.", id="1", title="Barry Wesson")
    series = Passage("The series was won by the Houston Astros against Los Angeles.", id="2", title="2017 World Series")
    noise = [Passage(f"A series of matches that was played last year in town {i}.", id=f"n{i}") for i in range(30)]
    question = "Who did the team of Barry Wesson play in the series?"
    pool = [*noise, wesson, series]
    for links, reached in (("names", True), ("titles", False)):
        ranking = PathSearch(PromptRank(), pool, links=named_links([links])).search(question)
        assert ({item.passage.id for item in ranking[:2]} == {"1", "2"}) is reached
