"""Spreadsheets (XLSX, XLSM, XLSB, XLS, ODS): each sheet becomes a section, its rows tables with the header's names.

calamine reads the cells. Limits: it does not tell hidden rows and columns, formats of numbers or comments.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import Any

from drillrank import limits
from drillrank.errors import InvalidInput, require
from drillrank.structure.delimited import CHARACTERS_PER_BLOCK, ROWS_PER_BLOCK, has_header
from drillrank.structure.formats import ConvertedText
from drillrank.structure.markdown import heading, prose, table
from drillrank.structure.spreadsheet_bounds import check_workbook

_SAMPLE_ROWS = 100
_EXACT_INTEGERS = 1e15  # floats above show an exponent
_MIDNIGHT = datetime.time()
Cells = list[list[str]]
"""Texts of a rectangle of cells, row by row."""


def convert_spreadsheet(content: bytes) -> ConvertedText:
    """Convert a workbook to Markdown.

    Raises:
        InvalidInput: The file is broken, encrypted or too large; the message continues its name.
        MissingExtra: python-calamine is not installed.
    """
    calamine = require("python_calamine", "files")
    checked = check_workbook(content)
    try:
        workbook = calamine.load_workbook(BytesIO(checked.content))
        parts, n_hidden = _convert_sheets(calamine, workbook, len(content))
    except calamine.PasswordError as problem:
        raise InvalidInput("is encrypted: save a copy without a password first.") from problem
    except InvalidInput as problem:
        raise InvalidInput(f"cannot be read as a spreadsheet: {problem}.") from problem
    except BaseException as problem:  # a panic of the library is no Exception
        if not isinstance(problem, Exception) and type(problem).__name__ != "PanicException":
            raise
        if "password" in str(problem).lower():
            raise InvalidInput("is encrypted: save a copy without a password first.") from problem
        raise InvalidInput(f"cannot be read as a spreadsheet: {str(problem)[:200].rstrip('.')}.") from problem
    warnings = [f"{n_hidden} hidden sheet(s) are left out."] * bool(n_hidden)
    if checked.n_dropped_sheets:
        warnings.append(f"{checked.n_dropped_sheets} sheet(s) are left out: their cells lie too far apart.")
    return ConvertedText("\n\n".join(parts), None, tuple(warnings))


def _convert_sheets(calamine: Any, workbook: Any, size: int) -> tuple[list[str], int]:
    """Return the Markdown blocks of all visible sheets, and the number of hidden sheets.

    Args:
        calamine: The library.
        workbook: Its workbook.
        size: Number of bytes of the file.
    """
    parts: list[str] = []
    n_hidden = n_characters = 0
    for index, sheet in enumerate(workbook.sheets_metadata):
        if sheet.typ != calamine.SheetTypeEnum.WorkSheet:
            continue
        if sheet.visible != calamine.SheetVisibleEnum.Visible:
            n_hidden += 1
            continue
        title = heading(1, sheet.name)
        blocks = [title]
        for block in _convert_sheet(workbook.get_sheet_by_index(index)):
            n_characters += len(block)
            limits.check_extracted(n_characters, size)
            blocks.append(block)
        parts += blocks if len(blocks) > 1 else []
    return parts, n_hidden


def _convert_sheet(sheet: Any) -> Iterator[str]:
    """Yield the Markdown blocks of a sheet: blank rows end a table."""
    rows = [[show_cell(cell) for cell in row] for row in sheet.to_python()]
    merged = [*_merged_ranges(sheet)]
    _fill_merged_rows(rows, merged)
    wide_rows = {first_row for first_row, first, last_row, last in merged if last > first and first_row == last_row}
    header: list[str] = []
    start = 0
    while start < len(rows):
        end = next((index for index in range(start, len(rows)) if not any(rows[index])), len(rows))
        if start < end:
            header = yield from _convert_table(rows[start:end], header, start in wide_rows)
        start = end + 1


def _convert_table(rows: Cells, last_header: list[str], has_wide_cells: bool) -> Any:
    """Yield the blocks of one table: titles above it, then groups of rows; return its header.

    Args:
        rows: Rows without a blank one among them.
        last_header: Header of the table above; used again if this table has as many columns and no header.
        has_wide_cells: True if the first row has cells that are merged with the next column's.
    """
    is_grouped = has_wide_cells and len(rows) > 2 and (not rows[0][0] or sum(map(bool, rows[0])) > 1)
    if is_grouped and has_header(rows[1:_SAMPLE_ROWS]):
        rows = [_join_header_rows(rows[0], rows[1]), *rows[2:]]
    n_titles = _count_title_rows(rows)
    for row in rows[:n_titles]:
        yield prose(" ".join(filter(None, row)))
    rows = rows[n_titles:]
    if not rows:
        return last_header
    if has_header(_without_blank_columns(rows[:_SAMPLE_ROWS])):
        header, body = rows[0], rows[1:]
    else:
        header = last_header if _count_columns(last_header) == max(map(_count_columns, rows)) else []
        body = rows
    yield from _group_rows(header, body)
    return header


def _without_blank_columns(rows: Cells) -> Cells:
    filled = [index for index in range(len(rows[0])) if any(row[index] for row in rows)]
    return [[row[index] for index in filled] for row in rows]


def _count_columns(row: Sequence[str]) -> int:
    """Return the number of columns up to the last one with text."""
    return next((index + 1 for index in range(len(row) - 1, -1, -1) if row[index]), 0)


def _group_rows(header: list[str], rows: Cells) -> Iterator[str]:
    """Yield tables of several rows; each repeats the header."""
    n_columns = max(map(_count_columns, [header, *rows]))
    header = [*header, *[""] * n_columns][:n_columns]
    header_size = sum(map(len, header))
    group: Cells = []
    n_characters = 0
    for row in rows:
        size = sum(map(len, row))
        is_full = len(group) >= ROWS_PER_BLOCK or n_characters + size > CHARACTERS_PER_BLOCK
        # A header longer than its rows would make the text grow without bounds.
        if group and is_full and n_characters >= header_size:
            yield table([header, *group])
            group, n_characters = [], 0
        group.append(row[:n_columns])
        n_characters += size
    if group or any(header):
        yield table([header, *group])


def _count_title_rows(rows: Cells) -> int:
    """Return how many rows above a table have a single cell; all of them if there are no columns."""
    return next((index for index, row in enumerate(rows) if sum(map(bool, row)) > 1), len(rows) if len(rows) < 3 else 0)


def _join_header_rows(groups: list[str], names: list[str]) -> list[str]:
    """Put the name of a group of columns before the name of each of its columns.

    >>> _join_header_rows(["", "2031", ""], ["Region", "Q1", "Q2"])
    ['Region', '2031 Q1', '2031 Q2']
    """
    joined, group = [], ""
    for above, name in zip(groups, names, strict=True):
        group = above or group
        joined.append(" ".join(filter(None, [group, name])))
    return joined


def _merged_ranges(sheet: Any) -> Iterator[tuple[int, int, int, int]]:
    """Yield first row and column, last row and column of merged cells, counted from the first cell with text."""
    first_used_row, first_used_column = sheet.start or (0, 0)
    for (first_row, first_column), (last_row, last_column) in sheet.merged_cell_ranges or ():
        if first_row >= first_used_row and first_column >= first_used_column:
            yield (
                first_row - first_used_row,
                first_column - first_used_column,
                last_row - first_used_row,
                last_column - first_used_column,
            )


def _fill_merged_rows(rows: Cells, merged: Sequence[tuple[int, int, int, int]]) -> None:
    """Repeat the text of a cell in all rows that it is merged over, so that each row can be read alone."""
    room = sum(map(len, rows))  # overlapping ranges would take quadratic time
    for first_row, column, last_row, _ in merged:
        if last_row == first_row or first_row >= len(rows) or column >= len(rows[0]):
            continue
        text = rows[first_row][column][:CHARACTERS_PER_BLOCK]
        for row in rows[first_row + 1 : min(last_row + 1, first_row + 1 + max(room, 0))]:
            room -= 1
            if any(row):
                row[column] = row[column] or text


def show_cell(value: object) -> str:
    """Return the value of a cell as a reader sees it.

    >>> show_cell(3.0), show_cell(0.1 + 0.2), show_cell(True), show_cell(datetime.datetime(2031, 5, 1))
    ('3', '0.3', 'TRUE', '2031-05-01')
    """
    match value:
        case bool():
            return str(value).upper()
        case float() if value.is_integer() and abs(value) < _EXACT_INTEGERS:
            return str(int(value))
        case float():
            return f"{value:.15g}"
        case datetime.datetime() if value.time() == _MIDNIGHT:
            return value.date().isoformat()
        case datetime.datetime():
            return value.replace(microsecond=0).isoformat(sep=" ")
        case datetime.timedelta():
            return _show_duration(value)
        case datetime.time():
            return value.replace(microsecond=0).isoformat()
    return " ".join(str(value).split())


def _show_duration(duration: datetime.timedelta) -> str:
    seconds = round(duration.total_seconds())
    sign = "-" if seconds < 0 else ""
    minutes, seconds = divmod(abs(seconds), 60)
    return f"{sign}{minutes // 60}:{minutes % 60:02}:{seconds:02}"
