"""References inside QASPER papers: how often evidence lies behind one, and what following them brings."""

from __future__ import annotations

from statistics import mean

from rich.console import Console
from rich.table import Table

from drillrank import D3, PathSearch, PromptRank
from drillrank.evaluation.metrics import recall
from drillrank.multihop.reference_links import ReferenceLinks

from .long_documents import Paper, papers

FOUND = 5  # paragraphs


def main(questions: int | None = None) -> None:
    d3 = D3()
    titles = ("tuning", "development")
    table = Table("QASPER, without an LLM", *titles, title=f"Evidence behind references of the first {FOUND} of D3")
    columns = [_measured(papers(name, d3, questions), d3) for name in ("qasper_tune", "qasper")]
    for name in columns[0]:
        table.add_row(name, *(column[name] for column in columns))
    Console(width=120).print(table)


def _measured(read: list[Paper], d3: D3) -> dict[str, str]:
    linking = asked = pointing = gold = missed = behind = 0
    plain, following = [], []
    for paper in read:
        ready, links = paper.ready, ReferenceLinks().over(paper.ready.readable)
        leading = {paragraph.id: set(links(paragraph)) for paragraph in ready.readable}
        linking += sum(map(bool, leading.values()))
        searches = [
            PathSearch(PromptRank("unigram"), ready.readable, links=source, pairs=0)
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
