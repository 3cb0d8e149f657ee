"""Keys and values in 8 bits: changes of log-probabilities and ranks against float32 without a prefix cache."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import kendalltau

from drillrank import UPR
from drillrank.likelihood import HuggingFaceModel

from .data import read, rerank_pool
from .kept import folder_of, named

QUESTIONS, CANDIDATES = 5, 20
INT8 = {"prefix_cache": "500 MB", "prefix_cache_dtype": "int8"}
VARIANTS: dict[str, dict[str, Any]] = {
    "float32": {"dtype": "float32"},
    "float32, 8 bits kept": {"dtype": "float32", **INT8},
    "bfloat16": {"dtype": "bfloat16"},
    "bfloat16, 8 bits kept": {"dtype": "bfloat16", **INT8},
}


def main(model: str = "smollm2,qwen-0.5b", questions: int = QUESTIONS) -> None:
    """Print one table for models below `DRILLRANK_MODELS`, with the first candidates of BM25 for questions of NQ."""
    pool = {passage.id: passage for passage in rerank_pool("nq")}
    rows = read("rerank/nq")[:questions]
    columns = ("a token, at most", "a passage's mean, at most", "Kendall tau", "ranks changed", "same first")
    table = Table("model", "variant", *columns, title=f"{len(rows)} questions, {CANDIDATES} passages each")
    for name in named(model):
        exact: list[Any] = []
        for variant, options in VARIANTS.items():
            upr = UPR(HuggingFaceModel(str(folder_of(name)), **options))
            likelihood_lists = [
                upr.likelihoods(row["question"], [pool[id_] for id_ in row["bm25_top"][:CANDIDATES]]) for row in rows
            ]
            exact = exact or likelihood_lists
            table.add_row(Path(name).name, variant, *_compare(likelihood_lists, exact))
    Console(width=140).print(table)


def _compare(likelihood_lists: list[Any], exact: list[Any]) -> list[str]:
    pairs = [pair for lists in zip(likelihood_lists, exact, strict=True) for pair in zip(*lists, strict=True)]
    token_change = max(np.abs(one.log_probs - other.log_probs).max() for one, other in pairs)
    mean_change = max(abs(one.mean - other.mean) for one, other in pairs)
    means, exact_means = (
        np.array([[one.mean for one in likelihoods] for likelihoods in lists]) for lists in (likelihood_lists, exact)
    )  # [n_questions, n_passages]
    ranks, exact_ranks = np.argsort(-means), np.argsort(-exact_means)
    tau = np.mean([kendalltau(*rows).statistic for rows in zip(means, exact_means, strict=True)])
    n_same_first = (ranks[:, 0] == exact_ranks[:, 0]).sum()
    return [
        f"{token_change:.3f}",
        f"{mean_change:.3f}",
        f"{tau:.3f}",
        f"{(ranks != exact_ranks).sum()} of {ranks.size}",
        f"{n_same_first} of {len(ranks)}",
    ]
