"""What holds for every text and format: sections tile it, blocks cover it, arguments are checked."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from drillrank.errors import InvalidInput
from drillrank.structure import parse_document, sentences
from tests.drillrank.helpers import refuses
from tests.drillrank.structure.generated import nasty
from tests.examples import examples

texts = st.one_of(nasty, st.text(), st.text(st.characters(codec=None, categories=["Zs", "Cc", "Cs", "Ll", "Po"])))


@settings(max_examples=examples(300))
@given(texts | st.text("Ab.!1 \n\x85\xa0\u2003\u2009\u2028\u202f\u3000\u00e9\u4e2d", max_size=40))
@example("Plan A\u00a0. Then plan B\u202f.")
@example("A\u2028.")
def test_sentences_are_trimmed_ordered_and_complete(text):
    end = 0
    for start, stop in sentences(text):
        assert end <= start < stop
        assert not text[end:start].strip()
        assert text[start:stop] == text[start:stop].strip()
        end = stop
    assert not text[end:].strip()


test_a_text_is_a_string_and_its_format_a_known_one = refuses(
    *((lambda text=text: parse_document(text), type(text).__name__) for text in (None, b"# A", 3, ["# A"])),
    *((lambda of=of: parse_document("# A", of), r"of: auto, .*text") for of in ("Markdown", "", None, ["text"])),
    *((lambda of=of: parse_document("# A", metadata=of), "map names to values") for of in ("a.html", ["a"], 3)),
)


@pytest.mark.parametrize(
    ("text", "format"),
    [
        *((f"{marks}\n\n- a\n", "markdown") for marks in ("# A", "A\n=", "```\nx", "~~~\nx\n~~~", "---\na: b\n---")),
        ("|a|b|\n|-|-|\n\n- a\n", "markdown"),
        *(
            (prose, "text")
            for prose in ("One.\n\n  Two.", "- a\n\n- b", "    code\n\nplain", "    # no\n\na", "> # no")
        ),
        ("<!-- saved -->\n<!DOCTYPE html>\n# x\n", "html"),
        ("\ufeff<html><body># x\n\n## y", "html"),
        ("<?xml version='1.0'?><html># x", "html"),
        ("<h1>Foxes</h1>\n<p>They hunt.</p>", "html"),
        ("<p align=center>logo</p>\n\n# Project\n\n<b>bold</b> text</p>", "markdown"),
        ("Text with <b>bold</b> and <div>a block</div>", "text"),
        ("% a comment\n\\documentclass{article}\n# x", "latex"),
        ("\\section{A}\n\n# 1\n", "latex"),
        ("\\foo text, which is no LaTeX", "text"),
        ("See \\section{A}.\n\\begin{a}", "text"),
        ("```latex\n\\documentclass{article}\n```\n", "markdown"),
    ],
)
def test_auto_tells_a_format_by_marks_and_beginnings(text, format):
    assert parse_document(text).format == format
    assert parse_document(text) == parse_document(text, format)


@pytest.mark.parametrize(
    ("metadata", "format"),
    [
        ({"file_type": "text/html"}, "html"),
        ({"content_type": "text/html; charset=utf-8"}, "html"),
        ({"file_type": "application/x-tex", "file_name": "a.html"}, "latex"),
        ({"file_type": "application/pdf", "file_path": "/a.b/Page.HTML"}, "html"),
        ({"source": "https://a.b/c.htm?d=e.md#f"}, "html"),
        ({"source": "notes.txt"}, "text"),
        ({"file_name": "README.md"}, "markdown"),
        ({"source": "https://a.b/c", "file_name": None, "title": "x.html"}, "markdown"),
        ({}, "markdown"),
    ],
)
def test_metadata_come_before_the_text(metadata, format):
    text = "# \\section{A} <p>b</p>\n"
    assert parse_document(text, metadata=metadata).format == format
    assert parse_document(text, "text", metadata=metadata).format == "text"
    for name in ("page.html", "paper.tex"):  # text that was converted keeps its old name
        assert parse_document("# Title\n\n1 < 2\n", metadata={"source": name}).format == "markdown"


@pytest.mark.parametrize(
    ("text", "body"),
    [("# A\n\none\n", "\n\none\n"), ("<h1>A</h1><p>one<p>two", "one\n\ntwo"), ("no heading", "no heading")],
)
def test_the_body_is_what_stands_below_the_heading(text, body):
    document = parse_document(text)
    assert document.body(document.sections()[0]) == body


def test_a_section_is_known_by_its_place_in_its_document():
    document, other = parse_document("# A\n\none\n\n# A\n\ntwo\n\n## A\n"), parse_document("# C\n\n## D\n")
    last = [document.slice(document.blocks(section)[-1]) for section in document.sections()]
    assert last == ["one", "two", "## A"]
    for lookup in (document.blocks, document.readable, document.body):
        for section in (*other.sections(), None, []):
            with pytest.raises(InvalidInput, match="not a section of this document"):
                lookup(section)


# Sentences: exact spans of any text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n\t", []),
        ("One. Two!  Three?\n", ["One.", "Two!", "Three?"]),
        ("Dr. Smith met J. R. Doe (et al.) today. He left.", ["Dr. Smith met J. R. Doe (et al.) today.", "He left."]),
        ("No full stop\n\nNext paragraph", ["No full stop", "Next paragraph"]),
        ("No full stop\r\n \r\nNext paragraph", ["No full stop", "Next paragraph"]),
        ("One line.\nNext\nline.", ["One line.", "Next\nline."]),
        ("Ein \U0001f600. Zwei \ud800 drei. Vier", ["Ein \U0001f600.", "Zwei \ud800 drei.", "Vier"]),
    ],
)
def test_sentences(text, expected):
    assert [text[start:end] for start, end in sentences(text)] == expected
