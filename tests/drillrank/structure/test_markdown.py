"""Headings of Markdown, their paths, and blocks and links of a text."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from drillrank.structure import parse_document
from drillrank.structure.markdown import markdown_links
from tests.drillrank.structure.checks import check_spans

DATA = Path(os.environ.get("DRILLRANK_DATA", Path(__file__).parents[4] / "shared" / "data"))


def paths(text: str) -> list[tuple[str, ...]]:
    return [section.path for section in parse_document(text, "markdown").sections()]


def blocks(text: str) -> list[tuple[str, str]]:
    document = parse_document(text, "markdown")
    return [(b.kind, document.slice(b)) for section in document.sections() for b in document.blocks(section)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# A\n## B\n### C\n## D\n# E", [("A",), ("A", "B"), ("A", "B", "C"), ("A", "D"), ("E",)]),
        ("# A\n### C\n## B", [("A",), ("A", "C"), ("A", "B")]),
        ("### C\n## B\n# A", [("C",), ("B",), ("A",)]),
        ("A\n===\n\nB\n---\n", [("A",), ("A", "B")]),
        ("A\nB\n=\n", [("A B",)]),
        ("# A #\n## B ##  \n# C#\n# D \\#\n", [("A",), ("A", "B"), ("C#",), ("D #",)]),
        ("#\n# \n## ##\n", [("",), ("",), ("", "")]),
        ("   # A\n    # code\n", [("A",)]),
        ("#A\n####### B\n\\# C\n", [()]),
        ("#\tA\n", [("A",)]),
        ("# A\r\n## B\r# C", [("A",), ("A", "B"), ("C",)]),
        ("text\n# A", [(), ("A",)]),
        ("\n \n# A", [("A",)]),
        ("\ufeff# A\n# B", [("A",), ("B",)]),
        ("text\x0c# A\u2028# B\x85# C\x0b# D", [()]),
    ],
)
def test_headings(text, expected):
    assert paths(text) == expected


HIDDEN = [
    "```\n# A\n```", "~~~ python\n# A\n~~~", "````\n```\n# A\n```\n````", "~~~\n```\n# A\n~~~", "```\n# A", "> # A",
    "> A\n> ===", "- # A", "- text\n\n  # A\n", "1. A\n   ---", "<!--\n# A\n-->", "<!--\n\n# A\n\n-->",
    "<div>\n# A\n</div>", "    # A", "|a|\n|-|\n|# A|", "> text\nA\n===",
]  # fmt: skip


@pytest.mark.parametrize("hidden", HIDDEN)
def test_what_is_no_heading(hidden):
    assert paths(f"{hidden}\n") == [()]
    assert paths(f"# Top\n\n{hidden}\n") == [("Top",)]


@pytest.mark.parametrize(
    ("heading", "readable"),
    [
        ("The *very* __best__ `code_x`", "The very best code_x"),
        ("[Link](http://x.y/z_a_b) and <http://u.v>", "Link and http://u.v"),
        ("![An *alt* text](x.png) here", "An alt text here"),
        ("Q&amp;A &lt;x&gt; \\*no\\*", "Q&A <x> *no*"),
        ("[Named][ref] and [other]", "Named and [other]"),
        ('<a name="x"></a>Title', "Title"),
        ("snake_case_name and 2 * 3", "snake_case_name and 2 * 3"),
        ("", ""),
    ],
)
def test_paths_read_as_rendered(heading, readable):
    assert paths(f"# {heading}\n\n[ref]: /u\n") == [(readable,)]


def test_block_kinds():
    parts = [
        ("heading", "Title\n====="),
        ("paragraph", "One\ntwo."),
        ("list", "- a\n\n  b\n\n  ```\n  # c\n  ```\n- d\n  1. e"),
        ("list", "1. x\n2. y"),
        ("table", "| a | b |\n|---|:-:|\n| `c` | d |"),
        ("code", "```python\n\nx = 1\n\n```"),
        ("paragraph", "> quote\nlazy\n>\n> more"),
        ("code", "    indented\n\n    code"),
        ("other", "***"),
        ("paragraph", "<div>\n<p>x</p>\n</div>"),
        ("other", "[a]: /u 'title'\n[b]: /v"),
        ("paragraph", "Last"),
    ]
    assert blocks("\n\n".join(source for _, source in parts) + "\n\n") == parts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[a *b*](/u 'title') and ![no](i) [![alt](i)](/t)", [("/u", "a b"), ("/t", "alt")]),
        ("<http://x.y>", [("http://x.y", "http://x.y")]),
        ("[a][r], [R] and [none]\n\n[r]: /u", [("/u", "a"), ("/u", "R")]),
        ("- [a\n  b](/u)\n- `[no](/v)`\n", [("/u", "a b")]),
        ("```\n[no](/u)\n```\n\n    [no](/u)\n\n---", []),
        ("|a|\n|-|\n|[b](/u)|\n\n> [c](/v)", [("/u", "b"), ("/v", "c")]),
        ("# [A](/u)\n", [("/u", "A")]),
        ("- `one\n- [a](/u)\n- two`", [("/u", "a")]),
    ],
)
def test_links(text, expected):
    text += "\n\n# Next\n\n[z](/z)\n"
    *found, last = markdown_links(text)
    assert [link for _, *link in found] == list(map(list, expected))
    assert last == (text.index("[z]"), "/z", "z")


def test_links_with_fragments_and_references():
    text = "[a](b.md#c) [d][e] [e] [f](#g)\n\n[e]: /h#i 'title'\n\n## X [#](#x)\n"
    assert [(address, shown) for _, address, shown in markdown_links(text)] == [
        ("b.md#c", "a"), ("/h#i", "d"), ("/h#i", "e"), ("#g", "f"), ("#x", "#"),
    ]  # fmt: skip


def readable(text: str) -> list[tuple[str, str]]:
    document = parse_document(text, "markdown")
    check_spans(document)
    return [(b.kind, document.readable(b)) for section in document.sections() for b in document.blocks(section)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('<h1 align="center">Foxtool</h1>\n\n<h2>Install</h2>\n\n## Usage\n', [("Foxtool",), ("Foxtool",
        "Install"), ("Foxtool", "Usage")]),
        ("<h1>\n  <img src='logo.png' alt='Logo'>\n  Foxtool\n</h1>\n\ntext", [("Logo Foxtool",)]),
        ("<div align=center>\n<h1>A</h1>\n<p>b</p>\n</div>\n\n<h3 id=c>C &amp; D</h3>\ntext\n",
         [("A",), ("A", "C & D")]),
        ("<div align=center>\n\n# A\n\n</div>\n\nb", [(), ("A",)]),
        ("<a id='x'></a>\n<h2>A</h2>\n\n# B", [(), ("A",), ("B",)]),
        ("<H2 CLASS=x>A<br>b</H2>\n\n<h2 hidden>no</h2>\n\n<!-- <h2>no</h2> -->", [("A b",)]),
        ("- <h2>no</h2>\n\n> <h2>no</h2>\n\n```\n<h2>no</h2>\n```", [()]),
        ("<h1><a href='#a'><img src=x></a></h1>\n\ntext", [()]),
    ],
)  # fmt: skip
def test_headings_of_html(text, expected):
    assert paths(text) == expected
    readable(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<p align=center>A <b>tool</b>.</p>\n\nSee *it*.", [("paragraph", "A tool."), ("paragraph", "See *it*.")]),
        ("<table>\n<tr><td>a</td><td>1</td></tr>\n</table>\n", [("table", "a | 1")]),
        ("<!-- a comment -->\n\nb\n\n[c]: /d\n", [("other", ""), ("paragraph", "b"), ("other", "[c]: /d")]),
        ("<details>\n<summary>More</summary>\n\n- a\n\n</details>",
         [("paragraph", "More"), ("list", "- a"), ("other", "")]),
        ("---\na: b\n---\n\n<hr>\n\nc", [("other", "---\na: b\n---"), ("other", ""), ("paragraph", "c")]),
        ("Gesamt\u00adkonzept\n\n- b", [("paragraph", "Gesamtkonzept"), ("list", "- b")]),
    ],
)  # fmt: skip
def test_html_between_blocks_reads_as_html(text, expected):
    assert readable(text) == expected


@pytest.mark.parametrize(
    "formula",
    [
        "$$\nE\n=\nmc^2\n$$", "$$\na\n-\nb\n$$", "$$\n# a\n\n- b\n$$", "$$ E\n===\nF $$",
        "It is $$\nE\n---\nF\n$$ here",
        "\\[\nE\n=\nF\n\\]", "\\begin{align}\nE\n=\nF\n\\end{align}", "> $$\n> E\n> =\n> F\n> $$",
        "- $$\n  E\n  =\n  F\n  $$",
        "$$\r\nE\r\n=\r\nF\r\n$$", "$$\n\u00e9\n=\n> 0\n$$",
    ],
)  # fmt: skip
def test_formulas_are_no_headings(formula):
    if "# a" not in formula:
        assert paths(f"# Energy\n\n{formula}\n\ntext\n\n## Next\n") == [("Energy",), ("Energy", "Next")]
    assert parse_document(formula, "markdown").text == formula


@pytest.mark.parametrize(
    "text",
    ["It costs $$ a lot\n\n# A\n\n$$ b\n", "`echo $$`\n\n# A\n\n`$$`", "```\n$$\n```\n\n# A\n\n```\n$$\n```",
    "\\[\n\n# A\n\n\\]",
     "$$x$$ and $$y$$\n\n# A\n\n$$"],
)  # fmt: skip
def test_signs_that_begin_no_formula_hide_no_heading(text):
    assert [path for path in paths(text) if path] == [("A",)]


@pytest.mark.parametrize(
    "heading",
    [
        "## Install {#install}", "## Install {.unnumbered}", "## Install {: #install }", "## Install {:.a .b}",
        "## Install {-}",
        "## Install {#a .b key=value}", "## Install ## {#a}", "Install {#install}\n-------", "## Install [#](#install)",
        "## Install [¶](#install 'Permalink')", '## Install <a class="headerlink" href="#install">¶</a>',
        '## <a name="install"></a>Install', '## Install <a href="#install">#</a> {#install}', "## Inst\u00adall",
    ],
)  # fmt: skip
def test_titles_without_attributes_and_permalinks(heading):
    assert paths(f"{heading}\n\ntext\n") == [("Install",)]


@pytest.mark.parametrize(
    ("heading", "title"),
    [
        ("The set {a, b}", "The set {a, b}"),
        ("{#only}", "{#only}"),
        ("Use {{ name }}", "Use {{ name }}"),
        ("10<sup>5</sup> *and* H<sub>2</sub>O", "10^5 and H2O"),
        ("See [Part 2](#part-2)", "See Part 2"),
        ("A &lt;b> `<c>` <i>d</i>", "A <b> <c> d"),
        ("Old <del>name</del>", "Old ~~name~~"),
    ],
)
def test_titles_keep_their_text(heading, title):
    assert paths(f"# {heading}\n\ntext") == [(title,)]


def test_lines_of_attributes_show_nothing():
    assert readable("# A\n{: #a}\n\n{: .note}\n\nb")[1:] == [("other", ""), ("other", ""), ("paragraph", "b")]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("start", ["", "\ufeff", "\n"])
@pytest.mark.parametrize(
    "front",
    [
        "---\ntitle: Sea\n---", "---\ntitle: Sea\ntags:\n- a\n- b\n\nx: |\n  # no\n  ---x\n...",
        '+++\ntitle = "Sea"\n[a]\nb = 1\n+++',
        '{\n  "title": "Sea",\n  "tags": ["a"]\n}', "---\n# comment\n{{ data }}\n---", "---\n---",
        '---  \n"a b": c\n---  ',
        "---\ntitle: Sea\nlist: [a,\n  b\n]\n---",
    ],
)  # fmt: skip
def test_front_matter_is_no_heading(front, start, end):
    text = f"{start}{front}\n\n# A\n\nb\n".replace("\n", end)
    assert paths(text) == [(), ("A",)]
    assert [kind for kind, _ in readable(text)] == ["other", "heading", "paragraph"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("---\n\ntext\n\n# A\n\n---\n", [(), ("A",)]),
        ("---\nSome prose, as it is.\n\n# A\n\n---\n\n# B\n", [(), ("A",), ("B",)]),
        ("---\nNote: this is prose.\nIt goes on.\n\n# A\n\n---\n", [(), ("A",)]),
        ("---\ntitle: Sea\n\n# A\n", [(), ("A",)]),
        ("+++\ntext\n\n# A\n\n+++\n", [(), ("A",)]),
        ('{"a": 1} is JSON.\n\n# A', [(), ("A",)]),
        ("{a}\n\n# A", [(), ("A",)]),
    ],
)
def test_a_rule_on_the_first_line_is_no_front_matter(text, expected):
    assert paths(text) == expected


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "unit",
    ["line {}\r\n", "key{}: x\r\n", "\r\n", "- {}\r\n"],
)
@pytest.mark.parametrize("fence", ["---", "+++", "---\r\na: b"])
def test_lines_below_an_open_fence_take_linear_time(fence, unit):
    text = f"{fence}\r\n" + "".join(unit.format(i) for i in range(20_000))
    assert parse_document(text, "markdown").text == text


@pytest.mark.skipif(not (DATA / "longdoc").is_dir(), reason="benchmark data are not here")
@pytest.mark.parametrize("name", ["qasper", "qasper_tune"])
def test_papers_keep_their_sections_and_paragraphs(name):
    found = wanted = 0
    with gzip.open(DATA / "longdoc" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for paper in map(json.loads, lines):
            document = parse_document(paper["markdown"])
            ours = iter(document.sections())
            for section in paper["sections"]:
                wanted += 1
                match = next((s for s in ours if s.path[1:] == tuple(section["path"])), None)
                if match is None:  # a heading with Markdown in it, see below
                    ours = iter(document.sections())
                    continue
                found += 1
                held = [document.slice(b).removeprefix("\\") for b in document.blocks(match) if b.kind != "heading"]
                assert held == [paragraph.removeprefix("\\") for paragraph in section["paragraphs"]]
    # One heading of the papers has two back-quotes, which Markdown reads as code.
    assert wanted - found <= 1


@pytest.mark.parametrize(
    ("source", "readable"),
    [
        ("Press <kbd>Ctrl</kbd>+<kbd>C</kbd> now.", "Press Ctrl+C now."),
        ("Area of 5 km<sup>2</sup>.<br>\nNext.", "Area of 5 km^2.\nNext."),
        ("Seen <!-- not seen -->words.", "Seen words."),
        ("AT&amp;T &copy; 2020, `&lt;`", "AT&T © 2020, `&lt;`"),
        ("- a <b>bold</b> item\n- <img src=x alt=Logo> second", "- a bold item\n- Logo second"),
        ("| a | b |\n|---|---|\n| x<br>y | 10<sup>5</sup> |", "| a | b |\n|---|---|\n| x y | 10^5 |"),
        ("Use `<br>` and <b>*this*</b>.", "Use `<br>` and *this*."),
    ],
)
def test_html_inside_a_block_is_read(source: str, readable: str) -> None:
    document = parse_document(source, "markdown")
    assert document.text == source
    assert document.readable(document.sections()[0]) == readable


@pytest.mark.parametrize(
    "source",
    ["Use List<String> and Map<K, V>.", "Run `cp` <file> <your-name>.", "The <b> tag makes bold.", "An <img> tag."],
)
def test_what_only_looks_like_a_tag_stays(source: str) -> None:
    document = parse_document(source, "markdown")
    assert document.readable(document.sections()[0]) == source


def test_headings_of_mdx_are_shown_without_their_identifier() -> None:
    document = parse_document("## Setup {/* #my-setup */}\n\nText.\n", "markdown")
    assert document.sections()[0].path == ("Setup",)
