"""Columns of a PDF page: rows in reading order."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, groupby, pairwise
from typing import NamedTuple
from unicodedata import bidirectional

from drillrank.structure.pdf_text import CELL_GAP, LayoutRow, TextRun, group_into_lines

_LEAST_ROWS = 6  # rows of a column
_LEAST_SIDEBAR_ROWS = 3  # rows of a column whose baselines differ from those of its neighbors
_CENTRAL = range(40, 61)  # percentages of the text width at which two equal columns part
_MATCHING = 0.6  # part of baselines that two columns may share; the halves of a table share nearly all
_PROSE_WIDTH = 0.7  # share of the column: a line of prose is at least this wide, unless it is the last of a paragraph
_PROSE_LETTERS, _PROSE_WORDS = 15, 4  # of a line of prose; the cells of a table are shorter
_MOST_GUTTERS = 6
_N_BINS = 200  # intervals of the text width in which crossing lines are counted


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
    rows: list[LayoutRow] = []
    left_edge, right_edge = min(run.x for run in runs), max(run.right for run in runs)
    for gutters, band in _bands(group_into_lines(runs), (left_edge, right_edge)):
        if not gutters:
            rows += [LayoutRow(tuple(line), left_edge, right_edge) for line in band]
            continue
        for column, (start, end) in zip(
            _split_runs(band, gutters), pairwise([left_edge, *gutters, right_edge]), strict=True
        ):
            rows += [LayoutRow(tuple(line), start, end) for line in group_into_lines(column)]
    return rows


class _PageColumns(NamedTuple):
    """Columns of a page.

    Attributes:
        edges: Left and right edge of the text.
        gutters: X of each gutter; none if there is one column.
        widths: Width of the text of each column.
    """

    edges: tuple[float, float]
    gutters: list[float]
    widths: list[float]


def _bands(
    lines: list[list[TextRun]], page_edges: tuple[float, float]
) -> Iterator[tuple[list[float], list[list[TextRun]]]]:
    """Yield the bands of a page from top to bottom, each with the x of its gutters; no gutters if it has one column."""
    page = _page_columns(lines, page_edges)
    if not page.gutters:
        yield [], lines
        return
    for crossed, group in groupby(lines, key=lambda line: _crosses(line, page.gutters)):
        band = list(group)
        yield (page.gutters if not crossed and _continues_columns(band, page) else []), band


def _crosses(line: Sequence[TextRun], gutters: Sequence[float]) -> bool:
    return any(run.x < gutter < run.right for run in line for gutter in gutters)


def _page_columns(lines: Sequence[Sequence[TextRun]], page_edges: tuple[float, float]) -> _PageColumns:
    """Return the columns that the most of the clearest valleys of a page part."""
    valleys = _find_valleys(lines, page_edges)
    choices = [valleys[:count] for count in range(len(valleys), 0, -1)] + [[valley] for valley in valleys[1:]]
    for choice in choices:
        gutters = sorted(x for _, x in choice)
        uncrossed = [line for line in lines if not _crosses(line, gutters)]
        if _are_columns(uncrossed, gutters, page_edges):
            return _PageColumns(page_edges, gutters, [side.width for side in _read_sides(uncrossed, gutters)])
    return _PageColumns(page_edges, [], [])


def _find_valleys(lines: Sequence[Sequence[TextRun]], page_edges: tuple[float, float]) -> list[tuple[int, float]]:
    """Return the vertical valleys between runs, clearest first: the number of runs that cross each, and its x.

    At a valley, at least `_LEAST_SIDEBAR_ROWS` fewer runs cross than at a peak before it and at a peak behind it.
    """
    left_edge, right_edge = page_edges
    bin_width = (right_edge - left_edge) / _N_BINS
    if not 0 < bin_width < math.inf:
        return []
    changes = [0] * (_N_BINS + 1)
    for line in lines:
        for run in line:
            start, end = (run.x - left_edge) / bin_width, (run.right - left_edge) / bin_width
            changes[min(int(start), _N_BINS)] += 1
            changes[min(math.ceil(max(start, end)), _N_BINS)] -= 1
    profile = list(accumulate(changes[:-1]))
    valleys: list[tuple[int, float]] = []
    is_falling, extreme, lowest = False, 0, [0]
    for index, height in enumerate(profile):
        if not is_falling:
            extreme = max(extreme, height)
            if height <= extreme - _LEAST_SIDEBAR_ROWS:
                is_falling, extreme, lowest = True, height, [index]
        elif height < extreme:
            extreme, lowest = height, [index]
        elif height == extreme:
            lowest.append(index)
        elif height >= extreme + _LEAST_SIDEBAR_ROWS:
            valleys.append((extreme, left_edge + (_middle_of_longest(lowest) + 0.5) * bin_width))
            is_falling, extreme = False, height
    return sorted(valleys)[:_MOST_GUTTERS]


def _middle_of_longest(indices: Sequence[int]) -> int:
    """Return the middle of the longest series of consecutive indices."""
    groups = [
        [index for _, index in group] for _, group in groupby(enumerate(indices), key=lambda pair: pair[1] - pair[0])
    ]
    longest = max(groups, key=len)
    return longest[len(longest) // 2]


class _Side(NamedTuple):
    """Column of a band.

    Attributes:
        width: Width of its text.
        baselines: Rounded middles of its rows.
        rows: Width and text of the widest part of each row.
    """

    width: float
    baselines: set[int]
    rows: list[tuple[float, str]]

    def prose_share(self, column_width: float) -> float:
        """Return the share of rows that have the words of prose and nearly fill a column of this width."""
        n_prose = sum(
            width > _PROSE_WIDTH * column_width
            and text.count(" ") >= _PROSE_WORDS - 1
            and sum(map(str.isalpha, text)) >= _PROSE_LETTERS
            for width, text in self.rows
        )
        return n_prose / len(self.rows) if self.rows else 1.0

    def has_words(self) -> bool:
        """Return True if most rows have more letters than other characters: the figures of a table do not."""
        n_wordy = sum(2 * sum(map(str.isalpha, text)) > len(text) for _, text in self.rows)
        return 2 * n_wordy > len(self.rows)

    def flow_share(self) -> float:
        """Return the share of rows that begin inside a sentence: with a letter that is not a capital."""
        n_inside = sum(text[0].isalpha() and not text[0].isupper() for _, text in self.rows)
        return n_inside / len(self.rows) if self.rows else 1.0


def _split_runs(lines: Iterable[Sequence[TextRun]], gutters: Sequence[float]) -> list[list[TextRun]]:
    """Return the runs of each column."""
    columns: list[list[TextRun]] = [[] for _ in range(len(gutters) + 1)]
    for line in lines:
        for run in line:
            columns[bisect_right(gutters, run.x)].append(run)
    return columns


def _read_sides(band: Sequence[Sequence[TextRun]], gutters: Sequence[float]) -> list[_Side]:
    sides: list[_Side] = []
    for runs in _split_runs(band, gutters):
        width = max((run.right for run in runs), default=0.0) - min((run.x for run in runs), default=0.0)
        rows = [_widest_segment(row) for row in group_into_lines(runs)]
        sides.append(_Side(width, {round(run.middle) for run in runs}, rows))
    return sides


def _widest_segment(row: Sequence[TextRun]) -> tuple[float, str]:
    """Return the width and text of the widest part of a row without a wide gap."""
    segments: list[list[TextRun]] = []
    for run in row:
        if segments and run.x - segments[-1][-1].right < CELL_GAP * run.height:
            segments[-1].append(run)
        else:
            segments.append([run])
    widths = [segment[-1].right - segment[0].x for segment in segments]
    index = widths.index(max(widths))
    return widths[index], " ".join(run.text for run in segments[index])


def _are_columns(band: Sequence[Sequence[TextRun]], gutters: Sequence[float], page_edges: tuple[float, float]) -> bool:
    """Return True if each side of the gutters is a text of its own, and not a column of a table."""
    sides = _read_sides(band, gutters)
    n_rows = [len(side.baselines) for side in sides]
    if min(n_rows) < _LEAST_SIDEBAR_ROWS:
        return False
    prose_share = min(side.prose_share(side.width) for side in sides)
    if min(n_rows) < _LEAST_ROWS:
        return prose_share > 0.5 and _baselines_differ(sides)
    if prose_share >= 0.75 or (len(sides) == 2 and _are_halves(sides, gutters[0], page_edges)):
        return True
    flows = min(side.flow_share() for side in sides) > 0.4
    return prose_share > 0.5 and (flows or _baselines_differ(sides))


def _are_halves(sides: Sequence[_Side], gutter: float, page_edges: tuple[float, float]) -> bool:
    """Return True if a gutter parts the page in halves with some lines of prose, or words whose baselines differ."""
    left_edge, right_edge = page_edges
    if round(100 * (gutter - left_edge) / (right_edge - left_edge)) not in _CENTRAL:
        return False
    n_full = min(sum(width > 0.75 * (right_edge - gutter) for width, _ in side.rows) for side in sides)
    return n_full >= _LEAST_ROWS // 2 or (_baselines_differ(sides) and all(side.has_words() for side in sides))


def _baselines_differ(sides: Sequence[_Side]) -> bool:
    """Return True if neighbors share few baselines: the cells of a table share nearly all."""
    for before, after in pairwise(sides):
        n_shared = sum(bool(after.baselines & {middle - 1, middle, middle + 1}) for middle in before.baselines)
        if n_shared >= _MATCHING * min(len(before.baselines), len(after.baselines)):
            return False
    return True


def _continues_columns(band: Sequence[Sequence[TextRun]], page: _PageColumns) -> bool:
    """Return True if a part of a page with columns has columns, too, however short it is."""
    if _are_columns(band, page.gutters, page.edges):
        return True
    sides = _read_sides(band, page.gutters)
    return all(side.prose_share(width) > 0.5 for side, width in zip(sides, page.widths, strict=True))
