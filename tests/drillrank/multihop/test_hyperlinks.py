"""Hyperlinks between pages of a site, between files, and to headings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank import Passage
from drillrank.multihop.hyperlinks import Hyperlinks

SITE = [
    Passage("top", id="top", metadata={"url": "https://docs.example.org/guide/"}),
    Passage("set up", id="setup", metadata={"url": "https://docs.example.org/guide/setup", "section_path": "Set up"}),
    Passage(
        "on windows",
        id="windows",
        metadata={"url": "https://docs.example.org/guide/setup", "drillrank_section_path": "Set up > On Windows & Mac"},
    ),
    Passage("faq", id="faq", metadata={"url": "https://docs.example.org/faq.html?lang=en"}),
    Passage("turing", id="turing", title="Alan Turing"),
    Passage("gallen", id="gallen", title="St. Gallen"),
    Passage("malcolm", id="malcolm", title="Malcolm X"),
]
FILES = [
    Passage("a", id="a", metadata={"file_path": "/data/docs/lives/a.md", "file_name": "a.md"}),
    Passage("b", id="b", metadata={"file_path": "/data/docs/lives/b.md"}),
    Passage("c", id="c", metadata={"file_path": "C:\\notes\\my towns\\c d.md"}),
    Passage("readme 1", id="r1", metadata={"file_path": "/data/docs/README.md"}),
    Passage("readme 2", id="r2", metadata={"file_path": "/data/docs/lives/README.md"}),
    Passage("one", id="page1", title="First", metadata={"source": "book.md"}),
    Passage("two", id="page2", title="Second part", metadata={"source": "book.md"}),
]


def follow(pool, text, **metadata):
    return list(Hyperlinks().bind(pool)(Passage(text, metadata=metadata)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[x](https://docs.example.org/guide/)", ["top"]),
        ("[x](http://DOCS.example.org/guide)", ["top"]),
        ("[x](/guide/index.html)", ["top"]),
        ("[x](setup)", ["setup", "windows"]),  # the page as a whole
        ("[x](setup#on-windows--mac)", ["windows"]),
        ("[x](setup#no-such-heading)", ["setup", "windows"]),
        ("[x](./setup#set-up) [y](setup#on-windows--mac)", ["setup", "windows"]),
        ("<https://docs.example.org/faq.html?lang=en>", ["faq"]),
        ("[x](/faq.html)", []),
        ("[x][ref]\n\n[ref]: /guide/setup#set-up", ["setup"]),
        ('<p>See <a class="c" href="setup#set-up">this</a></p>', ["setup"]),
        ('Text with <a href="/guide/">an anchor</a> in it.', ["top"]),
        ("[x](https://en.wikipedia.org/wiki/Alan_Turing)", ["turing"]),
        ("[x](/wiki/alan%20turing#Life)", ["turing"]),
        ("[x](St._Gallen) [y](Alan_Turing.html) [z](/wiki/Malcolm_X/)", ["gallen", "turing", "malcolm"]),
        ("[x](mailto:turing@example.org) [y](javascript:void) [z](ftp://docs.example.org/guide/)", []),
        ("[x](http://[broken) [y](<>) [z]() [w](#nowhere)", []),
        ("`[x](setup)`\n\n    [x](setup)\n\n![x](setup)", []),
        ("setup, /guide/setup and plain text", []),
    ],
)
def test_links_on_a_site(text, expected):
    assert follow(SITE, text, url="https://docs.example.org/guide/intro") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[x](b.md)", ["b"]),
        ("[x](../lives/b.md)", ["b"]),
        ("[x](..\\lives\\b.md)", ["b"]),
        ("[x](elsewhere/b.md)", ["b"]),  # one document has that file name
        ("[x](elsewhere/README.md)", []),  # two have
        ("[x](README.md)", ["r2"]),
        ("[x](../README.md)", ["r1"]),
        ("[x](<c d.md>) [y](c%20d.md)", ["c"]),
        ("[x](book.md#second-part)", ["page2"]),
        ("[x](book.md)", ["page1", "page2"]),
        ("[x](https://example.org/b.md)", []),  # a file of another site
        ('<a href="file:///data/docs/lives/b.md">x</a>', ["b"]),
    ],
)
def test_links_between_files(text, expected):
    assert follow(FILES, text, file_path="/data/docs/lives/a.md") == expected


PARTS = [Passage(f"[down](#part-{i})", id=str(i), title=f"Part {i}", metadata={"source": "a.md"}) for i in range(3)]
SAME_HEADING = Passage("same heading", id="other", title="Part 1", metadata={"source": "b.md"})


@pytest.mark.parametrize(("source", "expected"), [("a.md", "1"), ("b.md", "other")])
def test_an_anchor_leads_to_a_heading_of_the_own_document(source, expected):
    assert follow([*PARTS, SAME_HEADING], "[x](#part-1)", source=source) == [expected]


UNADDRESSED = [Passage(f"text {i}", id=str(i), title=title) for i, title in enumerate(["One", "Two", "Two"])]


def test_an_anchor_leads_to_all_passages_under_a_heading_if_none_has_an_address():
    assert follow(UNADDRESSED, "[x](#two)") == ["1", "2"]


def test_passages_without_an_address_are_not_one_page():
    assert follow(UNADDRESSED, "[x](#three) [y](?q) [z](.)") == []


def test_addresses_are_read_from_the_keys_that_are_given():
    pool = [Passage("a", id="a", metadata={"page": "x.html", "url": "/y"}), Passage("b", id="b", metadata={"page": 7})]
    assert list(Hyperlinks(keys=["page"]).bind(pool)(Passage("[x](x.html) [y](/y)"))) == ["a"]


PLAIN = st.sampled_from(["#", "//", "http://", "a:b", "\\", "%zz"])
addresses = st.text(st.characters(codec="utf-8"), max_size=20) | PLAIN


@given(st.lists(addresses, max_size=4), st.lists(st.tuples(addresses, addresses), max_size=4), addresses)
def test_any_text_and_any_metadata_lead_to_known_ids_each_once(texts, pool, own):
    passages = [Passage("a", id=str(i), title=title, metadata={"url": url}) for i, (url, title) in enumerate(pool)]
    text = " ".join(f'{part} [x]({part}) <{part}> <a href="{part}">x</a>' for part in texts)
    ids = follow(passages, text, url=own)
    assert len(set(ids)) == len(ids)
    assert set(ids) <= {passage.id for passage in passages}
