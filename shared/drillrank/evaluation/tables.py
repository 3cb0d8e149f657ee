"""Rows of tables of questions or passages: JSON Lines and CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from drillrank.errors import InvalidInput
from drillrank.limits import read_json

_MAX_CELL = 2**31 - 1  # characters; a cell may contain the texts of all candidates


def read_rows(file: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the rows of a CSV or JSON Lines file, each with its name in messages, such as "questions.csv, line 7".

    The separator of a CSV file is the comma, semicolon or tab, whichever is most frequent in its first line.

    Raises:
        InvalidInput: The file cannot be read, or a line is invalid.
    """
    usual_limit = csv.field_size_limit(_MAX_CELL)
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            yield from (_read_csv if file.suffix.lower() == ".csv" else _read_json_lines)(file.name, lines)
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file} is not UTF-8: {error}. Save it in that encoding.") from error
    except (OSError, csv.Error) as error:
        raise InvalidInput(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
    finally:
        csv.field_size_limit(usual_limit)


def _read_json_lines(name: str, lines: TextIO) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        row_name = f"{name}, line {number}"
        row = read_json(line, row_name)
        if not isinstance(row, dict):
            raise InvalidInput(f"{row_name} must be a JSON object, got a {type(row).__name__}.")
        yield row_name, row


def _read_csv(name: str, lines: TextIO) -> Iterator[tuple[str, Mapping[str, Any]]]:
    header = lines.readline()
    lines.seek(0)
    table = csv.DictReader(lines, delimiter=max(",;\t", key=header.count))  # spreadsheets differ by country
    table.fieldnames = [column.strip() for column in table.fieldnames or ()]
    for row in table:
        if not any(cell.strip() for cell in row.values() if isinstance(cell, str)):
            continue  # spreadsheets write blank lines below the last row
        row_name = f"{name}, line {table.line_num}"
        if None in row or None in row.values():
            raise InvalidInput(
                f"{row_name} must have {len(table.fieldnames)} cells, as many as the first line has names."
            )
        yield row_name, row


def read_items(value: Any, row_name: str) -> list[Any]:
    """Return a value as a list: a cell of a CSV file is parsed as JSON or split at `|`, and an integer is one item.

    Raises:
        InvalidInput: The value is not a list, or begins like one.
    """
    if isinstance(value, str) and value.lstrip().startswith("["):
        value = read_json(value, f"{row_name} begins like a list, but")
    elif isinstance(value, str):
        value = [item.strip() for item in value.split("|") if item.strip()]
    elif is_integer(value):
        value = [value]
    if not isinstance(value, Sequence):
        raise InvalidInput(f"{row_name} must be a list, got {value!r:.80}.")
    return list(value)


def read_strings(value: Any, row_name: str) -> tuple[str, ...]:
    """Return a value as different strings; integers become strings.

    Raises:
        InvalidInput: An item is blank, or neither a string nor an integer.
    """
    items = [str(item) if is_integer(item) else item for item in read_items(value, row_name)]
    for item in items:
        if not isinstance(item, str) or not item.strip():
            raise InvalidInput(f"{row_name} must contain strings that are not blank, got {item!r:.80}.")
    return tuple(dict.fromkeys(items))


def is_integer(value: object) -> bool:
    """Return True for an integer, such as an id of a database or a year; False for True and False."""
    return isinstance(value, int) and not isinstance(value, bool)
