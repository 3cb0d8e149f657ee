"""Neural scoring side by side: the papers' loop, one like lm-evaluation-harness's, and drillrank.

Models are randomly initialised in real shapes; speed does not depend on what the weights say. Seconds depend on what
else the machine does; operations over the fewest possible do not.
"""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from scipy.stats import kendalltau

from drillrank.likelihood import HuggingFaceModel, Request
from drillrank.prompts import prompt_text

from . import random_models
from .data import read
from .measure import busy_core
from .neural_operations import QUESTION, executed_by, fewest, passages_of, prompts_of
from .plain_loops import examples_of, harness_like_loop, reference_loop

LENGTHS = (100, 200)  # tokens of a passage
REPEATS = 3


_PLAIN = "papers' loop, float32"

SAVE = {random_models.save_t5: 100, random_models.save_gpt2: 16, random_models.save_llama: 16}  # and passages


def main() -> None:
    """Print one table per shape, for the slower ones of so many passages as are one shard."""
    texts = [passage["text"] for passage in read("rerank/squad_passages")]
    with tempfile.TemporaryDirectory() as folder:
        for save, passages in SAVE.items():
            _compare(save(Path(folder), texts), texts, passages)


def _compare(folder: str, texts: list[str], count: int) -> None:
    models = {dtype: HuggingFaceModel(folder, dtype=dtype) for dtype in ("float32", "bfloat16")}
    tokenizer = models["float32"].engine.tokenizer
    network = models["float32"].engine.model
    passages = passages_of(texts, tokenizer, count, LENGTHS)
    lengths = [len(tokenizer(passage).ids) for passage in passages]
    table = Table(
        *("prompts", "variant", "operations", "s", "ratio", "of peak", "busy: s", "ratio", "of peak"),
        title=f"{Path(folder).name}: {count} passages of {min(lengths)}-{max(lengths)} tokens, a question of "
        f"{len(tokenizer(QUESTION).ids)}; {torch.get_num_threads()} threads, {models['float32'].engine.device}",
    )
    notes = []
    once: dict[str, float] = {}
    for case, prompts in prompts_of(models["float32"], passages, texts).items():
        requests = [Request(prompt, QUESTION) for prompt in prompts]
        examples = examples_of(models["float32"], [(prompt_text(prompt), QUESTION) for prompt in prompts])
        variants: dict[str, tuple[str, Callable[[], Any]]] = {
            _PLAIN: ("float32", partial(reference_loop, network, examples)),
            "harness-like loop, float32": ("float32", partial(harness_like_loop, network, examples)),
            "drillrank, float32": ("float32", partial(models["float32"].log_likelihood, requests)),
            "drillrank, bfloat16": ("bfloat16", partial(models["bfloat16"].log_likelihood, requests)),
        }
        if once:
            del variants["harness-like loop, float32"]
        rounds = [_timed({name: run for name, (_, run) in variants.items()})]
        with busy_core():
            rounds.append(_timed({name: run for name, (_, run) in variants.items()}))
        least = fewest(network, examples)
        for name, (dtype, run) in variants.items():
            operations = executed_by(models[dtype], run)
            row = [case, name, f"{operations / least:.3f}"]
            for seconds, peaks in rounds:
                share = operations / seconds[name] / 1e9 / peaks[dtype]
                row += [f"{seconds[name]:.2f}", f"{seconds[_PLAIN] / seconds[name]:.1f}x", f"{share:.0%}"]
            table.add_row(*row)
            if case == "five instructions" and name in once:
                notes.append(f"Five instructions over one: {name} {rounds[0][0][name] / once[name]:.2f}.")
            once.setdefault(name, rounds[0][0][name])
        table.add_section()
        if case == "one instruction":
            scores = {dtype: [item.mean for item in model.log_likelihood(requests)] for dtype, model in models.items()}
            plain = [
                total / len(e.target) for total, e in zip(reference_loop(network, examples), examples, strict=True)
            ]
            error = max(abs(a - b) for a, b in zip(plain, scores["float32"], strict=True))
            tau = kendalltau(scores["float32"], scores["bfloat16"]).statistic
            ties = {dtype: count - len(set(found)) for dtype, found in scores.items()}
            notes.append(
                f"float32 differs from the papers' loop by at most {error:.1e} a token; bfloat16 against float32: "
                f"Kendall tau {tau:.4f}, {ties['bfloat16']} ties ({ties['float32']} in float32)."
            )
    table.caption = f"{' '.join(notes)} Peaks measured in the same rounds, the last ones: " + ", ".join(
        f"{dtype} {rounds[0][1][dtype]:.0f} GFLOP/s, busy {rounds[1][1][dtype]:.0f}" for dtype in models
    )
    Console(width=120).print(table)


def _timed(variants: dict[str, Callable[[], Any]]) -> tuple[dict[str, float], dict[str, float]]:
    """Median seconds of the variants, which take turns, and the median of the peaks measured between them."""
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    peaks: dict[str, list[float]] = {"float32": [], "bfloat16": []}
    with torch.inference_mode():
        for _ in range(REPEATS):
            for name, run in variants.items():
                gc.collect()
                started = perf_counter()
                run()
                seconds[name].append(perf_counter() - started)
            for dtype, found in peaks.items():
                found.append(_peak(getattr(torch, dtype)))
    return {name: median(times) for name, times in seconds.items()}, {d: median(found) for d, found in peaks.items()}


def _peak(dtype: torch.dtype) -> float:
    """GFLOP/s of a large square matrix product, the best of five."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    size = 8192 if device == "cuda" else 2048
    one, other = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    best = 0.0
    for _ in range(5):
        started = perf_counter()
        (one @ other)[0, 0].item()
        best = max(best, 2 * size**3 / (perf_counter() - started) / 1e9)
    return best
