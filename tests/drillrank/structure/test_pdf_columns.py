"""Columns of PDFs are read one after the other, whatever their number and widths; tables are read by rows."""

from __future__ import annotations

import re

import pytest

from drillrank.structure.pdf import convert_pdf
from tests.pdf_files import Text, lines, pdf_of

pytest.importorskip("liteparse", reason="needs the extra pdf")
pytest.importorskip("pypdfium2", reason="needs the extra pdf")


def column(
    name: str, x: float, rows: int, tail: str, leading: float = 12, y: float = 100, size: float = 9
) -> list[Text]:
    return [Text(f"{name} line {row:02d} {tail}", x, y + leading * row, size=size) for row in range(rows)]


def order(texts: list[Text]) -> list[str]:
    """The lines in the order of the text."""
    text = convert_pdf(pdf_of([sorted(texts, key=lambda text: (text.y, text.x))]).content()).text
    return re.findall(r"[a-z]+ line \d\d", text)


def expected(*columns: tuple[str, int]) -> list[str]:
    return [f"{name} line {row:02d}" for name, rows in columns for row in range(rows)]


@pytest.mark.parametrize("rows", [12, 30])
@pytest.mark.parametrize("leading", [13, 15.6])
def test_three_columns_whose_lines_do_not_agree(rows, leading):
    names = ("alpha", "beta", "gamma")
    texts = [
        text
        for number, name in enumerate(names)
        for text in column(name, 34 + 181 * number, rows, "of a longer text", leading, 60 + 4.8 * number)
    ]
    assert order(texts) == expected(*((name, rows) for name in names))


def test_four_narrow_columns():
    names = ("alpha", "beta", "gamma", "delta")
    texts = [
        text
        for number, name in enumerate(names)
        for text in column(name, 30 + 140 * number, 20, "of a text here", y=60 + number)
    ]
    assert order(texts) == expected(*((name, 20) for name in names))


def test_a_wide_and_a_narrow_column():
    wide = column("wide", 40, 25, "of the text that goes over most of the page and is read first of all")
    narrow = column("narrow", 430, 25, "and its few words", y=103)
    assert order(wide + narrow) == expected(("wide", 25), ("narrow", 25))


def test_a_narrow_column_on_the_left():
    narrow = column("narrow", 30, 20, "with some words", y=103)
    wide = column("wide", 200, 20, "of the text that goes over most of the page and is read behind it")
    assert order(wide + narrow) == expected(("narrow", 20), ("wide", 20))


def test_a_short_sidebar_beside_the_text():
    wide = column("wide", 40, 30, "of the text that goes over most of the page and is read first of all")
    side = column("side", 430, 5, "of a few more words", leading=15, y=205)
    found = order(wide + side)
    assert [line for line in found if line.startswith("side")] == expected(("side", 5))
    first = found.index("side line 00")
    assert found[first : first + 5] == expected(("side", 5))


def test_columns_below_a_title_and_above_a_line_over_all_of_them():
    title = Text(
        "title line 00 over the whole width of the page, from the left edge to the right one, as is usual", 40, 60
    )
    left = column("left", 40, 10, "of the text in the first column", y=100)
    right = column("right", 320, 10, "of the text in the second column", y=100)
    across = Text(
        "across line 00 over the whole width of the page, from the left edge to the right one, as is usual", 40, 240
    )
    below = column("below", 40, 3, "of the text in the first column", y=270)
    last = column("last", 320, 3, "of the text in the second column", y=270)
    wanted = expected(("title", 1), ("left", 10), ("right", 10), ("across", 1), ("below", 3), ("last", 3))
    assert order([title, across, *left, *right, *below, *last]) == wanted


def test_a_table_of_words_is_read_by_rows():
    cells = [
        Text(word, x, 100 + 14 * row)
        for row in range(12)
        for word, x in ((f"name{row}", 72), (f"place{row}", 230), (f"role{row}", 400))
    ]
    text = convert_pdf(pdf_of([cells]).content()).text
    assert "| name3 | place3 | role3 |" in text


def test_a_table_of_figures_below_prose_is_read_by_rows():
    prose = lines("The fox hunts mice at night and sleeps by day, as most people know. " * 8, y=60)
    cells = [
        Text(cell, x, 200 + 14 * row)
        for row in range(10)
        for cell, x in ((f"Net sales of the region {row}", 72), (str(1000 + row), 300), (str(2000 + row), 400))
    ]
    text = convert_pdf(pdf_of([[*prose, *cells]]).content()).text
    assert [f"| Net sales of the region {row} | {1000 + row} | {2000 + row} |" in text for row in range(10)] == [
        True
    ] * 10
