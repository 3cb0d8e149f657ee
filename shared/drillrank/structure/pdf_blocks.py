"""Blocks of a PDF page: paragraphs, list items and tables made of neighboring rows."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from drillrank.structure.pdf_text import LayoutRow

_FULL_LINE = 0.7  # share of the column: a wider line of prose continues in the next line
_NARROW = 0.6  # share of the column: a narrower line inside a table names the rows below it
_SENTENCE_ENDS = (".", "!", "?", ":", ";")

PrintedKind = Literal["paragraph", "item", "table"]


@dataclass(frozen=True, eq=False)
class PrintedBlock:
    """Neighboring rows that belong together. A block equals only itself.

    Attributes:
        kind: Kind of the block.
        rows: Rows from top to bottom, at least one.
        page_index: Index of the page, starting at 0.
    """

    kind: PrintedKind
    rows: tuple[LayoutRow, ...]
    page_index: int

    @property
    def size(self) -> float:
        """Height of the first row."""
        return self.rows[0].size

    @property
    def bold(self) -> bool:
        """True if all rows are bold."""
        return all(row.bold for row in self.rows)

    @property
    def text(self) -> str:
        """Rows, joined by spaces."""
        return " ".join(row.text for row in self.rows)


def group_into_blocks(
    rows: Sequence[LayoutRow], page_index: int, headings: Container[LayoutRow] = ()
) -> list[PrintedBlock]:
    """Return the blocks of a page.

    Args:
        rows: Rows in reading order.
        page_index: Index of the page, starting at 0.
        headings: Rows that are known to be headings: each becomes a block.
    """
    blocks: list[PrintedBlock] = []
    in_tables = zip(_table_flags(rows, headings), rows, strict=True)
    for (is_table, _), group in groupby(in_tables, key=lambda pair: (pair[0], pair[1].column_left)):
        group_rows = [row for _, row in group]
        parts = [group_rows] if is_table else _paragraphs(group_rows, headings)
        for part in parts:
            kind: PrintedKind = "table" if is_table else "item" if part[0].is_item else "paragraph"
            blocks.append(PrintedBlock(kind, tuple(part), page_index))
    return blocks


def _table_flags(rows: Sequence[LayoutRow], headings: Container[LayoutRow]) -> list[bool]:
    """Return True for each row of a table: rows of several cells, and lines between them that name those below."""
    flags = [len(row.cells) > 1 and row not in headings for row in rows]
    for index in range(1, len(rows) - 1):
        if flags[index - 1] and flags[index + 1] and _names_rows(rows[index - 1 : index + 2], headings):
            flags[index] = True
    for index in range(len(rows)):  # a single line with gaps is not a table
        flags[index] = flags[index] and any(flags[max(index - 1, 0) : index] + flags[index + 1 : index + 2])
    return flags


def _names_rows(neighbors: Sequence[LayoutRow], headings: Container[LayoutRow]) -> bool:
    """Return True if the second of three rows is a short line inside a table."""
    before, row, after = neighbors
    is_narrow = row.end - row.x < _NARROW * (row.column_right - row.column_left)
    is_close = after.y - row.bottom < 1.2 * row.size and row.y - before.bottom < 1.2 * row.size
    return is_narrow and is_close and row not in headings and row.size <= after.size + 0.5


def _paragraphs(rows: Sequence[LayoutRow], headings: Container[LayoutRow]) -> list[list[LayoutRow]]:
    parts: list[list[LayoutRow]] = []
    for row in rows:
        if not parts or not _continues(parts[-1], row, headings):
            parts.append([])
        parts[-1].append(row)
    return parts


def _continues(part: Sequence[LayoutRow], row: LayoutRow, headings: Container[LayoutRow]) -> bool:
    """Return True if a row continues the rows above it."""
    last = part[-1]
    if last in headings or row in headings or row.is_item or abs(row.size - last.size) > 1:
        return False
    gap = row.y - last.bottom
    usual_gap = part[1].y - part[0].bottom if len(part) > 1 else 0.75 * row.size
    if gap < -row.size or gap > max(usual_gap, 0.0) + 0.4 * row.size:
        return False
    is_full = last.end - last.column_left > _FULL_LINE * (last.column_right - last.column_left)
    if row.bold != last.bold:  # a title in the first line of a paragraph
        return is_full and len(part) == 1 and last.bold and gap < 0.5 * row.size
    return is_full or (not last.text.endswith(_SENTENCE_ENDS) and row.text[:1].islower())
