"""`parse_cited_answer`: the text and citations of an LLM's answer."""

from __future__ import annotations

import pytest

from drillrank import Passage
from drillrank.drilldown.answering import parse_cited_answer
from drillrank.llm import Usage


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("Nine  hours\t[1].", "Nine hours [1]."),
        ("- Nine hours [1]\n-  Two kg [9]\n", "- Nine hours [1]\n- Two kg"),
        ("| a | b |\r\n|---|---|\r\n| 1 | 2 [1] |", "| a | b |\n|---|---|\n| 1 | 2 [1] |"),
        ("It lasts\nnine hours [1].\n\n1. One\n| 1 |\nMore", "It lasts nine hours [1].\n\n1. One\n| 1 |\nMore"),
        ("No\nanswer.", ""),
    ],
)
def test_lists_and_tables_keep_their_lines(reply, text):
    assert parse_cited_answer(reply, [Passage("It lasts nine hours.")], Usage()).text == text
