"""CPU seconds of neural scoring beside those of another version of drillrank, in one run.

`python -m tests.benchmarks side_by_side --against CHECKOUT`: both versions score the same prompts with the same random
models, by turns, each in a process of its own on one thread, whose CPU time depends least on what else the machine
does. A ratio is that of the medians.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

from drillrank.likelihood import HuggingFaceModel
from drillrank.prompts import Evidence

from .data import read
from .neural_operations import QUESTION, passages_of, prompts_of
from .random_models import save_gpt2, save_t5

REPEATS = 3
SHAPES = ((save_t5, 100, 1000), (save_gpt2, 16, 0))
"""Models, how many passages of 100 to 200 tokens they read, and how many of 10 to 30."""
HERE = Path(__file__).parent
TOLERANCE = 1e-4  # nats a token

Prompts = Sequence[Sequence[str | list[str]]]
"""As `scoring_process` reads them."""


def main(against: str | None = None) -> None:
    """Print what each case takes with both versions.

    Args:
        against: Checkout of the other version; without one there is nothing to compare.
    """
    if against is None:
        print("side_by_side compares with a checkout of another version: name it by --against.")
        return
    table = Table("model", "case", "prompts", "here: s", "there: s", "ratio", title=f"CPU seconds, and of {against}")
    with TemporaryDirectory() as folder:
        for save, count, short in SHAPES:
            place = save(Path(folder), [passage["text"] for passage in read("rerank/squad_passages")])
            for case, prompts, (here, there) in _measured(place, count, short, (HERE.parents[1], Path(against))):
                table.add_row(
                    *(Path(place).name, case, str(len(prompts))), *(f"{n:.2f}" for n in (here, there, here / there))
                )
            table.add_section()
    Console(width=120).print(table)


def _measured(
    place: str, count: int, short: int, checkouts: Sequence[Path]
) -> list[tuple[str, Prompts, tuple[float, ...]]]:
    """Each case, its prompts, and the median CPU seconds of each version."""
    found = []
    children = [_start(place, checkout) for checkout in checkouts]
    for case, prompts in _cases(place, count, short).items():
        runs = [[_ask(child, prompts) for child in children] for _ in range(REPEATS + 1)][1:]  # the first one warms up
        for one, other in zip(*(scores for _, scores in runs[0]), strict=True):
            if abs(one - other) > TOLERANCE:
                raise AssertionError(f"{case}: a score is {one}, and {other} in the other version.")
        found.append(
            (case, prompts, tuple(median(seconds for seconds, _ in by_one) for by_one in zip(*runs, strict=True)))
        )
    for child in children:
        child.communicate()
    return found


def _cases(place: str, count: int, short: int) -> dict[str, Prompts]:
    model = HuggingFaceModel(place, dtype="float32")
    texts = [passage["text"] for passage in read("rerank/squad_passages")]
    cases = dict(prompts_of(model, passages_of(texts, model.engine.tokenizer, count, (100, 200)), texts))
    if short:
        few = prompts_of(model, passages_of(texts, model.engine.tokenizer, short, (10, 30)), texts)
        cases[f"{short} short passages"] = few["one instruction"]
    return {
        case: [[[part.text] if isinstance(part, Evidence) else part for part in prompt] for prompt in prompts]
        for case, prompts in cases.items()
    }


def _start(place: str, checkout: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(HERE / "scoring_process.py"), place, QUESTION],
        env=os.environ | {"PYTHONPATH": str(checkout / "shared"), "OMP_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _ask(child: subprocess.Popen[str], prompts: Prompts) -> tuple[float, list[float]]:
    assert child.stdin is not None
    assert child.stdout is not None
    print(json.dumps(prompts), file=child.stdin, flush=True)
    seconds, scores = json.loads(child.stdout.readline())
    return seconds, scores
