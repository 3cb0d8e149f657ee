"""Sentences: exact spans, whatever the splitter does."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drillrank.errors import DrillrankWarning
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


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 4000), min_size=4, max_size=12))
def test_sentences_longer_than_the_window_stay_whole(lengths):
    wanted = ["A" + "b" * length + "." for length in lengths]
    assert split(" ".join(wanted)) == wanted


def test_a_line_of_many_characters_is_one_sentence():
    assert sentences("a" * 30_000) == [(0, 30_000)]


@pytest.mark.parametrize("answer", [RuntimeError("no"), [], [{"end_index": 99}], [{"end_index": 3}, {"end_index": 3}]])
def test_a_failing_splitter_leaves_lines(monkeypatch, answer):
    def fail(language, text):
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(sys.modules["drillrank.structure.sentences"], "get_sentence_boundaries", fail)
    with pytest.warns(DrillrankWarning, match="every line counts as a sentence"):
        assert split("One. Two.\nThree\n\n Four ") == ["One. Two.", "Three", "Four"]
