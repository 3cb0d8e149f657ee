"""QASPER's own files become documents, and questions that `compare` takes."""

from __future__ import annotations

import json

import pytest

from drillrank import D3
from drillrank.errors import InvalidInput
from drillrank.evaluation import compare
from drillrank.evaluation.metrics import answer_f1
from drillrank.evaluation.qasper import read_qasper

NOTHING = {"unanswerable": False, "extractive_spans": [], "yes_no": None, "free_form_answer": ""}
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
                {
                    "answer": {
                        **NOTHING,
                        "extractive_spans": ["at night"],
                        "evidence": ["We counted the owls of a forest at night."],
                    }
                },
                {
                    "answer": {
                        **NOTHING,
                        "free_form_answer": "By night",
                        "evidence": ["Twice.", "FLOAT SELECTED: Table 1"],
                    }
                },
            ],
        },
        {
            "question": "Who paid?",
            "question_id": "q2",
            "answers": [{"answer": {**NOTHING, "unanswerable": True, "evidence": []}}],
        },
        {
            "question": "Did they listen?",
            "question_id": "q3",
            "answers": [{"answer": {**NOTHING, "yes_no": True, "evidence": ["We  listened."]}}],
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
    compared = compare(paper.questions, ["UPR"], measures=["AllR@5"])
    assert compared.mean("UPR", "AllR@5") == 1.0


def test_other_files_are_refused(tmp_path):
    for content in ("[]", '{"1": {}}', "no JSON"):
        other = tmp_path / "other.json"
        other.write_text(content, encoding="utf-8")
        with pytest.raises(InvalidInput, match=r"other\.json is no"):
            read_qasper(other)


@pytest.mark.parametrize(
    ("said", "right", "f1"),
    [
        ("the Rhine", ["Rhine!", "Danube"], 1.0),
        ("Danube", ["Rhine"], 0.0),
        ("Unanswerable", ["Unanswerable"], 1.0),
        ("", ["Rhine"], 0.0),
        ("blue blue fish", ["blue fish"], 0.8),
    ],
)
def test_f1_of_answers(said, right, f1):
    assert answer_f1(said, right) == f1
    for wrong in ([], "Rhine"):
        with pytest.raises(InvalidInput):
            answer_f1(said, wrong)
