"""CSV and TSV: rows with the header's names, in groups, with exact spans."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank import parse_document
from drillrank.structure.delimited import has_header, split_rows


def rows_of(text: str, format: str = "csv") -> list[str]:
    document = parse_document(text, format)
    return [line for section in document.sections() for line in document.readable(section).splitlines() if line]


@pytest.mark.parametrize("delimiter", ",;\t|")
def test_rows_show_the_names_of_the_header(delimiter):
    text = "name,age,town\nAnn,3,Oslo\nBob,4,Rome\n".replace(",", delimiter)
    assert rows_of(text)[1:] == ["name: Ann | age: 3 | town: Oslo", "name: Bob | age: 4 | town: Rome"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ann,3\nBob,4\n", ["Ann | 3", "Bob | 4"]),
        ("1,2\n3,4\n", ["1 | 2", "3 | 4"]),
        ("Country,2019,2020\nChad,1,2\n", ["Country | 2019 | 2020", "Country: Chad | 2019: 1 | 2020: 2"]),
        ("Preis;Menge\n1,50;3\n2,50;4\n", ["Preis | Menge", "Preis: 1,50 | Menge: 3", "Preis: 2,50 | Menge: 4"]),
        ('a,b\n"x\ny","say ""hi"", now"\n', ["a | b", 'a: x y | b: say "hi", now']),
        ("a,b,c\n1,,3\n", ["a | b | c", "a: 1 | c: 3"]),
        ("a,b\n1,2,3\n", ["a | b", "a: 1 | b: 2 | 3"]),
        ("Report of 2031\n\nname,age\nAnn,3\n", ["Report of 2031", "name | age", "name: Ann | age: 3"]),
        ("a,b\r\n1,2\r\n", ["a | b", "a: 1 | b: 2"]),
        ("a,b\r1,2\r", ["a | b", "a: 1 | b: 2"]),
        ('a,b\n5" pipe,2\n', ["a | b", 'a: 5" pipe | b: 2']),
        ("\ufeffa,b\n1,2\n", ["a | b", "a: 1 | b: 2"]),
        ("size\n3\n4\n", ["size", "size: 3", "size: 4"]),
        ("apple\nbanana\n", ["apple", "banana"]),
    ],
)
def test_rows_are_read_as_a_reader_sees_them(text, expected):
    assert rows_of(text) == expected


def test_a_quotation_mark_that_is_never_closed_loses_nothing():
    text = 'a,b\n"open,2\n3,4\n'
    assert all(word in " ".join(rows_of(text)) for word in ("open", "2", "3", "4"))


def test_rows_are_grouped_and_their_spans_are_exact():
    text = "name,age\n" + "".join(f"person{number},{number}\n" for number in range(35))
    document = parse_document(text, "csv")
    blocks = document.blocks(document.sections()[0])
    assert len(blocks) == 4
    for block in blocks:
        source = document.slice(block).splitlines()
        assert [line.replace("name: ", "").replace(" | age: ", ",") for line in block.rendering.splitlines()][-10:] == (
            source[-10:]
        )


def test_a_row_that_is_longer_than_a_block_is_divided_between_cells():
    text = "id," + ",".join(f"column{number}" for number in range(400)) + "\n7," + ",".join(["some words"] * 400)
    document = parse_document(text, "csv")
    blocks = document.blocks(document.sections()[0])
    assert len(blocks) > 3
    assert "column399: some words" in blocks[-1].rendering


def test_fields_longer_than_the_limit_of_the_csv_module_are_read():
    assert len("x" * 200_000) > csv.field_size_limit()
    assert rows_of("a,b\n" + "x" * 200_000 + ",1\n")[1:] == ["a: " + "x" * 200_000, "b: 1"]


def test_a_long_header_is_not_repeated_without_bounds():
    text = "x" * 50_000 + ",b\n" + "1,2\n" * 20_000
    document = parse_document(text, "csv")
    assert sum(len(block.rendering) for block in document.blocks(document.sections()[0])) < 10 * len(text) + 2_000_000


@given(st.lists(st.lists(st.text(st.characters(exclude_categories=["C", "Z"])), min_size=2, max_size=5), max_size=8))
def test_cells_are_those_of_the_csv_module(rows):
    file = io.StringIO()
    csv.writer(file).writerows(rows)
    expected = [row for row in rows if any(cell.strip() for cell in row)]
    assert [row.cells for row in split_rows(file.getvalue(), ",")] == [
        [cell.strip() for cell in row] for row in expected
    ]


@given(st.text(st.sampled_from('ab1 ,;\t|"\r\n\ufeff')))
def test_any_text_is_tiled(text):
    document = parse_document(text, "csv")
    assert "".join(document.slice(section) for section in document.sections()) == text
    shown = "".join(document.readable(section) for section in document.sections())
    assert all(shown.count(letter) >= text.count(letter) for letter in "ab1")


def test_a_header_has_names_that_are_no_values():
    assert has_header([["name", "born"], ["Ann", "2001-02-03"]])
    assert not has_header([["2001-02-03", "4"], ["2001-02-04", "5"]])
    assert not has_header([["yes", "no"], ["yes", "maybe"]])
    assert not has_header([["name", "name"], ["Ann", "Bob"]])


@pytest.mark.parametrize("first_line", ["sep=;", "\ufeffsep=;", '"sep=;"', "SEP=;"])
def test_the_delimiter_line_of_excel_is_no_row(first_line: str) -> None:
    document = parse_document(f"{first_line}\r\nItem;Price, net\r\nChair;9,50\r\n", "csv")
    assert document.readable(document.sections()[0]) == "Item | Price, net\nItem: Chair | Price, net: 9,50"
