"""The gap: does a second search with `result.gap` find the second place of a question?

A question counts if the first search returns one of its two places, and not the other one. The second search has the
gap as its question, and returns as many passages that the first search did not return. The baseline returns the next
passages of the first search, without a new question.

HotpotQA, MuSiQue and 2WikiMultihopQA: pools of passages; BM25 finds 50 candidates, UPR ranks them, 5 are returned, and
the gap is that of the best one. Folders:
the two-place questions of `project_wiki_dev`, `project_wiki` (a test) and `folders`, asked by D3 without links.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from drillrank import D3, UPR
from drillrank.drilldown.gap import find_gap
from drillrank.drilldown.settings import D3Settings
from drillrank.vectors import BM25Index, top

from .data import data_folder, multihop_pool, read
from .folders import _read_folder

CANDIDATES, RETURNED = 50, 5
POOLS = ("hotpotqa", "musique", "2wiki")
FOLDERS = (Path(__file__).parent / "project_wiki_dev", Path(__file__).parent / "project_wiki")

Outcome = tuple[bool, bool]
"""True if the second search finds the second place, and if the next passages of the first search have it."""


def main(questions: int | None = None) -> None:
    """Print the shares."""
    table = Table("questions", "one place found", "second by the gap", "by the next passages", title="the second place")
    outcomes = {name: list(_search_pool(name, questions)) for name in POOLS}
    outcomes |= {folder.name: list(_search_folder(folder)) for folder in (*FOLDERS, data_folder() / "folders")}
    for name, found in outcomes.items():
        shares = np.mean(found, axis=0) if found else (np.nan, np.nan)
        table.add_row(name, str(len(found)), *(f"{share:.3f}" for share in shares))
    Console(width=100).print(table)


def _search_pool(name: str, questions: int | None) -> Iterator[Outcome]:
    pool = multihop_pool(name)
    bm25, upr = BM25Index([passage.titled_text for passage in pool]), UPR()

    def search(query: str, n: int) -> list[Any]:
        scores = bm25.scores(query)
        found = [pool[index] for index in top(scores, CANDIDATES) if scores[index] > 0]
        return [item.passage for item in upr.rank(query, found, n)] if found else []

    for row in [row for row in read(f"multihop/{name}") if len(row["gold"]) == 2][:questions]:
        first = search(row["question"], 2 * RETURNED)
        yield from _compare(
            [passage.id for passage in first],
            lambda ids, gold: gold in ids,
            row["gold"],
            find_gap(row["question"], first[0].titled_text),
            lambda gap, n: [passage.id for passage in search(gap, n)],
        )


def _search_folder(folder: Path) -> Iterator[Outcome]:
    import json

    d3 = D3(settings=D3Settings(hops=1))
    prepared = d3.prepare(list(_read_folder(folder).values()))
    rows = json.loads((folder / "questions.json").read_text())

    def search(question: str, n: int) -> list[str]:
        return [" ".join(item.passage.text.split()) for item in d3.retrieve(question, prepared, n)]

    for row in [row for row in rows if "gold2" in row]:
        first = d3.retrieve(row["question"], prepared, 2 * RETURNED)
        texts = [" ".join(item.passage.text.split()) for item in first]
        golds = [[gold, *row.get(f"alt{suffix}", ())] for gold, suffix in ((row["gold"], ""), (row["gold2"], "2"))]
        yield from _compare(texts, _contains, golds, first.gap, search)


def _contains(texts: Sequence[str], wordings: Sequence[str]) -> bool:
    return any(" ".join(wording.split()) in text for text in texts for wording in wordings)


def _compare(
    first: Sequence[str],
    contains: Callable[[Sequence[str], Any], bool],
    golds: Sequence[Any],
    gap: str,
    search: Callable[[str, int], list[str]],
) -> Iterator[Outcome]:
    """Yield the outcome of a question, if its first search finds one place of two."""
    returned, following = first[:RETURNED], first[RETURNED:]
    missing = [gold for gold in golds if not contains(returned, gold)]
    if len(missing) == 1:
        second = search(gap, 2 * RETURNED) if gap else []
        new = [item for item in second if item not in returned][:RETURNED]
        yield contains(new, missing[0]), contains(following, missing[0])
