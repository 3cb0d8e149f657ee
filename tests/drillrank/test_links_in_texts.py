"""Links that texts state: hyperlinks between pages and files, and references inside a document."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from llama_index.core.schema import NodeWithScore, TextNode

import langchain_ext
import llama_index_ext
from drillrank import Passage
from drillrank.drilldown.outline import outline
from drillrank.multihop.hyperlinks import Hyperlinks
from drillrank.multihop.reference_links import ReferenceLinks
from drillrank.structure.references import caption_label, heading_labels, references

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


def followed(pool, text, **metadata):
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
    assert followed(SITE, text, url="https://docs.example.org/guide/intro") == expected


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
        ("[x](https://example.org/b.md)", []),  # somebody else's file
        ('<a href="file:///data/docs/lives/b.md">x</a>', ["b"]),
    ],
)
def test_links_between_files(text, expected):
    assert followed(FILES, text, file_path="/data/docs/lives/a.md") == expected


def test_anchors_in_the_own_document_and_other_keys_of_addresses():
    pool = [Passage(f"[down](#part-{i})", id=str(i), title=f"Part {i}", metadata={"source": "a.md"}) for i in range(3)]
    other = Passage("same heading", id="other", title="Part 1", metadata={"source": "b.md"})
    for source, found in (("a.md", "1"), ("b.md", "other")):
        assert followed([*pool, other], "[x](#part-1)", source=source) == [found]
    pool = [Passage(f"text {i}", id=str(i), title=title) for i, title in enumerate(["One", "Two", "Two"])]
    assert followed(pool, "[x](#two)") == ["1", "2"]  # without an address they are no page together
    assert followed(pool, "[x](#three) [y](?q) [z](.)") == []
    pool = [Passage("a", id="a", metadata={"page": "x.html", "url": "/y"}), Passage("b", id="b", metadata={"page": 7})]
    assert list(Hyperlinks(keys=["page"]).bind(pool)(Passage("[x](x.html) [y](/y)"))) == ["a"]


PLAIN = st.sampled_from(["#", "//", "http://", "a:b", "\\", "%zz"])
addresses = st.text(st.characters(codec="utf-8"), max_size=20) | PLAIN


@given(st.lists(addresses, max_size=4), st.lists(st.tuples(addresses, addresses), max_size=4), addresses)
def test_any_text_and_any_metadata_lead_to_known_ids_each_once(texts, pool, own):
    passages = [Passage("a", id=str(i), title=title, metadata={"url": url}) for i, (url, title) in enumerate(pool)]
    text = " ".join(f'{part} [x]({part}) <{part}> <a href="{part}">x</a>' for part in texts)
    found = followed(passages, text, url=own)
    assert len(set(found)) == len(found)
    assert set(found) <= {passage.id for passage in passages}


# Links from references inside a document, in the core and by name in both hosts

CONTRACT = """# Lease\n
## 3 Term\n
The lease ends as Section 8.1 and § 9 say; rents are in Table 2, and Note 12 has Section “Repairs”.\n
## 8 Notices\n\n### 8.1 Form\n\nIn writing.\n
## § 9 Law\n\nScots law.\n
## Rents\n\nTable 2: Rents by year\n
## Note 12 – Costs\n\nNone.\n
## Repairs\n\nThe tenant's.\n"""


def test_every_kind_of_reference_is_followed_in_order():
    passages = [paragraph for section in outline([CONTRACT]) for paragraph in section.paragraphs]
    links = ReferenceLinks().bind(passages)
    texts = {passage.id: passage.text for passage in passages}
    assert [texts[id_] for id_ in links(passages[0])] == [
        "In writing.", "Scots law.", "Table 2: Rents by year", "None.", "The tenant's."
    ]  # fmt: skip
    assert all(not list(links(passage)) for passage in passages[1:])


@pytest.mark.parametrize(
    "text", ["Section of the road", "a table 3 m long is no matter; 3 tables", "the subsection", "footnote 3x"]
)
def test_what_is_no_reference(text):
    assert ("section", "of") not in references(text)
    assert all(label in {("table", "3")} for label in references(text))


NUMBERS = st.lists(st.integers(1, 40), min_size=1, max_size=3).map(lambda parts: ".".join(map(str, parts)))


@given(st.lists(NUMBERS, min_size=2, max_size=6, unique=True), st.data())
def test_a_reference_leads_to_the_section_of_its_number_and_document_alone(numbers, data):
    target = data.draw(st.sampled_from(numbers[1:]))
    word = data.draw(st.sampled_from(["Section ", "section ", "Sec. ", "§", "§ ", "clause "]))
    passages = [
        Passage(
            f"As {word}{target}, says." if number == numbers[0] else "-",
            id=f"{document} {number}",
            title=f"Lease > {number} Term",
            metadata={"file_name": document},
        )
        for document in ("a", "b")
        for number in numbers
    ]
    links = ReferenceLinks().bind(passages)
    assert list(links(passages[0])) == [f"a {target}"]
    assert list(links(passages[len(numbers)])) == [f"b {target}"]


@given(st.text("SectionTable .§123,“”IVX\n:", max_size=80))
def test_any_text_has_labels_without_harm(text):
    assert len(references(text)) == len(set(references(text)))
    assert heading_labels(text)
    caption_label(text)


def test_by_name_in_both_frameworks():
    texts = {"3": "Notice of the end is given as Section 8 says.", "8": "In writing, by letter."}
    meta = {name: {"file_name": "a", "drillrank_section_path": f"Lease > {name} X"} for name in texts}
    question, options = "How is notice given, by letter?", {"links": ("references",), "settings": {"pairs": 0}}
    documents = [Document(text, id=name, metadata=meta[name]) for name, text in texts.items()]
    nodes = [NodeWithScore(node=TextNode(text=text, id_=name, metadata=meta[name])) for name, text in texts.items()]
    found = langchain_ext.PromptRankRerank(**options).compress_documents(documents, question)
    assert len({document.metadata["relevance_score"] for document in found}) == 1  # that of the path of both
    found = llama_index_ext.PromptRankRerank(**options).postprocess_nodes(nodes, query_str=question)
    assert len({node.score for node in found}) == 1
