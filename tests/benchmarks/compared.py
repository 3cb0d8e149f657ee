"""Tables of the README and of drilling down once more, by `drillrank.evaluation.compare`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from rich.console import Console
from rich.table import Table

from drillrank import D3, Passage, PromptRank, Ranked, load_language_model
from drillrank.drilldown.prepared import PreparedDocuments
from drillrank.evaluation import Comparison, compare
from drillrank.multihop.path_rerank import PathRerank

from .data import multihop_pool, read
from .long_documents import bm25, papers
from .minilm import minilm
from .multihop import FIRST_STAGE, PAPER, TITLES

HITS = ("Success@1", "Success@3", "Success@5", "Success@10")
RERANKERS = {
    "UPR over 5": {"component": "UPR", "depth": 5},
    "UPR over 50": "UPR",
    "UPR over 5, fitted": {"component": "UPR", "depth": 5, "fitted": True},
    "UPR over 50, fitted": {"component": "UPR", "fitted": True},
}
SEARCHES = {
    "path search as in the paper": {"component": "PathSearch", **PAPER},
    "path search": "PathSearch",
    "path search, titles alone": {"component": "PathSearch", **TITLES},
}
ALL = 1000  # more than is found
BASELINES = ("first stage", "BM25")  # the first stage is BM25, too, as the data brings it: without stems


def main(questions: int | None = None) -> None:
    console = Console(width=180)
    table = _table("Hit of the gold passage", HITS)
    for dataset in ("squad", "nq"):
        corpus = [
            Passage(item["text"], id=item["id"], title=item["title"]) for item in read(f"rerank/{dataset}_passages")
        ]
        asked = read(f"rerank/{dataset}")[:questions]
        fitted = load_language_model("unigram").fitted(passage.titled_text for passage in corpus)
        paths = PathRerank(PromptRank(fitted), corpus=corpus)  # questions that one passage answers are unharmed by them
        known = {item["question"]: {*item["bm25_top"]} for item in asked}
        over = partial(_paths, paths, known)
        ways = {f"paths over {depth}, fitted": {"component": over, "depth": depth} for depth in (5, 50)}
        _add(
            table, dataset, compare(asked, RERANKERS | ways, corpus, measures=HITS, columns={"candidates": "bm25_top"})
        )
    console.print(table)
    measures = ("R@5", "AllR@2", "AllR@10")
    table = _table("Multi-hop: recall@5, R@2, R@10", measures)
    asked = [{"question": item["question"], "gold": item["gold"]} for item in read("multihop/hotpotqa")[:questions]]
    pool = multihop_pool("hotpotqa")
    _add(table, "hotpotqa", compare(asked, SEARCHES, pool, measures=measures, candidates=FIRST_STAGE))
    console.print(table)
    table = _table("QASPER dev without an LLM: evidence F1", (f"F1@{ALL}",))
    _add(table, "qasper", _qasper(questions))
    console.print(table)


def _paths(
    paths: PathRerank, known: dict[str, set[str]], query: str, passages: Sequence[Passage]
) -> list[Ranked[Passage]]:
    return [item for item in paths.rank(query, passages) if item.passage.id in known[query]]


def _qasper(questions: int | None) -> Comparison:
    """Each question of its own paper; BM25 brings its first three, as evidence F1 counts what is brought."""
    ways = {"D3, lexical": D3()}
    if (embed := minilm()) is not None:
        ways["D3 with MiniLM"] = D3(embed=embed)
    read_by = {name: papers("qasper", d3, questions) for name, d3 in ways.items()}
    rows: list[dict[str, Any]] = []
    known: dict[str, dict[str, PreparedDocuments]] = {}
    for number, paper in enumerate(read_by["D3, lexical"]):
        for question in paper.questions:
            row = str(len(rows))
            known[row] = {name: read[number].ready for name, read in read_by.items()}
            order = bm25(question.text, paper.ready)
            texts = {passage.id: passage.text for passage in (*paper.ready.paragraphs, *paper.ready.readable)}
            others = [id_ for id_ in texts if id_ not in set(order)]
            rows.append(
                {
                    "id": row,
                    "question": question.text,
                    "gold": [sorted(f"{row}/{id_}" for id_ in marked) for marked in question.annotations],
                    "candidates": [Passage(texts[id_], id=f"{row}/{id_}") for id_ in [*order, *others]],
                }
            )

    def drilled(name: str, query: str, passages: Sequence[Passage]) -> list[str]:
        row = passages[0].id.partition("/")[0]
        return [f"{row}/{item.passage.id}" for item in ways[name].retrieve(query, known[row][name])]

    components = {name: partial(drilled, name) for name in ways}
    three = {"BM25, top 3": lambda _query, passages: passages[:3]}
    return compare(rows, three | components, measures=[f"F1@{ALL}"])


def _table(title: str, measures: Sequence[str]) -> Table:
    return Table("data", "questions", "method", *measures, *(f"against {name}" for name in BASELINES), title=title)


def _add(table: Table, data: str, found: Comparison) -> None:
    pairs = {(pair.before, pair.after): pair for pair in found.pairs if pair.measure == found.primary}
    for name in found.components:
        cells = [f"{found.mean(name, measure):.3f}" for measure in found.measures]
        for before in BASELINES:
            pair = pairs.get((before, name))
            mean, low, high, _, _ = pair.difference if pair else (0.0,) * 5
            cells.append(f"{pair.verdict}: {mean:+.3f} ({low:+.3f} to {high:+.3f})" if pair else "")
        table.add_row(data, str(len(found.questions)), name, *cells)
