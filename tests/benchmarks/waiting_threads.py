"""How threads of torch wait for each other: what it costs alone, and beside a process that computes on one core.

`HuggingFaceModel` lets them sleep (`OMP_WAIT_POLICY=passive`) unless the user has chosen. The policy is read as torch
is loaded, so each way runs in a process of its own, in turn.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path
from statistics import median
from time import perf_counter

from rich.console import Console
from rich.table import Table

from drillrank.likelihood import Request, load_language_model
from drillrank.prompts import Evidence
from drillrank.rerank.upr import UPR_PROMPT

from .data import read
from .measure import busy_core

PASSAGES, WORDS = 12, 180
ROUNDS, REPEATS = 3, 5
DTYPES = ("float32", "bfloat16")
WAYS: dict[str, dict[str, str]] = {
    "spinning, as torch comes": {"GOMP_SPINCOUNT": "300000"},
    "sleeping, as drillrank loads it": {},
    "one thread": {"OMP_NUM_THREADS": "1"},
}


def main() -> None:
    """Print median seconds of each way, idle and busy."""
    from .random_models import save_t5

    texts = [passage["text"] for passage in read("rerank/squad_passages")]
    seconds: dict[tuple[str, bool, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        saved = save_t5(Path(folder), texts)
        for _ in range(ROUNDS):
            for busy in (False, True):
                for way, chosen in WAYS.items():
                    with busy_core() if busy else nullcontext():
                        for dtype, found in _in_a_process(saved, chosen).items():
                            seconds.setdefault((way, busy, dtype), []).append(found)
    table = Table(
        *("threads", "dtype", "s, other core idle", "s, other core busy", "busy over idle"),
        title=f"T5-small's shape, {PASSAGES} passages of {WORDS} words, {os.cpu_count()} cores; medians of {ROUNDS} "
        "processes in turn",
    )
    for way in WAYS:
        for dtype in DTYPES:
            idle, busy = (median(seconds[way, state, dtype]) for state in (False, True))
            table.add_row(way, dtype, f"{idle:.2f}", f"{busy:.2f}", f"{busy / idle:.1f}x")
        table.add_section()
    Console(width=120).print(table)


def _in_a_process(saved: str, chosen: dict[str, str]) -> dict[str, float]:
    unchosen = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_", "KMP_"))}
    command = [sys.executable, "-m", "tests.benchmarks.waiting_threads", saved]
    done = subprocess.run(command, env=unchosen | chosen, stdout=subprocess.PIPE, check=True)
    timed: dict[str, float] = json.loads(done.stdout)
    return timed


def _timed(saved: str) -> dict[str, float]:
    """Median seconds of scoring the passages, by dtype; the first time does not count."""
    words = " ".join(passage["text"] for passage in read("rerank/squad_passages")).split()
    passages = [" ".join(words[WORDS * number :][:WORDS]) for number in range(PASSAGES)]
    before, after = UPR_PROMPT.split("{title} {text}")
    requests = [Request((before, Evidence(text), after), "Who wrote the book?") for text in passages]
    found = {}
    for dtype in DTYPES:
        model = load_language_model(f"hf:{saved}", dtype=dtype)
        times = []
        for _ in range(REPEATS + 1):
            started = perf_counter()
            model.log_likelihood(requests)
            times.append(perf_counter() - started)
        found[dtype] = median(times[1:])
    return found


if __name__ == "__main__":
    print(json.dumps(_timed(sys.argv[1])))
