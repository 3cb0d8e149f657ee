"""Tables of PDFs: blank cells keep their columns."""

from __future__ import annotations

import pytest

from drillrank.structure.pdf import convert_pdf
from tests.pdf_files import Text, pdf_of

pytest.importorskip("liteparse", reason="needs the extra pdf")
pytest.importorskip("pypdfium2", reason="needs the extra pdf")


def table_text(rows: list[list[str]], x: tuple[float, ...] = (75, 195, 315, 435)) -> str:
    cells = [
        Text(cell, x[column], 100 + 20 * number)
        for number, row in enumerate(rows)
        for column, cell in enumerate(row)
        if cell
    ]
    return convert_pdf(pdf_of([cells]).content()).text


def test_a_blank_cell_in_the_middle_keeps_its_column():
    rows = [["Item", "2023", "2024"], ["Sales", "12", "14"], ["Grants", "", "7"], ["Costs", "5", "6"], ["", "17", "27"]]
    text = table_text(rows)
    assert "| Grants |  | 7 |" in text
    assert "|  | 17 | 27 |" in text


def test_blank_cells_at_the_start_and_several_in_a_row():
    rows = [["Item", "Q1", "Q2", "Q3"], ["Rent", "1", "2", "3"], ["Fees", "", "", "9"], ["", "", "4", "5"]]
    text = table_text(rows)
    assert "| Fees |  |  | 9 |" in text
    assert "|  |  | 4 | 5 |" in text


def test_a_head_with_a_blank_first_cell():
    rows = [["", "2023", "2024"], ["Sales", "12", "14"], ["Grants", "3", ""], ["Costs", "", "6"]]
    text = table_text(rows)
    assert text.startswith("|  | 2023 | 2024 |\n")
    assert "| Grants | 3 |" in text
    assert "| Costs |  | 6 |" in text


def test_a_head_over_two_columns_does_not_join_them():
    cells = [Text("Year ended", 190, 100), Text("Change", 435, 100)]
    for number, row in enumerate([["Sales", "12", "14", "2"], ["Grants", "", "7", ""], ["Costs", "5", "6", "1"]]):
        cells += [Text(cell, 75 + 120 * at, 120 + 20 * number) for at, cell in enumerate(row) if cell]
    text = convert_pdf(pdf_of([cells]).content()).text
    assert "| Grants |  | 7 |" in text
    assert "| Sales | 12 | 14 | 2 |" in text


def test_right_aligned_figures_below_a_head_are_one_column():
    cells = [Text("Item", 75, 100), Text("Amount", 300, 100)]
    for number, (name, figure) in enumerate([("Rent", "5"), ("Sales", "1,234,567"), ("Fees", "12")]):
        cells += [Text(name, 75, 120 + 20 * number), Text(figure, 330 - 5 * len(figure), 120 + 20 * number)]
    text = convert_pdf(pdf_of([cells]).content()).text
    assert "| Item | Amount |" in text
    assert "| Rent | 5 |" in text
    assert "| Sales | 1,234,567 |" in text


def test_debit_and_credit_that_no_row_shares_stay_apart_below_their_head():
    rows = [["Entry", "Debit", "Credit"], ["Rent", "100", ""], ["Loan", "", "200"], ["Fees", "30", ""]]
    text = table_text(rows)
    assert "| Loan |  | 200 |" in text
    assert "| Fees | 30 |" in text


def test_a_long_table_takes_linear_work():
    rows = [[f"Row {number}", str(number), "" if number % 3 else "7", "9"] for number in range(30)]
    text = table_text(rows)
    assert text.count("|  | 9 |") == 20
