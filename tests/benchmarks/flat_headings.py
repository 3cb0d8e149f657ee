"""Headings that nothing marks: QASPER with its heading marks stripped, and the fonts of PDFs against their bookmarks.

Rules were chosen on `qasper_tune`, and on FinanceBench's reports from A to J. With `--data`, a checkout of
https://github.com/patronus-ai/financebench, the headings that fonts give are compared with the titles of bookmarks that
are printed in the file; fonts find many more headings than a file has bookmarks, so precision is a lower bound.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from drillrank import parse_document
from drillrank.errors import InvalidInput
from drillrank.structure import Document
from drillrank.structure.pdf import bookmarks_of, printed_pages, text_of

from .data import read

_MARK = re.compile(r"^#{1,6}[ \t]+(?=\S)", re.MULTILINE)
_ENOUGH = 20  # bookmarks


def main(data: str | None = None, questions: int | None = None) -> None:
    console = Console(width=120)
    for name in ("qasper_tune", "qasper"):
        console.print(_stripped(name, questions))
    if data is not None:
        files = sorted((Path(data) / "pdfs").glob("*.pdf"))
        console.print(_bookmarks([file for file in files if file.name[0] <= "J"], "from A to J"))
        console.print(_bookmarks([file for file in files if file.name[0] > "J"], "from K to Z"))


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


def _bookmarks(files: Sequence[Path], name: str) -> Table:
    """Headings by fonts, level by level, that are bookmarks; of all bookmarks those that are found."""
    right: Counter[int] = Counter()
    found: Counter[int] = Counter()
    wanted = read_files = 0
    for file in files:
        content = file.read_bytes()
        try:
            if len(bookmarks_of(content)) < _ENOUGH:
                continue
            printed_file = printed_pages(content)
        except InvalidInput:
            continue
        read_files += 1
        text, _ = text_of(printed_file._replace(bookmarks=[]))
        printed = _printed(text)
        gold = _titles(parse_document(text_of(printed_file)[0], "markdown"))
        gold = Counter({title: count for title, count in gold.items() if title in printed})
        wanted += gold.total()
        for section in parse_document(text, "markdown").sections():
            if section.heading:
                found[section.level] += 1
                title = _plain(section.heading)
                right[section.level] += gold[title] > 0
                gold[title] -= 1
    table = Table(
        "level", "headings", "bookmarks", title=f"headings by fonts in {read_files} reports {name} with bookmarks"
    )
    for level in sorted(found):
        table.add_row(str(level), str(found[level]), f"{right[level] / found[level]:.3f}")
    if wanted:
        table.add_row("all: precision, recall", f"{right.total() / found.total():.3f}", f"{right.total() / wanted:.3f}")
        table.add_row("bookmarks that are printed", str(wanted), "")
    return table


def _printed(text: str) -> set[str]:
    return set(map(_plain, text.splitlines()))
