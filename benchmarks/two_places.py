"""Questions that need two passages: what the second one gains by being chosen for what it adds to the best one.

`D3` without an LLM and without links between documents (`hops=1`), by the weight of what a passage adds
(`drillrank.drilldown.paragraph_scores.COMPLEMENT_WEIGHT`): 0 is the order of the scores.

- HotpotQA: every fourth question, each paragraph of the open pool a document. Share of questions whose two gold
  paragraphs are among the first N passages.
- The folder of `folders`: share of questions answered within N characters, of those that need one place and those that
  need two. No encoder.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
from rich.console import Console
from rich.table import Table

from drillrank import D3
from drillrank.drilldown import paragraph_scores

from .data import data_folder, multihop_pool, read
from .folders import DEPTH, _read_folder, characters_needed, read_questions

WEIGHTS = (0.0, paragraph_scores.COMPLEMENT_WEIGHT, 1.0)
STEP = 4  # of the HotpotQA questions
PASSAGES, CHARACTERS = (2, 3, 5), (1200, 3600, 6000)


def main(questions: int | None = None) -> None:
    """Print the tables; with `questions`, only that many HotpotQA questions."""
    _print(
        f"HotpotQA: both among the first {PASSAGES}", _measure_hotpotqa(read("multihop/hotpotqa")[::STEP][:questions])
    )
    _print(f"the folder: answered within {CHARACTERS} characters", _measure_folder())


def _print(title: str, rows: dict[tuple[str, int, float], Sequence[float]]) -> None:
    table = Table("questions", "number", "weight", "", "", "", title=title)
    for (kind, n, weight), shares in rows.items():
        table.add_row(kind, str(n), f"{weight:g}", *(f"{share:.3f}" for share in shares))
    Console(width=100).print(table)


def _retrieve(d3: D3, question: str, prepared: Any, weight: float, top_n: int) -> Any:
    with patch.object(paragraph_scores, "COMPLEMENT_WEIGHT", weight):
        return d3.retrieve(question, prepared, top_n)


def _measure_hotpotqa(questions: list[dict[str, Any]]) -> dict[tuple[str, int, float], Sequence[float]]:
    pool = multihop_pool("hotpotqa")
    d3 = D3(settings={"hops": 1})
    prepared = d3.prepare([f"# {passage.title}\n\n{passage.text}" for passage in pool])
    rows: dict[tuple[str, int, float], Sequence[float]] = {}
    for kind in ("bridge", "comparison"):
        asked = [question for question in questions if question["type"] == kind]
        for weight in WEIGHTS:
            hits = []
            for question in asked:
                result = _retrieve(d3, question["question"], prepared, weight, PASSAGES[-1])
                ids = [pool[item.passage.metadata["document"]].id for item in result]
                hits.append([{*question["gold"]} <= {*ids[:n]} for n in PASSAGES])
            rows[kind, len(asked), weight] = np.mean(hits, axis=0).tolist()
    return rows


def _measure_folder() -> dict[tuple[str, int, float], Sequence[float]]:
    folder = data_folder() / "folders"
    questions, documents = read_questions(folder), _read_folder(folder)
    d3 = D3(settings={"hops": 1})
    prepared = d3.prepare(list(documents.values()), list(documents))
    rows: dict[tuple[str, int, float], Sequence[float]] = {}
    for kind, needs_two in (("one place", False), ("two places", True)):
        asked = [question for question in questions if ("gold2" in question) is needs_two]
        for weight in WEIGHTS:
            results = (_retrieve(d3, question["question"], prepared, weight, DEPTH) for question in asked)
            ends = [
                characters_needed([item.passage.text for item in result], question)
                for result, question in zip(results, asked, strict=True)
            ]
            rows[kind, len(asked), weight] = [float(np.mean([end <= limit for end in ends])) for limit in CHARACTERS]
    return rows
