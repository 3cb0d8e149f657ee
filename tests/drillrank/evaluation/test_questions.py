"""Questions and their files: whatever spreadsheets write is read, and a bad row is named."""

from __future__ import annotations

import csv
import math

import pytest

from drillrank.errors import InvalidInput
from drillrank.evaluation import compare
from drillrank.evaluation.questions import read_questions
from tests.drillrank.evaluation.samples import CORPUS, WORDS
from tests.drillrank.helpers import write_rows


def row(**more):
    return {"question": "Who?", "gold": ["fox"], **more}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"query": "Who?", "gold": ["fox"]}], r"line 1 must have a question, got the columns query, gold"),
        ([row(), row(question=" ")], "line 2 must have a question"),
        ([{"question": "Who?", "golds": ["fox"]}], "must have gold, spans or answers, got the columns question, golds"),
        *(([row(gold=gold)], "gold are empty") for gold in ([], [[], []])),
        ([row(gold=["fox", 3.5])], r"line 1, gold must contain strings that are not blank, got 3.5"),
        ([row(gold=[["fox"], [3.5]])], "line 1, gold must contain strings"),
        ([row(gold=True)], r"line 1, gold must be a list, got True"),
        ([row(gold=["cat"])], r"line 1: the gold id 'cat' is not in the corpus of 10"),
        ([row(question="Who\ud800?")], r"line 1: The query contains half a character"),
        ([row(id="a")] * 2, r"line 2 has the id 'a' of questions.jsonl, line 1"),
        ([row(candidates=["cat"])], "candidate 'cat' is not in the corpus"),
        ([row(candidates=["fox"], scores=[1, 2])], "a score for each of 1 candidates, got 2"),
        ([row(candidates=["fox"], scores=[math.nan])], "numbers, got NaN"),
        ([row(candidates=[{"id": "fox"}])], "a candidate must be an id or an object"),
        ([row()] * 999 + ["no object"], "line 1000 must be a JSON object, got a str"),
        ([], "at least one question, got none"),
    ],
)
def test_a_bad_row_is_named(tmp_path, rows, said):
    write_rows(tmp_path / "questions.jsonl", rows)
    with pytest.raises(InvalidInput, match=said):
        compare(tmp_path / "questions.jsonl", ["UPR"], CORPUS, measures=["RR"])


def test_numbers_are_ids_and_answers_and_annotators_are_taken_one_by_one(tmp_path):
    write_rows(tmp_path / "passages.jsonl", [{"id": n, "text": f"In 198{n} it rained."} for n in range(3)])
    rows = [
        {"question": "When?", "gold": [0, 2], "candidates": [2, 1, 0]},
        {"question": "And when?", "gold": 1, "candidates": [0, 1]},
        {"question": "And then?", "answers": 1981, "candidates": [0, 1]},
        {"question": "And who?", "gold": [[0], [1, 2]], "candidates": [0, 1]},
    ]
    found = compare(rows, ["UPR"], tmp_path / "passages.jsonl", measures=["AllR@1"])
    evidence = [one.ids or one.answers for one in found.evidence.values()]
    assert evidence == [("0", "2"), ("1",), ("1981",), ("0", "1", "2")]
    rows = [row(gold=[["fox"], ["fox", "owl"], []], candidates=WORDS)]
    found = compare(rows, {"one": lambda query, passages: ["fox"]}, CORPUS, measures=["F1@5", "AllR@5"])
    assert [found.mean("one", measure) for measure in found.measures] == [1, 0]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_csv_as_spreadsheets_of_any_country_write_it(tmp_path, separator, start, end):
    file = tmp_path / "questions.csv"
    rows = [
        ("question", " gold ", "answers", "note"),
        ("Who hunts, and; when?", "fox | owl", '["a|b"]', "rain " * 50_000),
        ('A "line"\nmore', "owl", "", ""),
        ("", " ", "", ""),
    ]
    with file.open("w", encoding="utf-8", newline="") as lines:
        lines.write(start)
        csv.writer(lines, delimiter=separator, lineterminator=end).writerows(rows)
    first, second = read_questions(file)
    assert (first.text, first.gold, first.answers) == ("Who hunts, and; when?", ("fox", "owl"), ("a|b",))
    assert (second.text, second.gold, second.answers) == ('A "line"\nmore', ("owl",), ())
    assert csv.field_size_limit() == 131_072


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"question,gold\nWho?,fox\n,owl\n", "line 3 must have a question"),
        (b"question,gold\nWho?,fox,owl\n", "line 2 must have 2 cells"),
        ("question,gold\nWho?,fox\n".encode("utf-16"), r"is not UTF-8: .* Save it in that encoding\."),
    ],
)
def test_a_csv_file_that_cannot_be_used(tmp_path, content, said):
    (tmp_path / "questions.csv").write_bytes(content)
    with pytest.raises(InvalidInput, match=said):
        read_questions(tmp_path / "questions.csv")


def test_columns_may_be_called_otherwise():
    assert read_questions([{"q": "Who?", "gold": ["fox"]}], {"question": "q"})[0].text == "Who?"
    with pytest.raises(InvalidInput, match=r"columns must rename .*, got query"):
        read_questions([{"q": "Who?", "gold": ["fox"]}], {"query": "q"})
