"""Readers of the folders in which HippoRAG 2 and natural_rag publish their data, and the figures over them."""

from __future__ import annotations

import json

import pytest

from benchmarks.hipporag import Asked, figures, hop_table, main, read_dataset
from drillrank.errors import InvalidInput

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


@pytest.fixture
def lines_folder(tmp_path):
    entries = [entry | {"doc_id": f"d{number}"} for number, entry in enumerate(CORPUS)]
    questions = [
        {"question": "When did the wife of Lothair II die?", "gold_doc_ids": ["d1", "d0"], "hops": 2},
        {"question": "Where is Basel?", "gold_doc_ids": ["d3"], "hops": 1},
    ]
    (tmp_path / "musique").mkdir()
    for file, rows in (("corpus.jsonl", entries), ("questions.jsonl", questions)):
        (tmp_path / "musique" / file).write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return tmp_path


def test_equal_passages_are_one(folder):
    assert [(passage.id, passage.title) for passage in read_dataset(folder, "musique").pool] == [
        ("0", "Teutberga"), ("1", "Lothair II"), ("2", "Basel"),
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "gold"), [("2wikimultihopqa", ["1", "0"]), ("musique", ["2"])])
def test_gold_of_both_kinds_of_samples(folder, name, gold):
    (asked,) = read_dataset(folder, name).asked
    assert asked.gold == gold


def test_a_folder_of_lines(lines_folder):
    dataset = read_dataset(lines_folder, "musique")
    assert [passage.id for passage in dataset.pool] == ["d0", "d1", "d2", "d3"]
    assert [item.gold for item in dataset.asked] == [["d1", "d0"], ["d3"]]


def test_gold_that_the_corpus_lacks_is_named(folder):
    (folder / "musique_corpus.json").write_text(json.dumps(CORPUS[:2]), encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"question 0.*Basel"):
        read_dataset(folder, "musique")


@pytest.mark.parametrize("gold", [["nowhere"], []])
def test_gold_that_the_lines_lack_is_an_error(lines_folder, gold):
    line = json.dumps({"question": "Where?", "gold_doc_ids": gold})
    (lines_folder / "musique" / "questions.jsonl").write_text(line, encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"question 0.*not in the corpus"):
        read_dataset(lines_folder, "musique")


def test_a_corpus_that_is_cut_off_is_an_error(lines_folder):
    corpus = lines_folder / "musique" / "corpus.jsonl"
    corpus.write_text(corpus.read_text(encoding="utf-8")[:-20], encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"questions\.jsonl or its corpus.*JSONDecodeError"):
        read_dataset(lines_folder, "musique")


def test_a_folder_without_the_data_set(tmp_path):
    with pytest.raises(InvalidInput, match=r"no hotpotqa\.json and no hotpotqa/questions\.jsonl"):
        read_dataset(tmp_path, "hotpotqa")


def test_recall_as_mean_share_and_of_all():
    asked = [Asked("", ["a", "b"]), Asked("", ["c"])]
    rankings = [["a", "x", "y", "b"], ["x", "y", "z", "u", "v", "c"]]
    assert figures(asked, rankings) == ["25.0", "50.0", "100.0", "0.0", "50.0"]


def test_recall_by_number_of_gold_passages_and_in_the_mix_of_the_thousand():
    asked = [Asked("", ["a", "b"]), Asked("", ["a", "b", "c"]), Asked("", ["a", "b", "c", "d"])]
    cells = [list(column.cells) for column in hop_table(asked, {"method": [["a", "b"]] * 3}).columns]
    assert cells[:4] == [["method"], ["100.0"], ["66.7"], ["50.0"]]
    assert float(cells[4][0]) == pytest.approx(100 * (0.518 + 0.316 * 2 / 3 + 0.166 / 2), abs=0.05)


def test_no_mix_if_a_number_of_gold_passages_is_missing():
    cells = [list(column.cells) for column in hop_table([Asked("", ["a", "b"])], {"method": [["a", "b"]]}).columns]
    assert cells == [["method"], ["100.0"], [""], [""], [""]]


def test_the_tables(folder, capsys):
    main(str(folder))
    printed = capsys.readouterr().out
    assert "titles and names" in printed
    assert "95.3" in printed


def test_a_data_set_that_cannot_be_read_does_not_end_the_run(lines_folder, capsys):
    main(str(lines_folder))
    printed = capsys.readouterr().out
    assert "musique: 2 questions, 4 passages" in printed
    assert "hotpotqa: " in printed
    assert "has no hotpotqa.json" in printed
