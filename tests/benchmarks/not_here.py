"""Does anything here speak of the question? How many are refused by words alone, where the answer is there or not.

`--data` is a checkout of https://github.com/patronus-ai/financebench. Questions about reports are asked of all reports
of their half, of those without the ones of their company, and of documents of another kind: README files and papers of
QASPER, together and each alone; questions about READMEs and papers likewise. The weights were fitted on the reports
whose names begin with A to J and on tuning papers; K to Z and other papers are the test. READMEs are in both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

from rich.console import Console
from rich.table import Table

from drillrank import D3, parse_document
from drillrank.drilldown.prepared import PreparedDocuments

from .data import read
from .financebench import Report, is_for_tuning, reports
from .readme_folder import QUESTIONS, folder

PAPERS = 25
Asked = tuple[PreparedDocuments, str]


def main(data: str) -> None:
    """Print the table of each half.

    Args:
        data: The checkout.
    """
    console = Console(width=120)
    found = reports(Path(data), console)
    for half, part, papers in (
        ("A to J and tuning papers", True, "qasper_tune"),
        ("K to Z and other papers", False, "qasper"),
    ):
        console.print(_table(half, [report for report in found if is_for_tuning(report.name) == part], papers))


def _table(half: str, chosen: Sequence[Report], papers: str) -> Table:
    d3 = D3()
    table = Table("questions about", "asked of", "it is there", "refused", title=half)

    def add(about: str, of: str, there: bool, asked: Iterable[Asked]) -> None:
        refused = [not d3.retrieve(question, ready, 1).found for ready, question in asked]
        share = f"{sum(refused)} of {len(refused)}, {sum(refused) / len(refused):.0%}"
        table.add_row(about, of, "yes" if there else "no", share)

    def prepared(some: Sequence[Report]) -> PreparedDocuments:
        return d3.prepare([report.document for report in some], [f"{report.name}.pdf" for report in some])

    whole = prepared(chosen)
    on_reports = [question.text for report in chosen for question in report.questions]
    add("reports", "all reports", True, ((whole, question) for question in on_reports))
    others = {
        _company(one): prepared([report for report in chosen if _company(report) != _company(one)]) for one in chosen
    }
    of_others = ((others[_company(report)], question.text) for report in chosen for question in report.questions)
    add("reports", "those of other companies", False, of_others)

    files = folder()
    readmes = d3.prepare(list(files.values()), list(files))
    add("reports", "READMEs", False, ((readmes, question) for question in on_reports))
    items = list(islice(read(f"longdoc/{papers}"), PAPERS))
    documents = [parse_document(item["markdown"], "markdown") for item in items]
    alone = [d3.prepare([document]) for document in documents]
    on_papers = [
        (at, asked["question"])
        for at, item in enumerate(items)
        for asked in item["questions"]
        if any(asked["evidence"])
    ]
    library = d3.prepare(documents)
    add("reports", f"{len(items)} papers", False, ((library, question) for question in on_reports))
    singles = ((alone[at % len(alone)], question) for at, question in enumerate(on_reports))
    add("reports", "one paper", False, singles)
    add("READMEs", "READMEs", True, ((readmes, question) for question, *_ in QUESTIONS))
    add("READMEs", "all reports", False, ((whole, question) for question, *_ in QUESTIONS))
    add("papers", "the paper", True, ((alone[at], question) for at, question in on_papers))
    add("papers", "another paper", False, ((alone[(at + 7) % len(alone)], question) for at, question in on_papers))
    add("papers", "all reports", False, ((whole, question) for _, question in on_papers))
    return table


def _company(report: Report) -> str:
    return report.name.partition("_")[0]
