"""Words that the spacing of their letters has split."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank import read_document
from drillrank.structure.pdf_layout import joined
from tests.drillrank.test_structure_linear import lines_run
from tests.pdf_files import Text, lines, pdf_of

COUNTS = Counter({"income": 200, "net": 90, "in": 500, "come": 21, "statements": 40, "credit": 30, "e": 4, "of": 900})
COUNTS += Counter({"state": 60, "all": 5, "a": 900, "l": 900, "us": 300, "u": 2})


# What is split, and what it is where it is another: "come" is a word of its own, of two long parts neither is a rest,
# "a l l" may be letters of a list.
SPLIT = {
    "Statement of Incom e": "Statement of Income",
    "(Net Incom e)": "(Net Income)",
    "S t at em ent s": "Statements",
}
SPLIT |= {"N et I n c o m e of": "Net Income of", "Incom e, e": "Income, e", "S t at e ment s": "Statements"}
SPLIT |= {"credits come in": "", "what will in come times": "", "in, come": "", "the state ments of": "", "a l l": ""}
SPLIT |= {"U s": "", "in c, ome": "", "in  come": ""}


@pytest.mark.parametrize("split", SPLIT)
def test_joined_where_the_file_knows_the_word_and_not_the_parts(split):
    assert joined(split, COUNTS) == (SPLIT[split] or split)


PARTS = st.sampled_from(["in", "Incom", "e", "come", "of", "s", "t", "a", "(net", "et.", "12", "", "-", "İ"])


@given(st.lists(PARTS, max_size=12).map(" ".join), st.dictionaries(PARTS, st.integers(1, 100)))
def test_only_spaces_go_and_only_for_words_of_the_file(text, counts):
    found = joined(text, {**COUNTS, **counts})
    assert found.replace(" ", "") == text.replace(" ", "")
    assert joined(text, {}) == text
    assert joined(text, dict.fromkeys(text.casefold().split(), 1)) == text


@pytest.mark.parametrize("part", ["a ", "in ", "fox in e ", "Incom e ", "(e, "])
def test_a_row_of_many_short_words_takes_linear_work(part):
    joined(part, COUNTS)
    few, many = (lines_run(lambda text: joined(text, COUNTS), part * count) for count in (500, 4000))
    assert many < 12 * few + 2000  # 8 times if linear, 64 if quadratic


def test_in_a_file(tmp_path):
    pytest.importorskip("liteparse", reason="needs the extra pdf")
    pytest.importorskip("pypdfium2", reason="needs the extra pdf")
    file = tmp_path / "report.pdf"
    prose = "The income of the fox is mice, and more income is more mice, so that income matters. " * 6
    file.write_bytes(pdf_of([[Text("Fox incom e", size=18, bold=True), *lines(prose, y=140)]]).content())
    assert [section.heading for section in read_document(file).sections()] == ["Fox income"]
