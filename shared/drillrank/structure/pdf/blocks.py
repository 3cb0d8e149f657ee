"""The rows of a page as paragraphs, items of lists and tables."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from drillrank.structure.pdf.rows import Row

_WIDE = 0.7  # of its column: a line of prose that goes on in the next one
_NARROW = 0.6  # of its column: a line inside of a table that names the rows below it
_ENDS = (".", "!", "?", ":", ";")


@dataclass(frozen=True)
class PrintedBlock:
    """Neighbouring rows that belong together.

    Attributes:
        kind: What they are.
        rows: From above.
        page: Where it begins, from 0.
    """

    kind: Literal["paragraph", "item", "table"]
    rows: tuple[Row, ...]
    page: int

    @property
    def size(self) -> float:
        """Height of its first row."""
        return self.rows[0].size

    @property
    def bold(self) -> bool:
        """Whether all of it is."""
        return all(row.bold for row in self.rows)


def blocks_of(rows: Sequence[Row], page: int, headings: Container[int] = ()) -> list[PrintedBlock]:
    """The blocks of a page.

    Args:
        rows: In reading order.
        page: From 0.
        headings: Of rows that are known to be headings their identities: each stands alone.
    """
    blocks: list[PrintedBlock] = []
    for kind, group in _grouped(rows, headings):
        if kind == "table":
            blocks.append(PrintedBlock("table", tuple(group), page))
        else:
            blocks += [
                PrintedBlock("item" if part[0].is_item else "paragraph", tuple(part), page)
                for part in _paragraphs(group, headings)
            ]
    return blocks


def _grouped(rows: Sequence[Row], headings: Container[int]) -> Iterable[tuple[str, list[Row]]]:
    """Rows by turns of tables and of text."""
    kinds = ["table" if len(row.cells) > 1 and id(row) not in headings else "text" for row in rows]
    for at in range(1, len(rows) - 1):
        if kinds[at - 1] == kinds[at + 1] == "table" and kinds[at] == "text" and _names_rows(rows, at, headings):
            kinds[at] = "table"
    for at in range(len(rows)):  # one line with gaps is no table
        alone = (at == 0 or kinds[at - 1] != "table") and (at + 1 == len(rows) or kinds[at + 1] != "table")
        if kinds[at] == "table" and alone:
            kinds[at] = "text"
    group: list[Row] = []
    for at, row in enumerate(rows):
        new_column = bool(group) and row.left != group[-1].left
        if group and (kinds[at] != kinds[at - 1] or new_column):
            yield kinds[at - 1], group
            group = []
        group.append(row)
    if group:
        yield kinds[len(rows) - 1], group


def _names_rows(rows: Sequence[Row], at: int, headings: Container[int]) -> bool:
    before, row, after = rows[at - 1 : at + 2]
    narrow = row.end - row.x < _NARROW * (row.right - row.left)
    near = after.y - row.bottom < 1.2 * row.size and row.y - before.bottom < 1.2 * row.size
    return narrow and near and id(row) not in headings and row.size <= after.size


def _paragraphs(rows: Sequence[Row], headings: Container[int]) -> list[list[Row]]:
    parts: list[list[Row]] = []
    for row in rows:
        if parts and _goes_on(parts[-1], row, headings):
            parts[-1].append(row)
        else:
            parts.append([row])
    return parts


def _goes_on(part: Sequence[Row], row: Row, headings: Container[int]) -> bool:
    """Whether a row continues the rows above it."""
    last = part[-1]
    if id(last) in headings or id(row) in headings or row.is_item or abs(row.size - last.size) > 1:
        return False
    gap = row.y - last.bottom
    usual = part[1].y - part[0].bottom if len(part) > 1 else 0.75 * row.size
    if gap < -row.size or gap > max(usual, 0.0) + 0.4 * row.size:
        return False
    full = last.end - last.left > _WIDE * (last.right - last.left)
    if row.bold != last.bold:  # a title in the paragraph's first line
        return full and len(part) == 1 and last.bold and gap < 0.5 * row.size
    return full or (not last.text.endswith(_ENDS) and row.text[:1].islower())
