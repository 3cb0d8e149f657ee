"""Superscripts of PDFs are set off from the number or word before them."""

from __future__ import annotations

import pytest

from drillrank.structure.pdf import convert_pdf
from drillrank.structure.pdf_scripts import Superscript, split_superscripts
from tests.pdf_files import Text, pdf_of

pytest.importorskip("liteparse", reason="needs the extra pdf")
pytest.importorskip("pypdfium2", reason="needs the extra pdf")


def text_of(*pieces: tuple[str, float, float]) -> str:
    """Text, size and rise of pieces that are printed one behind the other, each as wide as Helvetica prints it."""
    x, texts = 72.0, []
    for text, size, rise in pieces:
        texts.append(Text(text, x, 100 + 11 - size, size, rise=rise))
        x += size * sum(0.556 if sign.isdigit() else 0.278 if sign in " .,tilfj" else 0.53 for sign in text)
    return convert_pdf(pdf_of([texts]).content()).text.strip()


# fmt: off
CASES = {
    "10^5": [("The count was 10", 11, 0), ("5", 7, 4), (" units in all.", 11, 0)],
    "12^3": [("The fee is 12", 11, 0), ("3", 6, 5), (" euros a year.", 11, 0)],
    "12,345^2": [("Sales were 12,345", 11, 0), ("2", 6.5, 4), (" in the year.", 11, 0)],
    "due^1": [("The rent is due", 11, 0), ("1", 7, 4), (" on the first.", 11, 0)],
    "m^2": [("The sett has 40 m", 11, 0), ("2", 7, 4), (" of floor.", 11, 0)],
    "10^-3": [("A share of 10", 11, 0), ("-3", 7, 4), (" of them.", 11, 0)],
    "end.^4": [("This is the end.", 11, 0), ("4", 7, 4)],
}
# fmt: on


@pytest.mark.parametrize("wanted", CASES)
def test_superscripts(wanted):
    assert wanted in text_of(*CASES[wanted])


def test_what_is_not_raised_stays():
    assert "CO2" in text_of(("The CO", 11, 0), ("2", 7, -2), (" of the air.", 11, 0))
    assert "21st" in text_of(("On the 21", 11, 0), ("st", 7, 4), (" of May.", 11, 0))
    assert "105" in text_of(("The count was 10", 11, 0), ("5", 11, 0), (" units.", 11, 0))
    assert "^" not in text_of(("Small 10", 11, 0), ("5", 7, 0), (" units.", 11, 0))


def test_the_same_number_with_and_without_a_mark():
    texts = ["It was 105 then", "and 105 now", "in 10 5"]
    marks = [Superscript("was10", "5")]
    assert split_superscripts(texts, marks) == ["It was 10^5 then", "and 105 now", "in 10 5"]
    assert split_superscripts(texts, [Superscript("else", "5")]) == texts
