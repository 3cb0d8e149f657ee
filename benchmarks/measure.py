"""Side-by-side timing, where the variants take turns in one process, side-by-side quality, and a busy machine."""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
import numpy.typing as npt

_UNTIL_ORPHANED = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"


def medians(variants: dict[str, Callable[[], object]], repeats: int = 15) -> dict[str, float]:
    """Median seconds of each variant; one round of warm-up is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for repeat in range(repeats + 1):
        for name, run in variants.items():
            gc.collect()
            started = time.perf_counter()
            run()
            if repeat:
                seconds[name].append(time.perf_counter() - started)
    return {name: median(times) for name, times in seconds.items()}


def resident(name: str = "VmRSS") -> int:
    """Resident memory of this process in kB, now or, by the name VmHWM, at its peak; Linux only."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def bootstrap_interval(differences: npt.NDArray[Any], samples: int = 10_000, seed: int = 0) -> tuple[float, float]:
    """The 95 % interval of the mean of paired differences, one for each question, by resampling the questions."""
    values, counts = np.unique(differences, return_counts=True)
    drawn = np.random.default_rng(seed).multinomial(len(differences), counts / len(differences), size=samples)
    low, high = np.quantile(drawn @ values / len(differences), [0.025, 0.975])
    return float(low), float(high)


def mean_of(measure: Callable[..., float], rankings: Any, asked: Sequence[dict[str, Any]], k: int) -> float:
    """A measure of rankings of ids, mean over the questions."""
    return mean(measure(ids, one["gold"], k) for ids, one in zip(rankings, asked, strict=True))


def gain(differences: npt.NDArray[Any]) -> str:
    """The mean of paired differences with its interval."""
    low, high = bootstrap_interval(differences)
    return f"{np.mean(differences):+.3f} [{low:+.3f}, {high:+.3f}]"


@contextmanager
def busy_core() -> Iterator[None]:
    """Another process computes all the time."""
    process = subprocess.Popen([sys.executable, "-c", _UNTIL_ORPHANED])
    try:
        yield
    finally:
        process.kill()
        process.wait()
