"""The first stage as prior, and a likelihood that knows meaning: SQuAD and NQ behind BM25, MiniLM and their fusion.

Ranked by the first stage alone, by UPR without prior, with it, with `st:`, and with both. All models are fitted on the
pool. The last columns compare with the better of first stage and UPR at the same cut: the difference, and its 95 %
interval by the paired bootstrap. A second table has the time for a question and the space for a passage.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from drillrank import UPR, Passage, load_language_model
from drillrank.evaluation.metrics import hit
from drillrank.likelihood import LanguageModel
from drillrank.likelihood.encoder import SentenceVectors
from drillrank.rerank.prior import Prior
from drillrank.vectors import BM25Index, top

from .data import drawn, rerank_pool
from .measure import gain
from .minilm import minilm, minilm_folder

DATASETS = ("squad", "nq")
DEPTHS = (20, 50)
CUTS = (1, 3, 5)
FUSED = 100  # passages of each retriever that are fused
TIMED, REPEATS = 50, 3  # questions whose time is measured, and how often

PRIORS: dict[str, Sequence[Prior]] = {"BM25": ["retrieval"], "MiniLM": ["cosine", "retrieval"], "fusion": ["retrieval"]}

Candidates = tuple[list[Passage], list[float]]
Hits = npt.NDArray[np.int64]


def main(questions: int | None = None, vectors: str | None = None) -> None:
    """Print what is gained.

    `questions` of each data set are drawn with a seed, and `vectors` is where MiniLM's are kept.
    """
    embed = minilm()
    table = Table("data", "first stage", "depth", "ranked by", *(f"top-{k}" for k in CUTS), *(f"Δ{k}" for k in CUTS))
    costs = Table("data", "model", "prior", "ms for a question", "bytes kept for a passage")
    with ExitStack() as stack:
        kept = vectors or stack.enter_context(TemporaryDirectory())
        for dataset in DATASETS:
            asked, pool = drawn(dataset, questions), rerank_pool(dataset)
            texts = [passage.titled_text for passage in pool]
            directory = Path(kept) / dataset
            meaning = load_language_model(f"st:{minilm_folder()}", directory=directory).fit(texts)
            models = {"UPR": load_language_model("unigram").fit(texts), "st": meaning}
            known = SentenceVectors(embed, directory)
            for stage, candidates in first_stages(asked, pool, known).items():
                for depth in DEPTHS:
                    lists = [(passages[:depth], scores[:depth]) for passages, scores in candidates]
                    for name, figures in compared(asked, lists, models, PRIORS[stage]):
                        table.add_row(f"{dataset}, {len(asked)}", stage, str(depth), name, *figures)
                if stage == "MiniLM":
                    n_bytes = sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())
                    sizes = {"UPR": "", "st": f"{n_bytes / len(pool):,.0f}"}
                    for name, prior, seconds in measure_times(asked, lists, models):
                        costs.add_row(dataset, name, prior or "None", f"{1000 * seconds:.2f}", sizes[name])
    Console(width=160).print(table)
    costs.title = f"{max(DEPTHS)} candidates of MiniLM, one question at a time, median of {REPEATS} x {TIMED} questions"
    Console(width=160).print(costs)


def first_stages(
    asked: list[dict[str, Any]], pool: list[Passage], vectors: SentenceVectors
) -> dict[str, list[Candidates]]:
    """The best candidates of each retriever for each question, with its scores."""
    texts = [passage.titled_text for passage in pool]
    questions = [item["question"] for item in asked]
    bm25 = BM25Index(texts)
    cosines = vectors.of(questions) @ vectors.of(texts).T
    found: dict[str, list[Candidates]] = {"BM25": [], "MiniLM": [], "fusion": []}
    for question, by_meaning in zip(questions, cosines, strict=True):
        by_words = bm25.scores(question)
        fused = np.zeros(len(pool))
        for scores in (by_words, by_meaning):
            best = top(scores, FUSED)
            fused[best] += 1 / (60 + np.arange(1, len(best) + 1))  # Cormack et al. (2009)
        for stage, scores in zip(found, (by_words, by_meaning, fused), strict=True):
            best = top(scores, max(DEPTHS))
            found[stage].append(([pool[i] for i in best], [float(scores[i]) for i in best]))
    return found


def measure_times(
    asked: Sequence[dict[str, Any]], candidates: Sequence[Candidates], models: dict[str, LanguageModel]
) -> Iterator[tuple[str, Prior | None, float]]:
    """Yield the name of each model, each prior and the median seconds for a question."""
    for name, model in models.items():
        for prior in (None, *PRIORS["MiniLM"]):
            upr = UPR(model, prior=prior)
            seconds = []
            for _ in range(REPEATS):
                for item, (passages, scores) in zip(asked[:TIMED], candidates, strict=False):
                    started = perf_counter()
                    upr.rank(item["question"], passages, scores=scores if prior else None)
                    seconds.append(perf_counter() - started)
            yield name, prior, median(seconds)


def compared(
    asked: list[dict[str, Any]], candidates: list[Candidates], models: dict[str, LanguageModel], priors: Sequence[Prior]
) -> Iterator[tuple[str, list[str]]]:
    """Name of a method, its hits, and what they gain on the better of first stage and UPR."""
    questions = [item["question"] for item in asked]
    lists = [passages for passages, _ in candidates]
    scores = [scores for _, scores in candidates]
    rankings = {"first stage": [[passage.id for passage in passages] for passages in lists]}
    for name, model in models.items():
        alone = UPR(model, prior=None).rank_many(questions, lists)
        found = {name: alone}
        for prior in priors:
            with_prior = UPR(model, prior=prior).rank_many(questions, lists, scores=scores)
            found[f"{name}, {prior}"] = with_prior
        for shown, ranked_lists in found.items():
            rankings[shown] = [[item.passage.id for item in ranking] for ranking in ranked_lists]
    of_each = {name: hits(ranked, asked) for name, ranked in rankings.items()}
    better = np.stack([max(of_each["first stage"][k], of_each["UPR"][k], key=np.mean) for k in range(len(CUTS))])
    for name, own in of_each.items():
        gains = [] if name in ("first stage", "UPR") else [gain(own[k] - better[k]) for k in range(len(CUTS))]
        yield name, [*(f"{share:.3f}" for share in own.mean(axis=1)), *gains]


def hits(rankings: Sequence[Sequence[str]], asked: Sequence[dict[str, Any]]) -> Hits:
    """Whether a gold passage is among the first k, shape (cuts, questions)."""
    return np.array([[hit(r, item["gold"], k) for r, item in zip(rankings, asked, strict=True)] for k in CUTS], int)
