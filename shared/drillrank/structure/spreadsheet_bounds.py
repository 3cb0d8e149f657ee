"""Bounds of spreadsheets: an archive is unpacked within limits before a library reads it.

calamine stores a sheet as a dense grid. A cell in the last row and column of an otherwise empty sheet would take
hundreds of gigabytes, so the grid of each sheet is measured first.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator
from io import BytesIO
from typing import NamedTuple

from drillrank import limits
from drillrank.errors import InvalidInput

MAX_GRID_CELLS = 10_000_000  # of one sheet; calamine needs about 32 bytes for each
_MAX_MEMBERS = 10_000
_READ_PARTS = (".xml", ".rels", ".bin", "mimetype")
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ZIP_SIGNATURE = b"PK\x03\x04"
_OLD_BINARY = re.compile(rb"\xd0\xcf\x11\xe0|\x09[\x00\x02\x04\x08]")  # OLE, or a bare stream of records
_ENCRYPTED_PACKAGE = "EncryptedPackage".encode("utf-16-le")
_ENCRYPTED_PART = b"encryption-data"  # in the manifest of an OpenDocument file

_XLSX_SHEET = re.compile(r"xl/worksheets/[^/]+\.xml", re.IGNORECASE)
_XLSB_SHEET = re.compile(r"xl/worksheets/[^/]+\.bin", re.IGNORECASE)
_ROW_TAG = re.compile(rb"<(?:\w{1,20}:)?row[\s/>]")
_ROW_NUMBER = re.compile(rb"""<(?:\w{1,20}:)?row\s[^<>]{0,500}?\br\s*=\s*["'](\d{1,7})["']""")
_CELL_TAG = re.compile(rb"<(?:\w{1,20}:)?c(?:\s[^<>]{0,500})?>")
_CELL_REFERENCE = re.compile(rb"""\sr\s*=\s*["']([A-Za-z]{1,3})(\d{1,7})["']""")
_EMPTY_SHEET = b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData/></worksheet>'

_ODS_INDENT = re.compile(rb">\s+<(?=/?table:)")  # calamine fails on it
_ODS_TAG = re.compile(rb"<(/?)table:(table-row|table-cell|covered-table-cell|table)\b([^<>]{0,2000})>|<text:p[\s/>]")
_ODS_REPEATED = re.compile(rb"""table:number-(?:columns|rows)-repeated\s*=\s*["'](\d+)["']""")

_XLSB_ROW = 0
_XLSB_CELLS = frozenset({*range(2, 12), 62})


class CheckedWorkbook(NamedTuple):
    """Spreadsheet that calamine can read within bounds.

    Attributes:
        content: Bytes of the file; those of an archive are unpacked, without pictures.
        n_dropped_sheets: Number of sheets that were emptied because their grid is too large.
    """

    content: bytes
    n_dropped_sheets: int = 0


def check_workbook(content: bytes) -> CheckedWorkbook:
    """Unpack a spreadsheet within the limits, and empty the sheets whose grid is too large.

    Raises:
        InvalidInput: The archive is broken, encrypted or too large; the message continues the file's name.
    """
    if not content.startswith(_ZIP_SIGNATURE):
        if _ENCRYPTED_PACKAGE in content:
            raise InvalidInput("is encrypted: save a copy without a password first.")
        if _OLD_BINARY.match(content) is None:
            raise InvalidInput("is not a spreadsheet inside: if it is text, rename it to .csv, .tsv or .html.")
        return CheckedWorkbook(content)
    unpacked, n_dropped, size = BytesIO(), 0, 0
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive, zipfile.ZipFile(unpacked, "w") as plain_archive:
            for name, part in _read_parts(archive):
                if name == "META-INF/manifest.xml" and _ENCRYPTED_PART in part:
                    raise RuntimeError("a part is encrypted")
                if name == "content.xml":
                    part = _ODS_INDENT.sub(b"><", part)
                size += len(part)
                limits.check_extracted(size, len(content))
                is_dropped = _count_grid_cells(name, part) > MAX_GRID_CELLS
                n_dropped += is_dropped
                plain_archive.writestr(name, _empty_sheet(name) if is_dropped else part)
    except InvalidInput as problem:
        raise InvalidInput(f"cannot be read as a spreadsheet: {problem}.") from problem
    except NotImplementedError as problem:
        raise InvalidInput(f"cannot be read as a spreadsheet: {problem!s:.200}.") from problem
    except RuntimeError as problem:  # raised by zipfile if a part needs a password
        raise InvalidInput("is encrypted: save a copy without a password first.") from problem
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError) as problem:
        raise InvalidInput(f"cannot be read as a spreadsheet: its archive is broken ({problem!s:.200}).") from problem
    return CheckedWorkbook(unpacked.getvalue(), n_dropped)


def _read_parts(archive: zipfile.ZipFile) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of the parts that contain cells, styles or relations."""
    parts = archive.infolist()
    if len(parts) > _MAX_MEMBERS:
        raise InvalidInput(f"its archive has more than {_MAX_MEMBERS:,} parts")
    packed_size = sum(part.compress_size for part in parts)
    n_declared_bytes = 0
    for part in {part.filename: part for part in parts}.values():
        if not part.filename.lower().endswith(_READ_PARTS):
            continue
        if part.compress_type not in _COMPRESSIONS:
            raise InvalidInput("its archive is compressed in a way that spreadsheets are not")
        n_declared_bytes += part.file_size
        limits.check_extracted(n_declared_bytes, packed_size)
        # zipfile reads at most the declared size of a part.
        yield part.filename, archive.read(part)


def _empty_sheet(name: str) -> bytes:
    if _XLSX_SHEET.fullmatch(name):
        return _EMPTY_SHEET
    raise InvalidInput(f"a sheet has more than {MAX_GRID_CELLS:,} cells. Delete the empty rows and columns")


def _count_grid_cells(name: str, part: bytes) -> int:
    """Return the size of the grid of a sheet: its last row times its last column."""
    if _XLSX_SHEET.fullmatch(name):
        return _count_xlsx_cells(part)
    if _XLSB_SHEET.fullmatch(name):
        return _count_xlsb_cells(part)
    return _count_ods_cells(part) if name == "content.xml" else 0


def _count_xlsx_cells(sheet: bytes) -> int:
    last_row = last_column = n_rows = 0
    for row in _ROW_TAG.split(sheet):
        n_rows += 1
        n_cells = 0
        for tag in _CELL_TAG.finditer(row):
            n_cells += 1
            if not tag[0].endswith(b"/>") and (reference := _CELL_REFERENCE.search(tag[0])):
                last_row = max(last_row, int(reference[2]))
                last_column = max(last_column, column_number(reference[1].decode()))
        last_column = max(last_column, n_cells)
    if b"<c>" in sheet:  # cells without a reference are in the row whose number is given
        n_rows = max([n_rows, *(int(number[1]) for number in _ROW_NUMBER.finditer(sheet))])
    return max(last_row, n_rows) * last_column


def column_number(letters: str) -> int:
    """Return the number of a column, starting at 1.

    >>> column_number("A"), column_number("AB")
    (1, 28)
    """
    number = 0
    for letter in letters.upper():
        number = number * 26 + ord(letter) - ord("A") + 1
    return number


def _count_xlsb_cells(sheet: bytes) -> int:
    """Return the grid of a binary sheet: a sequence of records with an id, a length and their content."""
    offset = row = last_row = last_column = 0
    while offset < len(sheet):
        kind, offset = _read_variable_number(sheet, offset, 2)
        length, offset = _read_variable_number(sheet, offset, 4)
        first_number = int.from_bytes(sheet[offset : offset + 4], "little")
        if kind == _XLSB_ROW:
            row = first_number + 1
        elif kind in _XLSB_CELLS:
            last_row, last_column = max(last_row, row), max(last_column, first_number + 1)
        offset += length
    return last_row * last_column


def _read_variable_number(content: bytes, offset: int, max_bytes: int) -> tuple[int, int]:
    """Return a number of 7 bits a byte, and the offset after it."""
    number = 0
    for index, byte in enumerate(content[offset : offset + max_bytes]):
        number |= (byte & 0x7F) << (7 * index)
        if not byte & 0x80:
            return number, offset + index + 1
    return number, offset + max_bytes


def _count_ods_cells(content: bytes) -> int:
    """Return the largest grid of an OpenDocument file: repeated cells count up to the last one with text."""
    largest = n_rows = last_row = width = last_column = 0
    cell_repeats = row_repeats = column = 0
    for tag in _ODS_TAG.finditer(content):
        closing, name, attributes = tag.groups()
        if name == b"table":
            largest = max(largest, last_row * width)
            n_rows = last_row = width = row_repeats = 0
        elif name == b"table-row":
            n_rows += 0 if closing else _repeats(attributes)
            row_repeats = n_rows
            column = last_column = 0
        elif name is not None and not closing:
            cell_repeats = _repeats(attributes)
            column += cell_repeats
            if b"value" in attributes:
                last_column, last_row = column, row_repeats
        elif name is None:
            last_column, last_row = column, row_repeats
        width = max(width, last_column)
    return max(largest, last_row * width)


def _repeats(attributes: bytes) -> int:
    repeated = _ODS_REPEATED.search(attributes)
    return int(repeated[1]) if repeated else 1
