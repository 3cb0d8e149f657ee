"""The reader of the folder in which HippoRAG 2 publishes its data, on files in both of its layouts."""

from __future__ import annotations

import json

import pytest

from drillrank.errors import InvalidInput
from tests.benchmarks.hipporag import figures, main, read_corpus, read_questions

CORPUS = [
    {"title": "Teutberga", "text": "Teutberga was a queen. She died in 875."},
    {"title": "Lothair II", "text": "Lothair II was a king, husband of Teutberga."},
    {"title": "Teutberga", "text": "Teutberga was a queen. She died in 875."},
    {"title": "Basel", "text": "Basel lies on the Rhine.", "idx": 3},
]
FACTS = {
    "question": "When did the wife of Lothair II die?",
    "context": [
        ["Basel", ["Basel lies on the Rhine."]],
        ["Lothair II", ["Lothair II was a king,", "husband of Teutberga."]],
        ["Teutberga", ["Teutberga was a queen.", "She died in 875."]],
    ],
    "supporting_facts": [["Lothair II", 0], ["Teutberga", 1], ["Teutberga", 0]],
}
PARAGRAPHS = {
    "question": "Where is Basel?",
    "paragraphs": [
        {"title": "Basel", "paragraph_text": "Basel lies on the Rhine.", "is_supporting": True},
        {"title": "Teutberga", "paragraph_text": "Teutberga was a queen. She died in 875.", "is_supporting": False},
    ],
}


@pytest.fixture
def folder(tmp_path):
    for name, sample in (("2wikimultihopqa", FACTS), ("hotpotqa", FACTS), ("musique", PARAGRAPHS)):
        (tmp_path / f"{name}.json").write_text(json.dumps([sample]), encoding="utf-8")
        (tmp_path / f"{name}_corpus.json").write_text(json.dumps(CORPUS), encoding="utf-8")
    return tmp_path


def test_equal_passages_are_one(folder):
    passages = read_corpus(folder, "musique")
    assert [(passage.id, passage.title) for passage in passages] == [
        ("0", "Teutberga"), ("1", "Lothair II"), ("2", "Basel"),
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "gold"), [("2wikimultihopqa", ["1", "0"]), ("musique", ["2"])])
def test_gold_of_both_layouts(folder, name, gold):
    (asked,) = read_questions(folder, name)
    assert asked.gold == gold


def test_gold_that_the_corpus_lacks_is_named(folder):
    (folder / "musique_corpus.json").write_text(json.dumps(CORPUS[:2]), encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"question 0.*Basel"):
        read_questions(folder, "musique")


def test_recall_as_mean_share_and_of_all():
    asked = [type("Asked", (), {"gold": ["a", "b"]})(), type("Asked", (), {"gold": ["c"]})()]
    rankings = [["a", "x", "y", "b"], ["x", "y", "z", "u", "v", "c"]]
    assert figures(asked, rankings) == ["25.0", "50.0", "0.0", "50.0"]


def test_the_table(folder, capsys):
    main(str(folder))
    printed = capsys.readouterr().out
    assert "titles and names" in printed
    assert "95.3" in printed
