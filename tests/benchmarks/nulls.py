"""How often chance is taken for a difference: comparisons of systems that are alike, and grids where no setting helps.

Of `--questions` each only so many are compared (10,000 by default) and so many grids tuned (a fifth of that).
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from drillrank.evaluation.statistics import Floats, difference, randomisation_test, verdict
from drillrank.evaluation.tuning import adopts, forward_validated

Draw = Callable[[np.random.Generator, tuple[int, ...]], Floats]
VALUES: dict[str, Draw] = {
    "hits": lambda chance, shape: chance.integers(0, 2, shape).astype(float),
    "rare hits": lambda chance, shape: (chance.random(shape) < 0.1).astype(float),
    "reciprocal ranks": lambda chance, shape: 1.0 / chance.integers(1, 11, shape),
    "shares": lambda chance, shape: chance.random(shape),
    "shares, alike by question": lambda chance, shape: 0.8 * chance.random(shape[-1]) + 0.2 * chance.random(shape),
}
GRIDS = {"3 + 3 settings": (3, 3), "UPR's (5 + 8)": (5, 8), "40 + 40": (40, 40)}


def main(questions: int = 10_000) -> None:
    console = Console(width=120)
    table = Table(
        "values", "n = 5", "n = 20", "n = 100", title=f"Called better or worse, of {questions:,} null comparisons"
    )
    for values in VALUES:
        shares = (null_comparisons(n, questions, values) / questions for n in (5, 20, 100))
        table.add_row(values, *(f"{share:.2%}" for share in shares))
    console.print(table)
    grids = max(questions // 5, 1)
    table = Table(
        "grid",
        "values",
        "n = 7",
        "n = 20",
        "n = 100",
        title=f"Something adopted, of {grids:,} grids where nothing helps",
    )
    for grid, sizes in GRIDS.items():
        for values in VALUES:
            shares = (null_grids(n, grids, values, sizes) / grids for n in (7, 20, 100))
            table.add_row(grid, values, *(f"{share:.2%}" for share in shares))
    console.print(table)
    table = Table("differences", "peak MB", "seconds", title="Interval and test of differences that are all different")
    for n in (500, 5_000, 50_000):
        tracemalloc.start()
        started = time.perf_counter()
        difference(np.random.default_rng(0).normal(size=n))
        seconds, (_, peak) = time.perf_counter() - started, tracemalloc.get_traced_memory()
        tracemalloc.stop()
        table.add_row(f"{n:,}", f"{peak / 1e6:.1f}", f"{seconds:.2f}")
    console.print(table)


def null_comparisons(n: int, comparisons: int, values: str) -> int:
    """How many comparisons of two systems that are alike, by n questions each, call one better or worse."""
    chance = np.random.default_rng(n)
    called = 0
    for _ in range(comparisons):
        one, other = VALUES[values](chance, (2, n))
        called += verdict(float((one - other).mean()), randomisation_test(one - other)) != "cannot tell"
    return called


def null_grids(n: int, grids: int, values: str, sizes: tuple[int, int]) -> int:
    """How often `tune` would adopt something, where two settings have so many candidates and no effect."""
    chance = np.random.default_rng(n)
    adopted = 0
    for _ in range(grids):
        table = VALUES[values](chance, (sizes[0] + 1, sizes[1] + 1, n))
        parts = np.array_split(chance.permutation(n), min(n, 10))
        steps: list[list[dict[str, Any]]] = [
            [{name: at + 1} for at in range(size)] for name, size in zip("ab", sizes, strict=True)
        ]
        _, best, changes = forward_validated(
            steps, parts, lambda found, table=table: table[found.get("a", 0), found.get("b", 0)], {}
        )
        adopted += adopts(best, difference(changes))
    return adopted
