"""Inputs that were made to harm: each is one error or one warning, and the run goes on."""

from __future__ import annotations

import json

import pytest

from drillrank import Passage, limits, parse_document
from drillrank.cli import main
from drillrank.drilldown.outline import outline
from drillrank.errors import InvalidInput
from drillrank.evaluation import compare
from drillrank.evaluation.questions import read_questions
from drillrank.structure.pages import Pages
from drillrank.structure.parsed import document_from_docling, document_from_unstructured
from drillrank.structure.saved import document_from_json, document_to_json

GOOD = "# Kettle\n\nThe warranty covers the heater.\n"


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA", "HOME"):
        monkeypatch.setenv(name, str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with one good file."""
    here = tmp_path / "folder"
    here.mkdir()
    (here / "good.md").write_text(GOOD, encoding="utf-8")
    monkeypatch.chdir(here)
    return here


def files_of(printed: str) -> set[str]:
    return {json.loads(line)["file"] for line in printed.splitlines()}


# JSON


@pytest.mark.parametrize("deep", ["[" * 100_000, "[" * 300 + "]" * 300], ids=["endless", "300 deep"])
def test_deep_json_is_an_error_wherever_json_is_read(deep, folder, capsys):
    row = {"question": "Who?", "gold": ["1"]}
    line = json.dumps(row | {"more": 0}).replace('"more": 0', f'"more": {deep}')
    (folder / "asked.jsonl").write_text(line + "\n", encoding="utf-8")
    (folder / "results.jsonl").write_text(deep + "\n", encoding="utf-8")
    (folder / "asked.csv").write_text(f'question,gold\nWho?,"{deep}"\n', encoding="utf-8")
    for read in (
        lambda: read_questions(folder / "asked.jsonl"),
        lambda: read_questions(folder / "asked.csv"),
        lambda: compare([row], {"UPR": "UPR"}, [Passage("a", id="1")], results=folder / "results.jsonl"),
        lambda: document_from_json(deep),
        lambda: document_from_docling(f'{{"body": {deep}}}'),
    ):
        with pytest.raises(InvalidInput, match="nested too deeply") as raised:
            read()
        assert len(str(raised.value)) < 400
    assert Pages.from_json(deep) is None
    for command in (["compare", "asked.jsonl"], ["compare", "asked.jsonl", "--component", f'{{"mu": {deep}}}']):
        assert main(command) == 2
        assert "nested too deeply" in capsys.readouterr().err
    assert main(["tune", "asked.jsonl", "--try", f"mu={deep}"]) == 2
    assert "nested too deeply" in capsys.readouterr().err


def test_json_that_is_wide_is_read():
    candidates = json.dumps([{"text": str(at), "links": [{}]} for at in range(1000)])
    [question] = read_questions([{"question": "Who?", "gold": "1", "candidates": candidates}])
    assert len(question.candidates) == 1000


SAVED = json.loads(document_to_json(parse_document("# Sea\n\nDeep.\n\n## Fish\n\nCod.\n")))


@pytest.mark.parametrize(
    "change",
    [
        lambda saved: saved["sections"][0].__setitem__(2, -5),
        lambda saved: saved["sections"][-1].__setitem__(3, 10**9),
        lambda saved: saved["sections"][0].__setitem__(3, saved["sections"][0][3] - 1),
        lambda saved: saved["sections"][0].__setitem__(3, "9"),
        lambda saved: saved["blocks"][0][1].__setitem__(2, 10**9),
        lambda saved: saved["blocks"][1][0].__setitem__(1, 0),
        lambda saved: saved["blocks"][0].reverse(),
        lambda saved: saved["blocks"].pop(),
        lambda saved: saved["blocks"][0][0].__setitem__(1, 0.0),
        lambda saved: saved.__setitem__("text", saved["text"][:-1]),
    ],
)
def test_a_saved_document_with_places_outside_its_text_is_refused(change):
    saved = json.loads(json.dumps(SAVED))
    document_from_json(json.dumps(saved))
    change(saved)
    with pytest.raises(InvalidInput, match="no saved document"):
        document_from_json(json.dumps(saved))


def test_what_is_quoted_of_questions_ends():
    for rows in (
        [{"x" * 9999: 1}],
        [{"question": "Who?", "x" * 9999: 1}],
        [{"question": " " * 9999, "gold": ["1"]}],
        [{"question": "Who?", "gold": ["1"], "id": "x" * 9999}] * 2,
        [{"question": "Who?", "gold": ["1"], "candidates": [{"x" * 9999: 1}]}],
    ):
        with pytest.raises(InvalidInput) as raised:
            read_questions(rows)
        assert len(str(raised.value)) < 400


# Headings


def test_a_long_heading_is_not_repeated_whole_with_every_section():
    text = f"# {'fox ' * 25_000}\n\n" + "".join(f"## s{at}\n\nmice {at}\n\n" for at in range(200))
    document = parse_document(text)
    sections = document.sections()
    assert document.text == text
    assert "".join(map(document.slice, sections)) == text
    assert all(sum(map(len, section.path)) <= limits.PATH_CHARACTERS for section in sections)
    assert [section.heading for section in sections[1:]] == [f"s{at}" for at in range(200)]
    assert sum(len(section.passage.title) for section in outline([document])) < 200 * 1.1 * limits.PATH_CHARACTERS
    assert len(document_to_json(document)) < 2 * len(text) + 200 * 1.5 * limits.PATH_CHARACTERS


def test_long_headings_leave_room_for_those_below_them():
    text = "".join(f"{'#' * depth} {depth} {'fox ' * 300}\n\n" for depth in range(1, 7))
    *_, last = parse_document(text + "Deep.").sections()
    assert sum(map(len, last.path)) <= limits.PATH_CHARACTERS
    assert [heading[0] for heading in last.path] == list("123456")


def test_headings_below_many_others_stay_in_the_text():
    elements = [
        {"type": "Title", "element_id": str(at), "text": f"t{at}", "metadata": {"parent_id": str(at - 1)}}
        for at in range(300)
    ]
    document = document_from_unstructured(elements)
    assert max(len(section.path) for section in document.sections()) == limits.HEADING_DEPTH
    assert document.text.split() == [f"t{at}" for at in range(300)]
