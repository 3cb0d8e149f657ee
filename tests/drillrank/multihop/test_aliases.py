"""Other names of the subject of a passage, and links over them."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from drillrank import Passage
from drillrank.multihop.aliases import find_aliases, inflect_title
from drillrank.multihop.mentions import TitleMentions

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
def test_parentheses_that_do_not_begin_the_names_words_are_not_acronyms(words, others):
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
def test_an_acronym_abbreviates_twelve_words_at_most(small, known):
    name = " ".join(["Aa", *["of"] * small, *(f"{letter}{letter.lower()}" for letter in "BCDEFGHIJ")])
    found = find_aliases(Passage(f"It is the {name} (ABCDEFGHIJ).", title="ABCDEFGHIJ"))
    assert found == ([name] if known else [])


@pytest.mark.parametrize(
    "opening",
    ["X, also known as Fog, is", "X, also known as the thing, is", "X, also known as King of all the world, is"],
)
def test_ordinary_words_and_broken_names_are_not_aliases(opening):
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
