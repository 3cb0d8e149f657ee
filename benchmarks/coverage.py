"""Coverage: how many passages keep the evidence of 90 % of questions, over 200 random splits.

Half of the questions calibrate `Coverage(.9)`, the other half measures it: the share of questions whose evidence is
kept, of those that have it among the 50 candidates of BM25, and the mean number of passages. UPR ranks with its
defaults. The fixed `top_n` is the smallest one that keeps the evidence of as many of the measured questions. SQuAD and
NQ have one passage of evidence. HotpotQA has two: once one of them is enough, and once both are needed, for which
`Coverage` was not made.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from drillrank import UPR, Passage
from drillrank.coverage import Coverage
from drillrank.vectors import BM25Index, top

from .data import drawn, multihop_pool, read, rerank_pool

SHARE, SPLITS, CANDIDATES = 0.9, 200, 50
QUESTIONS = 500  # of each set

Ranked = tuple[npt.NDArray[np.float64], list[int]]
"""Scores of the candidates, best first, and the indices of the gold passages among them."""


def main(questions: int = QUESTIONS) -> None:
    """Print the table."""
    sets: dict[str, tuple[list[Passage], list[dict[str, Any]]]] = {
        "SQuAD": (rerank_pool("squad"), drawn("squad", questions)),
        "NQ": (rerank_pool("nq"), drawn("nq", questions)),
        "HotpotQA": (multihop_pool("hotpotqa"), read("multihop/hotpotqa")[:questions]),
    }
    table = Table(
        "set", "questions", "share kept", "passages", "fixed top_n", title=f"Coverage({SHARE}), {SPLITS} splits"
    )
    for name, (pool, rows) in sets.items():
        rankings = list(_rank(pool, rows))
        for needed in ("one", "both") if name == "HotpotQA" else ("one",):
            usable = [
                (scores, _needed_index(gold, needed)) for scores, gold in rankings if len(gold) == 2 or needed == "one"
            ]
            usable = [(scores, index) for scores, index in usable if index is not None]
            kept, passages, fixed = np.mean(list(_measure_splits(usable)), axis=0)
            label = f"{name}, {needed} of two" if name == "HotpotQA" else name
            table.add_row(label, str(len(usable)), f"{kept:.3f}", f"{passages:.2f}", f"{fixed:.2f}")
    Console(width=100).print(table)


def _rank(pool: list[Passage], rows: list[dict[str, Any]]) -> Iterator[Ranked]:
    bm25, upr = BM25Index([passage.titled_text for passage in pool]), UPR()
    for row in rows:
        scores = bm25.scores(row["question"])
        indices = top(scores, CANDIDATES)
        ranking = upr.rank(row["question"], [pool[index] for index in indices], scores=[scores[i] for i in indices])
        gold = row["gold"] if isinstance(row["gold"], list) else [row["gold"]]
        ids = [item.passage.id for item in ranking]
        yield np.array([item.score for item in ranking]), [ids.index(id_) for id_ in gold if id_ in ids]


def _needed_index(gold: list[int], needed: str) -> int | None:
    if not gold:
        return None
    return max(gold) if needed == "both" else min(gold)


def _measure_splits(usable: list[tuple[npt.NDArray[np.float64], int]]) -> Iterator[tuple[float, float, float]]:
    """Yield the share kept, the mean number of passages and the fixed number with the same share, of each split."""
    rng = np.random.default_rng(63)
    for _ in range(SPLITS):
        order = rng.permutation(len(usable)).tolist()
        half = len(order) // 2
        calibration, measured = [usable[i] for i in order[:half]], [usable[i] for i in order[half:]]
        coverage = Coverage.calibrate(SHARE, [float(scores[0] - scores[index]) for scores, index in calibration])
        counts = [coverage.count(scores.tolist()) for scores, _ in measured]
        kept = float(np.mean([index < count for count, (_, index) in zip(counts, measured, strict=True)]))
        ranks = sorted(index + 1 for _, index in measured)
        yield kept, float(np.mean(counts)), float(ranks[max(round(kept * len(ranks)) - 1, 0)])
