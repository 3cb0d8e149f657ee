"""Running heads, running feet and page numbers of PDFs are left out; what only looks like them stays."""

from __future__ import annotations

import pytest

from drillrank.structure.pdf import convert_pdf
from tests.pdf_files import Text, lines, pdf_of

pytest.importorskip("liteparse", reason="needs the extra pdf")
pytest.importorskip("pypdfium2", reason="needs the extra pdf")


WORDS = [
    "foxes",
    "live",
    "in",
    "the",
    "meadow",
    "behind",
    "old",
    "mill",
    "and",
    "hunt",
    "at",
    "night",
    "when",
    "moon",
    "is",
    "low",
    "badgers",
    "dig",
    "setts",
]


def body(number: int) -> list[Text]:
    """Prose that differs on each page."""
    order = [WORDS[(number * 7 + step * (number + 3)) % len(WORDS)] for step in range(120)]
    return lines(" ".join(order) + ".", y=110)


def text_with_feet(form: str, count: int = 8, total: int = 8) -> str:
    pages = [[*body(n), Text(form.format(n=n, total=total), 280, 750, size=9)] for n in range(1, count + 1)]
    return convert_pdf(pdf_of(pages).content()).text


# fmt: off
FEET = [
    "Page {n}", "Page {n} of {total}", "{n} / {total}", "{n}/{total}", "Seite {n} von {total}", "Page {n} sur {total}",
    "Página {n} de {total}", "Pagina {n} di {total}", "Sida {n} av {total}", "- {n} -", "– {n} –", "[{n}]", "S. {n}",
    "Strona {n} z {total}", "Pg. {n} of {total}", "Confidential - Page {n} of {total}", "{n} | Annual report",
    "Version 2 - {n}/{total}", "Page {n} of {total} | Printed 12 May", "p. {n}", "{n} of {total}",
]
# fmt: on


@pytest.mark.parametrize("form", FEET)
def test_feet_with_page_numbers_are_left_out(form):
    assert [line for line in text_with_feet(form).splitlines() if 0 < len(line) < 60] == []


@pytest.mark.parametrize("form", ["Page {n} of {total}", "Seite {n} von {total}", "Secret, page {n} of {total}"])
def test_two_pages_are_enough_for_a_page_number_with_its_total(form):
    text = text_with_feet(form, count=2, total=2)
    assert [line for line in text.splitlines() if 0 < len(line) < 60] == []


def test_a_head_with_a_constant_number_is_left_out():
    pages = [[Text("Contract 47, section 12", y=40), *body(n)] for n in range(1, 6)]
    assert "Contract 47" not in convert_pdf(pdf_of(pages).content()).text


@pytest.mark.parametrize("last", ["2014", "3/8", "4 of 9", "17", "XLIV"])
def test_a_number_that_does_not_count_with_the_pages_stays(last):
    pages = [body(1), [*body(2), Text(last, 72, 700)], body(3), body(4)]
    assert convert_pdf(pdf_of(pages).content()).text.count(f"\n\n{last}") == 1


def test_sentences_about_pages_stay():
    pages = [[*body(n), Text(f"Read page {n} of 8 in the annex of {2000 + 3 * n * n}.", y=600)] for n in range(1, 4)]
    text = convert_pdf(pdf_of(pages).content()).text
    assert [f"page {n} of 8" in text for n in (1, 2, 3)] == [True] * 3


def test_page_numbers_of_two_parts():
    pages = [[*body(n), Text(f"{part}-{n}", 300, 750)] for part in ("A", "B") for n in range(1, 4)]
    text = convert_pdf(pdf_of(pages).content()).text
    assert [line for line in text.splitlines() if 0 < len(line) < 60] == []
