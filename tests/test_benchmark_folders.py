"""Data of the benchmarks that are part of the repository: the German folder and the small folders."""

from __future__ import annotations

import json
import tarfile
from collections import Counter

from benchmarks.folder_german import DATA
from benchmarks.folders import characters_needed
from benchmarks.small_folders import FOLDERS, GROUPS
from drillrank import read_document


def test_each_gold_text_of_the_german_folder_is_in_its_file(tmp_path):
    with tarfile.open(DATA / "dev.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    questions = json.loads((DATA / "questions.json").read_text(encoding="utf-8"))
    answerable = [question for question in questions if question["kind"] != "absent"]
    assert len(answerable) == 30
    assert len(list((tmp_path / "files").rglob("*.*"))) == 30
    names = {question[key] for question in answerable for key in ("file", "file2") if key in question}
    documents = {name: read_document(tmp_path / name) for name in names}
    texts = {name: "\n".join(map(document.readable, document.sections())) for name, document in documents.items()}
    for question in answerable:
        pair = [texts[question[key]] for key in ("file", "file2") if key in question]
        assert characters_needed(pair, question) < float("inf"), question["question"]


def test_each_answer_of_a_small_folder_is_in_exactly_one_of_its_files():
    for files, cases in FOLDERS:
        for case in cases:
            assert sum(case.answer in text for text in files.values()) == 1, case.question


def test_the_small_folders_have_questions_of_all_groups():
    cases = [case for _, cases in FOLDERS for case in cases]
    assert len(FOLDERS) == 22
    assert len(cases) == 38
    assert Counter(case.group for case in cases) == dict(zip(GROUPS, (10, 9, 19), strict=True))
