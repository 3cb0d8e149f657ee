"""Delimited text: CSV, TSV and tables with other delimiters, read as rows with the header's names.

The `csv` module tells no offsets, and it fails on a field that is longer than a limit of the whole process. One regular
expression finds the cells instead.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import NamedTuple

from drillrank.structure.plain import scan_plain
from drillrank.structure.scan import Scan, VisibleBlock, tile_visible_blocks

ROWS_PER_BLOCK = 10
CHARACTERS_PER_BLOCK = 1_200
_DELIMITERS = "\t;|,"  # if several fit equally well, the rarer character in prose comes first
_SAMPLE_ROWS = 100
_SAMPLE_CHARACTERS = 65_536
_NAME_CHARACTERS = 80  # of a header's name where it is repeated; the header itself is shown in full
_PREAMBLE_ROWS = 20  # titles and comments above the header
# Names are repeated with every row, so a file of many short cells would grow. Beyond this size, rows have no names.
_NAMED_CHARACTERS = 2_000_000
_NAMED_CHARACTERS_PER_CHARACTER = 4
_NUMBER = re.compile(r"[-+(]?[$€£¥]?\s?\d[\d.,'\s]*(?:[eE][-+]?\d+)?\s?[%$€£¥)]?")
_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[T\s].*)?")
_YEAR = re.compile(r"(?:1[89]|20|21)\d\d")
_BOM = "\ufeff"
_DELIMITER_LINE = re.compile(r"\ufeff?\"?sep=([^\r\n\"])\"?(?:\r\n?|\n)", re.IGNORECASE)  # for Excel


class _Row(NamedTuple):
    """Row of a table: the offset of each cell, and its text without quotation marks."""

    starts: list[int]
    cells: list[str]


def scan_csv(text: str) -> Scan:
    r"""Find the rows of a table whose delimiter is not known, in groups.

    >>> [block.rendering for block in scan_csv("name;age\nAnn;3\n").blocks]
    ['name | age\nname: Ann | age: 3']
    """
    return _scan_table(text, _find_delimiter(text, _DELIMITERS))


def scan_tsv(text: str) -> Scan:
    r"""Find the rows of a table with tabs between its cells, in groups.

    >>> [block.rendering for block in scan_tsv("name\tage\nAnn\t3\n").blocks]
    ['name | age\nname: Ann | age: 3']
    """
    return _scan_table(text, "\t" if "\t" in text else _find_delimiter(text, _DELIMITERS))


def split_rows(text: str, delimiter: str) -> Iterator[_Row]:
    """Split a text into rows of cells. Rows without any text are left out."""
    next_cell = _cell_pattern(delimiter).match
    starts: list[int] = []
    cells: list[str] = []
    declaration = _DELIMITER_LINE.match(text)
    offset = declaration.end() if declaration else int(text.startswith(_BOM))
    while offset <= len(text):
        cell = next_cell(text, offset)
        assert cell is not None  # the second alternative matches anything
        quoted, rest, plain, end = cell.groups()
        starts.append(cell.start())
        cells.append(" ".join((plain if quoted is None else quoted.replace('""', '"') + rest).split()))
        if end != delimiter:
            if any(cells):
                yield _Row(starts, cells)
            starts, cells = [], []
            if not end:
                return
        offset = cell.end()


@lru_cache(maxsize=16)
def _cell_pattern(delimiter: str) -> re.Pattern[str]:
    """Build the pattern of a cell and the delimiter or line end after it."""
    mark = re.escape(delimiter)
    return re.compile(
        rf"""(?:[ ]?"([^"]*(?:""[^"]*)*)"([^{mark}\r\n]*)|([^{mark}\r\n]*))({mark}|\r\n?|\n|\Z)""", re.DOTALL
    )


def _find_delimiter(text: str, delimiters: str) -> str:
    """Return the delimiter that splits most rows of the beginning into the same number of cells."""
    if declaration := _DELIMITER_LINE.match(text):
        return declaration[1]
    sample = text[:_SAMPLE_CHARACTERS]

    def agreement(delimiter: str) -> float:
        rows = [*islice(split_rows(sample, delimiter), _SAMPLE_ROWS)]
        n_cells = Counter(len(row.cells) for row in rows if len(row.cells) > 1)
        return n_cells.most_common(1)[0][1] / len(rows) if n_cells else 0.0

    return max(delimiters, key=agreement) if sample.strip() else ","


def _scan_table(text: str, delimiter: str) -> Scan:
    """Group the rows of a table into blocks."""
    rows = split_rows(text, delimiter)
    sample = [*islice(rows, _SAMPLE_ROWS)]
    n_columns = max((len(row.cells) for row in sample), default=0)
    if n_columns < 2 and not any(len(row.cells) > 1 for row in rows) and not _is_list_of_values(sample):
        return scan_plain(text)
    return tile_visible_blocks(text, list(_group_rows(text, delimiter)))


def _is_list_of_values(rows: Sequence[_Row]) -> bool:
    """Return True if rows of one cell are short values, and no prose."""
    return all(len(row.cells[0]) <= _NAME_CHARACTERS for row in rows)


def _group_rows(text: str, delimiter: str) -> Iterator[VisibleBlock]:
    """Yield blocks of rows; each row shows the header's names."""
    rows = split_rows(text, delimiter)
    sample = [*islice(rows, _SAMPLE_ROWS)]
    n_preamble = _count_preamble_rows(sample)
    names: list[str] = []
    if len(sample) > n_preamble and has_header([row.cells for row in sample[n_preamble:]]):
        names = [name[:_NAME_CHARACTERS] for name in sample[n_preamble].cells]
    room = _NAMED_CHARACTERS + _NAMED_CHARACTERS_PER_CHARACTER * len(text)
    group = _Group()
    for row_index, row in enumerate(chain(sample, rows)):
        is_header = row_index == n_preamble and bool(names)
        is_named = row_index > n_preamble and room > 0
        for start, line in _show_row(row, names if is_named and not is_header else []):
            room -= len(line)
            if group.is_full(line):
                yield group.take()
            group.add(start, line, counts=not is_header)
        if row_index == n_preamble - 1:
            yield group.take()
    if group.lines:
        yield group.take()


class _Group:
    """Collects the lines of one block."""

    def __init__(self) -> None:
        self.start = 0
        self.lines: list[str] = []
        self.n_rows = 0
        self.n_characters = 0

    def is_full(self, line: str) -> bool:
        """Return True if the next line belongs to another block."""
        too_long = self.n_characters + len(line) > CHARACTERS_PER_BLOCK
        return self.n_rows > 0 and (too_long or self.n_rows >= ROWS_PER_BLOCK)

    def add(self, start: int, line: str, *, counts: bool) -> None:
        """Add a line that begins at an offset of the text. A header does not count: it stays with its first rows."""
        if not self.lines:
            self.start = start
        self.lines.append(line)
        self.n_rows += counts
        self.n_characters += len(line)

    def take(self) -> VisibleBlock:
        """Return the lines as one block, and begin the next one."""
        block = VisibleBlock(self.start, "list", "\n".join(self.lines))
        self.lines, self.n_rows, self.n_characters = [], 0, 0
        return block


def _show_row(row: _Row, names: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield a row as one readable line, or as several if it is longer than a block. Blank cells are left out."""
    start, n_characters = row.starts[0], 0
    texts: list[str] = []
    for index, (offset, cell) in enumerate(zip(row.starts, row.cells, strict=True)):
        if not cell and names:
            continue
        name = names[index] if index < len(names) else ""
        if texts and n_characters + len(cell) > CHARACTERS_PER_BLOCK:
            yield start, " | ".join(texts)
            start, texts, n_characters = offset, [], 0
        texts.append(f"{name}: {cell}" if name else cell)
        n_characters += len(texts[-1])
    yield start, " | ".join(texts)


def _count_preamble_rows(rows: Sequence[_Row]) -> int:
    """Return how many rows stand above the table: titles and comments in a single cell."""
    n_columns = max((len(row.cells) for row in rows), default=0)
    if n_columns < 2:
        return 0
    filled = [sum(map(bool, row.cells)) for row in rows[:_PREAMBLE_ROWS]]
    return next((index for index, count in enumerate(filled) if count > 1), 0)


def has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Return True if the first row of a table names its columns.

    A header has different, short names that are neither numbers nor dates. Years are names, next to other names. No
    name appears again as a value of its column.

    >>> has_header([["name", "age"], ["Ann", "3"]]), has_header([["Ann", "3"], ["Bob", "4"]])
    (True, False)
    >>> has_header([["Country", "2019", "2020"], ["Chad", "1", "2"]])
    True
    """
    first = [" ".join(cell.split()) for cell in rows[0]]
    names = [name for name in first if name]
    if not names or len(rows) < 2 or len(set(names)) < len(names) or max(map(len, names)) > 2 * _NAME_CHARACTERS:
        return False
    values = [name for name in names if is_value(name)]
    if values and not (len(values) < len(first) and all(map(_YEAR.fullmatch, values))):
        return False
    if len(first) == 1:  # a list of words has no header
        return all(is_value(row[0]) for row in rows[1:])
    columns = ({row[index] for row in rows[1:] if index < len(row)} for index in range(len(first)))
    return not any(name and name in column for name, column in zip(first, columns, strict=True))


def is_value(cell: str) -> bool:
    """Return True if a cell is a number or a date."""
    return bool(_NUMBER.fullmatch(cell) or _DATE.fullmatch(cell))
