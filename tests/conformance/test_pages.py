"""Pages of one file, as the hosts' loaders give them: read as one document, each result with the page it is on."""

from __future__ import annotations

import pytest

from drillrank.frameworks.pages import join_pages, read_pages
from drillrank.structure import Pages, parse_document
from langchain_ext.loader import convert_document
from tests.conformance.frameworks import LangChain, LlamaIndex, both_frameworks

PAGES = [
    "1 Foxes\n\nThe fox hunts mice.\n\nAt night it goes",
    "home to sleep.\n\n2 Badgers\n\nThe badger digs its sett in the forest.",
    "It sleeps by day.\n\n3 Owls\n\nThe owl flies without a sound.",
]
QUESTION = "Where does the badger dig its sett?"
LABELS = ("i", "ii", "1")


def pages(host, **more):
    """As the host's loaders give them."""
    if host is LangChain:
        return [
            host.document(text, source="a.pdf", page=at, page_label=LABELS[at], **more) for at, text in enumerate(PAGES)
        ]
    return [host.document(text, file_path="a.pdf", page_label=LABELS[at], **more) for at, text in enumerate(PAGES)]


def first(host, question, documents=(), **fields):
    settings = {"unit": "paragraph", **fields.pop("settings", {})}
    return host.retrieve(host.ext.D3Retriever(list(documents), top_n=1, settings=settings, **fields), question)[0]


@both_frameworks
def test_evidence_has_its_page_and_the_whole_files_sections(host):
    given = pages(host)
    found = first(host, QUESTION, given)
    assert found.text == "The badger digs its sett in the forest."
    assert (found.metadata.get("page", 1), found.metadata["page_label"]) == (1, "ii")
    assert found.metadata["drillrank_first_page"] == found.metadata["drillrank_last_page"] == 2
    assert found.metadata["drillrank_section_path"] == "2 Badgers"
    assert list(map(host.text_of, given)) == PAGES
    assert "drillrank_first_page" not in first(host, QUESTION, given, settings={"join_pages": False}).metadata
    found = first(host, "When does it go home to sleep?", given)
    assert found.text == "At night it goes\nhome to sleep."  # which goes on over two pages
    assert (found.metadata["drillrank_first_page"], found.metadata["drillrank_last_page"]) == (1, 2)


@pytest.mark.parametrize("stored", [False, True])
def test_an_offset_counts_on_the_page_that_is_named_beside_it(stored):
    given = pages(LangChain)
    found = first(LangChain, QUESTION, given, **({"source": LangChain.index(*given)} if stored else {}))
    page, start = found.metadata["page"], found.metadata["start_index"]
    assert PAGES[page][start:] == found.text
    assert found.metadata["drillrank_first_page"] == found.metadata["drillrank_last_page"] == page + 1


@both_frameworks
def test_sections_have_their_pages_and_so_has_evidence_out_of_a_store(host):
    pieces = host.split(pages(host))
    raw = {p.metadata["drillrank_section_path"]: p for p in pieces if p.metadata["drillrank_view"] == "raw"}
    labels = {path: piece.metadata["page_label"] for path, piece in raw.items()}
    assert labels == {"1 Foxes": "i", "2 Badgers": "ii", "3 Owls": "1"}
    assert [piece.metadata.get("page", at) for at, piece in enumerate(raw.values())] == [0, 1, 2]
    assert raw["2 Badgers"].metadata["drillrank_last_page"] == 3
    store = host.index(*pieces)
    assert first(host, QUESTION, source=store).metadata["page_label"] == "ii"
    sleeps = first(host, "What sleeps by day?", source=store).metadata  # on the last page of the section of badgers
    assert (sleeps.get("page", 2), sleeps["page_label"]) == (2, "1")
    if host is LlamaIndex:
        assert all("drillrank_pages" not in node.get_content("llm") for node in pieces)


@both_frameworks
def test_a_file_of_one_page_says_so_too(host):
    page = pages(host, **({"page_number": 1} if host is LlamaIndex else {}))[0]
    for found in (first(host, "What hunts mice?", [page]), host.split([page])[0]):
        assert (found.metadata["drillrank_first_page"], found.metadata["drillrank_last_page"]) == (1, 1)
    assert "drillrank_pages" not in page.metadata


def test_numbers_that_a_store_keeps_as_floats_are_pages_and_offsets():
    """As Pinecone does."""

    def kept(documents):
        for one in documents:
            numbers = {k: float(v) for k, v in one.metadata.items() if isinstance(v, int)}
            yield LangChain.changed(one, **numbers)

    for records in (pages(LangChain), LangChain.split(pages(LangChain))):
        exact, found = (first(LangChain, QUESTION, given).metadata for given in (records, kept(records)))
        for metadata in (exact, found):
            metadata.pop("drillrank_source_id")  # of documents without ids, made of their metadata
        assert {k: (type(v), v) for k, v in found.items()} == {k: (type(v), v) for k, v in exact.items()}


@pytest.mark.parametrize("more", [{"page": 0}, {"source": None}, {"page": "three", "page_label": "x"}])
def test_what_is_no_run_of_pages_stays_as_it_was(more):
    given = pages(LangChain)
    for page in given:
        page.metadata |= more
    assert [one.page_indices for one in join_pages((page.page_content, page.metadata) for page in given)] == [
        (0,),
        (1,),
        (2,),
    ]


def test_files_owners_and_chunks_are_not_mixed():
    one, other = pages(LangChain, owner="a"), pages(LangChain, owner="b")
    assert [one.page_indices for one in join_pages((p.page_content, p.metadata) for p in (*one[:2], other[2]))] == [
        (0, 1),
        (2,),
    ]
    assert [j.page_indices for j in join_pages((p.page_content, p.metadata) for p in (*one, *other))] == [
        (0, 1, 2),
        (3, 4, 5),
    ]
    chunks = pages(LangChain, start_index=0)
    assert len(join_pages((p.page_content, p.metadata) for p in chunks)) == 3


def test_a_hidden_page_is_read_by_nobody():
    hides = LangChain.ext.D3Retriever(pages(LangChain), filters=lambda one: one.metadata["page"] != 1, top_n=20)
    texts = " ".join(found.text for found in LangChain.retrieve(hides, "fox, badger, owl"))
    assert "badger" not in texts
    assert "owl" in texts


def test_a_file_that_drillrank_read_keeps_its_pages_in_a_host():
    text = "# Foxes\n\nThey hunt.\n\n# Badgers\n\nThey dig setts.\n"
    document = parse_document(text)
    object.__setattr__(document, "pages", Pages((0, text.index("# Badgers")), (1, 2), ("1", "2")))
    whole = convert_document(document)
    found = first(LangChain, "Who digs setts?", [whole])
    assert (found.metadata["page"], found.metadata["drillrank_first_page"]) == (1, 2)
    pieces = LangChain.split([whole], views=["raw"])
    assert [read_pages(piece.metadata).numbers for piece in pieces] == [(1,), (2,)]
