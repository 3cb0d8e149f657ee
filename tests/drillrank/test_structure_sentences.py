"""Sentences: exact spans of any text."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from drillrank.structure import sentences


def split(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n\t", []),
        ("One. Two!  Three?\n", ["One.", "Two!", "Three?"]),
        ("Dr. Smith met J. R. Doe (et al.) today. He left.", ["Dr. Smith met J. R. Doe (et al.) today.", "He left."]),
        ("No full stop\n\nNext paragraph", ["No full stop", "Next paragraph"]),
        ("No full stop\r\n \r\nNext paragraph", ["No full stop", "Next paragraph"]),
        ("One line.\nNext\nline.", ["One line.", "Next\nline."]),
        ("Ein \U0001f600. Zwei \ud800 drei. Vier", ["Ein \U0001f600.", "Zwei \ud800 drei.", "Vier"]),
    ],
)
def test_sentences(text, expected):
    assert split(text) == expected


@settings(max_examples=200, deadline=None)
@given(st.text("Ab.!1 \n\x85\xa0\u2003\u2009\u2028\u202f\u3000\u00e9\u4e2d", max_size=40))
@example("Plan A\u00a0. Then plan B\u202f.")
@example("A\u2028.")
def test_spaces_of_any_width_are_no_danger(text):
    found = split(text)
    assert "".join("".join(found).split()) == "".join(text.split())
