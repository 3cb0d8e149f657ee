"""SQuAD and NQ: UPR with the unigram model over the first 50 of BM25."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from drillrank import UPR, Passage
from drillrank.evaluation.metrics import hit
from drillrank.likelihood import UnigramModel

from .data import read


def main() -> None:
    table = Table("data", "questions", "method", "top-1", "top-3", "top-5", "top-10", title="Hit of the gold passage")
    for dataset in ("squad", "nq"):
        questions = read(f"rerank/{dataset}")
        passages = {
            item["id"]: Passage(item["text"], id=item["id"], title=item["title"])
            for item in read(f"rerank/{dataset}_passages")
        }
        rankings = {"BM25": [item["bm25_top"] for item in questions]}
        models = {"as it comes": UnigramModel(), "fitted": UnigramModel().fit(p.titled_text for p in passages.values())}
        for state, model in models.items():
            for depth in (5, 50):
                candidates = [[passages[id_] for id_ in item["bm25_top"][:depth]] for item in questions]
                asked = [item["question"] for item in questions]
                ranked_lists = UPR(model).rank_many(asked, candidates)
                rankings[f"UPR over {depth}, {state}"] = [[r.passage.id for r in ranked] for ranked in ranked_lists]
        for name, ranked in rankings.items():
            hits = [
                sum(hit(ranking, item["gold"], k) for ranking, item in zip(ranked, questions, strict=True))
                / len(questions)
                for k in (1, 3, 5, 10)
            ]
            table.add_row(dataset, str(len(questions)), name, *(f"{value:.3f}" for value in hits))
    Console().print(table)
