from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from drillrank import cli

MANUAL = """# Kettle

Read this first.

## Warranty

The warranty covers the heater for two years.

It leaves out damage by lime scale.

## Cleaning

Boil vinegar and water once a month.
"""


@pytest.fixture
def manual(tmp_path: Path) -> Path:
    file = tmp_path / "manual.md"
    file.write_text(MANUAL, encoding="utf-8")
    return file


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setattr(cli, "console", cli.Console(width=200, highlight=False, color_system=None))


def test_ask_prints_tree_ranking_and_evidence(manual, capsys):
    assert cli.main(["ask", str(manual), "What does the warranty leave out?", "--top-n", "2"]) == 0
    printed = capsys.readouterr().out
    tree, ranking = printed.split("Question:", 1)
    assert tree.index("Kettle") < tree.index("Warranty") < tree.index("Cleaning")
    assert ranking.index("Kettle > Warranty") < ranking.index("Kettle > Cleaning")
    evidence = ranking[ranking.index("Evidence paragraphs") :]
    assert "It leaves out damage by lime scale." in evidence
    start = MANUAL.index("It leaves out")
    assert f"{start}–{start + len('It leaves out damage by lime scale.')}" in evidence
    assert "vinegar" not in evidence


def test_ask_takes_several_files_of_any_text(manual, tmp_path, capsys):
    note = tmp_path / "note.txt"
    note.write_text("[bold]Lime scale[/bold] comes off with vinegar.", encoding="utf-8")
    (tmp_path / "empty.md").touch()
    assert cli.main(["ask", str(manual), str(note), str(tmp_path / "empty.md"), "What helps against lime scale?"]) == 0
    assert "[bold]Lime scale[/bold] comes off" in capsys.readouterr().out  # markup in documents is data


def test_bytes_that_are_no_utf8_are_shown_and_reported(tmp_path, capsys):
    file = tmp_path / "latin.txt"
    file.write_bytes("Straße und Café".encode("latin-1"))
    assert cli.main(["ask", str(file), "Café?"]) == 0
    printed = capsys.readouterr().out
    assert "not UTF-8" in printed
    assert "Stra�e und Caf�" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ask", "{missing}", "question"], "cannot be read"),
        (["ask", "{folder}", "question"], "cannot be read"),
        (["ask", "{manual}", "  "], "query"),
        (["ask", "{manual}", "question", "--model", "bert"], "names no kind of language model"),
        (["ask", "{manual}", "question", "--top-n", "0"], "top_n"),
        (["demo", " "], "query"),
    ],
)
def test_bad_input_is_one_clear_line_and_status_2(arguments, message, manual, capsys):
    places = {"manual": manual, "folder": manual.parent, "missing": manual.parent / "missing.md"}
    assert cli.main([argument.format(**places) for argument in arguments]) == 2
    printed = capsys.readouterr().out
    assert message in printed
    assert "Traceback" not in printed


def test_demo_shows_both_frameworks_and_they_agree(capsys):
    assert cli.main(["demo"]) == 0
    printed = capsys.readouterr().out
    assert "One section in three views" in printed
    llama_index, langchain = printed.split("LlamaIndex: three views")[1].split("LangChain: three views")
    assert "The logarithm trap" in llama_index
    rows = [[line for line in part.splitlines() if "handbook >" in line] for part in (llama_index, langchain)]
    assert len(rows[0]) == 3
    assert rows[0] == rows[1]


def test_demo_without_the_frameworks_says_how_to_install_them(monkeypatch, capsys):
    for name in ("llama_index_ext", "langchain_ext"):
        monkeypatch.setitem(sys.modules, name, None)
    assert cli.main(["demo"]) == 0
    printed = capsys.readouterr().out
    assert 'pip install "drillrank[llama-index]"' in printed
    assert 'pip install "drillrank[langchain]"' in printed


def test_the_installed_command_runs(manual):
    command = [Path(sys.executable).with_name("drillrank"), "ask", manual, "How is it cleaned?"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "Boil vinegar" in result.stdout
