"""Generated documents of every text format: nothing fails, sections tile the text, blocks cover it, spans are exact.

200 documents per format; `DRILLRANK_FUZZ=10000` asks for more.
"""

from __future__ import annotations

import os
import warnings

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drillrank.errors import DrillrankWarning
from drillrank.structure import parse_document
from drillrank.structure.html import html_links
from drillrank.structure.markdown import markdown_links
from tests.drillrank.structure.checks import check_spans
from tests.drillrank.structure.format_cases import CASES
from tests.drillrank.structure.generated import COMMANDS, HTML, LATEX, pieces

fuzz = settings(
    max_examples=int(os.environ.get("DRILLRANK_FUZZ", "200")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


HTML += pieces("""<script> </script> <style> <!-- --> --!> <!--> <![CDATA[ ]]> <? <! <!x> </> < > </ <a = " ' <br> <hr/>
</br> <input> <plaintext> <xmp> <iframe> <noscript> <template> &amp; &lt &#x41; &# &nosuch; &#0; &#xd800; </p>
<![endif]--> <svg><title> <math><annotation> <table><tr><h2> <![endif]> <frame> <li><li> <b><p>""")
HTML += ["<!doctype html>", "<?xml version='1.0'?>", "</ x>", '<a href="', "<a b='", "<img alt=x>", "<img alt='"]
HTML += ["<![if !IE]>", "<!--[if IE]>", "# H"]


LATEX += [f"\\{name}{end}" for name in COMMANDS for end in ("", "{", "[")]
LATEX += pieces(r"""{ } [ ] $ $$ \( \) \[ \] \ \\ \\[2pt] % \% & ~ # _ ^ \begin \end \begin{ \appendix \par \maketitle
\verb|}| \verb+%+ \'e \"{\i} \c{c} ``q'' --- \documentclass{article} \def\x#1{ \hline \item[t]""")
LATEX += ["% c \\section{x}\n", "\\begin {quote}"]


def check(text: str, format: str) -> None:
    document = parse_document(text, format)
    assert document.text is text
    assert document.format == format
    check_spans(document)
    links = {"html": html_links, "markdown": markdown_links}.get(format, lambda _: [])(text)
    assert all(0 <= at < len(text) for at, _, _ in links)
    for section in document.sections():
        assert all(isinstance(heading, str) and "\n" not in heading for heading in section.path)
        assert 0 <= section.level <= 30


TEXTS = {name: case.pieces for name, case in CASES.items() if case.is_text}


@pytest.mark.parametrize("format", TEXTS)
@fuzz
@given(data=st.data())
def test_a_document_of_any_format(format, data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DrillrankWarning)  # broken JSON
        check(data.draw(TEXTS[format] | st.text(st.characters(codec=None))), format)


@fuzz
@given(st.one_of(*TEXTS.values(), st.text()))
def test_guessed(text):
    document = parse_document(text)
    check_spans(document)
    assert document == parse_document(text, document.format)


@pytest.mark.parametrize(
    ("text", "format"),
    [
        ("<h2>a<table>b<tr><td><h3>c", "html"),
        ("<table><tr><h2>a<td>b</h2>c", "html"),
        ("\\title{a\\section{b\\begin{document}c}}", "latex"),
        ("\n \n# A", "markdown"),
        ("\ufeff\n[a]: /u\r\n===\r# A", "markdown"),
    ],
)
def test_documents_that_once_failed(text, format):
    check(text, format)
