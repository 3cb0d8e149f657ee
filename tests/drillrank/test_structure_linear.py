"""The work grows with the length of the text, whatever is in it.

Counted in executed lines of Python, which no other load on the machine can change.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pytest

from drillrank.structure import parse_document, sentences
from drillrank.structure.html import html_links
from drillrank.structure.markdown import markdown_links
from tests.drillrank.test_structure import check_spans

# fmt: off
HOSTILE: dict[str, dict[str, Callable[[int], str]]] = {
    "markdown": {
        "one line": lambda n: "word " * (n // 5),
        "brackets": lambda n: "[" * n,
        "one tag": lambda n: "<a" + " a" * (n // 2),
        "headings": lambda n: "# h\n" * (n // 4),
        "unclosed fence": lambda n: "```\n" + "# x\n" * (n // 4),
        "link definitions": lambda n: "[a]: /u\n" * (n // 8),
        "unclosed titles": lambda n: "[a]: /u\n'x\n(\n" * (n // 13),
        "nested quotes": lambda n: ("> " * 100 + "a\n") * (n // 202),
        "deepening quotes": lambda n: "".join(">" * (i % 40) + " a\n" for i in range(n // 23)),
        "fences in quotes": lambda n: "> ```\na\n" * (n // 8),
        "nested lists": lambda n: ("- " * 100 + "a\n") * (n // 202),
        "text below a nested list": lambda n: "- " * 100 + "a\n" + "b\n\n" * (n // 3),
        "plain lists": lambda n: "- a\n  - b\n\n1. c\n" * (n // 15),
        "odd lists": lambda n: "- a\n-\tb\n- # c\n" * (n // 15),
        "lists with open fences": lambda n: "- ```\n  a\n" * (n // 10),
        "table rows": lambda n: "|a|b|\n|-|-|\n" + "|c|d|\n" * (n // 6),
        "wide table": lambda n: "|a" * (n // 4) + "|\n" + "|-" * (n // 4) + "|\n",
        "heads of tables": lambda n: "|a|b|\n|-|-|\n\n" * (n // 13),
        "brackets in headings": lambda n: ("# " + "[" * 900 + "\n") * (n // 903),
        "blank lines": lambda n: "a" + "\n" * n,
        "lines below a deep list": lambda n: "- " * (n // 4) + "a\n" + "b\n" * (n // 4),
        "lines below a deep quote": lambda n: ">" * (n // 2) + "a\n" + "b\n" * (n // 4),
    },
    "html": {
        "one line": lambda n: "word " * (n // 5),
        "unclosed blocks": lambda n: "<div><p>x" * (n // 9),
        "less than": lambda n: "<" * n,
        "open tags": lambda n: "<a" * (n // 2),
        "open end tags": lambda n: "</a" * (n // 3),
        "odd end tags": lambda n: "</></a b>" * (n // 9),
        "open comments": lambda n: "<!--" * (n // 4),
        "declarations": lambda n: "<!doctype><?x><![CDATA[" * (n // 23),
        "open attribute": lambda n: '<a b="' * (n // 6),
        "many attributes": lambda n: "<a " + " ".join(f"a{i}=1" for i in range(n // 6)) + ">",
        "scripts": lambda n: "<script></script " * (n // 17),
        "textareas": lambda n: "<textarea></t" * (n // 13),
        "references": lambda n: "&a&#" * (n // 4),
        "nested blocks": lambda n: "<div>" * (n // 11) + "x" + "</div>" * (n // 11),
        "misnested": lambda n: "<b><i><p>" * (n // 20) + "</b></i></p>" * (n // 20),
        "stray end tags": lambda n: "<div>" * (n // 10) + "</b>" * (n // 8),
        "text in tables": lambda n: "<table>" + "<b>x" * (n // 4),
        "nested tables": lambda n: "<table><tr><td>" * (n // 15),
        "nested lists": lambda n: "<ul><li>x" * (n // 9),
        "nested sections": lambda n: "<section><h1>a</h1>" * (n // 19),
        "late headings": lambda n: "<section>" * (n // 24) + "<h1>x</h1></section>" * (n // 24),
        "unclosed headings": lambda n: "<h1>x " * (n // 6),
        "unclosed links": lambda n: "<a href=x>y " * (n // 12),
        "unclosed styles": lambda n: "".join(f"<font a={i}>" for i in range(n // 20)) + "<p>x" * (n // 8),
        "blocks over tables": lambda n: "<div><table></div>" * (n // 18),
        "rows": lambda n: "<table>" + "<tr><td>a<td>b" * (n // 14),
    },
    "latex": {
        "one line": lambda n: "word " * (n // 5),
        "braces": lambda n: "{" * n,
        "nested braces": lambda n: "{" * (n // 2) + "}" * (n // 2),
        "open begins": lambda n: "\\begin{" * (n // 7),
        "begins": lambda n: "\\begin{a}" * (n // 9),
        "ends": lambda n: "\\end{a}" * (n // 7),
        "nested lists": lambda n: "\\begin{itemize}\\item x " * (n // 23),
        "misnested": lambda n: "\\begin{itemize}" * (n // 30) + "\\end{table}" * (n // 24),
        "dollars": lambda n: "$x $$" * (n // 5),
        "open formulas": lambda n: "\\(\\[" * (n // 4),
        "open equations": lambda n: "\\begin{equation}" * (n // 16) + "\n\n\\end{equation}",
        "open verbatim": lambda n: "\\begin{verbatim}\\verb|" * (n // 22),
        "comments": lambda n: "%a\n \n" * (n // 5),
        "backslashes": lambda n: "\\" * n,
        "headings": lambda n: "\\section{a}\n" * (n // 12),
        "open headings": lambda n: "\\section{\\textbf{" * (n // 17),
        "open options": lambda n: "\\section[\\foo[a]{" * (n // 17),
        "labels": lambda n: "\\label{a{b}" * (n // 11),
        "blanks behind a command": lambda n: "\\verb" + " " * n,
        "blanks behind commands": lambda n: ("\\href" + " " * 400) * (n // 405),
        "an open address": lambda n: "\\href{" + "a" * n,
        "open addresses": lambda n: "\\href{" * (n // 6),
        "an open formula": lambda n: "$" + "a" * n,
        "blank lines": lambda n: "a" + "\n" * n,
    },
    "text": {
        "one line": lambda n: "word " * (n // 5),
        "numbered": lambda n: "\n\n".join(f"{i % 90}. Title\n\ntext" for i in range(n // 18)),
        "nested numbers": lambda n: "1.1.1.1 Title\n\ntext\n\n" * (n // 21),
        "underlined": lambda n: "Title\n=====\n" * (n // 12),
        "lines of equals": lambda n: "=====\n" * (n // 6),
        "long line underlined": lambda n: " " * n + "\n---\n",
        "quotation marks": lambda n: "“a. " * (n // 4),
        "blanks in a line": lambda n: "Intro a" + " " * n + "b",
        "blanks and a number": lambda n: "Intro a" + " " * n + "x9",
        "dots and a number": lambda n: "Intro a" + " ." * (n // 2) + " .9x",
        "numbers": lambda n: "9" * n,
        "one bold line": lambda n: "**" + "a" * n,
        "blank lines": lambda n: "a" + "\n" * n,
    },
}
# fmt: on
CASES = [
    pytest.param(format, make, id=f"{format}: {name}") for format, of in HOSTILE.items() for name, make in of.items()
]


def lines_run(work: Callable[[str], object], text: str) -> int:
    """How many lines of Python the work takes."""
    count = 0

    def local(frame: FrameType, event: str, argument: object) -> object:
        nonlocal count
        count += 1
        return local

    before = sys.gettrace()
    sys.settrace(local)  # type: ignore[arg-type]
    try:
        work(text)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize(("format", "make"), CASES)
def test_parsing_takes_linear_work(format, make):
    def work(text: str) -> None:
        parse_document(text, format)
        if format in links:
            links[format](text)

    links = {"html": html_links, "markdown": markdown_links}
    check_spans(parse_document(make(8000), format))
    work(make(1000))  # what is loaded and compiled once
    assert lines_run(work, make(8000)) < 12 * lines_run(work, make(1000)) + 2000  # 8 times if linear, 64 if quadratic


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("format", "make"), [case for case in CASES if case.values[0] in ("latex", "text", "markdown")]
)
def test_large_texts_come_to_an_end(format, make):
    """What regular expressions and libraries do is no line of Python: quadratic work would take them minutes here."""
    text = make(150_000)
    assert sum(section.end - section.start for section in parse_document(text, format).sections()) == len(text)


PIECES = {
    "markdown": "# a\n¦a ¦\n¦\n\n¦- ¦> ¦```¦|a¦|-¦[a](¦](b)¦*¦`¦<a¦1. ¦    ",
    "html": "<div>¦</div>¦<p>¦<b>¦</b>¦<a href=x>¦<table>¦<td>¦<li>¦<ul>¦x ¦<h1>¦&a¦<!--",
    "latex": "\\section{¦{¦}¦[¦]¦\\begin{itemize}¦\\end{itemize}¦\\item¦$¦%¦a ¦\n\n¦\\verb",
    "text": "1. A\n\n¦A B\n¦\n\n¦===\n¦a. ¦   ¦....¦9\n¦**A**\n\n¦Section 1\n\n¦\t",
}


@pytest.mark.parametrize("make", HOSTILE["text"].values(), ids=HOSTILE["text"])
def test_sentences_take_linear_work(make):
    sentences(make(2000))
    assert lines_run(sentences, make(16000)) < 12 * lines_run(sentences, make(2000)) + 2000
