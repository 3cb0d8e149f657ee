"""References inside documents: how often evidence lies behind one, and what following them brings.

QASPER's papers, paragraph by paragraph; with `--data`, a checkout of https://github.com/patronus-ai/financebench, the
annual reports whose names begin with A to J, page by page.
"""

from __future__ import annotations

from pathlib import Path
from statistics import mean

from rich.console import Console
from rich.table import Table

from drillrank import D3, PathSearch, PromptRank
from drillrank.evaluation.metrics import recall
from drillrank.multihop.reference_links import ReferenceLinks

from .financebench import Report, reports
from .long_documents import Paper, papers

FOUND = 5  # paragraphs, or pages
_PARAGRAPHS = 100  # of a report's ranking: they hold five different pages


def main(data: str | None = None, questions: int | None = None) -> None:
    d3 = D3()
    console = Console(width=120)
    if data is not None:
        table = Table("FinanceBench, A to J, without an LLM", "", title=f"Evidence behind references of {FOUND} pages")
        for row in _of_reports(
            [report for report in reports(Path(data), console) if report.name[0] <= "J"], d3
        ).items():
            table.add_row(*row)
        console.print(table)
    titles = ("tuning", "development")
    table = Table("QASPER, without an LLM", *titles, title=f"Evidence behind references of the first {FOUND} of D3")
    columns = [_measured(papers(name, d3, questions), d3) for name in ("qasper_tune", "qasper")]
    for name in columns[0]:
        table.add_row(name, *(column[name] for column in columns))
    console.print(table)


def _of_reports(read: list[Report], d3: D3) -> dict[str, str]:
    asked = gold = missed = behind = pages = led = 0
    for report in read:
        ready = d3.prepare([report.document])
        links = ReferenceLinks().over(ready.readable)
        pages_of = {
            one.id: set(range(one.metadata["pages"][0], one.metadata["pages"][1] + 1)) for one in ready.readable
        }
        behind_page: dict[int, set[int]] = {}
        for one in ready.readable:
            targets = set().union(*(pages_of[id_] for id_ in links(one)))
            for page in pages_of[one.id]:
                behind_page.setdefault(page, set()).update(targets - {page})
        for question in report.questions:
            ranking = d3.retrieve(question.text, ready, _PARAGRAPHS)
            first = list(dict.fromkeys(page for item in ranking for page in sorted(pages_of[item.passage.id])))[:FOUND]
            led_to = set().union(*(behind_page.get(page, ()) for page in first)).difference(first)
            asked += 1
            gold += len(question.pages)
            missed += len(question.pages.difference(first))
            behind += len(question.pages & led_to)
            led += len(led_to)
            pages += len(report.pages) - len(first)
    return {
        "questions": str(asked),
        "evidence pages": str(gold),
        f"of these not among the first {FOUND}": str(missed),
        "of these behind a reference on one of the first": str(behind),
        "pages behind a reference, a question": f"{led / asked:.1f}",
        "of these that would be expected to be evidence by chance": f"{missed * led / pages:.1f}",
    }


def _measured(read: list[Paper], d3: D3) -> dict[str, str]:
    linking = asked = pointing = gold = missed = behind = 0
    plain, following = [], []
    for paper in read:
        ready, links = paper.ready, ReferenceLinks().over(paper.ready.readable)
        leading = {paragraph.id: set(links(paragraph)) for paragraph in ready.readable}
        linking += sum(map(bool, leading.values()))
        searches = [
            PathSearch(PromptRank("unigram"), ready.readable, links=source, settings={"pairs": 0})
            for source in (lambda _: (), ReferenceLinks())
        ]
        for question in paper.questions:
            asked += 1
            first = [item.passage.id for item in d3.retrieve(question.text, ready, FOUND)]
            led_to = set().union(*(leading[id_] for id_ in first))
            pointing += bool(led_to)
            gold += len(question.gold)
            missed += len(question.gold.difference(first))
            behind += len(question.gold.difference(first) & led_to)
            for search, recalls in zip(searches, (plain, following), strict=True):
                found = [item.passage.id for item in search.search(question.text, FOUND)]
                recalls.append(recall(found, question.gold, FOUND))
    return {
        "questions": str(asked),
        "paragraphs that refer to another one": str(linking),
        "questions for which one of the first refers to another": str(pointing),
        "evidence paragraphs": str(gold),
        "of these not among the first": str(missed),
        "of these behind a reference of the first": str(behind),
        f"recall@{FOUND} of paths without links": f"{mean(plain):.3f}",
        f"recall@{FOUND} of paths over references": f"{mean(following):.3f}",
    }
