"""Spreadsheets: sheets as sections, rows as tables, within limits."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank import read_document
from drillrank.errors import InvalidInput
from drillrank.structure.spreadsheet import convert_spreadsheet
from drillrank.structure.spreadsheet_bounds import check_workbook

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
OFFICE = "urn:oasis:names:tc:opendocument:xmlns"


def archive_of(parts: dict[str, str | bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return file.getvalue()


def column_name(index: int) -> str:
    return ("" if index < 26 else column_name(index // 26 - 1)) + chr(ord("A") + index % 26)


def sheet_of(rows: Sequence[Sequence[object]], merged: str = "") -> str:
    """Write a sheet; None is a blank cell, and a pair of a number and 1 is a date."""
    body = ""
    for number, row in enumerate(rows, 1):
        cells = ""
        for index, value in enumerate(row):
            name = f'r="{column_name(index)}{number}"'
            if isinstance(value, tuple):
                cells += f'<c {name} s="1"><v>{value[0]}</v></c>'
            elif isinstance(value, bool):
                cells += f'<c {name} t="b"><v>{int(value)}</v></c>'
            elif isinstance(value, int | float):
                cells += f"<c {name}><v>{value}</v></c>"
            elif value is not None:
                cells += f'<c {name} t="inlineStr"><is><t xml:space="preserve">{escape(str(value))}</t></is></c>'
        body += f'<row r="{number}">{cells}</row>'
    ranges = f'<mergeCells><mergeCell ref="{merged}"/></mergeCells>' if merged else ""
    return f'<worksheet xmlns="{MAIN}"><sheetData>{body}</sheetData>{ranges}</worksheet>'


def xlsx_of(sheets: dict[str, str], hidden: Sequence[str] = (), **more: str | bytes) -> bytes:
    listed, relations, types = "", "", ""
    for number, name in enumerate(sheets, 1):
        state = ' state="hidden"' if name in hidden else ""
        listed += f'<sheet name="{name}" sheetId="{number}"{state} r:id="r{number}"/>'
        relations += (
            f'<Relationship Id="r{number}" Type="{RELATIONS}/worksheet" Target="worksheets/sheet{number}.xml"/>'
        )
        types += f'<Override PartName="/xl/worksheets/sheet{number}.xml" ContentType="x"/>'
    relations += f'<Relationship Id="s" Type="{RELATIONS}/styles" Target="styles.xml"/>'
    book = f'<workbook xmlns="{MAIN}" xmlns:r="{RELATIONS}"><sheets>{listed}</sheets></workbook>'
    root = f'<Relationship Id="a" Type="{RELATIONS}/officeDocument" Target="xl/workbook.xml"/>'
    formats = f'<styleSheet xmlns="{MAIN}"><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>'
    return archive_of(
        {
            "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types">{types}</Types>',
            "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships">{root}</Relationships>',
            "xl/workbook.xml": book,
            "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">{relations}</Relationships>',
            "xl/styles.xml": formats,
            **{f"xl/worksheets/sheet{number}.xml": sheet for number, sheet in enumerate(sheets.values(), 1)},
            **more,
        }
    )


def ods_of(rows: str, **more: str) -> bytes:
    body = (
        f'<office:document-content xmlns:office="{OFFICE}:office:1.0" xmlns:table="{OFFICE}:table:1.0" '
        f'xmlns:text="{OFFICE}:text:1.0" office:version="1.2"><office:body><office:spreadsheet>'
        f'<table:table table:name="Sales">{rows}</table:table></office:spreadsheet></office:body>'
        "</office:document-content>"
    )
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    manifest = (
        f'<manifest:manifest xmlns:manifest="{OFFICE}:manifest:1.0"><manifest:file-entry manifest:full-path="/" '
        f'manifest:media-type="{kind}"/></manifest:manifest>'
    )
    return archive_of({"mimetype": kind, "content.xml": body, "META-INF/manifest.xml": manifest, **more})


def ods_row(*texts: str, repeated: int = 1) -> str:
    cells = "".join(
        f'<table:table-cell office:value-type="string"><text:p>{text}</text:p></table:table-cell>'
        if text
        else "<table:table-cell/>"
        for text in texts
    )
    return f'<table:table-row table:number-rows-repeated="{repeated}">{cells}</table:table-row>'


def text_of(*rows: Sequence[object], merged: str = "") -> str:
    return convert_spreadsheet(xlsx_of({"Data": sheet_of(rows, merged)})).text


def test_sheets_are_sections(tmp_path):
    file = tmp_path / "a.xlsx"
    file.write_bytes(
        xlsx_of({"Staff": sheet_of([["name", "age"], ["Ann", 3]]), "Rent": sheet_of([["town"], ["Oslo"]])})
    )
    document = read_document(file)
    assert [section.path for section in document.sections()] == [("Staff",), ("Rent",)]
    assert "| name | age |\n| --- | --- |\n| Ann | 3 |" in document.text
    assert [block.kind for block in document.blocks(document.sections()[0])] == ["heading", "table"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3.0, "3"),
        (0.1 + 0.2, "0.3"),
        (1234567.25, "1234567.25"),
        (True, "TRUE"),
        ((45778, 1), "2025-05-01"),
        ("a|b\nc", "a\\|b c"),
        ("<b> & *x*", "<b> & *x*"),
    ],
)
def test_values_are_shown_as_a_reader_sees_them(value, expected):
    assert f"| Ann | {expected} |" in text_of(["name", "value"], ["Ann", value])


def test_blank_cells_keep_their_column():
    assert text_of(["a", "b", "c"], [1, None, 3], [None, 2]).endswith("| 1 |  | 3 |\n|  | 2 |  |")


def test_titles_above_a_table_are_paragraphs():
    text = text_of(["Sales of 2031"], [], ["region", "sum"], ["North", 1])
    assert text == "# Data\n\nSales of 2031\n\n| region | sum |\n| --- | --- |\n| North | 1 |"


def test_tables_below_each_other_have_their_own_headers():
    text = text_of(["region", "sum"], ["North", 1], [], ["name", "age"], ["Ann", 3])
    assert text.count("| --- | --- |") == 2
    assert "| name | age |\n| --- | --- |\n| Ann | 3 |" in text


def test_numbers_are_no_header():
    assert text_of([1, 2], [3, 4]) == "# Data\n\n|  |  |\n| --- | --- |\n| 1 | 2 |\n| 3 | 4 |"


def test_long_tables_are_divided_and_repeat_their_header():
    text = text_of(["name", "age"], *([f"person{number}", number] for number in range(35)))
    assert text.count("| name | age |") == 4
    assert all(f"| person{number} | {number} |" in text for number in range(35))


def test_rows_of_merged_cells_repeat_the_text():
    text = text_of(["region", "sum"], ["North", 1], [None, 2], ["South", 3], merged="A2:A3")
    assert "| North | 1 |\n| North | 2 |\n| South | 3 |" in text


def test_a_header_of_two_rows_is_joined():
    text = text_of([None, "2031", None], ["region", "first", "second"], ["North", 1, 2], merged="B1:C1")
    assert "| region | 2031 first | 2031 second |" in text


def test_hidden_sheets_are_left_out_with_a_warning():
    sheets = {"Open": sheet_of([["seen"]]), "Secret": sheet_of([["unseen"]])}
    converted = convert_spreadsheet(xlsx_of(sheets, hidden=["Secret"]))
    assert "unseen" not in converted.text
    assert converted.warnings == ("1 hidden sheet(s) are left out.",)


def test_ods_is_read():
    rows = ods_row("region", "", "sum") + ods_row("North", "", "1", repeated=2) + ods_row("", repeated=1_000_000)
    text = convert_spreadsheet(ods_of(rows)).text
    assert text == "# Sales\n\n| region |  | sum |\n| --- | --- | --- |\n| North |  | 1 |\n| North |  | 1 |"


def test_indented_xml_of_ods_is_read():
    rows = ods_row("a", "b").replace("><table", ">\n  <table").replace("></table", ">\n</table")
    assert "| a | b |" in convert_spreadsheet(ods_of(rows)).text


def test_a_declared_dimension_takes_no_memory():
    sheet = sheet_of([["a"]]).replace("<sheetData>", '<dimension ref="A1:XFD1048576"/><sheetData>')
    assert convert_spreadsheet(xlsx_of({"Data": sheet})).text == "# Data\n\na"


def test_a_sheet_whose_cells_lie_far_apart_is_left_out():
    far = sheet_of([["a"]]).replace("</sheetData>", '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData>')
    converted = convert_spreadsheet(xlsx_of({"Far": far, "Near": sheet_of([["words"]])}))
    assert converted.text == "# Near\n\nwords"
    assert converted.warnings == ("1 sheet(s) are left out: their cells lie too far apart.",)


def test_formats_of_blank_cells_far_below_do_no_harm():
    sheet = sheet_of([["a"]]).replace("</sheetData>", '<row r="1048576"><c r="XFD1048576" s="1"/></row></sheetData>')
    assert convert_spreadsheet(xlsx_of({"Data": sheet})).text == "# Data\n\na"


@pytest.mark.parametrize(
    "rows", [ods_row("a", repeated=1_000_000_000), ods_row(*["a"] * 20, repeated=1_000_000)], ids=["rows", "cells"]
)
def test_repeated_rows_are_bounded(rows):
    with pytest.raises(InvalidInput, match="cells"):
        convert_spreadsheet(ods_of(rows))


def test_a_bomb_is_refused():
    with pytest.raises(InvalidInput, match="too large"):
        convert_spreadsheet(xlsx_of({"Data": sheet_of([["a"]])}, **{"xl/bomb.xml": b" " * 50_000_000}))


def test_pictures_do_not_count():
    content = xlsx_of({"Data": sheet_of([["a"]])}, **{"xl/media/image.png": b" " * 50_000_000})
    assert convert_spreadsheet(content).text == "# Data\n\na"


def test_other_compressions_are_refused():
    with pytest.raises(InvalidInput, match="compressed"):
        convert_spreadsheet(archive_of({"xl/workbook.xml": "x" * 1000}, zipfile.ZIP_LZMA))


ENCRYPTED = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 512 + "EncryptedPackage".encode("utf-16-le")
BROKEN = {
    "empty": b"",
    "text": b"name;age\nAnn;3\n",
    "page": b"<table><tr><td>a</td></tr></table>",
    "encrypted": ENCRYPTED,
    "old, broken": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600,
    "no archive": b"PK\x03\x04 broken",
    "other archive": archive_of({"a.txt": "a"}),
    "cut": xlsx_of({"Data": sheet_of([["a"]])})[:-100],
    "encrypted ods": ods_of("", **{"META-INF/manifest.xml": "<manifest:encryption-data/>"}),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_cannot_be_read_is_refused(name):
    with pytest.raises(InvalidInput, match="encrypted" if "encrypted" in name else "spreadsheet"):
        convert_spreadsheet(BROKEN[name])


TEXTS = st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters="|"), min_size=1, max_size=8)


@given(st.lists(st.lists(st.none() | TEXTS, max_size=5), max_size=8))
def test_no_cell_is_lost(rows):
    text = text_of(*rows)
    assert all(cell in text or f"\\{cell}" in text for row in rows for cell in row if cell)


@given(st.binary(max_size=100), st.sampled_from([b"", b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"\x09\x08"]))
def test_any_file_is_read_or_refused(read_or_refuse, content, signature):
    read_or_refuse("a.xls", signature + content)
    read_or_refuse("a.ods", signature + content)


@given(st.integers(0, 2000), st.integers(0, 255))
def test_any_damage_is_read_or_refused(read_or_refuse, offset, byte):
    content = bytearray(check_workbook(xlsx_of({"Data": sheet_of([["name", "age"], ["Ann", 3]])})).content)
    content[offset % len(content)] = byte
    read_or_refuse("a.xlsx", bytes(content))
