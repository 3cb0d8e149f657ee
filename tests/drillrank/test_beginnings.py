"""Where texts begin in their document: certain, or not said."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank.hosts.splitting import Cut, beginnings

TEXT = st.text("ab ", min_size=6, max_size=40)


def cuts_of(text, ends, document="page", **fields):
    places = sorted({0, *(end % len(text) for end in ends), len(text)})
    made = []
    for number, (start, end) in enumerate(pairwise(places)):
        behind = made[-1].id if made else None
        made.append(Cut(f"{document} {number}", text[start:end], "page", None, start, end, behind, **fields))
    return made


def check(text, cuts):
    found = beginnings(cuts)
    for cut, begin in zip(cuts, found, strict=True):
        assert begin is None or text.startswith(cut.text, begin)
    return found


@given(TEXT, st.lists(st.integers(1, 39), max_size=5))
def test_what_was_cut_once_is_where_it_says(text, ends):
    cuts = cuts_of(text, ends)
    assert check(text, cuts) == [cut.start for cut in cuts]


@given(TEXT, st.lists(st.integers(1, 39), min_size=1, max_size=4), st.integers(1, 5))
def test_what_was_cut_twice_is_not_where_it_says(text, ends, again):
    twice = []
    for first in cuts_of(text, ends):
        for cut in cuts_of(first.text, [again], first.id) if len(first.text) > 1 else [first]:
            behind = twice[-1].id if twice else None
            twice.append(Cut(f"{len(twice)}", cut.text, "page", None, cut.start, cut.end, behind))
    whole = {cut.start for cut in cuts_of(text, ends)}
    found = check(text, twice)
    if len(whole) > 1 and twice[-1].start == 0:
        assert set(found) == {None}


def test_what_is_left_of_what_was_cut_is_not_certain():
    cuts = cuts_of("one two three", [4, 8])
    assert beginnings(cuts) == [0, 4, 8]
    assert beginnings(cuts[1:]) == [None, None]
    assert beginnings([cuts[0], cuts[2]]) == [None, None]
    assert beginnings([*cuts[:2], Cut("x", "three", "page", behind="page 1")]) == [None, None, None]


def test_what_is_cut_out_of_a_parent_counts_from_its_beginning():
    whole = Cut("page", "one two three four")
    above = Cut("above", "two three", "page", None, 4, 13)
    below = Cut("below", "three", "page", "above", 4, 9)
    assert beginnings([whole, above, below]) == [0, 4, 8]
    assert beginnings([Cut("above", "two three", "page", None, 0, 9), below]) == [0, 4]
    assert beginnings([below]) == [None]


def test_parents_in_a_circle_say_nothing():
    first, second = Cut("1", "a", "page", "2", 0, 1), Cut("2", "a", "page", "1", 0, 1)
    assert beginnings([first, second]) == [None, None]


class Unsearched(str):
    """Refuses the search for its last occurrence, which only a gap asks for."""

    def rfind(self, *_):
        raise AssertionError


def test_only_a_gap_asks_where_else_letters_stand():
    cuts = [replace(cut, text=Unsearched(cut.text)) for cut in cuts_of("one two three", [4, 8])]
    assert beginnings(cuts) == [0, 4, 8]
    first, second = cuts_of("A fox and a hen went out.      They met a cat in the woods.", [31])
    first = replace(first, text=first.text.rstrip(), end=25)
    assert beginnings([first, second]) == [0, 31]
    with pytest.raises(AssertionError):
        beginnings([first, replace(second, text=Unsearched(second.text))])
    again = replace(first, text="They met a cat in the woods.", end=28)
    assert beginnings([again, second]) == [None, None]
