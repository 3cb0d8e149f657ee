"""A pool of path search that grows on disk: what adding, removing and asking cost, and whether ranks are a fresh one's.

Made-up passages that mention each other's titles (`tests.linked_passages`); a third is removed and added again, and a
fresh search over the same passages in the same order has to give the same paths and scores. `--questions` asks so many,
`--data` names another number of passages. Times are of the CPU, which others on the machine hardly change.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from drillrank import Corpus, PathSearch, PromptRank
from tests.linked_passages import linked_passages
from tests.linked_passages import questions as questions_on

STEP = 10_000


def main(questions: int = 30, data: str = "100000") -> None:
    """Print the costs of each step, and how many questions have other paths or scores than in a fresh search."""
    size = int(data)
    passages = list(linked_passages(size))
    asked = questions_on(passages[:2_000], questions)
    table = Table("step", "passages", "CPU s", "ms a passage", title=f"A pool of {size:,} passages on disk")

    def timed(step: str, count: int, do: Callable[[], Any]) -> Any:
        started = time.process_time()
        found = do()
        seconds = time.process_time() - started
        table.add_row(step, f"{count:,}", f"{seconds:.1f}", f"{1000 * seconds / count:.2f}")
        return found

    with tempfile.TemporaryDirectory() as folder:
        search = PathSearch(PromptRank(), first_stage=Corpus(Path(folder) / "passages.db"))
        for first in range(0, size, STEP):
            some = passages[first : first + STEP]
            step = {0: "add, the first", size - len(some): "add, the last"}.get(first)
            if step:
                timed(step, len(some), partial(search.add, some))
            else:
                search.add(some)
        search.search(asked[0])
        timed("questions", len(asked), lambda: [search.search_paths(question) for question in asked])
        third = passages[: size // 3]
        timed("remove a third", len(third), lambda: search.remove([one.id for one in third]))
        timed("add it again", len(third), lambda: search.add(third))
        timed("remove one, and ask", 1, lambda: (search.remove([third[-1].id]), search.search(asked[0])))
        timed("add it, and ask", 1, lambda: (search.add(third[-1:]), search.search(asked[0])))
        grown = timed("questions after it", len(asked), lambda: [search.search_paths(question) for question in asked])
        search.save(Path(folder) / "saved")
        timed("load, and ask", 1, lambda: PathSearch.load(Path(folder) / "saved").search(asked[0]))
        corpus = Corpus(Path(folder) / "fresh.db")
        corpus.add([*passages[size // 3 :], *third])
        fresh = PathSearch(PromptRank(), first_stage=corpus)
        expected = timed(
            "questions to a fresh one, with its first names", len(asked), lambda: [fresh.search_paths(q) for q in asked]
        )
        megabytes = (Path(folder) / "fresh.db").stat().st_size / 1e6
    other = sum(
        [(item.passage.ids, item.score) for item in one] != [(item.passage.ids, item.score) for item in another]
        for one, another in zip(grown, expected, strict=True)
    )
    Console(width=120).print(table)
    print(f"{other} of {len(asked)} questions have other paths or scores than in a fresh search; {megabytes:.0f} MB.")
