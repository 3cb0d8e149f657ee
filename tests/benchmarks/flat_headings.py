"""Headings that nothing marks: QASPER with its heading marks stripped, and the fonts of PDFs against their bookmarks.

Rules were chosen on `qasper_tune`, and on FinanceBench's reports from A to J. With `--data`, a checkout of
https://github.com/patronus-ai/financebench, the headings that fonts give are compared with the titles of bookmarks that
are printed in the file; fonts find many more headings than a file has bookmarks, so precision says little there.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from drillrank import parse_document
from drillrank.errors import InvalidInput
from drillrank.structure import Document
from drillrank.structure.pdf.reading import printed_pages, text_of

from .data import read

_MARK = re.compile(r"^#{1,6}[ \t]+(?=\S)", re.MULTILINE)
_ENOUGH = 20  # bookmarks


def main(data: str | None = None, questions: int | None = None) -> None:
    console = Console(width=120)
    for name in ("qasper_tune", "qasper"):
        console.print(_stripped(name, questions))
    if data is not None:
        console.print(_bookmarks(Path(data)))


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


def _bookmarks(folder: Path) -> Table:
    totals: defaultdict[bool, Counter[str]] = defaultdict(Counter)
    for file in sorted((folder / "pdfs").glob("*.pdf")):
        try:
            printed_file = printed_pages(file.read_bytes())
        except InvalidInput:
            continue
        if len(printed_file.bookmarks) < _ENOUGH:
            continue
        gold = _titles(parse_document(text_of(printed_file)[0], "markdown"))
        text, _ = text_of(printed_file._replace(bookmarks=[]))
        by_fonts = _titles(parse_document(text, "markdown"))
        printed = _printed(text)
        own = totals[file.name[0] <= "J"]
        own["files"] += 1
        own["bookmarks"] += sum(1 for title in gold if title in printed)
        own["found"] += sum(1 for title in gold if title in printed and title in by_fonts)
        own["headings"] += by_fonts.total()
    table = Table("reports", "files", "bookmarks that are printed", "found by fonts", "headings by fonts")
    for part, own in sorted(totals.items(), reverse=True):
        recall = f"{own['found'] / own['bookmarks']:.3f}"
        counts = [str(own[name]) for name in ("files", "bookmarks", "headings")]
        table.add_row("A to J" if part else "K to Z", *counts[:2], recall, counts[2])
    return table


def _printed(text: str) -> set[str]:
    return set(map(_plain, text.splitlines()))
