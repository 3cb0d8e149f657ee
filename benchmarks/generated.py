"""Merging retrieved and generated passages: NQ dev with one generated sentence a question."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from drillrank import BRMGR, UPR, Passage, load_language_model
from drillrank.evaluation.metrics import exact_match

from .data import read, rerank_pool

KS = (1, 3, 5, 10)


def main(model: str = "unigram", questions: int | None = None) -> None:
    lm = load_language_model(model)
    asked = read("rerank/nq")[:questions]
    passages = {passage.id: passage for passage in rerank_pool("nq")}
    models = {lm.spec: lm}
    if lm.wants_fit:
        models = {"as it comes": lm, "fitted": lm.fitted(passage.titled_text for passage in passages.values())}
    bm25 = [[passages[id_] for id_ in item["bm25_top"]] for item in asked]
    written = [[Passage(text) for text in item["generated"]] for item in asked]
    methods = {
        "retrieved: BM25": bm25,
        "generated alone": written,
        "plain merge: generated first, BM25": [own + found for own, found in zip(written, bm25, strict=True)],
    }
    for state, scorer in models.items():
        for depth in (10, 50) if lm.wants_fit else (10,):
            variants = {
                "BRMGR": BRMGR(scorer),
                "BRMGR, retrieved first": BRMGR(scorer, settings={"first": "retrieved"}),
                "BRMGR, guard": BRMGR(scorer, guard=True),
            }
            rows: dict[str, list[list[Passage]]] = {}
            upr = UPR(scorer)
            for item, found, own in zip(asked, bm25, written, strict=True):
                question, found = item["question"], found[:depth]
                rankings = {
                    "retrieved: UPR": upr.rank(question, found),
                    "plain merge by UPR's score": upr.rank(question, [*found, *own]),
                    **{name: brmgr.rank(question, found, own) for name, brmgr in variants.items()},
                }
                for name, ranking in rankings.items():
                    rows.setdefault(name, []).append([entry.passage for entry in ranking])
            methods |= {f"{name}, {depth} retrieved, {state}": lists for name, lists in rows.items()}
    table = Table("method", *(f"k = {k}" for k in KS), title=f"NQ dev, retrieval exact match, {len(asked)} questions")
    for name, lists in methods.items():
        matches = [
            sum(
                exact_match([passage.text for passage in found], item["answers"], k)
                for found, item in zip(lists, asked, strict=True)
            )
            / len(asked)
            for k in KS
        ]
        table.add_row(name, *(f"{value:.3f}" for value in matches))
    Console().print(table)
