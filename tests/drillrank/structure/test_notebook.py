"""Jupyter notebooks: cells and outputs as Markdown."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank import read_document
from drillrank.structure.notebook import convert_notebook


def notebook_of(*cells: dict, **metadata: object) -> bytes:
    return json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}).encode()


def code(source: object, *outputs: dict) -> dict:
    return {"cell_type": "code", "source": source, "outputs": list(outputs), "metadata": {}}


def text_of(*cells: dict, **metadata: object) -> str:
    return convert_notebook(notebook_of(*cells, **metadata)).text


def test_markdown_cells_are_sections_and_code_is_fenced(tmp_path):
    file = tmp_path / "a.ipynb"
    file.write_bytes(
        notebook_of(
            {"cell_type": "markdown", "source": ["# Data\n", "\n", "Two tables."]},
            code(["# not a heading\n", "x = 1"]),
            {"cell_type": "markdown", "source": "## Result"},
            kernelspec={"language": "python"},
        )
    )
    document = read_document(file)
    assert [section.path for section in document.sections()] == [("Data",), ("Data", "Result")]
    assert "```python\n# not a heading\nx = 1\n```" in document.text


def test_outputs_are_text():
    result = {"output_type": "execute_result", "data": {"text/plain": ["3"], "image/png": "iVBORw0KGgo="}}
    stream = {"output_type": "stream", "name": "stdout", "text": ["one\n", "two\n"]}
    assert text_of(code("x", stream, result)) == "```\nx\n```\n\n```\none\ntwo\n```\n\n```\n3\n```"


def test_tables_of_html_are_tables():
    html = "<style>td {}</style><table><tr><th>name</th><th>age</th></tr><tr><td>Ann</td><td>3</td></tr></table>"
    result = {"output_type": "display_data", "data": {"text/html": html, "text/plain": "name age"}}
    assert text_of(code("", result)) == "| name | age |\n| --- | --- |\n| Ann | 3 |"


def test_html_without_text_falls_back_to_plain_text():
    result = {"output_type": "display_data", "data": {"text/html": "<script>x</script>", "text/plain": "<Chart>"}}
    assert text_of(code("", result)) == "```\n<Chart>\n```"


def test_colors_and_overwritten_lines_are_removed():
    stream = {"output_type": "stream", "text": "\x1b[1;31mred\x1b[0m\n10%\r20%\r\n\x1b]8;;http://x\x07link\n"}
    assert text_of(code("", stream)) == "```\nred\n20%\nlink\n```"


def test_errors_are_shown_once():
    error = {"output_type": "error", "ename": "ValueError", "evalue": "no fox", "traceback": ["\x1b[0mTrace", "no fox"]}
    bare = {"output_type": "error", "ename": "KeyError", "evalue": "'fox'", "traceback": []}
    assert text_of(code("", error, bare)) == "```\nTrace\nno fox\n```\n\n```\nKeyError: 'fox'\n```"


def test_a_fence_is_longer_than_those_inside():
    assert text_of(code("print('````')")).startswith("`````\n")


def test_embedded_images_are_left_out():
    image = "data:image/png;base64," + "QUJD" * 50
    text = text_of({"cell_type": "markdown", "source": f'![plot]({image}) and <img src="{image}"> end'})
    assert "QUJD" not in text
    assert "plot" in text
    assert "end" in text


def test_version_3_is_read():
    cells = [
        {"cell_type": "heading", "level": 2, "source": ["Old"]},
        {
            "cell_type": "code",
            "input": "1 + 1",
            "language": "python",
            "outputs": [
                {"output_type": "pyout", "text": ["2"]},
                {"output_type": "pyerr", "ename": "E", "evalue": "v", "traceback": []},
            ],
        },
    ]
    content = json.dumps({"worksheets": [{"cells": cells}], "nbformat": 3}).encode()
    assert convert_notebook(content).text == "## Old\n\n```python\n1 + 1\n```\n\n```\n2\n```\n\n```\nE: v\n```"


@pytest.mark.parametrize("cells", [None, 1, {}, [1, None, []], [{"cell_type": "code", "outputs": [1, {"data": []}]}]])
def test_odd_cells_are_passed_over(cells):
    assert convert_notebook(json.dumps({"cells": cells}).encode()).text == ""


@given(st.text(st.characters(exclude_categories=["C"]), min_size=1).filter(str.strip))
def test_no_source_is_lost(source):
    assert source.strip() in text_of(code(source))
