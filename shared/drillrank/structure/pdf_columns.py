"""Columns of a PDF page: rows in reading order."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from unicodedata import bidirectional

from drillrank.structure.pdf_text import LayoutRow, TextRun, group_into_lines

# Percentages of the text width at which two columns, and three columns, may part.
_GUTTERS = ((range(40, 61),), (range(28, 39), range(62, 73)))
_MATCHING = 0.6  # part of baselines that two columns may share; the halves of a table share nearly all
_LEAST_ROWS = 6  # rows of a column


def layout_rows(runs: Sequence[TextRun]) -> list[LayoutRow]:
    """Return the rows of a page in reading order: all of a left column before those of a right one.

    A page that is written from right to left is mirrored.
    """
    runs = [run for run in runs if run.text]
    if not runs:
        return []
    from_right = [bidirectional(sign) in ("R", "AL") for run in runs for sign in run.text if sign.isalpha()]
    if 2 * sum(from_right) > len(from_right):
        runs = [replace(run, x=-run.right) for run in runs]
    left_edge, right_edge = min(run.x for run in runs), max(run.right for run in runs)
    rows: list[LayoutRow] = []
    for gutters, band in _bands(group_into_lines(runs), left_edge, right_edge):
        band_runs = [run for line in band for run in line]
        for start, end in pairwise([left_edge, *gutters, right_edge]):
            column = [run for run in band_runs if start <= run.x < end] if gutters else band_runs
            rows += [LayoutRow(tuple(line), start, end) for line in (group_into_lines(column) if gutters else band)]
    return rows


def _bands(
    lines: list[list[TextRun]], left_edge: float, right_edge: float
) -> Iterator[tuple[list[float], list[list[TextRun]]]]:
    """Yield the bands of a page from top to bottom, each with the x of its gutters; no gutters if it has one column."""
    three, two = (_gutters(lines, left_edge, right_edge, percentages) for percentages in reversed(_GUTTERS))
    gutters = three if three and _are_columns([line for line in lines if not _crosses(line, three)], three) else two
    for crossed, group in groupby(lines, key=lambda line: _crosses(line, gutters)):
        band = list(group)
        yield (gutters if gutters and not crossed and _are_columns(band, gutters) else []), band


def _crosses(line: Sequence[TextRun], gutters: Sequence[float]) -> bool:
    return any(run.x < gutter < run.right for run in line for gutter in gutters)


def _gutters(
    lines: Sequence[Sequence[TextRun]], left_edge: float, right_edge: float, percentages: Sequence[Iterable[int]]
) -> list[float]:
    """Return the x that the fewest lines cross, for each range of percentages; nothing if few lines are free."""
    gutters: list[float] = []
    for candidates in percentages:
        n_free = {
            x: sum(not _crosses(line, [x]) for line in lines)
            for x in (left_edge + part / 100 * (right_edge - left_edge) for part in candidates)
        }
        best = [x for x, count in n_free.items() if count == max(n_free.values())]
        if n_free[best[0]] < 2 * _LEAST_ROWS:
            return []
        gutters.append(best[len(best) // 2])
    return gutters


def _are_columns(band: Sequence[Sequence[TextRun]], gutters: Sequence[float]) -> bool:
    """Return True if each side is a text: it has lines of prose, or the baselines of two sides differ."""
    sides = [
        [run for line in band for run in line if start <= run.x < end]
        for start, end in pairwise([-math.inf, *gutters, math.inf])
    ]
    n_rows = [len({round(run.middle) for run in side}) for side in sides]
    if min(n_rows) < _LEAST_ROWS:
        return False
    width = max(run.right for run in sides[-1]) - gutters[-1]
    n_prose = [sum(run.width > 0.75 * width for run in side) for side in sides]
    if len(gutters) > 1:
        return min(n_prose) >= _LEAST_ROWS
    matching = sum(
        abs(before.middle - after.middle) < 1
        for line in band
        for before, after in pairwise(line)
        if before.x < gutters[0] <= after.x
    )
    return min(n_prose) >= _LEAST_ROWS // 2 or matching < _MATCHING * min(n_rows)
