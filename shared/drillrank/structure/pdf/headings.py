"""Which rows are headings, and how deep: bookmarks say so, or fonts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from drillrank.structure.numbering import named_rank
from drillrank.structure.pdf.blocks import PrintedBlock
from drillrank.structure.pdf.rows import Row

_DEEPEST = 6  # of Markdown
_ENOUGH = 0.2  # bookmarks a page: then they are all headings that there are
_LONGEST = 140  # characters of a heading
_USUAL = 3  # headings of a style, where there are many in all
_MANY = 20
_LEAST_NAMED = 3  # headings that call themselves a part, chapter or item
_Style = tuple[float, bool, bool]  # size, bold, capitals
_WORD = re.compile(r"\w+")
_CAPTION = re.compile(r"\(|.*\b(?:ended|as of|(?:in|of) (?:millions|thousands|billions))\b", re.IGNORECASE)
_CONTINUED = re.compile(r"[\s\-–—]*\(?continued\)?\s*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Bookmark:
    """An entry of a file's outline.

    Attributes:
        title: As a reader sees it.
        level: From 1 on.
        page: From 0.
        y: How far from the top of the page, in points; None if it names the page alone.
    """

    title: str
    level: int
    page: int
    y: float | None = None


def marked_rows(bookmarks: Iterable[Bookmark], pages: Sequence[Sequence[Row]]) -> dict[int, dict[str, int]]:
    """Titles and levels of bookmarks, by the identity of the row that they name; a row may begin several sections.

    A bookmark whose title is not on its page or the next stands at the row that it points to.
    """
    found: dict[int, dict[str, int]] = {}
    last = (-1, -1)
    for mark in bookmarks:
        if not 0 <= mark.page < len(pages) or not mark.title:
            continue
        place = _titled(mark, pages, last) or _pointed(mark, pages)
        if place is None:
            continue
        last = max(last, place)
        row = pages[place[0]][place[1]]
        found.setdefault(id(row), {}).setdefault(mark.title, min(mark.level, _DEEPEST))
    return found


def _titled(mark: Bookmark, pages: Sequence[Sequence[Row]], last: tuple[int, int]) -> tuple[int, int] | None:
    wanted = _plain(mark.title)
    near: list[tuple[float, tuple[int, int]]] = []
    for page in (mark.page, mark.page + 1):
        for at, row in enumerate(pages[page] if page < len(pages) else ()):
            said = _plain(row.text)
            whole = said == wanted
            # a title over two lines, or one that its text follows
            begins = len(said) > 5 and (wanted.startswith(said) or (said.startswith(wanted) and len(wanted) > 5))
            if (whole or begins) and (page, at) > last:
                far = 0.0 if mark.y is None else abs(row.y - mark.y)
                near.append((far + (0 if whole else 40) + 2000 * (page - mark.page), (page, at)))
        if near:
            break
    return min(near)[1] if near else None


def _pointed(mark: Bookmark, pages: Sequence[Sequence[Row]]) -> tuple[int, int] | None:
    rows = pages[mark.page]
    if not rows:
        return None
    if mark.y is None:
        return mark.page, 0
    y = mark.y
    return mark.page, min(range(len(rows)), key=lambda at: abs(rows[at].y - y))


def _plain(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))


def are_enough(marked: Mapping[int, object], pages: int) -> bool:
    """Whether bookmarks outline the whole file."""
    return len(marked) >= _ENOUGH * pages


def by_fonts(blocks: Sequence[PrintedBlock], below: int) -> dict[int, int]:
    """Levels of blocks that stand out by their font, by identity: larger than the text's, or bold.

    What calls itself a part, chapter or item stands above the others.

    Args:
        blocks: Of the whole file.
        below: A level above all of these.
    """
    size, bold = _of_text(blocks)
    styles: dict[int, _Style] = {}
    named: dict[int, int] = {}
    for block, after in zip(blocks, [*blocks[1:], None], strict=False):
        if _may_be(block, size, bold, after):
            text = _text(block)
            styles[id(block)] = block.size, block.bold, text.isupper()
            if (rank := named_rank(text)) is not None:
                named[id(block)] = rank
    if len(named) < _LEAST_NAMED:
        named = {}
    above = {rank: below + 1 + at for at, rank in enumerate(sorted(set(named.values())))}
    levels = _levels([style for block, style in styles.items() if block not in named])
    return {
        block: min(above[named[block]] if block in named else below + len(above) + levels[style], _DEEPEST)
        for block, style in styles.items()
    }


def _levels(styles: Sequence[_Style]) -> dict[_Style, int]:
    """Levels of styles, the largest first; one that is seldom used has the level of the next smaller one."""
    counts = Counter(styles)
    least = _USUAL if len(styles) >= _MANY else 1
    levels: dict[_Style, int] = {}
    level, usual = 1, False
    for style in sorted(counts, reverse=True):
        level += usual
        levels[style] = level
        usual = counts[style] >= least or style == styles[0]  # which may be the title
    return levels


def _of_text(blocks: Sequence[PrintedBlock]) -> tuple[float, bool]:
    """Size and weight of most of the text."""
    styles: Counter[tuple[float, bool]] = Counter()
    for block in blocks:
        if block.kind != "table":
            styles[block.size, block.bold] += sum(len(row.text) for row in block.rows)
    return styles.most_common(1)[0][0] if styles else (0.0, False)


def _may_be(block: PrintedBlock, size: float, bold: bool, after: PrintedBlock | None) -> bool:
    text = _text(block)
    letters = sum(map(str.isalpha, text))
    if block.kind == "table" or len(block.rows) > 2 or len(text) > _LONGEST or letters < max(3, 0.5 * len(text)):
        return False
    if text[0].islower() or text.endswith((".", ",", ";")) or _CAPTION.match(text):
        return False
    heads_table = after is not None and after.kind == "table" and len(block.rows[0].cells) > 1
    stands_out = block.size > 1.08 * size or (block.bold and not bold)
    return stands_out and block.size > 0.9 * size and not heads_table


def _text(block: PrintedBlock) -> str:
    return " ".join(row.text for row in block.rows)


def without_continued(title: str) -> str:
    """A heading that is repeated on the next page.

    >>> without_continued("Liquidity (continued)")
    'Liquidity'
    """
    return _CONTINUED.sub("", title) or title
