"""Neural scoring of this checkout over that of an earlier one: operations, which do not vary, and processor time.

`--data` is a checkout of an earlier commit (`git worktree add ../earlier COMMIT`). Each of both has a process with one
thread, and they take turns. The rows are drillrank's rows of `neural_speed`. Above 1, this checkout is slower.
`--questions` limits the passages of each model.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any, NamedTuple

import torch
from rich.console import Console
from rich.table import Table

from drillrank.likelihood import HuggingFaceModel, Request

from .data import read
from .neural_operations import QUESTION, executed_by, passages_of, prompts_of
from .neural_speed import LENGTHS, SAVE

ROOT = Path(__file__).resolve().parents[1]
DTYPES = ("float32", "bfloat16")
REPEATS = 5

Rows = dict[tuple[str, str], Any]
"""Values by case and dtype."""


class Row(NamedTuple):
    """Costs of one case in one dtype.

    Attributes:
        operations: Operations of this checkout over those of the earlier one.
        earlier: Seconds of the earlier checkout.
        now: Seconds of this checkout, in the same order.
    """

    operations: float
    earlier: list[float]
    now: list[float]


def main(data: str, questions: int | None = None) -> None:
    """Print a table for each shape, with a row for each case and dtype."""
    texts = [passage["text"] for passage in read("rerank/squad_passages")]
    with tempfile.TemporaryDirectory() as folder:
        for save, n_passages in SAVE.items():
            name = save(Path(folder), texts)
            n_read = min(n_passages, questions or n_passages)
            Console(width=120).print(
                _tabulate(f"{Path(name).name}, {n_read} passages", _compare(Path(data), name, n_read))
            )


def _tabulate(title: str, rows: Mapping[tuple[str, str], Row]) -> Table:
    table = Table(
        "prompts", "dtype", "operations", "earlier, CPU s", "now, CPU s", "ratio", "of the least", title=title
    )
    for (case, dtype), row in rows.items():
        ratio = median(now / earlier for earlier, now in zip(row.earlier, row.now, strict=True))
        seconds = (f"{median(row.earlier):.2f}", f"{median(row.now):.2f}")
        least = min(row.now) / min(row.earlier)
        table.add_row(case, dtype, f"{row.operations:.4f}", *seconds, f"{ratio:.3f}", f"{least:.3f}")
    table.caption = (
        f"Now over earlier, one thread each: operations, and processor time, median and least of {REPEATS} pairs."
    )
    return table


def _compare(other: Path, model: str, n_passages: int) -> dict[tuple[str, str], Row]:
    """Return what both checkouts cost, by case and dtype."""
    with ExitStack() as stack:
        earlier, now = (stack.enter_context(_worker(root, model, n_passages)) for root in (other.resolve(), ROOT))
        counts_before, counts = earlier("count"), now("count")
        seconds: list[tuple[Rows, Rows]] = []
        for repeat in range(REPEATS + 1):
            if repeat % 2:
                of_now, of_earlier = now("time"), earlier("time")
            else:
                of_earlier, of_now = earlier("time"), now("time")
            seconds.append((of_earlier, of_now))
    del seconds[0]  # the first round warms up
    return {
        key: Row(counts[key] / counts_before[key], [one[key] for one, _ in seconds], [one[key] for _, one in seconds])
        for key in counts
    }


@contextmanager
def _worker(root: Path, model: str, n_passages: int) -> Iterator[Callable[[str], Rows]]:
    """Start a process that imports drillrank from a checkout, and yield a function that asks it for all rows."""
    environment = os.environ | {"PYTHONPATH": f"{root / 'shared'}{os.pathsep}{ROOT}", "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", __name__, str(root), model, str(n_passages)],
        env=environment,
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def ask(command: str) -> Rows:
        assert process.stdin
        assert process.stdout
        process.stdin.write(f"{command}\n")
        process.stdin.flush()
        return {(case, dtype): value for case, dtype, value in json.loads(process.stdout.readline())}

    try:
        yield ask
    finally:
        process.kill()
        process.wait()


def serve(root: str, folder: str, n_passages: str) -> None:
    """Answer commands from standard input: `count` with operations, `time` with seconds of processor time."""
    import drillrank

    if not Path(drillrank.__file__).is_relative_to(root):
        raise SystemExit(f"drillrank is imported from {drillrank.__file__} and not from {root}.")
    torch.set_num_threads(1)
    texts = [passage["text"] for passage in read("rerank/squad_passages")]
    models = {dtype: HuggingFaceModel(folder, dtype=dtype) for dtype in DTYPES}
    tokenizer = models[DTYPES[0]].engine.tokenizer
    passages = passages_of(texts, tokenizer, int(n_passages), LENGTHS)
    cases = prompts_of(models[DTYPES[0]], passages, texts)
    runs = {
        (case, dtype): (model, partial(model.log_likelihood, [Request(prompt, QUESTION) for prompt in prompts]))
        for case, prompts in cases.items()
        for dtype, model in models.items()
    }
    measures: dict[str, Callable[[HuggingFaceModel, Callable[[], Any]], float]] = {"count": executed_by, "time": _time}
    for line in sys.stdin:
        measure = measures[line.strip()]
        print(json.dumps([[*key, measure(model, run)] for key, (model, run) in runs.items()]), flush=True)


def _time(_: HuggingFaceModel, run: Callable[[], Any]) -> float:
    gc.collect()
    started = process_time()
    run()
    return process_time() - started


if __name__ == "__main__":
    serve(*sys.argv[1:])
