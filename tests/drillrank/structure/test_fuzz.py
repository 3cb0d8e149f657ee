"""Generated documents of every format: nothing fails, sections tile the text, blocks cover it, spans are exact.

200 documents per format; `DRILLRANK_FUZZ=10000` asks for more.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drillrank.structure import Document, parse_document
from drillrank.structure.html import html_links
from drillrank.structure.markdown import markdown_links
from tests.drillrank.structure.test_document import check_spans
from tests.drillrank.structure.test_document import nasty as markdown

fuzz = settings(
    max_examples=int(os.environ.get("DRILLRANK_FUZZ", "200")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def pieces(text: str, between: str | None = None) -> list[str]:
    return text.split(between)


WORDS = [*pieces("fox|Whale|ä ö|\U0001f600|中文|\u2028|\x00|\x0c|\xa0|| |\t|a < b|1 > 0", "|"), "\ud800"]
ENDS = ["", "", "\n", "\r\n", "\r", "\n\n", "\n \n"]
words = st.sampled_from(WORDS)
ends = st.sampled_from(ENDS)


def soup(known: list[str], nested: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Pieces in any order between well-formed parts, cut off anywhere."""
    parts = st.lists(st.tuples(st.one_of(st.sampled_from(known), words, nested), ends).map("".join), max_size=20)
    whole = parts.map("".join)
    cut = st.tuples(whole, st.integers(0, 60)).map(lambda pair: pair[0][: len(pair[0]) - pair[1]])
    return st.one_of(whole, whole, cut)


TAGS = pieces("""p div h1 h2 h3 h6 ul ol li dl dt dd table tr td th caption pre blockquote section article nav aside a b
i span form select option button svg math title head body html textarea details summary frameset ruby""")
ATTRIBUTES = pieces(
    "|| class=x| id='a > b'| hidden| aria-hidden=true| role=heading aria-level=2| href='/u'| style='display:none'|"
    " role=navigation| role=heading| alt='&amp;<'| a=1 a=2 b| /| start=x",
    "|",
)
HTML = [f"<{tag}>" for tag in TAGS] + [f"</{tag}>" for tag in TAGS] + [f"</{tag} x=1>" for tag in TAGS[:6]]
HTML += pieces("""<script> </script> <style> <!-- --> --!> <!--> <![CDATA[ ]]> <? <! <!x> </> < > </ <a = " ' <br> <hr/>
</br> <input> <plaintext> <xmp> <iframe> <noscript> <template> &amp; &lt &#x41; &# &nosuch; &#0; &#xd800; </p>
<![endif]--> <svg><title> <math><annotation> <table><tr><h2> <![endif]> <frame> <li><li> <b><p>""")
HTML += ["<!doctype html>", "<?xml version='1.0'?>", "</ x>", '<a href="', "<a b='", "<img alt=x>", "<img alt='"]
HTML += ["<![if !IE]>", "<!--[if IE]>", "# H"]

elements = st.recursive(
    words,
    lambda inner: st.builds(
        lambda tag, attribute, parts: f"<{tag}{attribute}>{''.join(parts)}</{tag}>",
        st.sampled_from(TAGS),
        st.sampled_from(ATTRIBUTES),
        st.lists(inner, max_size=3),
    ),
    max_leaves=10,
)
html = soup(HTML, elements)

ENVIRONMENTS = pieces("""itemize enumerate tabular table figure equation align* verbatim lstlisting quote abstract
document appendices thebibliography comment center nosuch minted algorithm""")
COMMANDS = pieces("""section section* subsection chapter part paragraph subparagraph textbf emph footnote label ref cite
title author input href url caption newcommand nosuch verb ' c item bibitem abstract multicolumn textcolor nocite
lstinline thanks""")
LATEX = [f"\\begin{{{name}}}" for name in ENVIRONMENTS] + [f"\\end{{{name}}}" for name in ENVIRONMENTS]
LATEX += [f"\\{name}{end}" for name in COMMANDS for end in ("", "{", "[")]
LATEX += pieces(r"""{ } [ ] $ $$ \( \) \[ \] \ \\ \\[2pt] % \% & ~ # _ ^ \begin \end \begin{ \appendix \par \maketitle
\verb|}| \verb+%+ \'e \"{\i} \c{c} ``q'' --- \documentclass{article} \def\x#1{ \hline \item[t]""")
LATEX += ["% c \\section{x}\n", "\\begin {quote}"]

groups = st.recursive(
    words,
    lambda inner: st.one_of(
        st.builds(
            lambda name, parts: f"\\begin{{{name}}}{''.join(parts)}\\end{{{name}}}",
            st.sampled_from(ENVIRONMENTS),
            st.lists(inner, max_size=3),
        ),
        st.builds(
            lambda name, option, part: f"\\{name}{option}{{{part}}}",
            st.sampled_from(COMMANDS),
            st.sampled_from(["", "", "[o]", " ", "\n"]),
            inner,
        ),
        st.builds(lambda mark, part: f"{mark}{part}{mark}", st.sampled_from(["$", "$$"]), inner),
    ),
    max_leaves=10,
)
latex = soup(LATEX, groups)

NUMBERS = pieces("1|1.|2|2.1|2.1.|2.2|3|10.4.2|I.|II.|III.|Chapter 1|Part II|Appendix A|0|99", "|")
TITLES = ["Title", "Ärger", "中文", "lower", "Ends.", "T" * 90, "Dots ..... 7", "A  B   C", "", "\u2028", "Two words"]
LINES = [*pieces("===|---|-----|~~~~~|^^^^^|text|- item|  indented|    deep|\t|\x0c|a: b", "|"), "=" * 90]
titles = st.tuples(st.sampled_from(NUMBERS), st.sampled_from([" ", "\t", "  ", ": ", ""]), st.sampled_from(TITLES)).map(
    "".join
)
plain = st.lists(
    st.tuples(st.one_of(titles, st.sampled_from(TITLES + LINES)), st.sampled_from([*ENDS[2:], "\n\n", "\n\n"])).map(
        "".join
    ),
    max_size=16,
).map("".join)


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


def words_of(document: Document) -> list[str]:
    return "\n".join(map(document.readable, document.sections())).split()


TEXTS = {"markdown": markdown, "html": html, "latex": latex, "text": plain}


@pytest.mark.parametrize("format", TEXTS)
@fuzz
@given(data=st.data())
def test_a_document_of_any_format(format, data):
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
