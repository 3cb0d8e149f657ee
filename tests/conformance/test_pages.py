"""Pages of one file, as the hosts' loaders give them: read as one document, each result with the page it is on."""

from __future__ import annotations

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import Document as LlamaDocument
from llama_index.core import MockEmbedding, VectorStoreIndex

import langchain_ext
import llama_index_ext
from drillrank.hosts.pages import file_metadata, joined, pages_of
from drillrank.structure import Pages, parse_document

PAGES = [
    "1 Foxes\n\nThe fox hunts mice.\n\nAt night it goes",
    "home to sleep.\n\n2 Badgers\n\nThe badger digs its sett in the forest.",
    "It sleeps by day.\n\n3 Owls\n\nThe owl flies without a sound.",
]
QUESTION = "Where does the badger dig its sett?"
LABELS = ("i", "ii", "1")


def langchain_pages(**more):
    return [
        Document(page_content=text, metadata={"source": "a.pdf", "page": at, "page_label": LABELS[at], **more})
        for at, text in enumerate(PAGES)
    ]


def llama_pages(**more):
    return [
        LlamaDocument(text=text, metadata={"file_path": "a.pdf", "page_label": LABELS[at], **more})
        for at, text in enumerate(PAGES)
    ]


def test_evidence_of_langchain_has_its_page_and_the_whole_files_sections():
    given = langchain_pages()
    [found] = langchain_ext.D3Retriever(documents=given, top_n=1).invoke(QUESTION)
    assert found.page_content == "The badger digs its sett in the forest."
    assert found.metadata["page"] == 1
    assert found.metadata["page_label"] == "ii"
    assert found.metadata["drillrank_first_page"] == found.metadata["drillrank_last_page"] == 2
    assert found.metadata["drillrank_section_path"] == "2 Badgers"
    assert [page.page_content for page in given] == PAGES
    apart = langchain_ext.D3Retriever(documents=given, top_n=1, settings={"join_pages": False}).invoke(QUESTION)
    assert "drillrank_first_page" not in apart[0].metadata


def test_a_paragraph_that_goes_on_over_pages_is_one():
    found = langchain_ext.D3Retriever(documents=langchain_pages(), top_n=1).invoke("When does it go home to sleep?")[0]
    assert found.page_content == "At night it goes\nhome to sleep."
    assert (found.metadata["drillrank_first_page"], found.metadata["drillrank_last_page"]) == (1, 2)


def test_evidence_of_llama_index_has_its_page():
    [found] = llama_index_ext.D3Retriever(llama_pages(), top_n=1).retrieve(QUESTION)
    assert found.metadata["page_label"] == "ii"
    assert found.metadata["drillrank_first_page"] == 2
    assert found.metadata["drillrank_section_path"] == "2 Badgers"


def test_sections_of_both_hosts_have_their_pages_and_so_has_evidence_out_of_a_store():
    pieces = langchain_ext.MultiViewTextSplitter().split_documents(langchain_pages())
    raw = {p.metadata["drillrank_section_path"]: p for p in pieces if p.metadata["drillrank_view"] == "raw"}
    assert {path: piece.metadata["page"] for path, piece in raw.items()} == {"1 Foxes": 0, "2 Badgers": 1, "3 Owls": 2}
    assert raw["2 Badgers"].metadata["drillrank_last_page"] == 3
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents(pieces)
    retriever = langchain_ext.D3Retriever(source=store, top_n=1)
    assert retriever.invoke(QUESTION)[0].metadata["page"] == 1
    sleeps = retriever.invoke("What sleeps by day?")[0]  # on the last page of the section of badgers
    assert (sleeps.metadata["page"], sleeps.metadata["page_label"]) == (2, "1")

    nodes = llama_index_ext.MultiViewNodeParser().get_nodes_from_documents(llama_pages())
    labels = {node.metadata["drillrank_section_path"]: node.metadata["page_label"] for node in nodes}
    assert labels == {"1 Foxes": "i", "2 Badgers": "ii", "3 Owls": "1"}
    assert all("drillrank_pages" not in node.get_content("llm") for node in nodes)
    index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=8))
    sleeps = llama_index_ext.D3Retriever(source=index, top_n=1).retrieve("What sleeps by day?")[0]
    assert sleeps.metadata["page_label"] == "1"


def test_a_file_of_one_page_says_so_too():
    page, node = langchain_pages()[0], llama_pages(page_number=1)[0]
    for found in (
        langchain_ext.D3Retriever(documents=[page], top_n=1).invoke("What hunts mice?")[0],
        llama_index_ext.D3Retriever([node], top_n=1).retrieve("What hunts mice?")[0],
        langchain_ext.MultiViewTextSplitter().split_documents([page])[0],
        llama_index_ext.MultiViewNodeParser().get_nodes_from_documents([node])[0],
    ):
        assert (found.metadata["drillrank_first_page"], found.metadata["drillrank_last_page"]) == (1, 1)
    assert "drillrank_pages" not in page.metadata | node.metadata


def test_numbers_that_a_store_keeps_as_floats_are_pages_and_offsets():
    """As Pinecone does."""

    def kept(documents):
        return [
            Document(
                id=one.id,
                page_content=one.page_content,
                metadata={k: float(v) if isinstance(v, int) else v for k, v in one.metadata.items()},
            )
            for one in documents
        ]

    sections = langchain_ext.MultiViewTextSplitter().split_documents(langchain_pages())
    for records in (langchain_pages(), sections):
        exact, found = (
            langchain_ext.D3Retriever(documents=given, top_n=1).invoke(QUESTION)[0].metadata
            for given in (records, kept(records))
        )
        ids = {"drillrank_source_id"}  # of documents without ids, made of their metadata
        assert {k: (type(v), v) for k, v in found.items() if k not in ids} == {
            k: (type(v), v) for k, v in exact.items() if k not in ids
        }


@pytest.mark.parametrize("more", [{"page": 0}, {"source": None}, {"page": "three", "page_label": "x"}])
def test_what_is_no_run_of_pages_stays_as_it_was(more):
    given = langchain_pages()
    for page in given:
        page.metadata |= more
    assert [one.members for one in joined((page.page_content, page.metadata) for page in given)] == [(0,), (1,), (2,)]


def test_files_owners_and_chunks_are_not_mixed():
    one, other = langchain_pages(owner="a"), langchain_pages(owner="b")
    assert [one.members for one in joined((p.page_content, p.metadata) for p in (*one[:2], other[2]))] == [(0, 1), (2,)]
    assert [j.members for j in joined((p.page_content, p.metadata) for p in (*one, *other))] == [(0, 1, 2), (3, 4, 5)]
    chunks = langchain_pages(start_index=0)
    assert len(joined((p.page_content, p.metadata) for p in chunks)) == 3


def test_a_hidden_page_is_read_by_nobody():
    retriever = langchain_ext.D3Retriever(documents=langchain_pages(), filters=lambda one: one.metadata["page"] != 1)
    texts = " ".join(found.page_content for found in retriever.invoke("fox, badger, owl", top_n=20))
    assert "badger" not in texts
    assert "owl" in texts


def test_a_file_that_drillrank_read_keeps_its_pages_in_a_host():
    text = "# Foxes\n\nThey hunt.\n\n# Badgers\n\nThey dig setts.\n"
    document = parse_document(text)
    object.__setattr__(document, "pages", Pages((0, text.index("# Badgers")), (1, 2), ("1", "2")))
    whole = Document(page_content=text, metadata=file_metadata(document, "a.pdf"))
    [found] = langchain_ext.D3Retriever(documents=[whole], top_n=1).invoke("Who digs setts?")
    assert (found.metadata["page"], found.metadata["drillrank_first_page"]) == (1, 2)
    pieces = langchain_ext.MultiViewTextSplitter(views=["raw"]).split_documents([whole])
    assert [pages_of(piece.metadata).numbers for piece in pieces] == [(1,), (2,)]
