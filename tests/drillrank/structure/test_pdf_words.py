"""Words of PDFs that spacing or hyphens split; real hyphens stay."""

from __future__ import annotations

import pytest

from drillrank.structure.pdf import convert_pdf
from drillrank.structure.pdf_words import Vocabulary, append_line, join_spaced_letters, join_split_words
from tests.pdf_files import Text, lines, pdf_of

pytest.importorskip("liteparse", reason="needs the extra pdf")
pytest.importorskip("pypdfium2", reason="needs the extra pdf")


PROSE = "The profit of the year was nine million euros and grew in all countries of the company."

# fmt: off
SPELLED = {
    "A N N U A L R E P O R T": "ANNUAL REPORT", "A N N U A L  R E P O R T": "ANNUAL REPORT", "S T A F F": "STAFF",
    "B o a r d of D i r e c t o r s": "Board of Directors", "C O N T E N T S": "CONTENTS",
    "A N N UA L R E PO RT": "ANNUAL REPORT", "N O T I C E O F M E E T I N G": "NOTICE OF MEETING",
}
LETTERS = ["A B C D", "a b c d e f", "Y N Y N Y", "M T W T F S S", "J F M A M J J A S O N D", "X Y Z", "options A B C"]
# fmt: on


@pytest.mark.parametrize("text", SPELLED)
def test_letters_that_spell_words_are_joined(text):
    assert join_split_words(text.replace("  ", " "), {}) == SPELLED[text]


@pytest.mark.parametrize("text", LETTERS)
def test_letters_that_spell_nothing_stay_apart(text):
    assert join_split_words(text, {}) == text


def test_a_name_of_the_file_is_joined():
    assert join_split_words("D R I L L R A N K", {"drillrank": 3}) == "DRILLRANK"


@pytest.mark.parametrize(
    ("title", "spacing"), [("PROFIT", 3), ("PROFIT", 8), ("ANNUAL REPORT", 3), ("QVORTZ", 8), ("QVORTZ", 12)]
)
def test_letters_that_the_file_spaces_are_joined_whatever_they_spell(title, spacing):
    page = [Text(title, y=72, size=16, spacing=spacing), *lines(PROSE, y=110)]
    assert f"# {title}\n" in convert_pdf(pdf_of([page]).content()).text


def test_codes_without_spaces_join_all_letters():
    assert join_spaced_letters("A B C", [1, 2, 3]) == "ABC"
    assert join_spaced_letters("A B C", [65, 32, 66, 32, 67]) == "A B C"
    assert join_spaced_letters("A B C D", [65, 66, 32, 67, 68]) == "AB CD"


def joined(before: str, behind: str, text: str = "") -> str:
    parts = [before]
    append_line(parts, behind, Vocabulary([text]))
    return "".join(parts)


# fmt: off
HYPHENS = {
    ("the infor-", "mation of"): "the information of", ("in the govern-", "ment"): "in the government",
    ("a long-", "term lease"): "a long-term lease", ("the well-", "known fox"): "the well-known fox",
    ("short-", "and long-term"): "short- and long-term", ("held-", "to-maturity"): "held-to-maturity",
    ("the day-to-", "day cost"): "the day-to-day cost", ("a Qvor-", "tzian fox"): "a Qvor-tzian fox",
    ("soft hy\u00ad", "phen"): "soft hyphen", ("Anglo-", "Saxon"): "Anglo-Saxon",
    ("self-", "employed"): "self-employed",
    ("an e-", "mail"): "an e-mail", ("how-", "ever"): "however", ("three-", "year plan"): "three-year plan",
}
# fmt: on


@pytest.mark.parametrize("parts", HYPHENS)
def test_hyphens_at_the_ends_of_lines(parts):
    assert joined(*parts) == HYPHENS[parts]


def test_the_file_decides_about_its_words():
    assert joined("a Qvor-", "tzian fox", "the qvortzian") == "a Qvortzian fox"
    assert joined("the re-", "sign form", "re-sign it and re-sign that") == "the re-sign form"


def test_hyphens_at_the_ends_of_pages_and_columns():
    first, second = [*lines(PROSE, y=100), Text("More of it and the infor-", y=130)], lines("mation of " + PROSE, y=72)
    assert "the information of The profit" in convert_pdf(pdf_of([first, second]).content()).text
    left = [Text(f"the text of the first column goes on {n}", 40, 100 + 12 * n) for n in range(10)]
    left.append(Text("and ends inside of a long-", 40, 220))
    right = [Text("term lease of the second column", 320, 100)]
    right += [Text(f"the text of the second column goes on {n}", 320, 112 + 12 * n) for n in range(10)]
    assert "inside of a long-term lease" in convert_pdf(pdf_of([left + right]).content()).text
