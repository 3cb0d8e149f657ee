"""Made-up linked passages by the ten thousand: what index, memory and questions cost, and how each grows.

Each measurement runs in a process of its own; times are those of its CPU, which others on the machine hardly change.
Path search holds everything in memory, or keeps its collection in SQLite; the three views are indexed in memory.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from drillrank.multihop.stored import StoredCorpus

from drillrank import Passage, PathSearch, PromptRank
from drillrank.views.index import MultiViewIndex, ViewText
from drillrank.views.section_views import VIEWS
from tests.linked_passages import linked_passages, questions

from .growth import print_growth, sizes_of
from .measure import resident

SIZES = (10_000, 30_000, 100_000)
ASKED = 20
WAYS = ("paths, in memory", "paths, SQLite", "three views, in memory")
COSTS = ("index, CPU s", "bytes a passage", "peak RSS, MB", "on disk, MB", "CPU ms a question")


def main(questions: int = ASKED, data: str = ",".join(map(str, SIZES))) -> None:
    """Print the table; `data` may name other sizes, with commas."""
    print_growth("Made-up linked passages", __name__, WAYS, sizes_of(data), questions)


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
