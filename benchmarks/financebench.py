"""FinanceBench: on which pages of an annual report the answer stands, all methods on the same extracted text.

`--data` is a checkout of https://github.com/patronus-ai/financebench. Settings were chosen on the reports whose names
begin with A to J; the others are the test. Questions whose report is not in the checkout are left out, and counted.
`--questions` leaves those that come after so many of each part. Page recall at k is the share of a question's evidence
pages among the first k different pages of a ranking.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from drillrank import D3, read_document
from drillrank.errors import InvalidInput
from drillrank.evaluation.metrics import recall
from drillrank.evaluation.settings_file import keyword_arguments
from drillrank.structure import Document
from drillrank.vectors import BM25Index, top
from drillrank.views import VIEWS, MultiViewChunker, MultiViewIndex

from .measure import bootstrap_interval
from .minilm import INSTALLED, Embed, minilm

KS = (1, 3, 5, 10)
BASELINE = "BM25 over pages"
_PARAGRAPHS = 300  # of a ranking: they hold ten different pages
_CHUNKS = 100

Ranking = Iterable[int]  # pages, best first, perhaps more than once
Method = Callable[[str], Ranking]


@dataclass(frozen=True)
class Question:
    """A question, and the numbers of the pages that hold the evidence."""

    text: str
    pages: frozenset[int]


@dataclass(frozen=True)
class Report:
    """A report and its questions."""

    name: str
    document: Document
    questions: tuple[Question, ...]

    @property
    def pages(self) -> list[str]:
        """The text of each page."""
        assert self.document.pages is not None
        return [self.document.text[a:b] for a, b in pairwise([*self.document.pages.starts, len(self.document.text)])]

    def pages_of(self, start: int, end: int) -> Iterator[int]:
        """The pages of a span."""
        first, last = self.document.page_numbers(start, end) or (1, 1)
        yield from range(first, last + 1)


def reports(
    folder: Path, console: Console, most: int | None = None, read: Callable[[Path], Document] = read_document
) -> list[Report]:
    """All reports that are there, or those of so many questions of each part; how long reading took is printed."""
    lines = (folder / "data" / "financebench_open_source.jsonl").read_text(encoding="utf-8").splitlines()
    asked: dict[str, list[Question]] = {}
    for entry in map(json.loads, lines):
        pages = frozenset(int(evidence["evidence_page_num"]) + 1 for evidence in entry["evidence"])
        asked.setdefault(entry["doc_name"], []).append(Question(entry["question"], pages))
    found, missing = [], 0
    started = time.perf_counter()
    taken: Counter[bool] = Counter()
    for name, questions in sorted(asked.items()):
        if most is not None and taken[is_for_tuning(name)] >= most:
            continue
        try:
            document = read(folder / "pdfs" / f"{name}.pdf")
        except InvalidInput as problem:
            console.print(f"left out: {problem}", markup=False)
            missing += len(questions)
            continue
        found.append(Report(name, document, tuple(questions)))
        taken[is_for_tuning(name)] += len(questions)
    seconds = time.perf_counter() - started
    pages = sum(len(report.pages) for report in found)
    console.print(
        f"{len(found)} reports, {pages} pages, {pages / seconds:.0f} pages a second; {missing} questions left out"
    )
    return found


def is_for_tuning(name: str) -> bool:
    """Whether settings may have been chosen on this report."""
    return name[0] <= "J"


def page_bm25(report: Report) -> Method:
    index = BM25Index(report.pages)
    return lambda question: [page + 1 for page in top(index.scores(question), len(report.pages))]


def page_dense(embed: Embed) -> Callable[[Report], Method]:
    def of(report: Report) -> Method:
        vectors = embed(report.pages)
        return lambda question: [int(page) + 1 for page in np.argsort(-(vectors @ embed([question])[0]), kind="stable")]

    return of


def views(**settings: object) -> Callable[[Report], Method]:
    """Chunks in views, found by BM25 in each."""
    chunker = MultiViewChunker(**keyword_arguments(MultiViewChunker, settings))

    def of(report: Report) -> Method:
        [chunks] = chunker.chunks([(report.name, report.document)])
        index = MultiViewIndex(chunks)
        spans = {chunk.section_id: (chunk.start, chunk.end) for chunk in chunks if chunk.view == "raw"}

        def ranked(question: str) -> Ranking:
            for hit in index.search(question, _CHUNKS):
                yield from report.pages_of(*spans[hit.section_id])

        return ranked

    return of


def drilled(report: Report, unit: str = "paragraph") -> Method:
    """D3 without an LLM."""
    d3 = D3(settings={"unit": unit})
    ready = d3.prepare([report.document])

    def ranked(question: str) -> Ranking:
        for item in d3.retrieve(question, ready, top_n=_PARAGRAPHS):
            yield from report.pages_of(item.passage.metadata["start"], item.passage.metadata["end"])

    return ranked


METHODS: dict[str, Callable[[Report], Method]] = {
    BASELINE: page_bm25,
    "BM25 over chunks of 300 tokens": views(views=["raw"], chunking="fixed", max_tokens=300),
    "three views of sections": views(views=VIEWS, max_tokens=300, context=["headings"]),
    "D3, paragraphs": drilled,
    "D3, passages": partial(drilled, unit="passage"),
}


def main(data: str, questions: int | None = None) -> None:
    console = Console(width=120)
    # The vectors in bfloat16 have a cosine of 0.9998 to those of float32.
    methods = METHODS | ({"MiniLM over pages": page_dense(minilm("bfloat16"))} if INSTALLED else {})
    print_tables(console, reports(Path(data), console, questions), methods)


def print_tables(console: Console, read: Sequence[Report], methods: Mapping[str, Callable[[Report], Method]]) -> None:
    """A table of each part."""
    for title, part in (("A to J, for tuning", True), ("K to Z, the test", False)):
        chosen = [report for report in read if is_for_tuning(report.name) == part]
        if chosen:
            console.print(_table(title, chosen, methods))


def recalls(ranking: Ranking, pages: frozenset[int]) -> list[float]:
    """Recall at each k."""
    best = [*dict.fromkeys(islice(ranking, 10_000))]
    return [recall(best, pages, k) for k in KS]


def _table(title: str, chosen: Sequence[Report], methods: Mapping[str, Callable[[Report], Method]]) -> Table:
    questions = sum(len(report.questions) for report in chosen)
    table = Table(
        "method",
        *(f"{k} pages" for k in KS),
        "of BM25 at 3",
        "95 %",
        "ms",
        title=f"{title}: {questions} questions, {len(chosen)} reports",
    )
    found: dict[str, np.ndarray] = {}
    for name, method in methods.items():
        rows, seconds = [], 0.0
        for report in chosen:
            ask = method(report)
            started = time.perf_counter()
            rows += [recalls(ask(question.text), question.pages) for question in report.questions]
            seconds += time.perf_counter() - started
        found[name] = np.array(rows)
        at_3, base = found[name][:, 1], found[BASELINE][:, 1]
        low, high = bootstrap_interval(at_3 - base)
        table.add_row(
            name,
            *(f"{value:.3f}" for value in found[name].mean(axis=0)),
            f"{at_3.mean() / base.mean():.2f}",
            f"{low:+.3f} {high:+.3f}",
            f"{1000 * seconds / questions:.0f}",
        )
    return table
