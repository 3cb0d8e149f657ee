"""CTranslate2 beside torch on a CPU: seconds with the other core idle and with it busy, and what int8 does to scores.

A randomly initialised model of flan-t5-small's shape; speed does not depend on what the weights say. Its scores hardly
differ between passages, so that the order under int8 is a hard case.
"""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import kendalltau

from drillrank.likelihood import LanguageModel, Request, load_language_model
from drillrank.likelihood.conversion import convert
from drillrank.prompts import UPR_PROMPT, Evidence

from . import random_models
from .busy_core import busy_core
from .data import read

PASSAGES, PASSAGE_TOKENS, TARGET_TOKENS = 12, 240, 31
ROUNDS = 6


def main(passages: int = PASSAGES) -> None:
    """Print seconds of each variant, which take turns, and the order of its scores against float32."""
    texts = [passage["text"] for passage in read("rerank/squad_passages")]
    with tempfile.TemporaryDirectory() as folder:
        saved = random_models.save_t5(Path(folder), texts)
        models = {
            "hf: float32": load_language_model(f"hf:{saved}", dtype="float32"),
            "hf: bfloat16": load_language_model(f"hf:{saved}", dtype="bfloat16"),
            **{
                f"ct2: {kind}": load_language_model(convert(saved, f"{folder}/{kind}", quantization=kind))
                for kind in ("float32", "int8")
            },
        }
        _compare(models, _requests(models["hf: float32"], texts, passages))


def _requests(model: LanguageModel, texts: Sequence[str], count: int) -> list[Request]:
    before, after = UPR_PROMPT.split("{title} {text}")
    joined = " ".join(texts)
    passages = [model.first_tokens(joined[1500 * number :][:3000], PASSAGE_TOKENS) for number in range(count)]
    question = model.first_tokens(texts[-1], TARGET_TOKENS)
    return [Request((before, Evidence(passage), after), question) for passage in passages]


def _compare(models: Mapping[str, LanguageModel], requests: Sequence[Request]) -> None:
    scores = {name: [item.mean for item in model.log_likelihood(requests)] for name, model in models.items()}
    idle = _timed(models, requests)
    with busy_core():
        busy = _timed(models, requests)
    table = Table(
        *("model", "s, other core idle", "ratio", "s, other core busy", "ratio", "Kendall tau", "furthest score"),
        title=f"{len(requests)} passages of {PASSAGE_TOKENS} tokens, a question of {TARGET_TOKENS}; {ROUNDS} rounds",
    )
    exact = scores["hf: float32"]
    for name, found in scores.items():
        table.add_row(
            name,
            *(f"{idle[name]:.2f}", f"{idle['hf: float32'] / idle[name]:.1f}x"),
            *(f"{busy[name]:.2f}", f"{busy['hf: float32'] / busy[name]:.1f}x"),
            *(f"{kendalltau(exact, found).statistic:.3f}", f"{np.abs(np.subtract(exact, found)).max():.0e}"),
        )
    table.caption = f"The float32 scores spread over {np.ptp(exact):.2f} nats a token."
    Console(width=120).print(table)


def _timed(models: Mapping[str, LanguageModel], requests: Sequence[Request]) -> dict[str, float]:
    """Median seconds of the models, which take turns; one round of warm-up is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in models}
    for number in range(ROUNDS + 1):
        for name, model in models.items():
            gc.collect()
            started = perf_counter()
            model.log_likelihood(requests)
            if number:
                seconds[name].append(perf_counter() - started)
    return {name: median(times) for name, times in seconds.items()}
