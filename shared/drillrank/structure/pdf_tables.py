"""Tables of a PDF: cells of several rows, aligned in columns."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from drillrank.structure.pdf_text import Cell, LayoutRow

_MOST_COLUMNS = 200  # of one table; a row with more cells is not aligned
_SAME_COLUMN_GAP = 1.0  # line heights between two intervals that may be one column
_HEAD_GAP = 3.0  # line heights between a heading and the numbers below it, which need not overlap


@dataclass
class _TableColumn:
    """Horizontal interval with the indices of the rows that have a cell in it."""

    x: float
    right: float
    row_indices: set[int]


def align_cells(rows: Sequence[LayoutRow]) -> list[list[str]]:
    """Return the cells of each row, with empty cells where a row has none in a column.

    Trailing empty cells are left out, except in the first row.
    """
    columns = _find_columns(rows)
    aligned = [_place_cells(row.cell_boxes, columns) for row in rows]
    n_columns = max(map(len, aligned))
    aligned[0] += [""] * (n_columns - len(aligned[0]))
    return aligned


def _find_columns(rows: Sequence[LayoutRow]) -> list[_TableColumn]:
    """Return the disjoint columns of a table from left to right.

    Narrow cells come first. A wider cell that overlaps several columns joins them if no row has cells in two of them;
    otherwise the cell spans several columns.
    """
    cells = [(cell.right - cell.x, row_index, cell) for row_index, row in enumerate(rows) for cell in row.cell_boxes]
    columns: list[_TableColumn] = []
    for _, row_index, cell in sorted(cells, key=lambda entry: entry[:2]):
        start = bisect_right(columns, cell.x, key=lambda column: column.right)
        end = bisect_left(columns, cell.right, lo=start, key=lambda column: column.x)
        overlapped = columns[start:end]
        row_indices = {row_index}.union(*(column.row_indices for column in overlapped))
        spans_columns = len(row_indices) < 1 + sum(len(column.row_indices) for column in overlapped)
        if not spans_columns and (overlapped or len(columns) < _MOST_COLUMNS):
            x = min([cell.x, *(column.x for column in overlapped)])
            right = max([cell.right, *(column.right for column in overlapped)])
            columns[start:end] = [_TableColumn(x, right, row_indices)]
    return _merge_columns(columns, rows[0].size)


def _merge_columns(columns: list[_TableColumn], line_height: float) -> list[_TableColumn]:
    """Merge neighbors that have no row in common and are close, closest first: figures may be indented."""
    while True:
        pairs = [
            (after.x - before.right, index)
            for index, (before, after) in enumerate(pairwise(columns))
            if _are_one_column(before, after, line_height)
        ]
        if not pairs:
            return columns
        _, index = min(pairs)
        before, after = columns[index : index + 2]
        columns[index : index + 2] = [
            _TableColumn(before.x, after.right, before.row_indices | after.row_indices),
        ]


def _are_one_column(before: _TableColumn, after: _TableColumn, line_height: float) -> bool:
    gap = after.x - before.right
    if gap > _HEAD_GAP * line_height or not before.row_indices.isdisjoint(after.row_indices):
        return False
    is_head = max(before.row_indices) < min(after.row_indices) or max(after.row_indices) < min(before.row_indices)
    return is_head or gap < _SAME_COLUMN_GAP * line_height


def _place_cells(cells: Sequence[Cell], columns: Sequence[_TableColumn]) -> list[str]:
    """Return the texts of the columns; each cell is in the column that it overlaps most, in the order of the cells."""
    if len(cells) > len(columns):
        return [cell.text for cell in cells]
    texts: list[str] = []
    for cell_index, cell in enumerate(cells):
        candidates = range(len(texts), len(columns) - (len(cells) - cell_index) + 1)
        best = max(candidates, key=lambda index: _overlap(cell, columns[index]))
        texts += [""] * (best - len(texts))
        texts.append(cell.text)
    return texts


def _overlap(cell: Cell, column: _TableColumn) -> float:
    """Return the length that a cell shares with a column, or the negative distance between them."""
    return min(cell.right, column.right) - max(cell.x, column.x)
