"""`--include` and `--exclude` of the command line."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from drillrank.cli import main
from drillrank.cli.patterns import select_paths
from drillrank.cli.sources import list_input_files
from drillrank.errors import DrillrankWarning

pytestmark = pytest.mark.usefixtures("own_cache")

NAMES = ["a.md", "b.txt", "drafts/c.md", "drafts/deep/d.txt", "notes/drafts.md"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in NAMES:
        path = Path("docs", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"The valve opens in {name}.\n", encoding="utf-8")
    return tmp_path


def listed(*arguments: str, **patterns: list[str]) -> list[str]:
    files, skipped = list_input_files(list(arguments), **patterns)
    assert not skipped
    return [Path(file.name).as_posix() for file in files]


@pytest.mark.parametrize(
    ("include", "exclude", "selected"),
    [
        ([], [], NAMES),
        (["*.md"], [], ["a.md", "drafts/c.md", "notes/drafts.md"]),
        (["/*.md"], [], ["a.md"]),
        (["drafts/"], [], ["drafts/c.md", "drafts/deep/d.txt"]),
        (["*.txt", "notes/"], [], ["b.txt", "drafts/deep/d.txt", "notes/drafts.md"]),
        ([], ["drafts/**/*.txt"], ["a.md", "b.txt", "drafts/c.md", "notes/drafts.md"]),
        (["*.md"], ["drafts*"], ["a.md"]),
        ([], ["*.md", "!a.md"], ["a.md", "b.txt", "drafts/deep/d.txt"]),
    ],
)
def test_patterns_select_files_by_their_path_in_the_folder(folder, include, exclude, selected):
    assert listed("docs", include=include, exclude=exclude) == [f"docs/{name}" for name in selected]
    assert listed("docs/**", include=include, exclude=exclude) == [f"docs/{name}" for name in selected]


def test_patterns_apply_to_named_files(folder):
    assert listed("docs/a.md", "docs/b.txt", exclude=["*.txt"]) == ["docs/a.md"]
    assert listed(str(folder / "docs" / "a.md"), include=["docs/"]) == [(folder / "docs" / "a.md").as_posix()]


def test_hidden_and_ignored_files_stay_unread(folder):
    Path("docs", ".hidden.md").write_text("The valve.", encoding="utf-8")
    Path("docs", ".gitignore").write_text("a.md\n", encoding="utf-8")
    assert listed("docs", include=["*.md"]) == ["docs/drafts/c.md", "docs/notes/drafts.md"]


def test_a_file_that_cannot_be_read_is_not_reported_if_it_is_excluded(folder):
    os.symlink("nowhere", Path("docs", "broken.md"))
    assert list_input_files(["docs"])[1] == [f"{Path('docs', 'broken.md')} cannot be read: No such file or directory."]
    assert listed("docs", exclude=["broken.md"]) == [f"docs/{name}" for name in NAMES]


def test_a_pattern_without_a_match_is_a_warning(folder):
    with pytest.warns(DrillrankWarning, match=r"--exclude '\*.pdf' matches no file"):
        assert listed("docs", exclude=["*.pdf"]) == [f"docs/{name}" for name in NAMES]
    with pytest.warns(
        DrillrankWarning, match="--include 'nothing/' matches no file.*relative to the folder that you named"
    ):
        assert listed("docs", include=["nothing/"]) == []


@pytest.mark.parametrize("pattern", ["*a*a*b", "**/**/**/b", "[a-z]*[a-z]*[a-z]*b", "?*?*?*b"])
@pytest.mark.filterwarnings("ignore:.*matches no file:drillrank.errors.DrillrankWarning")
def test_the_time_of_a_pattern_is_bounded(pattern):
    started = time.perf_counter()
    select_paths(["a" * 255, "/".join(["a"] * 100)], [], [pattern, "a*"])
    assert time.perf_counter() - started < 5


def test_ask_reads_only_the_selected_files(folder, capsys):
    assert main(["ask", "docs", "--include", "*.md", "--exclude", "drafts/", "--json", "Which valve opens?"]) == 0
    [result] = map(json.loads, capsys.readouterr().out.splitlines())
    assert {Path(item["file"]).as_posix() for item in result["evidence"]} == {"docs/a.md", "docs/notes/drafts.md"}


def test_ask_says_that_all_files_are_left_out(folder, capsys):
    assert main(["ask", "docs", "--exclude", "*", "Which valve opens?"]) == 2
    assert "those that --include and --exclude leave out" in capsys.readouterr().err
