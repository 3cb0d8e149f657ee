"""`split_claims` and `read_tokens`: sentences, rows, and words with numbers in one form."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank.generation.claims import read_tokens, split_claims


@pytest.mark.parametrize(
    ("answer", "texts"),
    [
        ("", []),
        (" \n\t", []),
        ("# Summary\n\nIt rains.", ["It rains."]),
        ("# 8 rooms", ["# 8 rooms"]),
        ("The files say:\n\n- It rains\n- It snows", ["It rains", "It snows"]),
        ("1. It rains.\n2. It snows.\n3) It hails.", ["It rains.", "It snows.", "It hails."]),
        ("It rains.\n- It snows\n- Ms. Bell knows.", ["It rains.", "It snows", "Ms. Bell knows."]),
        ("**Weather**\n\nIt rains [1, 2].[^3]", ["It rains."]),
        ("Yes.", []),
        ("No, it rains.", ["it rains."]),
        ("Based on the documents, it rains.", ["it rains."]),
        ("See [the page](https://example.org/a_b).", ["See the page."]),
        ("|a|b|\n|--|:-:|\n|1||\n|2|x|\n\nIt rains.", ["1", "2, x", "It rains."]),
        ("|a|b|\nIt rains.", ["|a|b|\nIt rains."]),
        ("?! ...", []),
        ("a", ["a"]),
    ],
)
def test_claims_of_an_answer(answer, texts):
    assert [claim.text for claim in split_claims(answer)] == texts


def test_a_row_has_its_cells_with_and_without_the_column_names():
    [claim] = split_claims("| Year | Rent |\n|---|---|\n| 2021 | 9 [1] |")
    assert claim.sentence == "| 2021 | 9 [1] |"
    assert (claim.text, claim.header, claim.text_with_header) == ("2021, 9", "year, rent", "year 2021, rent 9")


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("5%", "5 percent"),
        ("five per cent", "5 percent"),
        ("$1.2 million", "1200000 dollar"),
        ("€1.2m", "1200000 euro"),
        ("USD 3 bn", "dollar 3000000000"),
        ("one million", "1000000"),
        ("2023-04-05", "5 april 2023"),
        ("5.4.2023", "5 april 2023"),
        ("2023-13-05", "2023 13 05"),
        ("May 1st", "mai 1"),
        ("5 may 2023", "5 mai 2023"),
        ("it may rain in May", "it may rain in mai"),
        ("she won't, can't, cannot", "she will not can not can not"),
        ("they dont", "they do not"),
        ("million", "million"),
    ],
)
def test_numbers_dates_and_negations_have_one_form(text, terms):
    assert " ".join(token.term for token in read_tokens(text, "english")) == terms


def test_a_name_has_a_capital_that_does_not_begin_the_sentence():
    tokens = read_tokens("Result: Anna met Ms. Bell", "english")
    assert [token.form for token in tokens if token.is_name] == ["Ms", "Bell"]
    assert not any(token.is_name for token in read_tokens("Das Haus in Basel", "german"))


@given(st.text(alphabet="aA1.|-:#*[]() \n^$%,", max_size=200))
def test_a_claim_is_a_part_of_the_answer(answer):
    assert all(claim.sentence in answer for claim in split_claims(answer))


@pytest.mark.parametrize(
    "unit", ["| a | b |\n", "|-|\n", "- a\n", "[a](", "[1, ", "Ms. ", "1.\n", "**a", "a:", "$1.2m ", "n't "]
)
def test_time_grows_linearly(unit):
    def seconds(n: int) -> float:
        started = time.process_time()
        for claim in split_claims(unit * n):
            read_tokens(claim.text, "english")
        return time.process_time() - started

    seconds(10)
    # The least of several runs: one of them may contain the collection of all garbage of the test run.
    longer, shorter = (min(seconds(n) for _ in range(3)) for n in (8_000, 2_000))
    assert longer < 12 * (shorter + 0.01)
