"""MuSiQue by the number of hops: what other seeds and longer paths bring, on the tuning and the development questions.

Seeds are what a search begins with: TF-IDF's first 100; those of TF-IDF and MiniLM, fused by reciprocal ranks; or, with
`embed=`, the passages after which the question is likeliest by words and meaning. `--vectors DIR` keeps MiniLM's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from drillrank import Passage, PathSearch, PromptRank
from drillrank.evaluation.metrics import recall_all
from drillrank.likelihood import EmbeddingModel
from drillrank.vectors import TfidfIndex, top

from .data import multihop_pool, read
from .minilm import INSTALLED, minilm

POOL, CONSTANT = 100, 60  # of reciprocal ranks


def main(vectors: str | None = None, questions: int | None = None) -> None:
    """Print the share of gold among the first 5, 10 and all passages, and R@10."""
    pool = multihop_pool("musique")
    asked = [*read("multihop/musique_tune")[:questions], *read("multihop/musique")[:questions]]
    tune = len(asked) - len(read("multihop/musique")[:questions])
    groups = {
        "tuning, two hops": [one for one in asked[:tune] if len(one["gold"]) == 2],
        "tuning, three and four hops": [one for one in asked[:tune] if len(one["gold"]) > 2],
        "dev, two hops": asked[tune:],
    }
    searches: dict[str, PathSearch] = {
        "the default": PathSearch(PromptRank(), pool),
        "  four hops": PathSearch(PromptRank(), pool, settings={"hops": 4}),
        "  beam of 20": PathSearch(PromptRank(), pool, settings={"beam": 20}),
    }
    if INSTALLED:
        directory = Path(vectors) / "musique" if vectors else None
        model = EmbeddingModel(minilm(), directory=directory).fit([passage.titled_text for passage in pool])
        fused = fused_seeds(pool, model)
        searches["  seeds fused"] = PathSearch(PromptRank(), pool, first_stage=fused)
        searches["st:MiniLM, which is seeds, links and scores by words and meaning"] = PathSearch(
            PromptRank(model), pool
        )
        searches["  seeds fused by ranks "] = PathSearch(PromptRank(model), pool, first_stage=fused)
        searches["  and a beam of 20"] = PathSearch(PromptRank(model), pool, settings={"beam": 20})
    for title, of_group in groups.items():
        table = Table(
            "path search", "recall@5", "recall@10", "recall, all", "R@10", title=f"MuSiQue, {title}: {len(of_group)}"
        )
        for name, search in searches.items():
            table.add_row(name, *figures(search, of_group))
        Console(width=120).print(table)


def fused_seeds(pool: Sequence[Passage], model: EmbeddingModel) -> Callable[[str, int], list[Passage]]:
    """TF-IDF's and MiniLM's rankings as one, by reciprocal ranks."""
    texts = [passage.titled_text for passage in pool]
    tfidf = TfidfIndex(texts)

    def retrieve(question: str, n: int) -> list[Passage]:
        fused = np.zeros(len(texts))
        for scores in (tfidf.scores(question), model.document_log_probs(question, texts)[:, -1]):
            best = top(scores, POOL)
            fused[best] += 1 / (CONSTANT + 1 + np.arange(len(best)))
        return [pool[at] for at in top(fused, n)]

    return retrieve


def figures(search: PathSearch, asked: Sequence[dict[str, Any]]) -> list[str]:
    rows = []
    for one in asked:
        ids, gold = [item.passage.id for item in search.search(one["question"])], one["gold"]
        rows.append([*(len({*ids[:k]} & {*gold}) / len({*gold}) for k in (5, 10, None)), recall_all(ids, gold, 10)])
    return [f"{value:.3f}" for value in np.mean(rows, axis=0)]
