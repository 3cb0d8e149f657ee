"""Text that a reader sees of a page: headings, blocks and links, with their offsets in the source."""

from __future__ import annotations

import html
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drillrank.structure import Document, parse_document
from drillrank.structure.html import html_links
from drillrank.structure.markdown import html_as_markdown
from tests.drillrank.structure.checks import check_spans
from tests.examples import IS_THOROUGH, examples, size


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
        ("<pre><code>x = 1</code><button>copy</button></pre>", [("code", "x = 1")]),
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


def readable(text: str) -> str:
    """Return the readable text of a page, its blocks on lines of their own."""
    return "\n".join(shown for _, shown in blocks(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The count was 10<sup>5</sup> units.", "The count was 10^5 units."),
        ("10<sup>-6</sup> m<sup>2</sup>, x<sup>n+1</sup>, (a+b)<sup>2</sup>", "10^-6 m^2, x^(n+1), (a+b)^2"),
        ("2<sup>2<sup>3</sup></sup>", "2^2^3"),
        ("<span style='vertical-align: super'>1</span> of 10<span style='Vertical-Align:super'>6</span>", "1 of 10^6"),
        ("The fee is 12<sup><a href='#n1'>3</a></sup> euros.", "The fee is 12 [3] euros."),
        ("The fee is 12<a href='#n1'><sup>3</sup></a> euros.", "The fee is 12 [3] euros."),
        ("In 2019<a role=doc-noteref href='#f1'>1</a>, 2020<a epub:type=noteref href=x>2</a>", "In 2019 [1], 2020 [2]"),
        ("It ended.<sup>4</sup> Then 5<sup><a href='#c'>[6]</a></sup>", "It ended. [4] Then 5[6]"),
        ("Rent is due<sup>1</sup>.", "Rent is due^1."),
        ("1<sup>st</sup>, 20<sup>th</sup> and 3<sup>e</sup>", "1st, 20th and 3e"),
        ("Foo<sup>TM</sup>, 12<sup>*</sup>, Na<sup>+</sup>", "Foo TM, 12*, Na+"),
        ("1<sup>1</sup>/<sub>2</sub> and <sup>3</sup>&frasl;<sub>4</sub> and 2&frac12;", "1 1/2 and 3⁄4 and 2½"),
        ("2<sup>3</sup>/4 and 5<frac>1/2</frac>", "2^3/4 and 5 1/2"),
        ("H<sub>2</sub>O, I<sup>2</sup>C, SO<sub>4</sub><sup>2-</sup>", "H2O, I^2C, SO4^2-"),
        ("10<sub>2</sub>, x<sub>1</sub>2", "10_2, x1 2"),
        ("<math><mn>3</mn><mfrac><mn>1</mn><mn>2</mn></mfrac></math>", "3 1/2"),
        ("<math><mfrac><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow><mn>2</mn></mfrac></math>", "(a+b)/2"),
        ("<math><msup><mn>10</mn><mn>5</mn></msup><msub><mi>x</mi><mi>i</mi></msub></math>", "10^5xi"),
        ("<math><msubsup><mn>1</mn><mn>2</mn><mn>3</mn></msubsup></math>", "1_2^3"),
    ],
)  # fmt: skip
def test_raised_and_lowered_numbers_stay_apart(text, expected):
    assert readable(f"<p>{text}</p>") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<ol start=3><li>a<li>b</ol>", "3. a\n4. b"),
        ("<ol><li>a<li value=9>b<li>c</ol>", "1. a\n9. b\n10. c"),
        ("<ol reversed><li>a<li>b<li>c</ol>", "3. a\n2. b\n1. c"),
        ("<ol reversed start=10><li>a<li>b</ol>", "10. a\n9. b"),
        ("<ol type=a><li>a<li>b</ol>", "a. a\nb. b"),
        ("<ol type=A start=27><li>a<li>b</ol>", "AA. a\nAB. b"),
        ("<ol type=i start=3><li>a<li>b</ol>", "iii. a\niv. b"),
        ("<ol type=I start=1999><li>a</ol>", "MCMXCIX. a"),
        ("<ol start=-1><li>a<li>b<li type=a>c</ol>", "-1. a\n0. b\na. c"),
        ("<ol style='list-style-type: lower-roman'><li>a</ol>", "i. a"),
        ("<ol style='list-style: none'><li>a</ol>", "- a"),
        ("<ol start=x type=9><li value=''>a</ol>", "1. a"),
        ("<ol><li>a<ol start=5><li>b</ol><li>c</ol>", "1. a\n  5. b\n2. c"),
    ],
)
def test_numbers_of_lists(text, expected):
    assert readable(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<ol><li>Fill in:<table><tr><th>Name<th>Age<tr><td>Tom<td>3</table><li>Send it</ol>",
         "1. Fill in:\nName | Age\nTom | 3\n2. Send it"),
        ("<ul><li><table><tr><td><p>a</p><p>b</p><td>c</table></ul>", "- a b | c"),
        ("<dl><dt>a<dd><table><tr><td>1<td><td>3</table></dl>", "a\n1 |  | 3"),
        ("<table><tr><th>a<th colspan=2>b<th>c<tr><td>1<td>2<td>3<td>4</table>", "a | b |  | c\n1 | 2 | 3 | 4"),
        ("<table><tr><td rowspan=2>a<td>b<tr><td>c</table>", "a | b\n | c"),
        ("<table><tr><td>a<td rowspan=2 colspan=2>b<td>c<tr><td>d<td>e</table>", "a | b |  | c\nd |  |  | e"),
        ("<table><tr><td>a<td rowspan=0>b<tr><td>c<tr><td>d<td>e</table>", "a | b\nc\nd |  | e"),
        ("<table><tr><td colspan=3>Title<tr><td>1<td>2<td>3</table>", "Title\n1 | 2 | 3"),
        ("<table><tr><th>a<th colspan=2>b<tr><td>1<td>2<td>3</table>", "a | b | \n1 | 2 | 3"),
        ("<table><tr><td colspan=x rowspan=-2>a<td>b</table>", "a | b"),
    ],
)  # fmt: skip
def test_cells_keep_their_columns(text, expected):
    assert readable(text) == expected


def test_merged_cells_cannot_flood_the_rendering():
    text = "<table>" + "<tr><td colspan=1000 rowspan=1000>a<td colspan=1000>b<td>c" * 2000
    assert len(readable(text)) < 4 * len(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<div>Shares at $<div style='display:inline'>5.22</div> each.</div>", ["Shares at $5.22 each."]),
        ("<p>a</p><div style='DISPLAY : inline-block'>b</div><form style='display: contents'>c</form>", ["a", "bc"]),
        ("a <span style='display:block'>b</span> c", ["a", "b", "c"]),
        ("<div style='display:inline;display:block'>a</div><div>b</div>", ["a", "b"]),
        ("<ul><li style='display:inline'>a<li>b</ul>", ["- a\n- b"]),
    ],
)  # fmt: skip
def test_styles_decide_what_is_a_line(text, expected):
    assert [shown for _, shown in blocks(text)] == expected


@pytest.mark.parametrize(
    "link",
    [
        '<a class="headerlink" href="#install" title="Link to this heading">¶</a>',
        '<a class="headerlink" href="#install" title="Permalink">#</a>',
        '<a href="#install" class="hash-link" aria-label="Direct link to Install">\u200b</a>',
        '<a class="anchor" aria-hidden="true" href="#install"><svg><path d="M1"/></svg></a>',
        '<a class="anchorjs-link" href="#install" data-anchorjs-icon="x"></a>',
        '<span><a class="mark" href="#install">#</a></span>',
        '<a class="header-anchor" href="#install">🔗</a>',
        '<a class="permalink" href="#install">[link]</a>',
        '<a href="page.html#install">§</a>',
        '<span class="mw-editsection">[<a href="/edit">edit</a>]</span>',
    ],
)
def test_permalinks_are_no_part_of_a_heading(link):
    assert paths(f"<h2>Install{link}</h2>text") == [("Install",)]
    assert paths(f"<h2>{link}Install</h2>text") == [("Install",)]


def test_other_links_in_headings_stay():
    assert paths("<h2><a href='#a'>Chapter</a> <a href='#c'>C#</a></h2><h2>See <a href=x>¶ 4</a></h2>") == [
        ("Chapter C#",),
        ("See ¶ 4",),
    ]


@pytest.mark.parametrize(
    "head",
    ["<title/>", '<title>t</title><script src="a.js"/>', "<style/>", '<link href="x"/><meta name="y"/><iframe/>'],
)
@pytest.mark.parametrize("start", ["<?xml version='1.0'?><html>", '\n<html xmlns="http://www.w3.org/1999/xhtml">'])
def test_xhtml_closes_its_elements(start, head):
    assert (
        readable(f"{start}<head>{head}</head><body><p/><h1>A<a id='x'/></h1><div/><p>text</p></body></html>")
        == "A\ntext"
    )


def test_prefixed_xhtml():
    text = '<h:html xmlns:h="http://www.w3.org/1999/xhtml"><h:body><h:h1>A</h:h1><h:textarea/><h:p>b</h:p></h:body></h:html>'
    assert blocks(text) == [("heading", "A"), ("paragraph", "b")]


@pytest.mark.parametrize("tag", ["title", "textarea", "iframe", "xmp", "noframes"])
def test_a_tag_without_an_end_hides_no_text(tag):
    assert readable(f"<p>a</p><{tag}><p>b</p>") == "a\nb"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<ruby>漢字<rt>かんじ</rt></ruby>を読む", "漢字(かんじ)を読む"),
        ("<ruby>漢<rp>(</rp><rt>かん</rt><rp>)</rp>字<rp>(</rp><rt>じ</rt><rp>)</rp></ruby>", "漢字(かんじ)"),
        ("<ruby><rb>東</rb><rb>京</rb><rtc><rt>とう</rt><rt>きょう</rt></rtc></ruby>", "東京(とうきょう)"),
        ("<ruby>漢字<rt></rt></ruby>", "漢字"),
        ("<ruby>漢字", "漢字"),
        ("<ruby><rt>a</rt><div>b</div><div>c</div></ruby>", "b\nc\n(a)"),
    ],
)
def test_ruby_keeps_its_base_text(text, expected):
    assert readable(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<label><input type=checkbox checked> Agree</label>", "[x] Agree"),
        ("<ul><li><input type=checkbox>a<li><input type=CHECKBOX CHECKED disabled>b</ul>", "- [ ] a\n- [x] b"),
        ("<input type=radio name=a>Yes <input type=radio name=a checked>No", "[ ] Yes [x] No"),
        ("<span role=checkbox aria-checked=true>Paid</span>", "[x] Paid"),
        ("Name: <input value='Ada'> Born: <input type=date value=1815-12-10>", "Name: Ada Born: 1815-12-10"),
        ("Size <select><option>S<option selected>M<option label=L></select>", "Size S [x] M L"),
        ("Note<textarea>a &lt; b</textarea><button>Send</button>", "Note a < b Send"),
        ("a<input type=hidden value=1><input type=password value=2><input placeholder=Jane>", "a"),
        ("<p>a</p><input type=checkbox id=menu><pre><input type=checkbox checked>x = 1</pre>", "a\nx = 1"),
    ],
)
def test_form_controls(text, expected):
    assert readable(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<p>Price <del>$50</del> $30</p>", "Price ~~$50~~ $30"),
        ("<p>Due <s>1 <b>May</b> </s>2 June</p>", "Due ~~1 May~~ 2 June"),
        ("<p><strike>a</strike> <span style='text-decoration: line-through'>b</span></p>", "~~a~~ ~~b~~"),
        ("<del><p>a</p><p>b</p></del>c", "~~a~~\n~~b~~\nc"),
        ("<ul><li><s>a</s><li>b</ul>", "- ~~a~~\n- b"),
    ],
)
def test_deleted_text_is_marked(text, expected):
    assert readable(text) == expected


@pytest.mark.parametrize(
    "hidden",
    [
        "<p hidden>no", "<p hidden=''>no", "<div style='display:none'><p>no</p></div>",
        "<p style='color:red;DISPLAY:NONE'>no", "<p style='display:none !important'>no",
        "<p style='display/**/: /* x */none'>no", "<p style='visibility:hidden'>no", "<template><p>no</template>",
        "<p aria-hidden=TRUE>no", "<p style='display:block; display: none;'>no",
        "<tr style='display:none'><td>no</tr>",
    ],
)  # fmt: skip
def test_what_a_reader_does_not_see(hidden):
    assert readable(f"<div>a</div>{hidden}<div>b</div>") == "a\nb"


@pytest.mark.parametrize(
    "seen",
    ["<p class=sr-only>yes", "<p hidden=until-found>yes", "<p style='display:none;display:block'>yes",
     "<p aria-hidden=false>yes", "<p style='--x-display:none'>yes", "<p title='display:none'>yes",
     "<aside hidden epub:type=footnote>yes</aside>"],
)  # fmt: skip
def test_what_a_reader_sees(seen):
    assert readable(f"<div>a</div>{seen}") == "a\nyes"


def test_a_page_that_scripts_show_is_seen():
    assert readable("<html style='display:none'><body style='visibility:hidden' aria-hidden=true><p>yes") == "yes"


def test_blank_cells_at_the_edges_of_a_table_stay_in_markdown():
    page = "<table><tr><td><td>2030<td>2031<tr><td>Sales<td>1<td></table>"
    assert list(html_as_markdown(page)) == ["|  | 2030 | 2031 |\n| --- | --- | --- |\n| Sales | 1 |  |"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<dl><dt>a<dd>b<dt>c<dd>d<dd>e</dl>", ["a\nb", "c\nd\ne"]),
        ("<dl><dt>a<dt>b<dd>c<dt>d</dl>f", ["a\nb\nc", "d", "f"]),
        ("<dl><div><dt>a<dd>b</div><div><dt>c<dd><p>d</p><p>e</p></div></dl>", ["a\nb", "c\nd\ne"]),
        ("<dl><dt>a<dd>b<dl><dt>c<dd>d</dl>e<dt>f</dl>", ["a\nb", "c\nd", "e", "f"]),
        ("<ul><li>x<dl><dt>a<dd>b<dt>c<dd>d</dl></ul>", ["- x\na\nb\nc\nd"]),
        ("<dl><dt>a<dd><ul><li>b<li>c</ul><dt>d<dd><pre>e</pre></dl>", ["a\n  - b\n  - c", "d\ne"]),
    ],
)
def test_each_term_is_a_block(text, expected):
    assert [shown for _, shown in blocks(text)] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Gesamt&shy;konzept", "Gesamtkonzept"),
        ("data\u200bbase \u2060x\ufeffy", "database xy"),
        ("a\u200db \u202ac\u202c", "ab c"),
        ("می\u200cخواهم", "می\u200cخواهم"),
    ],
)
def test_characters_without_width_are_left_out(text, expected):
    assert readable(f"<p>{text}</p>") == expected


@pytest.mark.timeout(60 if IS_THOROUGH else 10)
@pytest.mark.parametrize(
    "unit",
    ["<div><td>", "</table><font>", "<table><font>", "<a k=\"<a k='", "<sup>2", "<ruby>a<rt>b", "<p>", "<title>",
     "<h1><a href=#>#", "<tr><td rowspan=60000 colspan=100>a<td>b", "<dl><dt>a<dd>", "<ol reversed><li>",
     "<![CDATA[", "<s>a</s>b"],
)  # fmt: skip
def test_shapes_that_take_browsers_long_are_read_in_linear_time(unit):
    text = unit * (size(200_000) // len(unit))
    assert parse_document(text, "html").text == text


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


@settings(max_examples=examples(200))
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


@pytest.mark.parametrize(
    "page",
    [
        '<table class="highlighttable"><tr><td class="linenos"><pre>1\n2</pre></td>'
        '<td class="code"><pre>a = 1\nb = 2</pre></td></tr></table>',
        '<table class="rouge-table"><tr><td class="rouge-gutter gl"><pre class="lineno">1\n2\n</pre></td>'
        '<td class="rouge-code"><pre>a = 1\nb = 2\n</pre></td></tr></table>',
        '<pre><span class="lineno">1 </span>a = 1\n<span class="lineno">2 </span>b = 2\n</pre>',
    ],
)
def test_line_numbers_of_code_are_not_shown(page: str) -> None:
    document = parse_document(page, "html")
    assert [(block.kind, block.rendering) for block in document.blocks(document.sections()[0])] == [
        ("code", "a = 1\nb = 2")
    ]
