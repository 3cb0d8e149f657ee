"""Headings that nothing marks: QASPER with its heading marks stripped. Rules were chosen on `qasper_tune`."""

from __future__ import annotations

import re
from collections import Counter

from rich.console import Console
from rich.table import Table

from drillrank import parse_document
from drillrank.structure import Document

from .data import read

_MARK = re.compile(r"^#{1,6}[ \t]+(?=\S)", re.MULTILINE)


def main(questions: int | None = None) -> None:
    for name in ("qasper_tune", "qasper"):
        Console(width=120).print(_stripped(name, questions))


def _titles(document: Document) -> Counter[str]:
    return Counter(_plain(section.heading) for section in document.sections() if section.heading)


def _plain(title: str) -> str:
    return " ".join(re.findall(r"\w+", title.casefold()))


def _stripped(name: str, papers: int | None) -> Table:
    right: Counter[float] = Counter()
    found: Counter[float] = Counter()
    wanted = 0
    for item in list(read(f"longdoc/{name}"))[:papers]:
        gold = _titles(parse_document(item["markdown"], "markdown"))
        wanted += gold.total()
        for section in parse_document(_MARK.sub("", item["markdown"])).sections():
            if section.heading:
                found[section.confidence] += 1
                title = _plain(section.heading)
                right[section.confidence] += gold[title] > 0
                gold[title] -= 1
    table = Table("confidence", "headings", "right", title=f"{name} without heading marks")
    for confidence in sorted(found, reverse=True):
        table.add_row(f"{confidence:.2f}", str(found[confidence]), f"{right[confidence] / found[confidence]:.3f}")
    table.add_row("all: precision, recall", f"{right.total() / found.total():.3f}", f"{right.total() / wanted:.3f}")
    return table
