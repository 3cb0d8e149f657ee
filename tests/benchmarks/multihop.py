"""HotpotQA, 2Wiki and MuSiQue dev pools: BM25, TF-IDF and path search with the unigram model."""

from __future__ import annotations

import time
from functools import partial

from rich.console import Console
from rich.table import Table

from drillrank import PathSearch, PromptRank
from drillrank.evaluation.metrics import recall_all
from drillrank.retrieval import BM25Index, TextIndex, TfidfIndex, top

from .data import multihop_pool, read


def main() -> None:
    table = Table(
        "data", "questions", "method", "R@2", "R@10", "R@20", "ms a question", title="Open pools, unigram model"
    )
    for dataset in ("hotpotqa", "2wiki", "musique"):
        questions = read(f"multihop/{dataset}")
        pool = multihop_pool(dataset)
        ids = [passage.id for passage in pool]
        texts = [passage.titled_text for passage in pool]
        bm25, tfidf = BM25Index(texts), TfidfIndex(texts)
        search = PathSearch(PromptRank("unigram"), pool)

        def ranked(index: TextIndex, question: str, ids: list[str] = ids) -> list[str]:
            return [ids[i] for i in top(index.scores(question), 100)]

        methods = {
            "BM25": partial(ranked, bm25),
            "TF-IDF": partial(ranked, tfidf),
            "path search": lambda question, search=search: [r.passage.id for r in search.search(question)],
        }
        for name, method in methods.items():
            started = time.perf_counter()
            rankings = [method(item["question"]) for item in questions]
            seconds = time.perf_counter() - started
            recalls = [
                sum(recall_all(ranking, item["gold"], k) for ranking, item in zip(rankings, questions, strict=True))
                / len(questions)
                for k in (2, 10, 20)
            ]
            table.add_row(
                dataset,
                str(len(questions)),
                name,
                *(f"{value:.3f}" for value in recalls),
                f"{1000 * seconds / len(questions):.1f}",
            )
    Console().print(table)
