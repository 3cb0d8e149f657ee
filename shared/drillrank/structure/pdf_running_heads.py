"""Running heads, running feet and page numbers of a PDF."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from drillrank.structure.pdf_text import LayoutRow

_OUTERMOST = 4  # rows at the top and at the bottom that may be running heads or feet
_LEAST_PAGES = 3  # pages that they are on
_PAGE_SHARE = 0.04  # share of all pages that they are on
_LARGE = 1.15  # times the size of most text: a larger row is a heading that many pages begin with
_SMALL_NUMBER = re.compile(r"(?<![\d,.$])\d{1,3}(?![\d,]|\.\d)")
_PAGE_NUMBER = re.compile(r"(?:page\s*)?[-–|]?\s*(?:\d{1,4}|[ivxlc]{1,6}|[A-Z]{1,2}-\d{1,3})\s*[-–|]?", re.IGNORECASE)
_RowKey = tuple[str, int]  # words of a row and its height on the page; equal on two pages if the row repeats


def remove_running_rows(pages: Sequence[list[LayoutRow]]) -> list[list[LayoutRow]]:
    """Return the rows of each page without page numbers and without rows at its edges that repeat on other pages."""
    key_counts: Counter[_RowKey] = Counter()
    sizes: Counter[float] = Counter()
    edges = []
    for page_index, rows in enumerate(pages):
        ordered = sorted(rows, key=lambda row: row.y)
        edges.append((ordered[:_OUTERMOST], ordered[::-1][:_OUTERMOST]))
        key_counts.update({key for side in edges[-1] for row in side for key in _row_keys(row, page_index)})
        for row in rows:
            sizes[row.size] += len(row.text)
    largest = _LARGE * sizes.most_common(1)[0][0] if sizes else 0.0
    least = max(_LEAST_PAGES, round(_PAGE_SHARE * len(pages)))
    remaining = []
    for page_index, rows in enumerate(pages):
        running: set[LayoutRow] = set()
        for side in edges[page_index]:  # from the edge inwards: a row inside the text is not a running head
            for row in side:
                repeats = row.size <= largest and any(key_counts[key] >= least for key in _row_keys(row, page_index))
                if not repeats and not (len(row.cells) == 1 and _PAGE_NUMBER.fullmatch(row.text)):
                    break
                running.add(row)
        # If all rows of a page repeat, they are its text.
        remaining.append([row for row in rows if row not in running] or rows)
    return remaining


def _row_keys(row: LayoutRow, page_index: int) -> tuple[_RowKey, _RowKey]:
    """Return the keys of a row. Numbers become relative to the page's index: page numbers are equal on all pages.

    There are two bands of heights: a height at the border of one is in the middle of the other.
    """
    words = _SMALL_NUMBER.sub(lambda match: f"#{int(match[0]) - page_index}", row.text.casefold())
    return (words, int(row.y // 6)), (words, int((row.y + 3) // 6) + 10_000)
