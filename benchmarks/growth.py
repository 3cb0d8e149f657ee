"""What something costs at growing sizes, each measurement in a process of its own, and the exponent of each cost."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.table import Table


def sizes_of(data: str) -> list[int]:
    """Sizes as they are given on the command line, with commas."""
    return [int(size) for size in data.split(",")]


def print_growth(title: str, module: str, ways: Sequence[str], sizes: Sequence[int], asked: int) -> None:
    """Run `module` with a way, a size and a number of questions; it prints its costs as JSON.

    Growth is the slope of the logarithms by least squares: 1 is linear. What is measured is told as it goes on.
    """
    table = Table("what", "cost", *(f"{size:,}" for size in sizes), "growth", title=title)
    for way in ways:
        measured = [_apart(module, way, size, asked) for size in sizes]
        for cost in measured[0]:
            row = [one[cost] for one in measured]
            if all(row):
                growth = np.polyfit(np.log(sizes), np.log(row), 1)[0] if len(sizes) > 1 else float("nan")
                table.add_row(way, cost, *(f"{value:,.1f}" for value in row), f"{growth:.2f}")
    Console().print(table)


def _apart(module: str, way: str, size: int, asked: int) -> dict[str, float]:
    run = [sys.executable, "-m", module, way, str(size), str(asked)]
    told: dict[str, float] = json.loads(subprocess.run(run, check=True, stdout=subprocess.PIPE).stdout)
    print(f"{way}, {size:,}:", ", ".join(f"{cost} {value:,.1f}" for cost, value in told.items()), file=sys.stderr)
    return told
