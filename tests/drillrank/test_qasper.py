"""QASPER's own files become documents, and questions that `compare` takes."""

from __future__ import annotations

import json

import pytest

from drillrank import D3
from drillrank.errors import InvalidInput
from drillrank.evaluation import compare
from drillrank.evaluation.qasper import read_qasper

NOTHING = {"unanswerable": False, "extractive_spans": [], "yes_no": None, "free_form_answer": ""}


def marked(**answer):
    return {"answer": {**NOTHING, **answer}}


PAPER = {
    "title": "On owls",
    "abstract": "We count owls.",
    "full_text": [
        {"section_name": "Introduction", "paragraphs": ["# Owls hoot.", ""]},
        {"section_name": "Method ::: Counting", "paragraphs": ["We counted the owls of a forest at night.", "Twice."]},
        {"section_name": "Method ::: Listening", "paragraphs": ["We listened."]},
        {"section_name": None, "paragraphs": ["The end."]},
    ],
    "qas": [
        {
            "question": "When were the owls counted?",
            "question_id": "q1",
            "answers": [
                marked(extractive_spans=["at night"], evidence=["We counted the owls of a forest at night."]),
                marked(free_form_answer="By night", evidence=["Twice.", "FLOAT SELECTED: Table 1"]),
            ],
        },
        {"question": "Who paid?", "question_id": "q2", "answers": [marked(unanswerable=True, evidence=[])]},
        {
            "question": "Did they listen?",
            "question_id": "q3",
            "answers": [marked(yes_no=True, evidence=["We  listened."])],
        },
    ],
}


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "qasper-dev.json"
    file.write_text(json.dumps({"1234.5678": PAPER}), encoding="utf-8")
    return file


def test_papers_questions_and_answers(file):
    [paper] = read_qasper(file)
    paths = [section.path for section in paper.document.sections()]
    assert ("On owls", "Method", "Counting") in paths
    assert ("On owls", "Method", "Listening") in paths
    assert "# Owls hoot." in paper.document.text  # no heading
    first, third = paper.questions
    assert first["answers"] == ["at night", "By night"]
    assert first["gold"] == [["1234.5678:1"], ["1234.5678:2"]]
    assert [candidate["title"] for candidate in first["candidates"]][:2] == ["Introduction", "Method > Counting"]
    assert (third["answers"], third["gold"]) == (["Yes"], [["1234.5678:3"]])
    assert [(row["id"], row["answers"]) for row in paper.unanswered] == [("q2", ["Unanswerable"])]
    found = D3().retrieve(first["question"], [paper.document])
    assert found[0].passage.text == "We counted the owls of a forest at night."
    rows = [*paper.questions, {**paper.unanswered[0], "candidates": first["candidates"]}]
    answers = {"When": "At night.", "Did": "Yes.", "Who": "No answer."}

    def reads(prompt):
        return next(answer for word, answer in answers.items() if f"Question: {word}" in prompt)

    compared = compare(rows, ["UPR"], measures=["AnswerF1", "EM"], llm=reads)
    assert [compared.mean("UPR", measure) for measure in compared.measures] == [1, 1]
    assert compare(paper.questions, ["UPR"], measures=["AllR@5"]).mean("UPR") == 1


def test_other_files_are_refused(tmp_path):
    for content in ("[]", '{"1": {}}', "no JSON"):
        other = tmp_path / "other.json"
        other.write_text(content, encoding="utf-8")
        with pytest.raises(InvalidInput, match=r"other\.json is no"):
            read_qasper(other)
