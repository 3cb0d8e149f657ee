"""Spreadsheets: sheets as sections, rows as tables, within limits."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank import read_document
from drillrank.structure.spreadsheet import convert_spreadsheet
from tests.drillrank.structure.spreadsheets import ods_of, ods_row, sheet_of, xlsx_of


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


def test_pictures_do_not_count():
    content = xlsx_of({"Data": sheet_of([["a"]])}, **{"xl/media/image.png": b" " * 50_000_000})
    assert convert_spreadsheet(content).text == "# Data\n\na"


TEXTS = st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters="|"), min_size=1, max_size=8)


@given(st.lists(st.lists(st.none() | TEXTS, max_size=5), max_size=8))
def test_no_cell_is_lost(rows):
    text = text_of(*rows)
    assert all(cell in text or f"\\{cell}" in text for row in rows for cell in row if cell)
