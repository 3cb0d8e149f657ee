"""Files of source code: blocks of code, no headings, divided before definitions."""

from __future__ import annotations

import pytest

from drillrank.structure import Document, parse_document, read_document
from tests.drillrank.structure.checks import check_spans

BODY = "    value = compute(the, same, thing)\n" * 8


def parsed(text: str) -> Document:
    document = parse_document(text, "code")
    check_spans(document)
    return document


def blocks(text: str) -> list[str]:
    document = parsed(text)
    assert all(block.kind == "code" for section in document.sections() for block in document.blocks(section))
    return [document.slice(block) for section in document.sections() for block in document.blocks(section)]


@pytest.mark.parametrize(
    ("name", "comment"),
    [
        ("a.py", "# Usage\n# =====\n#\n# ## Call it\nx = 1\n"),
        ("a.sh", "#!/bin/sh\n# Installation\n## Steps\necho 1\n"),
        ("a.toml", "# Settings\n[tool]\na = 1\n"),
        ("a.yaml.cfg", "# Main\n\nTitle\n=====\n\na: 1\n"),
        ("a.js", "/*\n# API\n*/\nlet a;\n"),
        ("A.R", "# Load data\nx <- 1\n"),
        ("q.sql", "-- 1 Introduction\n\nSELECT 1;\n"),
    ],
)
def test_comments_of_code_files_are_not_headings(tmp_path, name, comment):
    file = tmp_path / name
    file.write_text(comment)
    document = read_document(file)
    assert document.format == "code"
    assert [section.path for section in document.sections()] == [()]
    assert document.text == comment


def test_code_is_divided_at_blank_lines_before_definitions():
    functions = [f"# First\ndef a():\n{BODY}", f"def b():\n{BODY}\n    return 1\n", f"class C:\n\n{BODY}"]
    assert blocks("\n\n".join(functions)) == [function.rstrip() for function in functions]


def test_code_is_not_divided_before_closing_brackets_or_inside_functions():
    text = f"int main() {{\n{BODY}\n{BODY}\n}}\n"
    assert blocks(text) == [text.rstrip()]


def test_short_definitions_stay_together():
    assert blocks("import a\n\nx = 1\n\ny = 2\n") == ["import a\n\nx = 1\n\ny = 2"]


@pytest.mark.parametrize("text", ["", " \n\n", "\n\n  x\n", "x", "\r\rx\r", "\ufeffx = 1"])
def test_blank_and_indented_files(text):
    assert "".join(blocks(text)).strip() == text.strip()


@pytest.mark.parametrize(
    "metadata",
    [{"file_type": "text/x-python"}, {"content_type": "text/javascript; charset=utf-8"}, {"file_name": "a.GO"}],
)
def test_media_types_and_names_tell_code(metadata):
    assert parse_document("# no heading\n\nx\n", metadata=metadata).format == "code"
