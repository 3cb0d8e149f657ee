"""What a reader sees of a page: headings, blocks and links, with their places in the source."""

from __future__ import annotations

import html
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drillrank.structure import Document, parse_document
from drillrank.structure.html import html_links
from tests.drillrank.structure.test_document import check_spans


def parsed(text: str) -> Document:
    document = parse_document(text, "html")
    check_spans(document)
    return document


def paths(text: str) -> list[tuple[str, ...]]:
    return [section.path for section in parsed(text).sections()]


def blocks(text: str) -> list[tuple[str, str]]:
    document = parsed(text)
    return [(b.kind, document.readable(b)) for section in document.sections() for b in document.blocks(section)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<h1>A</h1><h2>B</h2><h4>C</h4><h2>D</h2>", [("A",), ("A", "B"), ("A", "B", "C"), ("A", "D")]),
        ("text<h2>A <em>b</em>\n c</h2>", [(), ("A b c",)]),
        ("<h2>A<p>text", [("A",)]),
        ("<h2><div>A</div>text</h2>", [("A",)]),
        ("<h1>A<h2>B", [("A",), ("A", "B")]),
        ("<h1></h1><h2> &nbsp;</h2>text", [()]),
        ("<h1><img alt='A'> x</h1>", [("A x",)]),
        ("<div role=heading>A</div><div role='Heading' aria-level=3>B</div>", [("A",), ("A", "B")]),
        ("<h1 aria-level=2>A</h1><h1>B</h1>", [("A",), ("B",)]),
        ("<h1 role=presentation>A</h1>", [()]),
        ("<blockquote><h1>A</h1></blockquote>", [()]),
        ("<ul><li>a<li><h2>B</h2>c</ul>", [(), ("B",)]),
        ("<table><tr><td><h2>A</h2>a<td><h2>B</h2>", [("A",), ("B",)]),
        ("<p>a &lt;h1&gt;</p><!-- <h1>no</h1> --><script><h1>no</h1></script>", [()]),
        ("<nav><h2>no</h2></nav><div hidden><h2>no</h2></div><h2 aria-hidden=true>no</h2>x", [()]),
        ("<head><title>no</title></head><h1>A</h1>", [("A",)]),
    ],
)
def test_headings(text, expected):
    assert paths(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [  # the rank of the tag is the level, whatever holds it
        ("<h1>A</h1><section><h2>B</h2><section><h3>C</h3></section></section>", [1, 2, 3]),
        ("<main><article><h2>A</h2><aside><h1>B</h1></aside></article></main>", [2, 1]),
        ("<h1>A</h1><div role=region><h1>B</h1></div><h1>C</h1>", [1, 1, 1]),
    ],
)
def test_levels_in_sectioning_elements(text, expected):
    assert [section.level for section in parsed(text).sections()] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello <b>world</b> again", [("paragraph", "Hello world again")]),
        ("<p>one\n <i>two</i><br>three<p>four", [("paragraph", "one two\nthree"), ("paragraph", "four")]),
        ("a<div>b<div>c</div>d</div>e", [("paragraph", text) for text in "abcde"]),
        ("<ul><li>a<li>b<ol><li>c<li>d</ol><li><p>e</p><p>f</p></ul>", [("list", "- a\n- b\n  1. c\n  2. d\n- e\nf")]),
        ("<dl><dt>a<dd>b</dl>c", [("list", "a\nb"), ("paragraph", "c")]),
        ("<table><tr><th>a<th>b<tr><td><td>2 <p>3</table>", [("table", "a | b\n | 2 3")]),
        ("<table><caption>t</caption><tr><td><ul><li>x<li>y</ul></table>", [("table", "t\nx y")]),
        ("<table><tr><td>a<table><tr><td>b</table></table>", [("paragraph", "a"), ("table", "b")]),
        ("<pre>\n  a\n\n   <b>b</b></pre>", [("code", "  a\n\n   b")]),
        ("<ul><li>a<pre>b\n  c</pre>d</ul>", [("list", "- a\nb\n  c\nd")]),
        ("<p>x<sub>i</sub> &amp; y &#8211; &lt;z&gt;", [("paragraph", "xi & y – <z>")]),
        ("<p><img alt='An image'> <img src=x></p>", [("paragraph", "An image")]),
        ("<p>a</p><script>b</script><style>c</style><noscript>d</noscript>", [("paragraph", "a")]),
        ("<p>a</p><svg><title>e</title></svg>", [("paragraph", "a")]),
        ("<p>a<nav>b</nav><ul role=menu><li>c</ul><template>d</template>", [("paragraph", "a")]),
        ("<p>a <i style='x:y; display : none'>b</i><i hidden=until-found>c</i>", [("paragraph", "a c")]),
        ("<math><mi>x</mi><annotation>y</annotation></math>", [("paragraph", "x")]),
        ("<script>only", [("other", "")]),
    ],
)
def test_blocks(text, expected):
    assert blocks(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<?xml version='1.0'?><!doctype html><p>a", "a"),
        ("<p>a<![if !IE]>b<![endif]>c", "a b c"),
        ("<!--[if IE]><p>no</p><![endif]-->a", "a"),
        ("<!--[if !IE]><!-->a<!--<![endif]-->b", "ab"),
        ("<p>a<![CDATA[b]]>", "ab"),
        ("a</>b</ c>d<?e?>f", "a b d f"),
        ("</p class=x>a", "a"),
        ("1 < 2 <3 <= 4 << 5", "1 < 2 <3 <= 4 << 5"),
        ("<p title='1 < 2'>a<p title=\"</p>\">b", "a\n\nb"),
        ("<img alt='1 < 2'>", "1 < 2"),
        ("a <b unclosed='", "a <b unclosed='"),
        ("a <b", "a <b"),
        ("a <!-- b", "a <!-- b"),
        ("<textarea>a<b>c</textarea>", "a<b>c"),
        ("\ufeff<p>a", "a"),
        ("a\ue000 < b", "a\ue000 < b"),
        ("<table>a<tr>b<td>c</table>", "a\nb c"),
        ("<select><option>a<option>b</select>", "a b"),
    ],
)
def test_odd_markup_hides_no_text(text, expected):
    document = parsed(text)
    assert "\n\n".join(document.readable(section) for section in document.sections()) == expected


def test_links_that_a_reader_sees():
    text = (
        "<a href='/0'>zero</a><h1>A <a href=' #a '>link</a></h1><p><a href='http://x.y/?a=1&amp;b=2'>one <b>two</b></a>"
        "<a name=z>no</a><a href=/i><img alt=pic></a></p><nav><a href=/n>no</a></nav><a href=/h><h2>B</h2> text</a>"
    )
    assert [(text[at:].split(">")[0], address, shown) for at, address, shown in html_links(text)] == [
        ("<a href='/0'", "/0", "zero"),
        ("<a href=' #a '", "#a", "link"),
        ("<a href='http://x.y/?a=1&amp;b=2'", "http://x.y/?a=1&b=2", "one two"),
        ("<a href=/i", "/i", "pic"),
        ("<a href=/h", "/h", "B text"),
    ]


class Reference(HTMLParser):
    """The standard library's parser, enough for well-formed pages: headings, words and their offsets."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.starts = [0, *(at + 1 for at, character in enumerate(text) if character == "\n")]
        self.headings: list[tuple[str, int]] = []
        self.words: list[str] = []
        self.inside = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag in ("h1", "h2", "h3"):
            line, column = self.getpos()
            self.headings.append(("", self.starts[line - 1] + column))
            self.inside = True

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag not in ("h1", "h2", "h3")

    def handle_data(self, data: str) -> None:
        self.words += data.split()
        if self.inside:
            self.headings[-1] = (self.headings[-1][0] + data, self.headings[-1][1])


word = st.sampled_from(["fox", "1 < 2", "a & b", "中文", "\U0001f600"]).map(html.escape)
inline = word | st.builds("<b>{}</b>".format, word) | st.builds("<a href='/u'>{} <em>{}</em></a>".format, word, word)
block = st.one_of(
    st.builds("<p>{}</p>".format, inline),
    st.builds("<ul>\n<li>{}</li>\n<li>{}</li></ul>".format, inline, inline),
    st.builds("<div>{}<table><tr><td>{}</td></tr></table></div>".format, inline, inline),
    st.builds("<h{0}>{1}</h{0}>".format, st.integers(1, 3), inline),
    st.builds("<!-- <h1>{}</h1> -->".format, word),
)


@settings(max_examples=200)
@given(st.lists(st.tuples(block, st.sampled_from(["\n", "", "\r\n"])).map("".join), max_size=10).map("".join))
def test_well_formed_pages_read_as_the_standard_library_reads_them(text):
    document, reference = parsed(text), Reference(text)
    found = [(section.heading, section.start) for section in document.sections() if section.level]
    expected = [(" ".join(heading.split()), start) for heading, start in reference.headings]
    if document.sections() and document.sections()[0].level:
        expected[0] = (expected[0][0], 0)  # the first section begins with the text
    assert found == expected
    shown = [word for section in document.sections() for word in document.readable(section).split()]
    assert [word for word in shown if word not in ("-", "|")] == reference.words
