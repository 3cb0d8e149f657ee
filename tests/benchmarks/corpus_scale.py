"""Made-up linked passages by the ten thousand: what index, memory and questions cost, and how each grows.

Each measurement runs in a process of its own; times are those of its CPU, which others on the machine hardly change.
Growth is the slope of the logarithms by least squares: 1 is linear.
Path search holds everything in memory, or keeps its collection in SQLite; the three views are indexed in memory.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from drillrank import Passage, PathSearch, PromptRank
from drillrank.multihop.stored import StoredCorpus
from drillrank.views.index import MultiViewIndex, ViewText
from drillrank.views.section_views import VIEWS
from tests.linked_passages import linked_passages, questions

from .measure import resident

SIZES = (10_000, 30_000, 100_000)
ASKED = 20
WAYS = ("paths, in memory", "paths, SQLite", "three views, in memory")
COSTS = ("index, CPU s", "bytes a passage", "peak RSS, MB", "on disk, MB", "CPU ms a question")


def main(questions: int = ASKED, data: str = ",".join(map(str, SIZES))) -> None:
    """Print the table; `data` may name other sizes, with commas. What is measured is told as it goes on."""
    sizes = [int(size) for size in data.split(",")]
    table = Table("what", "cost", *(f"{size:,}" for size in sizes), "growth", title="Made-up linked passages")
    for way in WAYS:
        measured = [_apart(way, size, questions) for size in sizes]
        for cost in COSTS:
            row = [one[cost] for one in measured]
            if all(row):
                growth = np.polyfit(np.log(sizes), np.log(row), 1)[0] if len(sizes) > 1 else float("nan")
                table.add_row(way, cost, *(f"{value:,.1f}" for value in row), f"{growth:.2f}")
    Console().print(table)


def _apart(way: str, size: int, asked: int) -> dict[str, float]:
    run = [sys.executable, "-m", __name__, way, str(size), str(asked)]
    told: dict[str, float] = json.loads(subprocess.run(run, check=True, stdout=subprocess.PIPE).stdout)
    print(f"{way}, {size:,}:", ", ".join(f"{cost} {value:,.1f}" for cost, value in told.items()), file=sys.stderr)
    return told


def _measured(way: str, size: int, asked: int) -> dict[str, float]:
    some = list(islice(linked_passages(size), 2_000))
    asking = questions(some, asked + 1)
    before = 1024 * resident()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "corpus.db"
        started = time.process_time()
        ask = _index(way, size, file)
        seconds = time.process_time() - started
        on_disk = file.stat().st_size if file.exists() else 0
        ask(asking[0])  # what is made once
        held = on_disk or 1024 * resident() - before
        started = time.process_time()
        for question in asking[1:]:
            ask(question)
        of_question = (time.process_time() - started) / asked
    return dict(
        zip(
            COSTS,
            (seconds, held / size, resident("VmHWM") / 1000, on_disk / 1e6, 1000 * of_question),
            strict=True,
        )
    )


def _index(way: str, size: int, file: Path) -> Callable[[str], object]:
    passages = linked_passages(size)
    if way == WAYS[0]:
        return PathSearch(PromptRank(), list(passages)).search
    if way == WAYS[1]:
        return PathSearch(PromptRank(), first_stage=StoredCorpus.write(file, passages)).search
    return MultiViewIndex(chunk for passage in passages for chunk in _views(passage)).search


def _views(passage: Passage) -> list[ViewText]:
    """The text, its ten longest words, its first third."""
    words = passage.text.split()
    texts = (passage.titled_text, " ".join(sorted(words, key=len)[-10:]), " ".join(words[: len(words) // 3]))
    return [ViewText(passage.id, view, text) for view, text in zip(VIEWS, texts, strict=True)]


if __name__ == "__main__":
    print(json.dumps(_measured(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
