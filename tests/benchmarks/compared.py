"""The README's reranking table once more, by `drillrank.evaluation.compare`."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from drillrank import Passage
from drillrank.evaluation import compare

from .data import read

MEASURES = ("Success@1", "Success@3", "Success@5", "Success@10")
COMPONENTS = {
    "UPR over 5": {"component": "UPR", "depth": 5},
    "UPR over 50": "UPR",
    "UPR over 50, fitted": {"component": "UPR", "fitted": True},
}


def main(questions: int | None = None) -> None:
    table = Table("data", "questions", "method", *MEASURES, "against BM25", title="Hit of the gold passage")
    for dataset in ("squad", "nq"):
        corpus = [
            Passage(item["text"], id=item["id"], title=item["title"]) for item in read(f"rerank/{dataset}_passages")
        ]
        asked = read(f"rerank/{dataset}")[:questions]
        found = compare(asked, COMPONENTS, corpus, measures=MEASURES, columns={"candidates": "bm25_top"})
        for name in found.components:
            told = ""
            if name != "first stage":
                mean, low, high, _, _ = found.pair("first stage", name).difference
                told = f"{found.pair('first stage', name).verdict}: {mean:+.3f} ({low:+.3f} to {high:+.3f})"
            means = (f"{found.mean(name, measure):.3f}" for measure in MEASURES)
            table.add_row(dataset, str(len(asked)), "BM25" if name == "first stage" else name, *means, told)
    Console(width=140).print(table)
