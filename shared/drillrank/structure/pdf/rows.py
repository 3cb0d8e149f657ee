"""The runs of text on a page as rows of cells, in reading order."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from unicodedata import bidirectional

_BOLD = re.compile(r"bold|black|heavy|demi|bd(?![a-z])", re.IGNORECASE)
_BOLD_WEIGHT = 600
_GAP = 0.9  # between two cells, in heights of a line; a space takes about a quarter
_BEFORE_NUMBER = re.compile(r"[$€£¥(]+")  # a sign that stands apart from the number to its right
_BEHIND_NUMBER = re.compile(r"[%)]+|\)?\s?%")
_CURRENCY = re.compile(r"[$€£¥]")
_NUMBER_END = re.compile(r".*[\d%)–—-]")
_TRAILING = re.compile(r"(?P<own>.*\S)\s+(?P<sign>[$€£¥])")
_MARKER = re.compile(r"[•●◦▪■·–—*-]|\(?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,5})[.)]")
_GUTTERS = [0.40 + 0.01 * step for step in range(21)]  # where columns may part, of the width of the text
_MATCHING = 0.6  # part of baselines that two columns may share; the halves of a table share nearly all
_LEAST_ROWS = 6  # of a column


@dataclass(frozen=True, slots=True)
class Run:
    """Text that is printed in one go; points, from the page's top left corner."""

    text: str
    x: float
    y: float
    width: float
    height: float
    bold: bool

    @property
    def right(self) -> float:
        """Where it ends."""
        return self.x + self.width

    @property
    def middle(self) -> float:
        """Half of its height."""
        return self.y + self.height / 2


def run_of(text: str, x: float, y: float, width: float, height: float, font: str, weight: int) -> Run:
    """A run, of the font that a file names."""
    bold = weight >= _BOLD_WEIGHT or _BOLD.search(font) is not None
    return Run(" ".join(text.split()), x, y, width, height, bold)


@dataclass(frozen=True)
class Row:
    """What stands on one line of a column.

    Attributes:
        runs: From left to right.
        left: Of the column.
        right: Of the column.
    """

    runs: tuple[Run, ...]
    left: float
    right: float

    @property
    def y(self) -> float:
        """Its upper edge."""
        return min(run.y for run in self.runs)

    @property
    def bottom(self) -> float:
        """Its lower edge."""
        return max(run.y + run.height for run in self.runs)

    @property
    def x(self) -> float:
        """Where its text begins."""
        return self.runs[0].x

    @property
    def end(self) -> float:
        """Where its text ends."""
        return self.runs[-1].right

    @cached_property
    def size(self) -> float:
        """Height of most of its characters, to half a point."""
        sizes: Counter[float] = Counter()
        for run in self.runs:
            sizes[round(2 * run.height) / 2] += len(run.text)
        return sizes.most_common(1)[0][0]

    @cached_property
    def bold(self) -> bool:
        """Whether all of its letters are."""
        return all(run.bold for run in self.runs if any(map(str.isalpha, run.text)))

    @cached_property
    def cells(self) -> tuple[str, ...]:
        """Its text, apart where wide gaps part it; currency and percent signs go with their numbers."""
        cells: list[str] = []
        last: Run | None = None
        for run in _signs_apart(self.runs):
            near = last is not None and run.x - last.right < _GAP * min(run.height, last.height)
            if cells and _CURRENCY.fullmatch(run.text) and _NUMBER_END.fullmatch(cells[-1]):
                near = False  # of the next number
            signed = bool(cells) and (_BEFORE_NUMBER.fullmatch(cells[-1]) or _BEHIND_NUMBER.fullmatch(run.text))
            if cells and (near or signed or (len(cells) == 1 and _MARKER.fullmatch(cells[0]))):
                cells[-1] += _glue(last, run) + run.text
            else:
                cells.append(run.text)
            last = run
        return tuple(cells)

    @property
    def text(self) -> str:
        """Its text, cells apart by spaces."""
        return " ".join(self.cells)

    @property
    def is_item(self) -> bool:
        """Whether it begins with the marker of a list."""
        first, _, rest = self.text.partition(" ")
        return bool(rest) and _MARKER.fullmatch(first) is not None


def _glue(last: Run | None, run: Run) -> str:
    """A run that begins where another ends goes on with its word."""
    return "" if last is not None and run.x - last.right < 0.1 * run.height else " "


def _signs_apart(runs: Iterable[Run]) -> Iterator[Run]:
    """The runs; a currency sign at the end of one belongs to the number behind it."""
    for run in runs:
        found = _TRAILING.fullmatch(run.text)
        if not found:
            yield run
            continue
        step = run.width / len(run.text)
        own = step * len(found["own"])
        yield Run(found["own"], run.x, run.y, own, run.height, run.bold)
        yield Run(found["sign"], run.right - step, run.y, step, run.height, run.bold)


def rows_of(runs: Sequence[Run]) -> list[Row]:
    """The rows of a page: where there are two columns, those of the left one before those of the right one.

    A page that is written from right to left is seen in a mirror.
    """
    runs = [run for run in runs if run.text]
    if not runs:
        return []
    if _from_right(runs):
        runs = [replace(run, x=-run.right) for run in runs]
    left, right = min(run.x for run in runs), max(run.right for run in runs)
    lines = _lines(runs)
    rows: list[Row] = []
    for gutter, band in _bands(lines, left, right):
        if gutter is None:
            rows += [Row(tuple(line), left, right) for line in band]
        else:
            inside = [run for line in band for run in line]
            rows += [Row(tuple(line), left, gutter) for line in _lines([r for r in inside if r.x < gutter])]
            rows += [Row(tuple(line), gutter, right) for line in _lines([r for r in inside if r.x >= gutter])]
    return rows


def _from_right(runs: Iterable[Run]) -> bool:
    """Whether most letters are of a script that is written from right to left."""
    letters = Counter(bidirectional(sign) in ("R", "AL") for run in runs for sign in run.text if sign.isalpha())
    return letters[True] > letters[False]


def _lines(runs: Sequence[Run]) -> list[list[Run]]:
    """Runs that share a line, from left to right; lines from above."""
    lines: list[list[Run]] = []
    for run in sorted(runs, key=lambda run: run.middle):
        if lines and run.middle - lines[-1][-1].middle < 0.4 * min(run.height, lines[-1][-1].height):
            lines[-1].append(run)
        else:
            lines.append([run])
    return [sorted(line, key=lambda run: run.x) for line in lines]


def _bands(lines: list[list[Run]], left: float, right: float) -> Iterator[tuple[float | None, list[list[Run]]]]:
    """The page from above in bands, each with the place of its gutter if it has two columns."""
    gutter = _gutter(lines, left, right)
    if gutter is None:
        yield None, lines
        return
    band: list[list[Run]] = []
    whole = False
    for line in lines:
        crossed = any(run.x < gutter < run.right for run in line)
        if band and crossed != whole:
            yield _if_columns(band, gutter, whole), band
            band = []
        whole = crossed
        band.append(line)
    if band:
        yield _if_columns(band, gutter, whole), band


def _if_columns(band: Sequence[Sequence[Run]], gutter: float, whole: bool) -> float | None:
    return gutter if not whole and _are_columns(band, gutter) else None


def _gutter(lines: Sequence[Sequence[Run]], left: float, right: float) -> float | None:
    """Where most lines could be parted."""
    places = [left + part * (right - left) for part in _GUTTERS]
    free = [sum(all(not run.x < place < run.right for run in line) for line in lines) for place in places]
    most = max(free)
    if most < 2 * _LEAST_ROWS:
        return None
    best = [place for place, count in zip(places, free, strict=True) if count == most]
    return best[len(best) // 2]


def _are_columns(band: Sequence[Sequence[Run]], gutter: float) -> bool:
    """Whether both sides are texts of their own: lines of prose on both, or baselines that do not agree."""
    sides = [[run for line in band for run in line if (run.x < gutter) == is_left] for is_left in (True, False)]
    if any(len({round(run.middle) for run in side}) < _LEAST_ROWS for side in sides):
        return False
    width = max(run.right for run in sides[1]) - gutter
    prose = [sum(run.width > 0.75 * width for run in side) for side in sides]
    shared = [line for line in band if {run.x < gutter for run in line} == {True, False}]
    matching = sum(
        abs(before.middle - after.middle) < 1
        for line in shared
        for before, after in pairwise(line)
        if (before.x < gutter) != (after.x < gutter)
    )
    least = min(len({round(run.middle) for run in side}) for side in sides)
    return min(prose) >= _LEAST_ROWS // 2 or matching < _MATCHING * least
