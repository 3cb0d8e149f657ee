"""Small answers, each decided by a single rule of the reader of answers."""

from __future__ import annotations

import pytest

from drillrank.drilldown.answer_forms import in_words, without_tables
from drillrank.drilldown.answers import Choice, chosen_ids, chosen_names

NOTHING = Choice(())
UNREADABLE = Choice((), usable=False)
TITLES = ["Introduction", "Related Work", "Methods"]


@pytest.mark.parametrize(
    ("answer", "ids"),
    [
        ("2 | cites 5 | 1999\n4 | cites 6 | 2001", [2, 4]),  # rows without a head
        ("2|4", [2, 4]),
        ("| # | Relevant |\n|---|---|\n| 2 | yes |\n| 3 | no |", [2]),
        ("You asked which paragraphs say why no boat came. 4 and 6.", [4, 6]),
        ("All 2: 3 and 4.", [3, 4]),
        ("two 2nd 5", [5]),
        ("1-3: all but 2", [1, 2, 3]),
        ("All, if you ask me", [1, 2, 3, 4, 5, 6, 7, 8, 9]),
        ("All, except paragraphs, 2", [1, 3, 4, 5, 6, 7, 8, 9]),
        ("3 is (long), 5 (short)", [3, 5]),
        ("2, 3 (irrelevant)want 4", [2, 4]),
        ("1, and of the others 3", [1, 3]),
        ("3: 1, (25, 7", [3]),
        ("No.\n2 and 3", [2, 3]),
        ("Answer: [2]\nAnswer: [3]\nQuestion: what else", [3]),
        ("4 except not", [4]),
        ("all,:&", [1, 2, 3, 4, 5, 6, 7, 8, 9]),
        ("2,4!on second thoughts", [2, 4]),
    ],
)
def test_what_a_short_answer_chooses(answer, ids):
    assert [position + 1 for position in chosen_ids(answer, 9).positions] == ids


@pytest.mark.parametrize(
    "answer",
    [
        "2 (no, 3 is)",
        "not (,4 ,",
        "[none. I know which paragraphs are relevant] 2",
        "Not relevant:\n- Speed, 2, 3",
        "keine #3\n2. #5",
    ],
)
def test_what_a_short_answer_denies(answer):
    assert chosen_ids(answer, 9) == NOTHING


@pytest.mark.parametrize("answer", ["no 2nd", "2nd x id", "rest than all", "All well and good.", "37 tells of speed."])
def test_what_is_neither(answer):
    assert chosen_ids(answer, 9) == UNREADABLE


def test_a_number_beside_names_is_none():
    assert chosen_names("All 2: 3 and 4.", TITLES).positions == (0, 1, 2)


@pytest.mark.parametrize(
    ("said", "words"),
    [("[3]: y\n[4]: n\n[5]: Y", "[3]: yes\n[4]: no\n[5]: yes"), ("3 = 1; 4 = 0", "3 : yes\n 4 : no")],
)
def test_marks_for_relevant_become_words(said, words):
    assert in_words(said) == words


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("id | Xenon X\n2 | X", "[2]: X"),
        ("|id|X|\n|2|X|", "[2]: X"),
        ("**#** | ID | why\n1 | 3 | best", "[3]: 1 best"),
        ("**#** | fits\n2 | yes", "[2]: yes"),
        ("section | name\n1 | \ue0004\ue001 | 2", "[\ue0004\ue001]: 1 2"),
        ("2|4", "2,4"),
        ("3 | yes | told", "[3]: yes told"),
    ],
)
def test_rows_become_an_id_and_what_is_said_of_it(said, words):
    assert without_tables(said) == words
