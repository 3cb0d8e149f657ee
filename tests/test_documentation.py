"""The documentation: every block runs, every internal link leads somewhere, every figure's command is there."""

from __future__ import annotations

import json
import re
import runpy
import shlex
from pathlib import Path

import pytest

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

import drillrank
import langchain_ext
import llama_index_ext
from benchmarks.__main__ import BENCHMARKS
from drillrank.cli.command import commands

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    str(file.relative_to(ROOT)): file.read_text(encoding="utf-8")
    for file in (*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md")), *(ROOT / "examples").rglob("*.md*"))
}
FENCE = re.compile(r"^(```|~~~)(\w*)\n(.*?)^\1", re.DOTALL | re.MULTILINE)
BLOCKS = [
    (name, number, kind, code)
    for name, text in PAGES.items()
    for number, (_, kind, code) in enumerate(FENCE.findall(text))
]


def of_kind(wanted):
    return [pytest.param(code, id=f"{name}-{number}") for name, number, kind, code in BLOCKS if kind == wanted]


@pytest.mark.filterwarnings("ignore:The function `loads` is in beta")
@pytest.mark.parametrize("code", of_kind("python"))
def test_a_block_runs(code):
    exec(compile(code, "block", "exec"), {"__name__": "block"})


@pytest.mark.parametrize("diff", of_kind("diff"))
def test_the_new_side_of_a_difference_runs_and_the_old_one_is_python(diff):
    lines = diff.splitlines()
    assert {line[:1] for line in lines} <= {" ", "+", "-"}
    old, new = ("\n".join(line[1:] for line in lines if line[0] != sign) for sign in "+-")
    compile(old, "old", "exec")
    exec(compile(new, "new", "exec"), {"__name__": "new"})


@pytest.mark.parametrize("code", of_kind("json"))
def test_json_is_json(code):
    json.loads(code)


@pytest.mark.parametrize("code", of_kind("toml"))
def test_toml_is_toml(code):
    assert tomllib.loads(code)


def test_blocks_are_of_kinds_that_are_checked():
    assert {kind for _, _, kind, _ in BLOCKS} <= {"python", "diff", "json", "bash", "toml"}


@pytest.mark.parametrize("code", of_kind("bash"))
def test_commands_have_the_options_that_are_shown(code):
    for line in re.findall(r"(?:^|\| )drillrank ((?:.*\\\n)*.*)", code, re.MULTILINE):
        name, *words = shlex.split(line.replace("\\\n", " "), comments=True)
        command = commands.commands[name.rstrip(",")]
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= known, line
    for name in re.findall(r"^make ([\w-]+)", code, re.MULTILINE):
        assert re.search(rf"^{name}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE), name


@pytest.mark.parametrize("name", PAGES)
def test_figures_come_from_benchmarks_that_exist(name):
    for benchmark in re.findall(r"python -m benchmarks (\w+)", PAGES[name]):
        assert benchmark in BENCHMARKS


def anchors(text):
    """The names under which headings can be linked to, as Python-Markdown makes them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.MULTILINE)
    plain = [re.sub(r"[^\w\s-]", "", heading).strip().lower() for heading in headings]
    return {re.sub(r"[-\s]+", "-", one) for one in plain}


@pytest.mark.parametrize("name", PAGES)
def test_internal_links_lead_somewhere(name):
    text = re.sub(r"`[^`\n]*`", "", FENCE.sub("", PAGES[name]))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith("http"):
            continue
        path, _, anchor = target.partition("#")
        file = (ROOT / name).parent / path if path else ROOT / name
        assert file.exists(), target
        assert not anchor or anchor in anchors(file.read_text(encoding="utf-8")), target


def test_every_page_is_in_the_navigation_and_every_class_in_the_reference():
    pages = {name.removeprefix("docs/") for name in PAGES if name.startswith("docs/")}
    assert pages == set(re.findall(r"([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE))
    reference = "\n".join(text for name, text in PAGES.items() if name.startswith("docs/api/"))
    for module in (llama_index_ext, langchain_ext, drillrank):
        shown = re.findall(rf"^::: {module.__name__}\..*?(\w+)$", reference, re.MULTILINE)
        assert {*module.__all__} <= {*shown}
    known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["llamahub"]["class_authors"]
    assert sorted(known) == sorted(llama_index_ext.__all__)


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


def test_the_path_of_a_question_names_what_is_there():
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    way = page.partition("## The path of a question")[2].partition("\n## ")[0]
    files = re.findall(r"`([\w/]+/\w+\.py)`", way)
    assert len(files) > 20
    assert [file for file in files if not (ROOT / file).is_file()] == []
    for names, file in re.findall(r"^\| .* \| (.*?) in `([\w/]+\.py)`", way, re.MULTILINE):
        for name in re.findall(r"`(\w+)`", names):
            assert re.search(rf"\b{name}\b", (ROOT / file).read_text(encoding="utf-8")), (name, file)
