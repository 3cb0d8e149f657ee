"""Side-by-side timing: the variants take turns in one process, and medians are compared."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median


def medians(variants: dict[str, Callable[[], object]], repeats: int = 15) -> dict[str, float]:
    """Median seconds of each variant; one round of warm-up is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for repeat in range(repeats + 1):
        for name, run in variants.items():
            started = time.perf_counter()
            run()
            if repeat:
                seconds[name].append(time.perf_counter() - started)
    return {name: median(times) for name, times in seconds.items()}
