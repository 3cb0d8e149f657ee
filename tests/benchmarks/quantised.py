"""CTranslate2 beside torch on a CPU: seconds with the other core idle and with it busy, and what int8 does to scores.

Seconds come from a randomly initialised model of flan-t5-small's shape; speed does not depend on what the weights say.
Its scores hardly differ between passages, so the order is also looked at under a small Llama that was trained to ask.
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

from drillrank import UPR, Passage
from drillrank.likelihood import LanguageModel, Request, load_language_model
from drillrank.likelihood.ct2 import convert
from drillrank.prompts import Evidence
from drillrank.rerank.upr import UPR_PROMPT

from . import random_models
from .data import read
from .measure import busy_core
from .trained_decoder import held_out, train

PASSAGES, PASSAGE_TOKENS, TARGET_TOKENS = 12, 240, 31
ROUNDS = 6
QUESTIONS, CANDIDATES = 100, 20


def main(passages: int = PASSAGES, questions: int = QUESTIONS) -> None:
    """Print seconds of each variant, which take turns, and the order of its scores against float32."""
    texts = [passage["text"] for passage in read("rerank/squad_passages")]
    with tempfile.TemporaryDirectory() as folder:
        models = _variants(random_models.save_t5(Path(folder), texts), folder)
        _compare(models, _requests(models["hf: float32"], texts, passages))
    with tempfile.TemporaryDirectory() as folder:
        _compare_orders(_variants(train(Path(folder) / "trained"), folder), questions)


def _variants(saved: str, folder: str) -> dict[str, LanguageModel]:
    return {
        "hf: float32": load_language_model(f"hf:{saved}", dtype="float32"),
        "hf: bfloat16": load_language_model(f"hf:{saved}", dtype="bfloat16"),
        **{
            f"ct2: {kind}": load_language_model(convert(saved, f"{folder}/{kind}", quantization=kind))
            for kind in ("float32", "int8")
        },
    }


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


def _compare_orders(models: Mapping[str, LanguageModel], count: int) -> None:
    """The order of BM25's candidates by the trained model, as each variant computes it."""
    passages = {item["id"]: Passage(item["text"], id=item["id"]) for item in read("rerank/squad_passages")}
    kept = {*held_out()}
    asked = [item for item in read("rerank/squad") if item["gold"][0] in kept][:count]
    candidates = [[passages[found] for found in item["bm25_top"][:CANDIDATES]] for item in asked]
    ranked = {
        name: [UPR(model).rank(item["question"], given) for item, given in zip(asked, candidates, strict=True)]
        for name, model in models.items()
    }
    scores = {
        name: np.array(
            [[r.score for r in sorted(ranking, key=lambda r: r.details["position"])] for ranking in rankings]
        )
        for name, rankings in ranked.items()
    }
    exact = scores["hf: float32"]
    table = Table(
        *("model", "Kendall tau", "lowest tau", "same first", "gold first", "furthest score"),
        title=f"A small Llama, trained to ask: {len(asked)} questions about passages it was not trained on, "
        f"{CANDIDATES} candidates each",
    )
    for name, found in scores.items():
        taus = [kendalltau(one, other).statistic for one, other in zip(exact, found, strict=True)]
        gold = [ranking[0].passage.id in item["gold"] for item, ranking in zip(asked, ranked[name], strict=True)]
        table.add_row(
            name,
            *(f"{np.mean(taus):.3f}", f"{min(taus):.3f}", f"{(exact.argmax(1) == found.argmax(1)).mean():.3f}"),
            *(f"{np.mean(gold):.3f}", f"{np.abs(exact - found).max():.0e}"),
        )
    table.caption = f"The float32 scores of a question spread over {np.ptp(exact, axis=1).mean():.2f} nats a token."
    Console(width=120).print(table)
