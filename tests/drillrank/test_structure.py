"""What holds for every text: sections tile it, blocks cover it, time is linear in its length."""

from __future__ import annotations

import gc
import pickle
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from drillrank.errors import InvalidInput
from drillrank.structure import Block, Document, Section, parse_document, sentences

FRAGMENTS = ["a", "text", "# H", "#", "## H ##", "###### six", "####### seven", "   # in", "    # code", "#\tt", "***"]
FRAGMENTS += [
    "===",
    "---",
    "--",
    "=",
    "* * *",
    "...",
    "- a",
    "- ",
    "  - b",
    "+ z",
    "1. x",
    "2) y",
    "> q",
    "> ",
    "> # H",
]
FRAGMENTS += ["> ```", "```", "~~~", "````", "    code", "<div>", "<!--", "-->", "<script>", "[a]: /u", "[a]: /u 'x"]
FRAGMENTS += ["[b]:", "[", "\\", "`x`", "*e*", "&amp;", "[x](y)", "|a|b|", "|-|-|", "|c|", "\t", "  ", " "]
FRAGMENTS += ["- " * 15 + "deep", "> " * 30 + "deep"]
FRAGMENTS += ["\x00", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u00a0", "\ufeff", "\ud800", "\U0001f600"]
LINE_ENDS = ["\n", "\n", "\n", "\n\n", "\r\n", "\r\n\r\n", "\r", "  \n", ""]

lines = st.tuples(st.sampled_from(FRAGMENTS), st.sampled_from(LINE_ENDS)).map("".join)
nasty = st.lists(lines, max_size=14).map("".join)
texts = st.one_of(nasty, st.text(), st.text(st.characters(codec=None, categories=["Zs", "Cc", "Cs", "Ll", "Po"])))
formats = st.sampled_from(["auto", "markdown", "text"])


def check_spans(document: Document) -> None:
    text, sections = document.text, document.sections()
    assert "".join(document.slice(section) for section in sections) == text
    assert [section.start for section in sections[1:]] == [section.end for section in sections[:-1]]
    end = 0
    for section in sections:
        blocks = document.blocks(section)
        assert section.start < section.end
        assert [block.kind == "heading" for block in blocks] == [
            bool(section.level) and i == 0 for i in range(len(blocks))
        ]
        assert bool(section.path) == bool(section.level) == any(block.kind == "heading" for block in blocks)
        for block in blocks:
            assert section.start <= block.start < block.end <= section.end
            assert block.start >= end
            assert not text[end : block.start].strip(), "lost text"
            assert not document.slice(block)[-1].isspace()
            end = block.end
    assert not text[end:].strip(), "lost text"


@settings(max_examples=600, deadline=None)
@example("\n \n# A", "markdown")
@example("\ufeff\n[a]: /u\r\n===\r# A", "markdown")
@given(texts, formats)
def test_sections_tile_and_blocks_cover_every_text(text, format):
    document = parse_document(text, format)
    assert document.text is text
    check_spans(document)


@settings(max_examples=200, deadline=None)
@given(nasty)
def test_levels_rise_along_every_path(text):
    levels: dict[tuple[str, ...], int] = {}
    for section in parse_document(text, "markdown").sections():
        levels[section.path] = section.level
        assert levels.get(section.path[:-1], 0) < section.level or not section.path


@settings(max_examples=200, deadline=None)
@given(nasty)
def test_each_section_is_the_child_of_one_parent(text):
    document = parse_document(text, "markdown")
    sections = [section for section in document.sections() if section.path]
    roots = [section for section in sections if len(section.path) == 1]
    children = [child for section in sections for child in document.children(section)]
    assert sorted(roots + children, key=lambda section: section.start) == sections
    for section in sections:
        below = document.descendants(section)
        assert all(other.path[: len(section.path)] == section.path for other in below)
        assert [other for other in below if len(other.path) == len(section.path) + 1] == document.children(section)


@settings(max_examples=300, deadline=None)
@given(texts)
def test_sentences_are_trimmed_ordered_and_complete(text):
    end = 0
    for start, stop in sentences(text):
        assert end <= start < stop
        assert not text[end:start].strip()
        assert text[start:stop] == text[start:stop].strip()
        end = stop
    assert not text[end:].strip()


@pytest.mark.parametrize("format", ["auto", "markdown", "text"])
def test_empty_and_blank_texts(format):
    assert parse_document("", format).sections() == []
    blank = parse_document(" \n\x0c\r\n", format)
    assert blank.sections() == [Section((), 0, 0, 5)]
    assert blank.blocks(blank.sections()[0]) == []


@pytest.mark.parametrize("text", [None, b"# A", 3, ["# A"]])
def test_a_text_must_be_a_string(text):
    with pytest.raises(InvalidInput, match=type(text).__name__):
        parse_document(text)


@pytest.mark.parametrize("format", ["Markdown", "", None, ["text"]])
def test_an_unknown_format_is_answered_with_the_known_ones(format):
    with pytest.raises(InvalidInput, match="auto, markdown, text"):
        parse_document("# A", format)


@pytest.mark.parametrize("marks", ["# A", "A\n=", "```\nx", "~~~\nx\n~~~", "|a|b|\n|-|-|", "---\na: b\n---"])
def test_auto_takes_text_with_marks_for_markdown(marks):
    text = f"{marks}\n\n- a\n\n- b\n"
    assert parse_document(text) == parse_document(text, "markdown") != parse_document(text, "text")


@pytest.mark.parametrize("prose", ["One.\n\n  Two.", "- a\n\n- b", "    indented\n\nplain", "    # no\n\na", "> # no"])
def test_auto_takes_text_without_marks_for_plain(prose):
    assert parse_document(prose) == parse_document(prose, "text")


def test_plain_text_is_one_section_of_paragraphs():
    text = "\n# One,\r\nstill one.\r\n \t\r\n  Two.\x0c\n\x0c\n\nThree"
    document = parse_document(text, "text")
    assert document.sections() == [Section((), 0, 0, len(text))]
    blocks = document.blocks(document.sections()[0])
    assert [document.slice(block) for block in blocks] == ["# One,\r\nstill one.", "  Two.", "Three"]
    assert {block.kind for block in blocks} == {"paragraph"}


def test_sections_of_another_document_are_refused():
    document, other = parse_document("# A\n\n## B\n"), parse_document("# C\n\n## D\n")
    for lookup in (document.blocks, document.children, document.descendants):
        for section in (*other.sections(), None, []):
            with pytest.raises(InvalidInput, match="not a section of this document"):
                lookup(section)


def test_equal_headings_are_told_apart():
    document = parse_document("# A\n\none\n\n# A\n\ntwo\n\n## A\n")
    first, second, third = document.sections()
    assert [document.slice(document.blocks(section)[-1]) for section in (first, second, third)] == [
        "one",
        "two",
        "## A",
    ]
    assert document.descendants(first) == []
    assert document.descendants(second) == document.children(second) == [third]


def test_everything_lies_below_the_text_before_the_first_heading():
    document = parse_document("Intro.\n# A\n## B\n# C\n")
    intro, a, b, c = document.sections()
    assert document.descendants(intro) == [a, b, c]
    assert document.children(intro) == [a, c]


def test_a_document_survives_pickling_and_callers_lists_are_their_own():
    document = parse_document("# A\n\none\n")
    document.sections().clear()
    document.blocks(document.sections()[0]).clear()
    restored = pickle.loads(pickle.dumps(document))
    assert restored == document
    assert restored.blocks(document.sections()[0]) == [Block("heading", 0, 3), Block("paragraph", 5, 8)]


LARGE = {
    "one line": lambda n: "word " * (n // 5),
    "one line of brackets": lambda n: "[" * n,
    "one line of tags": lambda n: "<a" + " a" * (n // 2),
    "headings": lambda n: "# h\n" * (n // 16),
    "unclosed fence": lambda n: "```\n" + "# x\n" * (n // 4),
    "reference definitions": lambda n: "[a]: /u\n" * (n // 8),
    "unclosed titles": lambda n: "[a]: /u\n'x\n(\n" * (n // 13),
    "nested quotes": lambda n: ("> " * 1000 + "a\n") * (n // 2002),
    "deepening quotes": lambda n: "".join(">" * (i % 40) + " a\n" for i in range(n // 23)),
    "open fences in quotes": lambda n: "> ```\na\n" * (n // 8),
    "nested lists": lambda n: ("- " * 1000 + "a\n") * (n // 2002),
    "nested list with text below": lambda n: "- " * 1000 + "a\n" + "b\n\n" * (n // 12),
    "table rows": lambda n: "|a|b|\n|-|-|\n" + "|c|d|\n" * (n // 24),
    "wide table": lambda n: "|a" * (n // 16) + "|\n" + "|-" * (n // 16) + "|\n",
    "brackets in headings": lambda n: ("# " + "[" * 900 + "\n") * (n // 9000),
    "quotation marks": lambda n: "“a. " * (n // 4),
    "blank lines": lambda n: "a" + "\n" * (n // 2),
}


@pytest.fixture
def no_garbage_collection():
    gc.disable()  # its passes grow with everything else the test run has allocated
    yield
    gc.enable()


@pytest.mark.usefixtures("no_garbage_collection")
@pytest.mark.parametrize("work", [lambda text: check_spans(parse_document(text, "markdown")), sentences])
@pytest.mark.parametrize("make", LARGE.values(), ids=LARGE)
def test_time_is_linear(make, work):
    def seconds(text: str) -> float:
        start = time.process_time()
        work(text)
        return time.process_time() - start

    small, large = make(20_000), make(160_000)
    once = min(seconds(small) for _ in range(3))
    assert seconds(large) < 25 * once + 0.05  # 8 times if linear, 64 times if quadratic
