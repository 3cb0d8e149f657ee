"""`find_gap` and `result.gap`: words to search for next."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drillrank import D3
from drillrank.drilldown.gap import MAX_CHARACTERS, find_gap
from drillrank.text import terms

NOVEL = "# Emma\n\nEmma is a novel that Jane Austen wrote."
AUTHOR = "# Jane Austen\n\nJane Austen was born in Steventon, in the county of Hampshire."
QUESTION = "In which county was the author of the novel Emma born?"


def test_words_that_the_best_passage_leaves_open_come_first_then_its_names():
    assert find_gap("What did Emma cost in 1815?", "Emma is a novel that Jane Austen wrote.") == "cost 1815 Jane Austen"


def test_a_number_stays_whole_and_punctuation_goes():
    assert find_gap('Who paid "1,250" euros?', "A rent.") == "paid 1,250 euros"


def test_nothing_is_open_if_the_passage_has_all_content_words():
    assert find_gap("Who wrote the novel Emma?", "Jane Austen wrote Emma, a novel.") == ""
    assert find_gap("Who is it?", "Emma is a novel.") == ""


def test_the_gap_of_a_result_finds_the_second_place():
    result = D3(settings={"hops": 1}).retrieve(QUESTION, [NOVEL, AUTHOR, "# Bath\n\nA county has towns."], 1)
    assert "novel" in result[0].passage.text
    assert "Jane Austen" in result.gap
    [second] = D3(settings={"hops": 1}).retrieve(result.gap, [NOVEL, AUTHOR, "# Bath\n\nA county has towns."], 1)
    assert "Steventon" in second.passage.text


def test_a_result_without_evidence_has_no_gap():
    assert D3().retrieve("Why?", ["# Empty\n"], 1).gap == ""


@settings(deadline=None)
@given(st.text(max_size=200), st.text(max_size=400))
def test_any_text_has_a_bounded_gap_whose_words_are_open_or_of_the_passage(question, passage):
    gap = find_gap(question, passage)
    assert len(gap) <= MAX_CHARACTERS
    assert set(terms(gap)) <= set(terms(question)) | set(terms(passage)) | set(terms(question + " " + passage))


@pytest.mark.parametrize("unit", ["Aa ", "A" * 50, "Ab'", "A b ", "Zoë "])
def test_time_grows_linearly(unit):
    def seconds(n: int) -> float:
        text = unit * n
        started = time.process_time()
        find_gap(text, text[1:])
        find_gap("Who?" + text, text)
        return time.process_time() - started

    seconds(10)
    assert seconds(8_000) < 12 * (min(seconds(2_000), seconds(2_000)) + 0.01)
