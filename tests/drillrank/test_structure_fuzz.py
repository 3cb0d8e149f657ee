"""Generated documents of every format: nothing fails, sections tile the text, blocks cover it, spans are exact.

200 documents per format; `DRILLRANK_FUZZ=10000` asks for more.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from drillrank.structure import Document, parse_document
from drillrank.structure.html import html_links
from drillrank.structure.markdown import markdown_links
from tests.drillrank.test_structure import check_spans
from tests.drillrank.test_structure import nasty as markdown

fuzz = settings(
    max_examples=int(os.environ.get("DRILLRANK_FUZZ", "200")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

WORDS = [
    "fox", "Whale", "ä ö", "\U0001f600", "中文", "\u2028", "\x00", "\x0c", "\ud800", "\xa0", "", " ", "\t", "a < b",
    "1 > 0",
]  # fmt: skip
ENDS = ["", "", "\n", "\r\n", "\r", "\n\n", "\n \n"]
words = st.sampled_from(WORDS)
ends = st.sampled_from(ENDS)


def soup(pieces: list[str], nested: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Pieces in any order between well-formed parts, cut off anywhere."""
    parts = st.lists(st.tuples(st.one_of(st.sampled_from(pieces), words, nested), ends).map("".join), max_size=20)
    whole = parts.map("".join)
    cut = st.tuples(whole, st.integers(0, 60)).map(lambda pair: pair[0][: len(pair[0]) - pair[1]])
    return st.one_of(whole, whole, cut)


TAGS = ["p", "div", "h1", "h2", "h3", "h6", "ul", "ol", "li", "dl", "dt", "dd", "table", "tr", "td", "th", "caption"]
TAGS += ["pre", "blockquote", "section", "article", "nav", "aside", "a", "b", "i", "span", "form", "select", "option"]
TAGS += ["button", "svg", "math", "title", "head", "body", "html", "textarea", "details", "summary", "frameset", "ruby"]
ATTRIBUTES = [
    "", "", " class=x", ' id="a > b"', " hidden", " aria-hidden=true", " role=heading aria-level=2", " href='/u'",
]  # fmt: skip
ATTRIBUTES += [
    " style='display:none'", " role=navigation", " role=heading", ' alt="&amp;<"', " a=1 a=2 b", " /", " start=x",
]  # fmt: skip
HTML = [f"<{tag}>" for tag in TAGS] + [f"</{tag}>" for tag in TAGS] + [f"</{tag} x=1>" for tag in TAGS[:6]]
HTML += [
    "<script>", "</script>", "<style>", "</style>", "<!--", "-->", "--!>", "<!-->", "<![CDATA[", "]]>",
    "<!doctype html>",
]  # fmt: skip
HTML += [
    "<?xml version='1.0'?>", "<?", "<!", "<!x>", "</>", "</ x>", "<", ">", "</", "<a", '<a href="', "<a b='", "=",
    '"', "'",
]  # fmt: skip
HTML += [
    "<br>", "<hr/>", "<img alt=x>", "<img alt='", "<input>", "<plaintext>", "<xmp>", "<iframe>", "<noscript>",
    "<template>",
]  # fmt: skip
HTML += [
    "&amp;", "&lt", "&#x41;", "&#", "&nosuch;", "&#0;", "&#xd800;", "<![if !IE]>", "<![endif]-->", "<!--[if IE]>",
    "# H",
]  # fmt: skip
HTML += [
    "<svg><title>", "<math><annotation>", "<table><tr><h2>", "<![endif]>", "<frame>", "</br>", "</p>", "<li><li>",
    "<b><p>",
]  # fmt: skip

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

ENVIRONMENTS = [
    "itemize", "enumerate", "tabular", "table", "figure", "equation", "align*", "verbatim", "lstlisting", "quote",
]  # fmt: skip
ENVIRONMENTS += [
    "abstract", "document", "appendices", "thebibliography", "comment", "center", "nosuch", "minted", "algorithm",
]  # fmt: skip
COMMANDS = [
    "section", "section*", "subsection", "chapter", "part", "paragraph", "subparagraph", "textbf", "emph",
    "footnote",
]  # fmt: skip
COMMANDS += [
    "label", "ref", "cite", "title", "author", "input", "href", "url", "caption", "newcommand", "nosuch", "verb",
    "'", "c",
]  # fmt: skip
COMMANDS += ["item", "bibitem", "abstract", "multicolumn", "textcolor", "nocite", "lstinline", "thanks"]
LATEX = [f"\\begin{{{name}}}" for name in ENVIRONMENTS] + [f"\\end{{{name}}}" for name in ENVIRONMENTS]
LATEX += [f"\\{name}" for name in COMMANDS] + [f"\\{name}{{" for name in COMMANDS] + [f"\\{name}[" for name in COMMANDS]
LATEX += [
    "{", "}", "[", "]", "$", "$$", "\\(", "\\)", "\\[", "\\]", "\\", "\\\\", "\\\\[2pt]", "%", "% c \\section{x}\n",
    "\\%", "&",
]  # fmt: skip
LATEX += [
    "~", "#", "_", "^", "\\begin", "\\end", "\\begin{", "\\begin {quote}", "\\appendix", "\\par", "\\maketitle",
    "\\verb|}|",
]  # fmt: skip
LATEX += [
    "\\verb+%+", "\\'e", '\\"{\\i}', "\\c{c}", "``q''", "---", "\\documentclass{article}", "\\def\\x#1{", "\\hline",
    "\\item[t]",
]  # fmt: skip

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

NUMBERS = [
    "1", "1.", "2", "2.1", "2.1.", "2.2", "3", "10.4.2", "I.", "II.", "III.", "Chapter 1", "Part II", "Appendix A",
    "0", "99",
]  # fmt: skip
TITLES = ["Title", "Ärger", "中文", "lower", "Ends.", "T" * 90, "Dots ..... 7", "A  B   C", "", "\u2028", "Two words"]
LINES = [
    "===",
    "---",
    "-----",
    "~~~~~",
    "^^^^^",
    "=" * 90,
    "text",
    "- item",
    "  indented",
    "    deep",
    "\t",
    "\x0c",
    "a: b",
]
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
    flat = parse_document(text, format, max_depth=1)
    check_spans(flat)
    assert all(len(section.path) <= 1 for section in flat.sections())
    assert words_of(flat) == words_of(document)


def words_of(document: Document) -> list[str]:
    return "\n".join(map(document.readable, document.sections())).split()


@fuzz
@given(markdown)
def test_markdown(text):
    check(text, "markdown")


@fuzz
@example("<h2>a<table>b<tr><td><h3>c")
@example("<table><tr><h2>a<td>b</h2>c")
@given(html)
def test_html(text):
    check(text, "html")


@fuzz
@example("\\title{a\\section{b\\begin{document}c}}")
@given(latex)
def test_latex(text):
    check(text, "latex")


@fuzz
@given(plain)
def test_plain_text(text):
    check(text, "text")


@fuzz
@given(st.one_of(markdown, html, latex, plain, st.text()))
def test_guessed(text):
    document = parse_document(text)
    check_spans(document)
    assert document == parse_document(text, document.format)


@pytest.mark.parametrize("format", ["markdown", "html", "latex", "text"])
@fuzz
@given(text=st.text(st.characters(codec=None)))
def test_any_text(format, text):
    check(text, format)
