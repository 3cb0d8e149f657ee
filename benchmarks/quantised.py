"""Two real models on a CPU: seconds of each way to compute by one and two threads, and what it does to ranks.

float32 and bfloat16 of torch, and a vLLM in float32 where DRILLRANK_VLLM_PYTHON names its Python.
Scores are compared with float32's over the first candidates of BM25 for NQ questions; seconds are those of one
question, the ways taking turns. Models lie below `DRILLRANK_MODELS`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from scipy.stats import kendalltau

from drillrank import UPR, Passage
from drillrank.likelihood import LanguageModel, load_language_model
from drillrank.vectors import Floats
from tests.integration.vllm import PYTHON, VLLM

from .data import read, rerank_pool
from .kept import MODELS, folder_of, named
from .measure import medians

QUESTIONS, CANDIDATES, ROUNDS, THREADS = 20, 20, 3, (2, 1)


def main(model: str = ",".join(MODELS), questions: int = QUESTIONS) -> None:
    pool = {passage.id: passage for passage in rerank_pool("nq")}
    asked = read("rerank/nq")[:questions]
    candidates = [[pool[id_] for id_ in item["bm25_top"][:CANDIDATES]] for item in asked]
    texts = [item["question"] for item in asked]
    gold = [[passage.id in item["gold"] for passage in given] for item, given in zip(asked, candidates, strict=True)]
    title = f"{len(asked)} questions of NQ, {CANDIDATES} candidates each; {CANDIDATES} passages timed, {ROUNDS} rounds"
    columns = ("s, 2 threads", "s, 1 thread", "Kendall tau", "lowest", "same first", "gold first", "furthest score")
    table = Table("model", "computed by", *columns, title=title)
    for name in named(model):
        saved = str(folder_of(name))
        with ExitStack() as stack:
            models = {
                "hf:, float32": load_language_model(f"hf:{saved}", dtype="float32"),
                "hf:, bfloat16": load_language_model(f"hf:{saved}", dtype="bfloat16"),
            }
            one = dict(models)  # a server keeps its threads
            if PYTHON:
                server = stack.enter_context(closing(VLLM(Path(saved))))
                server.wait()
                models["vLLM, float32"] = load_language_model(server.address, tokenizer=saved)
            scores = {way: _scores(lm, texts, candidates) for way, lm in models.items()}
            seconds = [
                _timed(some, texts[0], candidates[0], threads)
                for some, threads in zip((models, one), THREADS, strict=True)
            ]
        exact = scores["hf:, float32"]
        for way, found in scores.items():
            taus = [kendalltau(*pair).statistic for pair in zip(exact, found, strict=True)]
            same = [first.argmax() == other.argmax() for first, other in zip(exact, found, strict=True)]
            right = [marks[values.argmax()] for marks, values in zip(gold, found, strict=True)]
            figures = np.mean(taus), min(taus), np.mean(same), np.mean(right)
            furthest = max(np.abs(first - other).max() for first, other in zip(exact, found, strict=True))
            times = [f"{of_threads[way]:.2f}" if way in of_threads else "" for of_threads in seconds]
            table.add_row(name, way, *times, *(f"{figure:.3f}" for figure in figures), f"{furthest:.0e}")
    Console(width=150).print(table)


def _scores(lm: LanguageModel, texts: Sequence[str], candidates: Sequence[Sequence[Passage]]) -> list[Floats]:
    upr = UPR(lm)
    pairs = zip(texts, candidates, strict=True)
    return [np.array([found.mean for found in upr.likelihoods(text, given)]) for text, given in pairs]


def _timed(models: Mapping[str, LanguageModel], text: str, given: Sequence[Passage], threads: int) -> dict[str, float]:
    """Median seconds of a question; the models take turns, and a round of warm-up does not count."""
    torch.set_num_threads(threads)
    return medians({way: partial(UPR(lm).likelihoods, text, given) for way, lm in models.items()}, ROUNDS)
