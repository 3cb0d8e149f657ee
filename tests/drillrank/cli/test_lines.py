"""Line numbers beside the spans of evidence."""

from __future__ import annotations

import codecs
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank.cli import lines, main
from drillrank.cli.lines import is_text_file, number_lines
from drillrank.cli.sources import InputFile
from tests import pdf_files

pytestmark = pytest.mark.usefixtures("own_cache", "wide")

ANSWER = "The warranty covers the heater\nfor two years."
TEXTS = {
    "manual.md": f"---\ntitle: Kettle\n---\n\n# Kettle\n\nRead this.\n\n{ANSWER}\n",
    "manual.txt": f"Kettle\n======\n\nRead this.\n\n{ANSWER}\n\nBoil vinegar.\n",
    "manual.html": f"<html>\n<body>\n<h1>Kettle</h1>\n<p>Read this.</p>\n\n<p>{ANSWER}</p>\n</body>\n</html>\n",
    "manual.tex": f"\\section{{Kettle}}\n\nRead this.\n\n{ANSWER}\n",
    "manual.rst": f"Kettle\n======\n\nRead this.\n\n{ANSWER}\n",
    "manual.py": '"""Kettle."""\n\n\ndef warranty():\n    """The warranty covers the heater."""\n    return 2\n',
    "manual.csv": "part,warranty\nheater,covers two years\nlid,none\n",
    "manual": f"Read this.\n\n\n{ANSWER}\n",
}


@pytest.fixture
def inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def ask(capsys, *arguments: str) -> dict:
    assert main(["ask", "--json", "--unit", "paragraph", "--top-n", "1", *arguments]) == 0
    [item] = json.loads(capsys.readouterr().out)["evidence"]
    return item


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("name", TEXTS)
def test_evidence_in_a_text_file_has_the_lines_of_an_editor(inside, capsys, name, encoding, line_end):
    text = TEXTS[name].replace("\n", line_end)
    Path(name).write_bytes(text.encode(encoding))
    item = ask(capsys, name, "What does the warranty of the heater cover?")
    start, end = item["span"]
    shown = text[start:end].rstrip()
    first = text[:start].replace(line_end, "\n").count("\n") + 1
    assert item["lines"] == [first, first + shown.replace(line_end, "\n").count("\n")]
    assert "warranty" in "\n".join(TEXTS[name].splitlines()[first - 1 : item["lines"][1]])


def test_the_terminal_shows_the_lines_after_the_file(inside, capsys):
    Path("manual.md").write_text(TEXTS["manual.md"], encoding="utf-8")
    Path("one.md").write_text("# Lid\n\nThe lid is red.\n", encoding="utf-8")
    for question, place in (("Which heater does the warranty cover?", "manual.md:9-10 "), ("Which lid?", "one.md:3 ")):
        assert main(["ask", ".", "--unit", "paragraph", question]) == 0
        assert f"1. {place}" in capsys.readouterr().out


def test_converted_files_have_pages_or_nothing(inside, capsys):
    page = pdf_files.lines("The warranty covers the heater.", y=110)
    content = pdf_files.pdf_of([[*page]]).content()
    for name in ("manual.pdf", "manual.md", "manual.txt"):  # the content decides
        Path(name).write_bytes(content)
        item = ask(capsys, name, "What does the warranty cover?")
        assert item["pages"] == [1, 1]
        assert "lines" not in item
    cell = {"cell_type": "markdown", "metadata": {}, "source": ["The warranty covers the heater."]}
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    Path("notes.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    assert "lines" not in ask(capsys, "notes.ipynb", "What does the warranty cover?")


def test_a_file_that_is_gone_has_no_lines(tmp_path):
    assert not is_text_file(InputFile("gone.md", tmp_path / "gone.md"))


def test_an_office_file_under_the_name_of_a_text_is_recognized_without_its_name(tmp_path):
    (tmp_path / "text.md").write_text("One.", encoding="utf-8")
    assert is_text_file(InputFile("text.md", tmp_path / "text.md"))
    (tmp_path / "paper.docx").write_text("One.", encoding="utf-8")
    assert not is_text_file(InputFile("paper.docx", tmp_path / "paper.docx"))


@given(st.text("a \n\r\x0b\x0c\x85\u2028", max_size=40), st.data())
def test_line_numbers_count_line_feeds_carriage_returns_and_both(text, data):
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    if text[start - 1 : start + 1] == "\r\n" and start:  # no span begins inside a line end
        start += 1
        end = max(start, end)

    def line_of(offset: int) -> int:
        return len(text[:offset].replace("\r\n", "\n").replace("\r", "\n").split("\n"))

    last_visible = start + len(text[start:end].rstrip())
    assert number_lines(text, start, end) == (line_of(start), line_of(last_visible))


def test_each_document_is_read_once(inside, capsys, monkeypatch):
    Path("long.md").write_text("\n\n".join(f"The valve {number} opens." for number in range(9)), encoding="utf-8")
    calls = []
    monkeypatch.setattr(lines, "is_text_file", lambda file: calls.append(file.name) or True)
    assert main(["ask", "long.md", "--unit", "paragraph", "Which valve opens?"]) == 0
    assert calls == ["long.md"]


def test_a_byte_order_mark_is_no_character_of_the_first_line(inside, capsys):
    Path("mark.txt").write_bytes(codecs.BOM_UTF8 + b"The warranty covers it.\n")
    assert ask(capsys, "mark.txt", "What does the warranty cover?")["lines"] == [1, 1]
