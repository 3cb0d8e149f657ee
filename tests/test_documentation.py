"""The Python in the documentation runs."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SNIPPETS = [
    pytest.param(code, id=f"{file.name}-{number}")
    for file in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    for number, code in enumerate(re.findall(r"^```python\n(.*?)^```", file.read_text(encoding="utf-8"), re.S | re.M))
]


def test_there_is_something_to_run():
    assert len(SNIPPETS) >= 4


@pytest.mark.parametrize("code", SNIPPETS)
def test_snippet_runs(code):
    exec(compile(code, "snippet", "exec"), {"__name__": "snippet"})


def test_the_pictures_show_what_is_explained():
    drawn = runpy.run_path(str(ROOT / "tools" / "explanation_pictures.py"))["pictures"]()
    assert {"answers", *drawn} == {file.stem for file in (ROOT / "docs" / "explained").glob("*.svg")}
    for name, picture in drawn.items():
        shown = (ROOT / "docs" / "explained" / f"{name}.svg").read_text(encoding="utf-8")
        texts = [re.findall(r"<text [^>]*>([^<]*)</text>", svg) for svg in (shown, picture)]
        assert texts[0] == texts[1], f"python tools/explanation_pictures.py: {name} has changed"


def test_the_recording_shows_what_the_command_prints():
    recorded = runpy.run_path(str(ROOT / "tools" / "terminal_recording.py"))["recording"]()
    shown = (ROOT / "docs" / "ask.svg").read_text(encoding="utf-8")
    texts = [re.findall(r"<text [^>]*>([^<]*)</text>", svg) for svg in (shown, recorded)]
    assert texts[0] == texts[1]
    assert any("six" in text for text in texts[0])


def test_the_way_of_a_question_names_what_is_there():
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    way = page.partition("## The way of a question")[2].partition("\n## ")[0]
    files = re.findall(r"`([\w/]+/\w+\.py)`", way)
    assert len(files) > 20
    assert [file for file in files if not (ROOT / file).is_file()] == []
    for names, file in re.findall(r"^\| .* \| (.*?) in `([\w/]+\.py)`", way, re.MULTILINE):
        for name in re.findall(r"`(\w+)`", names):
            assert re.search(rf"\b{name}\b", (ROOT / file).read_text(encoding="utf-8")), (name, file)
