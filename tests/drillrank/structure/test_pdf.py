"""PDF files: headings, tables, running lines, pages; and those that cannot be read."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drillrank import D3, read_document
from drillrank.errors import InvalidInput
from drillrank.structure import Document
from drillrank.structure import pdf as pdf_module
from drillrank.structure.pdf import convert_pdf, count_pages
from drillrank.structure.pdf_words import count_in_english, join_split_words
from drillrank.views import section_chunks
from tests.counting_lines import lines_run
from tests.examples import examples, size
from tests.pdf_files import Mark, Pdf, Text, lines, pdf_of

pytest.importorskip("liteparse", reason="needs the extra pdf")
pytest.importorskip("pypdfium2", reason="needs the extra pdf")

PROSE = "The fox hunts mice at night and sleeps by day, which is what most people know of it from stories. " * 4


@pytest.fixture
def read(tmp_path):
    def read(pdf: Pdf | bytes, name: str = "report.pdf") -> Document:
        file = tmp_path / name
        file.write_bytes(pdf if isinstance(pdf, bytes) else pdf.content())
        return read_document(file)

    return read


def outline(document: Document) -> list[tuple[int, str]]:
    return [(len(section.path), section.heading) for section in document.sections()]


def test_headings_stand_out_by_their_font(read):
    page = [Text("Foxes", y=72, size=18, bold=True), *lines(PROSE)]
    page += [Text("Red foxes", y=200, bold=True), *lines(PROSE, y=220)]
    page += [Text("Arctic foxes", y=320, bold=True), *lines(PROSE, y=340)]
    assert outline(read(pdf_of([page]))) == [(1, "Foxes"), (2, "Red foxes"), (2, "Arctic foxes")]


def test_bookmarks_are_the_headings_where_there_are_some_and_stand_where_they_point_if_they_are_not_printed(read):
    page = [Text("Foxes", y=72), *lines(PROSE), Text("Not a heading", y=200, size=18), *lines(PROSE, y=230)]
    other = [Text("Food", y=72), *lines(PROSE)]
    document = read(pdf_of([page, other], [Mark("Foxes", 0), Mark("Food", 1, level=2)]))
    assert outline(document) == [(1, "Foxes"), (2, "Food")]
    assert "Not a heading" in document.text
    document = read(pdf_of([lines(PROSE), lines("Night " + PROSE)], [Mark("One", 0), Mark("Two", 1)]))
    assert outline(document) == [(1, "One"), (1, "Two")]
    assert document.page_numbers(document.sections()[1].start, document.sections()[1].end) == (2, 2)


def test_rows_of_tables_keep_their_cells_apart(read):
    table = [
        [Text("Net sales", 72, y), Text("$", 300, y), Text("12,267", 310, y), Text("37.4 %", 420, y)]
        for y in (300, 312, 324)
    ]
    document = read(pdf_of([lines(PROSE) + [run for row in table for run in row]]))
    assert document.text.count("| Net sales | $ 12,267 | 37.4 % |") == 3
    kinds = [block.kind for section in document.sections() for block in document.blocks(section)]
    assert kinds.count("table") == 1


@pytest.mark.parametrize(("places", "words"), [((72, 320), 11), ((60, 240, 420), 7)])
def test_columns_are_read_one_after_the_other(read, places, words):
    columns = [
        [Text(f"c{column} r{number} " + "fox " * words, x, 100 + 12 * number) for number in range(20)]
        for column, x in enumerate(places)
    ]
    title = Text("A line over all of the columns of the page, as a title is, from left to right", 60, 60, size=12)
    document = read(pdf_of([[title, *(run for row in zip(*columns, strict=True) for run in row)]]))
    found = re.findall(r"c\d r\d+", document.text)
    assert found == [f"c{column} r{number}" for column in range(len(places)) for number in range(20)]


def test_running_lines_and_page_numbers_are_left_out(read):
    words = ["fox", "hen", "elk", "owl", "cod", "ant"]
    pages = [
        [
            Text("Annual report 2031", y=30),
            *lines(f"Matter {word} {PROSE.replace('fox', word)}"),
            Text(str(number + 1), 300, 740),
        ]
        for number, word in enumerate(words)
    ]
    text = read(pdf_of(pages)).text
    assert "Annual report" not in text
    assert not re.search(r"^\d+$", text, re.MULTILINE)
    assert [f"Matter {word}" in text for word in words] == [True] * 6


def test_a_sentence_goes_on_over_pages_and_the_page_begins_inside(read):
    first, second = "The fox hunts mice at night and then it goes", "home to sleep until the sun has set again."
    document = read(pdf_of([lines(first), lines(second)]))
    assert f"{first} {second}" in document.text
    assert document.pages is not None
    assert document.text[document.pages.starts[1] :].startswith("home")
    [section] = document.sections()
    [block] = document.blocks(section)
    assert document.page_numbers(block.start, block.end) == (1, 2)


def test_words_parted_at_the_end_of_a_line_are_joined_if_the_file_knows_them(read):
    page = [Text("A nocturnal hunter of mice is the fox, and what is noc-", y=100), Text("turnal is not day-", y=112)]
    text = read(pdf_of([[*page, Text("active.", y=124)]])).text
    assert "what is nocturnal is not day-active." in text


def test_pages_reach_views_and_evidence(read):
    pages = [
        [Text(f"Part {n}", y=72, size=16, bold=True), *lines(f"{n} " + PROSE.replace("fox", f"animal{n}"))]
        for n in range(5)
    ]
    pages[3] += lines("The badger digs its sett in the forest of Esbjerg.", y=300)
    document = read(pdf_of(pages))
    assert {chunk.pages for chunk in section_chunks(document, "a")} == {(n, n) for n in range(1, 6)}
    [found] = D3().retrieve("Where does the badger dig its sett?", [document], top_n=1)
    assert found.passage.metadata["pages"] == (4, 4)
    assert document.text[found.passage.metadata["start"] : found.passage.metadata["end"]] == found.passage.text


@settings(max_examples=examples(15), deadline=None)
@given(st.lists(st.lists(st.text("ab #*-|<>[]():.1\\_`~=+", max_size=30), max_size=6), min_size=1, max_size=4))
def test_no_text_is_read_as_markup_and_none_is_lost(tmp_path_factory, texts):
    pages = [[Text(f"w{p}x{n} {text}", y=60 + 40 * n) for n, text in enumerate(page)] for p, page in enumerate(texts)]
    pages[0].append(Text("An end.", y=400))
    file = tmp_path_factory.mktemp("pdf") / "a.pdf"
    file.write_bytes(pdf_of(pages).content())
    document = read_document(file)
    assert "".join(document.slice(section) for section in document.sections()) == document.text
    words = re.findall(r"w\d+x\d+", document.text)
    assert sorted(words) == sorted(f"w{p}x{n}" for p, page in enumerate(texts) for n in range(len(page)))
    assert document.pages is not None
    assert len(document.pages.starts) == len(pages)


def test_all_pages_of_a_long_file_are_read():
    pages = [[Text(f"Clause number {number} says something.")] for number in range(1, 1_201)]
    content = pdf_of(pages).content()
    assert count_pages(content) == 1_200
    text, found, warned = convert_pdf(content)
    assert [f"number {number} says" in text for number in (1, 1_000, 1_001, 1_200)] == [True] * 4
    assert found is not None
    assert (len(found.numbers), warned) == (1_200, ())


def test_pages_beyond_the_limit_are_named(monkeypatch):
    monkeypatch.setattr(pdf_module, "_MOST_PAGES", 3)
    monkeypatch.setattr(pdf_module, "_MOST_RUNS", 2)
    pages = [[Text(f"Clause {number}.{part}", y=100 + 60 * part) for part in range(3)] for number in range(5)]
    text, _, warned = convert_pdf(pdf_of(pages).content())
    assert "Clause 2.1" in text
    assert "Clause 3" not in text
    assert warned == (
        "2 of its pages are left out: the first 3 are read. Split the file.",
        "3 of its pages are read in part, page 1 first: over 2 texts.",
    )


def test_labels_of_pages_are_bounded():
    pdf = pdf_of([[Text("The fox hunts mice.")]])
    labels = b"/PageLabels << /Nums [0 << /S /D /P (%s) >>] >>" % (b"L" * 5_000)
    pdf.objects[0] = pdf.objects[0].replace(b"/Type /Catalog", b"/Type /Catalog " + labels)
    _, found, _ = convert_pdf(pdf.content())
    assert found is not None
    assert found.labels == ("L" * 100,)


@pytest.mark.parametrize("content", [b"", b"%PDF-1.7\n", b"<!doctype html>"])
def test_pages_of_what_is_not_a_pdf_are_not_counted(content):
    with pytest.raises(InvalidInput, match=r"cannot be read as PDF, because the file is damaged: .*[^.]\. Replace it"):
        count_pages(content)


# Words that the spacing of their letters has split

COUNTS = Counter({"income": 200, "net": 90, "in": 500, "come": 21, "statements": 40, "credit": 30, "e": 4, "of": 900})
COUNTS += Counter({"state": 60, "all": 5, "a": 900, "l": 900, "us": 300, "u": 2})


# What is split, and what it is where it is another: "come" is a word of its own, of two long parts neither is a rest,
# "a l l" may be letters of a list.
# fmt: off
SPLIT = {
    "Statement of Incom e": "Statement of Income", "(Net Incom e)": "(Net Income)", "S t at em ent s": "Statements",
    "N et I n c o m e of": "Net Income of", "Incom e, e": "Income, e", "S t at e ment s": "Statements",
    "credits come in": "", "what will in come times": "", "in, come": "", "the state ments of": "", "a l l": "",
    "U s": "", "in c, ome": "", "in  come": "",
}
# fmt: on


@pytest.mark.parametrize("split", SPLIT)
def test_joined_where_the_file_knows_the_word_and_not_the_parts(split):
    assert join_split_words(split, COUNTS) == (SPLIT[split] or split)


PARTS = st.sampled_from(["in", "Incom", "e", "come", "of", "s", "t", "a", "(net", "et.", "12", "", "-", "İ"])


@given(st.lists(PARTS, max_size=12).map(" ".join), st.dictionaries(PARTS, st.integers(1, 100)))
def test_only_spaces_go_and_only_for_words_of_the_file(text, counts):
    found = join_split_words(text, {**COUNTS, **counts})
    assert found.replace(" ", "") == text.replace(" ", "")
    for word_counts in ({}, dict.fromkeys(text.casefold().split(), 1)):  # without joined words, English alone decides
        words = join_split_words(text, word_counts).split(" ")
        assert all(word in text.split(" ") or count_in_english(word.casefold()) >= 50 for word in words)


@pytest.mark.parametrize("part", ["a ", "in ", "fox in e ", "Incom e ", "(e, "])
def test_a_row_of_many_short_words_takes_linear_work(part):
    join_split_words(part, COUNTS)
    few, many = (
        lines_run(lambda text: join_split_words(text, COUNTS), part * count) for count in (size(500), 8 * size(500))
    )
    assert many < 12 * few + 2000  # 8 times if linear, 64 if quadratic


def test_in_a_file(read):
    prose = "The income of the fox is mice, and more income is more mice, so that income matters. " * 6
    document = read(pdf_of([[Text("Fox incom e", size=18, bold=True), *lines(prose, y=140)]]))
    assert outline(document) == [(1, "Fox income")]
