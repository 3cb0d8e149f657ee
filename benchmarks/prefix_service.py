"""A service's day: 2,000 questions, ten candidates each, over 1,000 passages, with a prefix cache for a tenth of them.

The popularity of passages follows Zipf's law. Hit rates are those of the memory of the prefix cache itself, without a
model. Latency is measured on some questions in the middle of the day, when the cache contains what the questions
before them left there.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from drillrank import UPR, Passage
from drillrank.likelihood import HuggingFaceModel
from drillrank.likelihood.local import PrefixCacheOptions, make_sequences
from drillrank.likelihood.prefix_memory import INDEX_BYTES, PrefixMemory, StateLayout
from drillrank.likelihood.torch_prefixes import TorchPrefixes
from drillrank.vectors import Integers

from .data import read
from .kept import folder_of, named
from .neural_operations import passages_of

N_PASSAGES, N_QUESTIONS, N_CANDIDATES, SHARE = 1000, 2000, 10, 0.1
N_TIMED, N_TIMED_WITHOUT = 200, 20
PASSAGE_TOKENS, QUESTION_TOKENS = (100, 200), (8, 16)


def main(model: str = "smollm2", questions: int = N_TIMED) -> None:
    """Print hit rates, and a table of latencies for models below `DRILLRANK_MODELS`.

    Args:
        model: Names of models, with commas.
        questions: Number of questions whose latency is measured.
    """
    day = draw_day()
    rates = ", ".join(f"{name} {rate:.3f}" for name, rate in hit_rates(day).items())
    print(f"Hit rates of {day.size:,} candidates: {rates}.")
    table = Table("model", "cache", "questions", "median s", "p95 s")
    for name in named(model):
        _add_latencies(table, name, day, questions)
    Console(width=100).print(table)


def draw_day() -> Integers:
    """Return the candidates of each question, each once: [n_questions, n_candidates]."""
    generator = np.random.default_rng(0)
    popularity = 1 / np.arange(1, N_PASSAGES + 1)
    popularity /= popularity.sum()
    sizes = (N_PASSAGES, N_CANDIDATES)
    return np.array([generator.choice(*sizes, replace=False, p=popularity) for _ in range(N_QUESTIONS)])


def hit_rates(day: Integers) -> dict[str, float]:
    """Return hit rates of the prefix cache, one without bounds, and one that always has the most popular passages."""
    n_kept = int(N_PASSAGES * SHARE)
    return {
        f"for {n_kept} passages, the least recently used give way": float(np.mean(simulate_hits(day, n_kept))),
        f"for the {n_kept} most popular ones": float(np.mean(day < n_kept)),
        "without a bound": float(np.mean(simulate_hits(day, N_PASSAGES))),
    }


def simulate_hits(day: Integers, n_kept: int) -> list[bool]:
    """Return for each candidate whether the memory has it. A passage takes one row."""
    layout = StateLayout([torch.zeros(1, 1, 1, 8)], is_int8=False)
    memory = PrefixMemory(n_kept * (layout.token_bytes + INDEX_BYTES), layout, torch.device("cpu"))
    assert memory.n_rows == n_kept
    hits = []
    for candidates in day.tolist():
        keys = [one.to_bytes(8, "little") for one in candidates]
        missing = [key for key in keys if memory.find(key) is None]
        rows = [memory.reserve(1) for _ in missing]
        for key, own_rows in zip(missing, rows, strict=True):
            memory.add(key, own_rows)
        hits += [key not in missing for key in keys]
    return hits


def _add_latencies(table: Table, name: str, day: Integers, n_timed: int) -> None:
    model = HuggingFaceModel(str(folder_of(name)), prefix_cache="100 MB")
    engine, upr = model.engine, UPR(model)
    assert engine.prefixes is not None, f"{name} cannot keep prefixes"
    texts = [passage["text"] for passage in read("rerank/squad_passages")]
    passages = [*map(Passage, passages_of(texts, model.tokenizer, N_PASSAGES, PASSAGE_TOKENS))]
    questions = passages_of(texts[::-1], model.tokenizer, n_timed, QUESTION_TOKENS)
    sequences = make_sequences(engine, upr._prefix_requests(passages))
    n_tokens = [engine.prefixes.count_tokens([sequence])[0] for sequence in sequences]
    n_bytes = int(sum(n_tokens) * SHARE) * (engine.prefixes.token_bytes + INDEX_BYTES)
    prefixes = TorchPrefixes(engine, PrefixCacheOptions(n_bytes, is_int8=False, folder=None, disk_bytes=n_bytes))
    first = (len(day) - n_timed) // 2
    engine.prefixes = prefixes
    _fill(upr, passages, day[:first], n_tokens)
    for size, own_prefixes, n in ((f"{n_bytes / 1e6:,.0f} MB", prefixes, n_timed), ("none", None, N_TIMED_WITHOUT)):
        engine.prefixes = own_prefixes
        seconds = []
        for question, candidates in zip(questions[:n], day[first:].tolist(), strict=False):
            started = perf_counter()
            upr.rank(question, [passages[i] for i in candidates])
            seconds.append(perf_counter() - started)
        figures = (f"{np.median(seconds):.3f}", f"{np.quantile(seconds, 0.95):.3f}")
        table.add_row(Path(name).name, size, str(len(seconds)), *figures)


def _fill(upr: UPR, passages: Sequence[Passage], day: Integers, n_tokens: Sequence[int]) -> None:
    """Compute the passages that these questions leave in the cache, the most recently used ones last."""
    kept: list[int] = []
    budget = int(sum(n_tokens) * SHARE)
    for passage in day.flatten()[::-1].tolist():
        if passage not in kept:
            budget -= n_tokens[passage]
            if budget < 0:
                break
            kept.append(passage)
    for passage in kept[::-1]:
        upr.precompute([passages[passage]])
