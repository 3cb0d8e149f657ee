"""Headings of a PDF: its bookmarks, or blocks that stand out by their font."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from drillrank.structure.pdf_blocks import PrintedBlock
from drillrank.structure.pdf_text import LayoutRow
from drillrank.structure.plain import named_rank

_DEEPEST = 6  # heading level of Markdown
_LONGEST = 140  # characters of a heading
_USUAL = 3  # headings of a style that is not rare, if there are many headings
_MANY = 20
_LEAST_NAMED = 3  # headings that call themselves a part, chapter or item
_Style = tuple[float, bool, bool]  # size, bold, capitals
_WORD = re.compile(r"\w+")
_CAPTION = re.compile(r"\(|.*\b(?:ended|as of|(?:in|of) (?:millions|thousands|billions))\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Entry of the outline of a file.

    Attributes:
        title: Title with single spaces.
        level: Level in the outline, at least 1.
        page_index: Index of the page, starting at 0.
        y: Distance from the top of the page in points, or None if the bookmark names only the page.
    """

    title: str
    level: int
    page_index: int
    y: float | None = None


def match_bookmarks(
    bookmarks: Iterable[Bookmark], pages: Sequence[Sequence[LayoutRow]]
) -> dict[LayoutRow, dict[str, int]]:
    """Return levels by title of the bookmarks, by the row that they name; one row may begin several sections.

    A bookmark whose title is not on its page or the next names the row that it points to.
    """
    titles_by_row: dict[LayoutRow, dict[str, int]] = {}
    last = (-1, -1)
    for mark in bookmarks:
        if not 0 <= mark.page_index < len(pages) or not mark.title:
            continue
        position = _find_title(mark, pages, last)
        if position is None and pages[mark.page_index]:
            distances = [0.0 if mark.y is None else abs(row.y - mark.y) for row in pages[mark.page_index]]
            position = mark.page_index, distances.index(min(distances))
        if position is not None:
            last = max(last, position)
            titles = titles_by_row.setdefault(pages[position[0]][position[1]], {})
            titles.setdefault(mark.title, min(mark.level, _DEEPEST))
    return titles_by_row


def _find_title(mark: Bookmark, pages: Sequence[Sequence[LayoutRow]], last: tuple[int, int]) -> tuple[int, int] | None:
    """Return the page index and row index, after `last`, of the title of a bookmark."""
    title = _title_words(mark.title)
    for page_index in range(mark.page_index, min(mark.page_index + 2, len(pages))):
        candidates: list[tuple[float, tuple[int, int]]] = []
        for row_index, row in enumerate(pages[page_index]):
            text = _title_words(row.text)
            # The title may continue on the next line, or text may follow it on its line.
            begins = len(text) > 5 and (title.startswith(text) or (text.startswith(title) and len(title) > 5))
            if (text == title or begins) and (page_index, row_index) > last:
                distance = 0.0 if mark.y is None else abs(row.y - mark.y)
                candidates.append((distance + 40 * (text != title), (page_index, row_index)))
        if candidates:
            return min(candidates)[1]
    return None


def _title_words(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))


def levels_by_font(blocks: Sequence[PrintedBlock], deepest_bookmark: int) -> dict[PrintedBlock, int]:
    """Return levels of blocks that stand out by their font: they are larger than the text, or bold.

    A heading that calls itself a part, chapter or item ranks above the others.

    Args:
        blocks: Blocks of the whole file.
        deepest_bookmark: Level that all of these headings are below.
    """
    text_styles: Counter[tuple[float, bool]] = Counter({(0.0, False): 0})
    for block in blocks:
        if block.kind != "table":
            text_styles[block.size, block.bold] += sum(len(row.text) for row in block.rows)
    size, bold = text_styles.most_common(1)[0][0]
    styles: dict[PrintedBlock, _Style] = {}
    ranks: dict[PrintedBlock, int] = {}
    for block, after in zip(blocks, [*blocks[1:], None], strict=False):
        if _is_heading(block, size, bold, after):
            text = block.text
            styles[block] = block.size, block.bold, text.isupper()
            if (rank := named_rank(text)) is not None:
                ranks[block] = rank
    if len(ranks) < _LEAST_NAMED:
        ranks = {}
    level_by_rank = {rank: deepest_bookmark + level for level, rank in enumerate(sorted(set(ranks.values())), 1)}
    level_by_style = _style_levels([style for block, style in styles.items() if block not in ranks])
    above = deepest_bookmark + len(level_by_rank)
    return {
        block: min(level_by_rank[ranks[block]] if block in ranks else above + level_by_style[style], _DEEPEST)
        for block, style in styles.items()
    }


def _style_levels(styles: Sequence[_Style]) -> dict[_Style, int]:
    """Return levels of styles, the largest first; a rare style has the level of the next smaller one."""
    counts = Counter(styles)
    least = _USUAL if len(styles) >= _MANY else 1
    levels: dict[_Style, int] = {}
    level, is_usual = 1, False
    for style in sorted(counts, reverse=True):
        level += is_usual
        levels[style] = level
        is_usual = counts[style] >= least or style == styles[0]  # the first may be the title
    return levels


def _is_heading(block: PrintedBlock, size: float, bold: bool, after: PrintedBlock | None) -> bool:
    """Return True if a block reads like a heading and its font stands out from the size and weight of most text."""
    text = block.text
    n_letters = sum(map(str.isalpha, text))
    if block.kind == "table" or len(block.rows) > 2 or len(text) > _LONGEST or n_letters < max(3, 0.5 * len(text)):
        return False
    if text[0].islower() or text.endswith((".", ",", ";")) or _CAPTION.match(text):
        return False
    heads_table = after is not None and after.kind == "table" and len(block.rows[0].cells) > 1
    stands_out = block.size > 1.08 * size or (block.bold and not bold)
    return stands_out and block.size > 0.9 * size and not heads_table
