"""SQuAD and NQ: UPR with the unigram model, or any other, and path search, over the first 5 and 50 of BM25."""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table

from drillrank import UPR, PromptRank, load_language_model
from drillrank.evaluation.metrics import hit
from drillrank.multihop.path_rerank import PathRerank

from .data import read, rerank_pool
from .measure import mean_of
from .path_prior import compared


def main(model: str = "unigram", questions: int | None = None) -> None:
    lm = load_language_model(model)
    table = Table("data", "questions", "method", "top-1", "top-3", "top-5", "top-10", title="Hit of the gold passage")
    for dataset in ("squad", "nq"):
        asked = read(f"rerank/{dataset}")[:questions]
        passages = {passage.id: passage for passage in rerank_pool(dataset)}
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
            hits = (f"{mean_of(hit, ranked, asked, k):.3f}" for k in (1, 3, 5, 10))
            table.add_row(dataset, str(len(asked)), name, *hits)
        first = (
            np.array([[float(hit(one, item["gold"], 1))] for one, item in zip(rankings[name], asked, strict=True)])
            for name in ("paths over 50, fitted", "UPR over 50, fitted")
        )
        table.add_row(dataset, str(len(asked)), "paths over 50, interval of the difference to UPR", *compared(*first))
    Console(width=130).print(table)
