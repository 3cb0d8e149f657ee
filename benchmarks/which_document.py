"""Which document, which page: FinanceBench's reports of one half together in one folder, asked by words alone.

`--data` is a checkout of https://github.com/patronus-ai/financebench. Weights were chosen on the reports whose names
begin with A to J; K to Z are the test. doc@k: whether the report of the question is among the first k different ones of
a ranking of paragraphs; page@k: the share of the question's evidence pages among the first k different pages. Names are
as they are, or replaced by hashes, which say nothing.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from drillrank import D3
from drillrank.evaluation.metrics import recall
from drillrank.vectors import BM25Index, of_unit_length, top

from .financebench import Report, is_for_tuning, reports
from .minilm import minilm

DOCUMENTS, PAGES = (1, 5), (1, 3, 5, 10)
_PARAGRAPHS = 400  # of a ranking: they hold ten different pages

Place = tuple[int | str, int]  # of a page: the number of its report, and its own
Ranker = Callable[[str, int], Iterable[Place]]  # a question, and its report


def main(data: str, model: str | None = None, vectors: str | None = None) -> None:
    """Print the table of each half.

    Args:
        data: The checkout.
        model: Of D3; more than one with commas between; the unigram model by default.
        vectors: A folder that MiniLM's vectors of pages are kept in: then BM25 is also fused with it. Takes long.
    """
    console = Console(width=120)
    read = reports(Path(data), console)
    for half, part in (("A to J, for tuning", True), ("K to Z, the test", False)):
        chosen = [report for report in read if is_for_tuning(report.name) == part]
        console.print(_table(half, chosen, (model or "unigram").split(","), None if vectors is None else Path(vectors)))


def _table(half: str, chosen: Sequence[Report], models: Sequence[str], vectors: Path | None) -> Table:
    asked = sum(len(report.questions) for report in chosen)
    columns = [*(f"doc@{k}" for k in DOCUMENTS), *(f"page@{k}" for k in PAGES)]
    table = Table("method", *columns, "s", title=f"{half}: {len(chosen)} reports in one folder, {asked} questions")
    for name, ranker in _rankers(chosen, models, vectors):
        started = time.perf_counter()
        rows = [
            measures([*ranker(question.text, number)], number, question.pages)
            for number, report in enumerate(chosen)
            for question in report.questions
        ]
        seconds = (time.perf_counter() - started) / asked
        table.add_row(name, *(f"{value:.3f}" for value in np.mean(rows, axis=0)), f"{seconds:.2f}")
    return table


def measures(places: Sequence[Place], document: int | str, pages: Iterable[int]) -> list[float]:
    """doc@k and page@k of a ranking of pages, given the question's document and pages."""
    documents = [*dict.fromkeys(number for number, _ in places)]
    different = [*dict.fromkeys(places)]
    gold = {(document, page) for page in pages}
    found = [float(document in documents[:k]) for k in DOCUMENTS]
    return found + [recall(different[:k], gold, k) for k in PAGES]


def _rankers(chosen: Sequence[Report], models: Sequence[str], folder: Path | None) -> Iterable[tuple[str, Ranker]]:
    places = [(number, page) for number, report in enumerate(chosen) for page in range(1, len(report.pages) + 1)]
    texts = [text for report in chosen for text in report.pages]
    bm25 = BM25Index(texts)
    yield "BM25 over pages", lambda question, _: [places[at] for at in top(bm25.scores(question), 1000)]
    if folder is not None:
        embed = minilm("bfloat16")
        folder.mkdir(parents=True, exist_ok=True)
        kept = folder / f"pages-{hashlib.sha1(repr(texts).encode()).hexdigest()[:16]}.npy"
        if not kept.exists():
            np.save(kept, np.asarray(embed(texts), dtype=np.float32))
        vectors = of_unit_length(np.load(kept).astype(np.float64))

        def fused(question: str, _: int) -> list[Place]:
            cosines = vectors @ of_unit_length(np.asarray(embed([question]), dtype=np.float64))[0]
            scores = np.zeros(len(texts))
            for one in (bm25.scores(question), cosines):
                order = top(one, len(texts))
                scores[order] += 1 / (60 + np.arange(1, len(order) + 1))
            return [places[at] for at in top(scores, 1000)]

        yield "BM25 and MiniLM over pages, reciprocal ranks", fused
    for model in models:
        for name, names in (
            ("names as they are", [f"{report.name}.pdf" for report in chosen]),
            ("names are hashes", [f"{hashlib.sha1(report.name.encode()).hexdigest()}.pdf" for report in chosen]),
        ):
            yield f"D3, {model}: {name}", _drilled(chosen, D3(model=model, settings={"unit": "paragraph"}), names)
        yield (
            f"D3, {model}: the report given",
            _drilled_in_given(chosen, D3(model=model, settings={"unit": "paragraph"})),
        )


def _drilled(chosen: Sequence[Report], d3: D3, names: Sequence[str]) -> Ranker:
    ready = d3.prepare([report.document for report in chosen], names)

    def ranked(question: str, _: int) -> Iterable[Place]:
        for item in d3.retrieve(question, ready, _PARAGRAPHS):
            place = item.passage.metadata
            yield from ((place["document"], page) for page in range(place["pages"][0], place["pages"][1] + 1))

    return ranked


def _drilled_in_given(chosen: Sequence[Report], d3: D3) -> Ranker:
    ready = [d3.prepare([report.document]) for report in chosen]

    def ranked(question: str, number: int) -> Iterable[Place]:
        for item in islice(d3.retrieve(question, ready[number], _PARAGRAPHS), _PARAGRAPHS):
            first, last = item.passage.metadata["pages"]
            yield from ((number, page) for page in range(first, last + 1))

    return ranked
