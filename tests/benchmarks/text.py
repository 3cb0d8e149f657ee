"""What the cutting of texts into words moves: figures of every question, to be set beside those of another version.

`--outcomes FILE` (.npz) keeps the figures of the `drillrank` that is imported, `--against FILE` shows the paired
differences to those of a file, with their 95 % intervals by the bootstrap. `PYTHONPATH` chooses what is imported:

    PYTHONPATH=../old/shared python -m tests.benchmarks text --outcomes old.npz
    python -m tests.benchmarks text --against old.npz
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from drillrank import D3, UPR, Passage, PathSearch, PromptRank, load_language_model
from drillrank.evaluation.metrics import evidence_f1, hit, recall, recall_all
from drillrank.vectors import BM25Index, TextIndex, TfidfIndex, top
from drillrank.views import VIEWS, Chunker, MultiViewIndex, section_chunks

from .data import multihop_pool, read
from .long_documents import papers
from .measure import bootstrap_interval
from .multihop import DATASETS
from .view_arrangements import BOTH, load
from .views import coverage

RERANKED, VIEWED = (1, 5, 10), (1, 3, 5, 10)
Figures = npt.NDArray[np.float64]  # one of each question


def main(questions: int | None = None, outcomes: str | None = None, against: str | None = None) -> None:
    """Print the mean of every figure, and its difference to an earlier one."""
    found = dict(figures(questions))
    if outcomes is not None:
        np.savez_compressed(outcomes, **found)  # type: ignore[arg-type]
    Console(width=120).print(compared(found, dict(np.load(against)) if against is not None else {}))


def compared(new: dict[str, Figures], old: dict[str, Figures]) -> Table:
    """A row for each figure; `!` where the interval of the difference lies wholly below 0."""
    table = Table("figure", "questions", "before", "now", "difference", "95 % interval", "")
    for name, now in new.items():
        cells = ["", f"{now.mean():.4f}", "", "", ""]
        if name in old:
            difference = now - old[name]
            low, high = bootstrap_interval(difference)
            said = "!" if high < 0 else "+" if low > 0 else ""
            cells = [f"{old[name].mean():.4f}", cells[1], f"{difference.mean():+.4f}"]
            cells += [f"{low:+.4f}, {high:+.4f}", said]
        table.add_row(name, str(len(now)), *cells)
    return table


def figures(questions: int | None) -> Iterator[tuple[str, Figures]]:
    """Names and figures of all methods, one after the other."""
    for dataset in ("squad", "nq"):
        yield from _reranked(dataset, questions)
    for dataset in DATASETS:
        yield from _multihop(dataset, questions)
    yield from _drilled(questions)
    yield from _viewed(questions)


def _reranked(dataset: str, questions: int | None) -> Iterator[tuple[str, Figures]]:
    asked = read(f"rerank/{dataset}")[:questions]
    pool = [Passage(p["text"], id=p["id"], title=p["title"]) for p in read(f"rerank/{dataset}_passages")]
    queries, by_id = [item["question"] for item in asked], {passage.id: passage for passage in pool}
    texts = [passage.titled_text for passage in pool]
    indexes: list[tuple[str, TextIndex]] = [("BM25", BM25Index(texts)), ("TF-IDF", TfidfIndex(texts))]
    rankings = {name: [[pool[i].id for i in top(index.scores(q), 20)] for q in queries] for name, index in indexes}
    model = load_language_model("unigram")
    candidates = [[by_id[id_] for id_ in item["bm25_top"][:50]] for item in asked]
    for state, scorer in (("as it comes", model), ("fitted", model.fitted(texts))):
        ranked = UPR(scorer).rank_many(queries, candidates)
        rankings[f"UPR over 50 of BM25, {state}"] = [[r.passage.id for r in ranking] for ranking in ranked]
    for name, found in rankings.items():
        for k in RERANKED:
            hits = [hit(ranking, item["gold"], k) for ranking, item in zip(found, asked, strict=True)]
            yield f"{dataset}: {name}, top-{k}", np.array(hits, dtype=np.float64)


def _multihop(dataset: str, questions: int | None) -> Iterator[tuple[str, Figures]]:
    asked, pool = read(f"multihop/{dataset}")[:questions], multihop_pool(dataset)
    texts = [passage.titled_text for passage in pool]
    indexes: list[tuple[str, TextIndex]] = [("BM25", BM25Index(texts)), ("TF-IDF", TfidfIndex(texts))]
    queries = [item["question"] for item in asked]
    rankings = {name: [[pool[i].id for i in top(index.scores(q), 20)] for q in queries] for name, index in indexes}
    search = PathSearch(PromptRank(), pool)
    rankings["PathSearch"] = [[item.passage.id for item in search.search(query, 20)] for query in queries]
    for name, found in rankings.items():
        for k in (2, 10):
            all_gold = [recall_all(ranking, item["gold"], k) for ranking, item in zip(found, asked, strict=True)]
            yield f"{dataset}: {name}, R@{k}", np.array(all_gold, dtype=np.float64)


def _drilled(questions: int | None) -> Iterator[tuple[str, Figures]]:
    d3 = D3()
    f1s, recalls = [], []
    for paper in papers("qasper", d3, questions):
        for question in paper.questions:
            ten = [item.passage.id for item in d3.retrieve(question.text, paper.ready, 10)]
            chosen = [item.passage.id for item in d3.retrieve(question.text, paper.ready)]
            f1s.append(evidence_f1(chosen, question.annotations))
            recalls.append(recall(ten, question.gold, 10))
    yield "qasper: D3 without an LLM, evidence F1", np.array(f1s)
    yield "qasper: D3 without an LLM, recall@10", np.array(recalls)


def _viewed(questions: int | None) -> Iterator[tuple[str, Figures]]:
    cutters = {"sections": Chunker(), "paragraphs with context": Chunker("paragraph")}
    for name, cutter in cutters.items():
        found: dict[int, list[float]] = {k: [] for k in VIEWED}
        for paper in load("longdoc/qasper", questions):
            context = BOTH if "context" in name else ()
            chunks = section_chunks(paper.document, paper.id, VIEWS, chunker=cutter, context=context)
            spans = {chunk.id: (chunk.start, chunk.end) for chunk in chunks if chunk.view == "raw"}
            index = MultiViewIndex(chunks)
            for query, evidence in paper.questions:
                covered = [coverage(spans[one.section_id], evidence) for one in index.search(query, max(VIEWED))]
                for k in VIEWED:
                    found[k].append(sum(covered[:k]))
        for k, shares in found.items():
            yield f"qasper: views of {name}, span recall of {k}", np.array(shares)
