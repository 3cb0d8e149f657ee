"""Running headers, footers and page numbers: what stands at the same place of many pages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from drillrank.structure.pdf.rows import Row

_OUTERMOST = 4  # rows at the top and at the bottom that may be
_LEAST = 3  # pages that they are on
_PART = 0.04  # of all pages
_LARGE = 1.15  # of the size of most text: a heading that many pages begin with
_SMALL_NUMBER = re.compile(r"(?<![\d,.$])\d{1,3}(?![\d,]|\.\d)")
_PAGE_NUMBER = re.compile(r"(?:page\s*)?[-–|]?\s*(?:\d{1,4}|[ivxlc]{1,6}|[A-Z]{1,2}-\d{1,3})\s*[-–|]?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Place:
    """What makes two rows of two pages the same: their words, and how high they stand."""

    words: str
    y: int


def without_running(pages: Sequence[list[Row]]) -> list[list[Row]]:
    """The rows of each page without those at its edges that repeat on others, and without a page number."""
    seen: Counter[_Place] = Counter()
    sizes: Counter[float] = Counter()
    for number, rows in enumerate(pages):
        ordered = sorted(rows, key=lambda row: row.y)
        outer = {id(row): row for row in (*ordered[:_OUTERMOST], *ordered[-_OUTERMOST:])}
        seen.update({place for row in outer.values() for place in _places(row, number)})
        for row in rows:
            sizes[row.size] += len(row.text)
    largest = _LARGE * sizes.most_common(1)[0][0] if sizes else 0.0
    least = max(_LEAST, round(_PART * len(pages)))
    running = {place for place, count in seen.items() if count >= least}
    return [_inside(rows, number, running, largest) for number, rows in enumerate(pages)]


def _inside(rows: list[Row], number: int, running: set[_Place], largest: float) -> list[Row]:
    """Peeled from the edges: what stands inside of the text is no header."""
    ordered = sorted(rows, key=lambda row: row.y)
    peeled: set[int] = set()
    for side in (ordered[:_OUTERMOST], ordered[::-1][:_OUTERMOST]):
        for row in side:
            # of a place that falls between two others, one of both is seen on every page
            repeats = row.size <= largest and any(place in running for place in _places(row, number))
            if not repeats and not (len(row.cells) == 1 and _PAGE_NUMBER.fullmatch(row.text)):
                break
            peeled.add(id(row))
    return [row for row in rows if id(row) not in peeled] or rows  # a page that is all the same is no header


def _places(row: Row, number: int) -> tuple[_Place, _Place]:
    """Numbers count from the page's own: those that rise with it are page numbers."""
    words = _SMALL_NUMBER.sub(lambda found: f"#{int(found[0]) - number}", row.text.casefold())
    return _Place(words, int(row.y // 6)), _Place(words, int((row.y + 3) // 6) + 10_000)
