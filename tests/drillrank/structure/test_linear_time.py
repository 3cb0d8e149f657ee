"""The work grows with the length of the text, whatever is in it.

Counted in executed lines of Python, which no other load on the machine can change.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from drillrank.structure import parse_document, sentences
from drillrank.structure.html import html_links
from drillrank.structure.markdown import markdown_links
from tests.counting_lines import lines_run
from tests.drillrank.structure.checks import check_spans
from tests.examples import IS_THOROUGH, size

# What stands between ⟦ and ⟧ is repeated until the whole has so many characters.
# fmt: off
HOSTILE: dict[str, list[str | Callable[[int], str]]] = {
    "markdown": [
        "⟦word ⟧", "⟦[⟧", "<a⟦ a⟧", "⟦# h\n⟧", "```\n⟦# x\n⟧", "⟦[a]: /u\n⟧", "⟦[a]: /u\n'x\n(\n⟧", "⟦> ```\na\n⟧",
        f"⟦{'> ' * 100}a\n⟧", f"⟦{'- ' * 100}a\n⟧", f"{'- ' * 100}a\n⟦b\n\n⟧", f"⟦# {'[' * 900}\n⟧", "⟦- ```\n  a\n⟧",
        "⟦- a\n  - b\n\n1. c\n⟧", "⟦- a\n-\tb\n- # c\n⟧", "|a|b|\n|-|-|\n⟦|c|d|\n⟧", "⟦|a⟧|\n⟦|-⟧|\n", "a⟦\n⟧",
        "⟦|a|b|\n|-|-|\n\n⟧", "⟦- ⟧a\n⟦b\n⟧", "⟦>⟧a\n⟦b\n⟧",
        lambda n: "".join(">" * (i % 40) + " a\n" for i in range(n // 23)),
    ],
    "html": [
        "⟦word ⟧", "⟦<div><p>x⟧", "⟦<⟧", "⟦<a⟧", "⟦</a⟧", "⟦</></a b>⟧", "⟦<!--⟧", "⟦<!doctype><?x><![CDATA[⟧",
        '⟦<a b="⟧', "⟦<script></script ⟧", "⟦<textarea></t⟧", "⟦&a&#⟧", "⟦<div>⟧x⟦</div>⟧", "⟦<b><i><p>⟧⟦</b></i></p>⟧",
        "⟦<div>⟧⟦</b>⟧", "<table>⟦<b>x⟧", "⟦<table><tr><td>⟧", "⟦<ul><li>x⟧", "⟦<section><h1>a</h1>⟧", "⟦<h1>x ⟧",
        "⟦<section>⟧⟦<h1>x</h1></section>⟧", "⟦<a href=x>y ⟧", "⟦<div><table></div>⟧", "<table>⟦<tr><td>a<td>b⟧",
        lambda n: "<a " + " ".join(f"a{i}=1" for i in range(n // 6)) + ">",
        lambda n: "".join(f"<font a={i}>" for i in range(n // 20)) + "<p>x" * (n // 8),
    ],
    "latex": [
        "⟦word ⟧", "⟦{⟧", "⟦{⟧⟦}⟧", "⟦\\begin{⟧", "⟦\\begin{a}⟧", "⟦\\end{a}⟧", "⟦\\begin{itemize}\\item x ⟧",
        "⟦$x $$⟧", "⟦\\begin{itemize}⟧⟦\\end{table}⟧", "⟦\\(\\[⟧", "⟦\\begin{equation}⟧\n\n\\end{equation}",
        "⟦%a\n \n⟧", "⟦\\⟧", "⟦\\begin{verbatim}\\verb|⟧", "⟦\\section{a}\n⟧", "⟦\\section{\\textbf{⟧",
        "⟦\\section[\\foo[a]{⟧", "\\verb⟦ ⟧", "⟦\\label{a{b}⟧", f"⟦\\href{{{' ' * 400}⟧", "\\href{⟦a⟧",
        "⟦\\href{⟧", "$⟦a⟧", "a⟦\n⟧",
    ],
    "text": [
        "⟦word ⟧", "⟦1.1.1.1 Title\n\ntext\n\n⟧", "⟦Title\n=====\n⟧", "⟦=====\n⟧", "⟦ ⟧\n---\n", "⟦“a. ⟧", "**⟦a⟧",
        "Intro a⟦ ⟧b", "Intro a⟦ ⟧x9", "Intro a⟦ .⟧ .9x", "⟦9⟧", "a⟦\n⟧",
        lambda n: "\n\n".join(f"{i % 90}. Title\n\ntext" for i in range(n // 18)),
    ],
}
# fmt: on


def grown(form: str | Callable[[int], str]) -> Callable[[int], str]:
    """A maker of texts of a length."""
    if not isinstance(form, str):
        return form
    parts = re.split("[⟦⟧]", form)  # every second one is repeated
    unit = sum(map(len, parts[1::2]))
    return lambda n: "".join(part * (n // unit if at % 2 else 1) for at, part in enumerate(parts))


CASES = [pytest.param(format, grown(form)) for format, forms in HOSTILE.items() for form in forms]


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


@pytest.mark.timeout(60 if IS_THOROUGH else 10)
@pytest.mark.parametrize(("format", "make"), [case for case in CASES if case.values[0] != "html"])
def test_large_texts_come_to_an_end(format, make):
    """What regular expressions and libraries do is no line of Python: quadratic work would take them minutes here."""
    text = make(size(150_000))
    assert sum(section.end - section.start for section in parse_document(text, format).sections()) == len(text)


@pytest.mark.parametrize("make", [*map(grown, HOSTILE["text"])])
def test_sentences_take_linear_work(make):
    sentences(make(2000))
    assert lines_run(sentences, make(16000)) < 12 * lines_run(sentences, make(2000)) + 2000
