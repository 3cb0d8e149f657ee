"""SQuAD and NQ: UPR with the unigram model, or any other, and path search, over the first 5 and 50 of BM25."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from drillrank import UPR, Passage, PromptRank, load_language_model
from drillrank.evaluation.metrics import hit
from drillrank.multihop.path_rerank import PathRerank

from .data import read
from .path_prior import Floats, compared


def main(model: str = "unigram", questions: int | None = None) -> None:
    lm = load_language_model(model)
    table = Table("data", "questions", "method", "top-1", "top-3", "top-5", "top-10", title="Hit of the gold passage")
    for dataset in ("squad", "nq"):
        asked = read(f"rerank/{dataset}")[:questions]
        passages = {
            item["id"]: Passage(item["text"], id=item["id"], title=item["title"])
            for item in read(f"rerank/{dataset}_passages")
        }
        rankings = {"BM25": [item["bm25_top"] for item in asked]}
        models = {"as it comes": lm, "fitted": lm.fitted(p.titled_text for p in passages.values())}
        for state, scorer in models.items():
            for depth in (5, 50):
                candidates = [[passages[id_] for id_ in item["bm25_top"][:depth]] for item in asked]
                ranked_lists = UPR(scorer).rank_many([item["question"] for item in asked], candidates)
                rankings[f"UPR over {depth}, {state}"] = [[r.passage.id for r in ranked] for ranked in ranked_lists]
                if state == "fitted":  # questions that one passage answers are unharmed by paths
                    paths = PathRerank(PromptRank(scorer), corpus=passages.values())
                    rankings[f"paths over {depth}, {state}"] = [
                        [r.passage.id for r in paths.rank(item["question"], given) if r.passage.id in item["bm25_top"]]
                        for item, given in zip(asked, candidates, strict=True)
                    ]
        for name, ranked in rankings.items():
            hits = [
                sum(hit(ranking, item["gold"], k) for ranking, item in zip(ranked, asked, strict=True)) / len(asked)
                for k in (1, 3, 5, 10)
            ]
            table.add_row(dataset, str(len(asked)), name, *(f"{value:.3f}" for value in hits))
        [behind] = compared(*(top_1(rankings[f"{name} over 50, fitted"], asked) for name in ("paths", "UPR")))
        table.add_row(dataset, str(len(asked)), "paths over 50, interval of the difference to UPR", behind)
    Console(width=130).print(table)


def top_1(rankings: list[list[str]], asked: list[dict[str, Any]]) -> Floats:
    """Whether the first passage is gold, shape (questions, 1)."""
    return np.array([[float(hit(one, item["gold"], 1))] for one, item in zip(rankings, asked, strict=True)])
