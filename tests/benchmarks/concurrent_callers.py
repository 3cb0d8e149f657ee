"""Many users at once: callers of one model that share its batches, beside callers who take turns of their own.

Each caller is a thread that ranks 20 passages, again and again. A randomly initialised model of flan-t5-small's shape;
speed does not depend on what the weights say.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import quantiles
from time import perf_counter

import numpy as np
from rich.console import Console
from rich.table import Table

from drillrank import UPR, Ranked
from drillrank.likelihood import HuggingFaceModel

from . import random_models
from .data import read

CALLERS = (1, 4, 16, 64)
PASSAGES, WORDS = 20, 8
CALLS = 16  # of all callers together in each round; one each, if there are more callers
ROUNDS = 3

Rank = Callable[[str, Sequence[str]], Sequence[Ranked]]


def main() -> None:
    """Print throughput and waiting times for each number of callers."""
    texts = [passage["text"] for passage in read("rerank/squad_passages")]
    with tempfile.TemporaryDirectory() as folder:
        model = HuggingFaceModel(random_models.save_t5(Path(folder), texts), dtype="float32")
        _compare(model, [" ".join(text.split()[:WORDS]) for text in texts])


def _compare(model: HuggingFaceModel, texts: list[str]) -> None:
    rank = UPR(model).rank
    lock = threading.Lock()

    def one_by_one(question: str, passages: Sequence[str]) -> Sequence[Ranked]:
        with lock:
            return rank(question, passages)

    jobs = [
        (f"who wrote the {number}th book", [texts[(number * PASSAGES + i) % len(texts)] for i in range(PASSAGES)])
        for number in range(max(CALLERS))
    ]
    expected = [_scores(one_by_one(*job)) for job in jobs]
    table = Table(
        *("callers", "variant", "calls/s", "times one by one", "p50 ms", "p99 ms", "furthest score"),
        title=f"{PASSAGES} passages of at most {WORDS} words a call",
    )
    for callers in CALLERS:
        some = jobs[: max(CALLS, callers)]
        rounds = {"one by one": [], "shared": []}
        for _ in range(ROUNDS):
            for name, variant in (("one by one", one_by_one), ("shared", rank)):
                rounds[name].append(_round(variant, some, callers))
        base = _median_seconds(rounds["one by one"])
        for name, measured in rounds.items():
            seconds = _median_seconds(measured)
            waits = [wait for _, waits, _ in measured for wait in waits]
            cuts = quantiles(waits, n=100)
            far = max(
                np.abs(np.subtract(one, other)).max()
                for _, _, scores in measured
                for one, other in zip(scores, expected, strict=False)
            )
            table.add_row(
                *(str(callers), name, f"{len(some) / seconds:.1f}", f"{base / seconds:.2f}"),
                *(f"{cuts[49] * 1000:.0f}", f"{cuts[98] * 1000:.0f}", f"{far:.0e}"),
            )
    Console(width=110).print(table)


def _round(variant: Rank, jobs: Sequence[tuple[str, list[str]]], callers: int) -> tuple[float, list[float], list]:
    """Seconds of the round, the time that each call took, and its scores in the order of its passages."""

    def timed(job: tuple[str, list[str]]) -> tuple[float, list[float]]:
        started = perf_counter()
        ranking = variant(*job)
        return perf_counter() - started, _scores(ranking)

    started = perf_counter()
    with ThreadPoolExecutor(callers) as threads:
        done = list(threads.map(timed, jobs))
    return perf_counter() - started, [wait for wait, _ in done], [scores for _, scores in done]


def _scores(ranking: Sequence[Ranked]) -> list[float]:
    return [item.score for item in sorted(ranking, key=lambda item: item.details["position"])]


def _median_seconds(rounds: Sequence[tuple[float, list[float], list]]) -> float:
    return sorted(seconds for seconds, _, _ in rounds)[len(rounds) // 2]
