"""Text of a PDF page: runs of text with their boxes, the lines that they share, and rows with cells.

All lengths are in points (1/72 inch). Coordinates start at the top left corner of the page.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

_BOLD = re.compile(r"bold|black|heavy|demi|bd(?![a-z])", re.IGNORECASE)
_BOLD_WEIGHT = 600
CELL_GAP = 0.9  # smallest gap between two cells, in line heights; a space takes about a quarter
_WORD_GAP = 0.1  # smallest gap between two words, in line heights
_SAME_LINE = 0.4  # largest distance between the middles of two runs of one line, in run heights
_BEFORE_NUMBER = re.compile(r"[$€£¥(]+")  # signs that are printed apart from the number to their right
_BEHIND_NUMBER = re.compile(r"[%)]+|\)?\s?%")
_CURRENCY = re.compile(r"[$€£¥]")
_NUMBER_END = re.compile(r".*[\d%)–—-]")
_TRAILING_CURRENCY = re.compile(r"(?P<text>.*\S)\s+(?P<sign>[$€£¥])")
_MARKER = re.compile(r"[•●◦▪■·–—*-]|\(?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,5})[.)]")


@dataclass(frozen=True, slots=True)
class TextRun:
    """Text that a PDF prints in one piece.

    Attributes:
        text: Text with single spaces.
        x: Left edge of its box.
        y: Upper edge of its box.
        width: Width of its box.
        height: Height of its box.
        bold: True if the font is bold.
    """

    text: str
    x: float
    y: float
    width: float
    height: float
    bold: bool

    @property
    def right(self) -> float:
        """Right edge of the box."""
        return self.x + self.width

    @property
    def middle(self) -> float:
        """Vertical center of the box."""
        return self.y + self.height / 2


def make_text_run(
    text: str, box: tuple[float, float, float, float], font: str = "", weight: int = 0, angle: int = 0
) -> TextRun:
    """Return a run as it appears on a page that is turned so that the run reads from left to right.

    Args:
        text: Text of the run.
        box: Left edge, upper edge, width and height.
        font: Name of the font in the file.
        weight: Weight of the font; 400 is regular.
        angle: Clockwise rotation in degrees, from 0 to 359.
    """
    x, y, width, height = box
    if angle in (90, 270):
        x, y = (y, -x - width) if angle == 90 else (-y - height, x)
        width, height = height, width
    elif angle == 180:
        x, y = -x - width, -y - height
    bold = weight >= _BOLD_WEIGHT or _BOLD.search(font) is not None
    return TextRun(" ".join(text.split()), x, y, width, height, bold)


class Cell(NamedTuple):
    """Cell of a row: its text, left edge and right edge."""

    text: str
    x: float
    right: float


@dataclass
class _OpenCell:
    """Cell that still grows: its runs and the separators between them."""

    parts: list[str]
    x: float
    right: float


@dataclass(frozen=True, eq=False)
class LayoutRow:
    """Line of text within one column of a page. A row equals only itself.

    Attributes:
        runs: Runs from left to right, at least one.
        column_left: Left edge of the column.
        column_right: Right edge of the column.
    """

    runs: tuple[TextRun, ...]
    column_left: float
    column_right: float

    @cached_property
    def y(self) -> float:
        """Upper edge of the row."""
        return min(run.y for run in self.runs)

    @cached_property
    def bottom(self) -> float:
        """Lower edge of the row."""
        return max(run.y + run.height for run in self.runs)

    @property
    def x(self) -> float:
        """Left edge of the text."""
        return self.runs[0].x

    @property
    def end(self) -> float:
        """Right edge of the text."""
        return self.runs[-1].right

    @cached_property
    def size(self) -> float:
        """Height of most of the characters, rounded to half a point."""
        sizes: Counter[float] = Counter()
        for run in self.runs:
            sizes[round(2 * run.height) / 2] += len(run.text)
        return sizes.most_common(1)[0][0]

    @cached_property
    def bold(self) -> bool:
        """True if all letters are bold."""
        return all(run.bold for run in self.runs if any(map(str.isalpha, run.text)))

    @cached_property
    def cell_boxes(self) -> tuple[Cell, ...]:
        """Cells between wide gaps; currency and percent signs belong to their numbers."""
        cells: list[_OpenCell] = []
        last: TextRun | None = None
        for run in _split_currency_signs(self.runs):
            is_close = last is not None and run.x - last.right < CELL_GAP * min(run.height, last.height)
            if cells and _CURRENCY.fullmatch(run.text) and _NUMBER_END.fullmatch(cells[-1].parts[-1]):
                is_close = False  # the sign belongs to the next number
            signed = bool(cells) and (
                (len(cells[-1].parts) == 1 and _BEFORE_NUMBER.fullmatch(cells[-1].parts[0]))
                or _BEHIND_NUMBER.fullmatch(run.text)
            )
            is_marked = len(cells) == 1 and len(cells[0].parts) == 1 and _MARKER.fullmatch(cells[0].parts[0])
            if cells and (is_close or signed or is_marked):
                # A run that begins where another ends continues its word.
                cells[-1].parts.append("" if last and run.x - last.right < _WORD_GAP * run.height else " ")
                cells[-1].parts.append(run.text)
                cells[-1].right = run.right
            else:
                cells.append(_OpenCell([run.text], run.x, run.right))
            last = run
        return tuple(Cell("".join(cell.parts), cell.x, cell.right) for cell in cells)

    @cached_property
    def cells(self) -> tuple[str, ...]:
        """Texts of the cells."""
        return tuple(cell.text for cell in self.cell_boxes)

    @cached_property
    def text(self) -> str:
        """Cells, joined by spaces."""
        return " ".join(self.cells)

    @property
    def is_item(self) -> bool:
        """True if the row begins with the marker of a list item."""
        first, _, rest = self.text.partition(" ")
        return bool(rest) and _MARKER.fullmatch(first) is not None


def _split_currency_signs(runs: Iterable[TextRun]) -> Iterator[TextRun]:
    """Yield the runs, with a currency sign at the end of a run as a run: it belongs to the number behind it."""
    for run in runs:
        match = _TRAILING_CURRENCY.fullmatch(run.text)
        if not match:
            yield run
            continue
        character_width = run.width / len(run.text)
        width = character_width * len(match["text"])
        yield TextRun(match["text"], run.x, run.y, width, run.height, run.bold)
        yield TextRun(match["sign"], run.right - character_width, run.y, character_width, run.height, run.bold)


def group_into_lines(runs: Sequence[TextRun]) -> list[list[TextRun]]:
    """Return runs that share a line, from left to right; lines from top to bottom."""
    lines: list[list[TextRun]] = []
    for run in sorted(runs, key=lambda run: run.middle):
        if lines and run.middle - lines[-1][-1].middle < _SAME_LINE * min(run.height, lines[-1][-1].height):
            lines[-1].append(run)
        else:
            lines.append([run])
    return [sorted(line, key=lambda run: run.x) for line in lines]
