"""Which lines are headings, how their paths read, and what the blocks are."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from drillrank.structure import parse_document
from drillrank.structure.markdown import markdown_links

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
