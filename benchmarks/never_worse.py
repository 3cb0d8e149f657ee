"""UPR with its default prior behind every first stage, against that stage: SQuAD and NQ, BM25, MiniLM, their fusion.

The model is the embedded one, unfitted as shipped and fitted on the pool. Differences of top-1, top-3 and top-5 to the
first stage, in points, with paired 95 % intervals; `!` marks a significant loss, `+` a significant gain. Both halves
were looked at when the prior was chosen: neither is a held-out check.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from drillrank import UPR, load_language_model
from drillrank.likelihood import LanguageModel
from drillrank.likelihood.encoder import SentenceVectors

from .data import drawn, rerank_pool
from .first_stage import CUTS, DATASETS, Candidates, first_stages, hits
from .measure import bootstrap_interval
from .minilm import minilm

DEPTHS = (10, 20, 50)
SEED = 15


def main(questions: int = 1500, vectors: str | None = None) -> None:
    """Print the table.

    Args:
        questions: Of each data set, drawn with a seed.
        vectors: Folder of MiniLM's vectors; None keeps none.
    """
    embed = minilm("bfloat16")
    heads = [f"{half}, top-{k}" for half in ("1st half", "2nd half", "all") for k in CUTS]
    table = Table("data", "first stage", "depth", "model", *heads)
    losses = 0
    with TemporaryDirectory() as temporary:
        for dataset in DATASETS:
            rows, pool = drawn(dataset, questions), rerank_pool(dataset)
            # Equal scores keep the order of the pool, in which the passages of the first questions come first.
            random.Random(SEED).shuffle(pool)
            known = SentenceVectors(embed, Path(vectors or temporary) / dataset)
            models = {
                "unfitted": load_language_model("unigram"),
                "fitted": load_language_model("unigram").fit([passage.titled_text for passage in pool]),
            }
            for stage, candidates in first_stages(rows, pool, known).items():
                for depth in DEPTHS:
                    lists = [(passages[:depth], scores[:depth]) for passages, scores in candidates]
                    for name, model in models.items():
                        differences = _differences(rows, lists, model)
                        halves = np.array_split(differences, 2, axis=1)
                        shown = [_shown(part[k]) for part in (*halves, differences) for k in range(len(CUTS))]
                        losses += sum("!" in one for one in shown)
                        table.add_row(f"{dataset}, {len(rows)}", stage, str(depth), name, *shown)
    Console(width=230).print(table, f"{losses} significant losses.")


def _differences(
    rows: Sequence[dict[str, Any]], lists: Sequence[Candidates], model: LanguageModel
) -> npt.NDArray[np.int64]:
    """Of hits by UPR and by the first stage, shape (cuts, questions)."""
    rankings = UPR(model).rank_many(
        [row["question"] for row in rows], [passages for passages, _ in lists], scores=[scores for _, scores in lists]
    )
    found = hits([[item.passage.id for item in ranking] for ranking in rankings], rows)
    before = hits([[passage.id for passage in passages] for passages, _ in lists], rows)
    differences: npt.NDArray[np.int64] = found - before
    return differences


def _shown(differences: npt.NDArray[np.int64]) -> str:
    low, high = bootstrap_interval(differences)
    mark = "!" if high < 0 else "+" if low > 0 else ""
    return f"{100 * differences.mean():+.1f}{mark} [{100 * low:+.1f}, {100 * high:+.1f}]"
