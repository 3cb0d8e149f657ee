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
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

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
SLOWEST = 1.05  # ratio of processor time

Rows = dict[tuple[str, str], Any]
"""Values by case and dtype."""


def main(data: str, questions: int | None = None) -> None:
    """Print a table with a row for each shape, case and dtype."""
    texts = [passage["text"] for passage in read("rerank/squad_passages")]
    table = Table(
        *("model", "prompts", "dtype", "operations, ratio", "earlier, CPU s", "now, CPU s", "ratio", "least ratio"),
        title=f"This checkout over {Path(data).name}: one thread each, medians of {REPEATS} pairs",
    )
    slower = []
    with tempfile.TemporaryDirectory() as folder:
        for save, n_passages in SAVE.items():
            name = save(Path(folder), texts)
            rows = _compare(Path(data).resolve(), name, min(n_passages, questions or n_passages))
            for (case, dtype), (operations, earlier, now) in rows.items():
                ratio = median(one / other for one, other in zip(now, earlier, strict=True))
                least = min(now) / min(earlier)
                if least > SLOWEST:
                    slower.append(f"{Path(name).name}, {case}, {dtype}")
                figures = (f"{operations:.4f}", f"{median(earlier):.2f}", f"{median(now):.2f}", f"{ratio:.3f}")
                table.add_row(Path(name).name, case, dtype, *figures, f"{least:.3f}")
            table.add_section()
    table.caption = f"Least ratio: fastest of this checkout over fastest of the earlier one. Above {SLOWEST}: " + (
        "; ".join(slower) or "none."
    )
    Console(width=140).print(table)


def _compare(other: Path, model: str, n_passages: int) -> dict[tuple[str, str], tuple[float, list[float], list[float]]]:
    """Return the ratio of operations and the seconds of both checkouts, by case and dtype."""
    with ExitStack() as stack:
        earlier, now = (stack.enter_context(_worker(root, model, n_passages)) for root in (other, ROOT))
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
        key: (counts[key] / counts_before[key], [one[key] for one, _ in seconds], [one[key] for _, one in seconds])
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
