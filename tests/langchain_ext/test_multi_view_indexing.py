"""MultiViewTextSplitter with the host's indexing, which keeps a store up to date: nothing twice, nothing left over."""

from __future__ import annotations

from collections import Counter

import pytest
from langchain_core.documents import Document
from langchain_core.indexing import InMemoryRecordManager, aindex, index

from langchain_ext import D3Retriever, MultiViewRetriever, MultiViewTextSplitter
from tests.conformance.corpus import BOOK, NOTE, QUESTION
from tests.conformance.frameworks import LangChain

SPLITTER = MultiViewTextSplitter()
LATER = BOOK.replace("The Thames flows through London.", "The Thames rises in Gloucestershire.").partition("# Towns")[0]


def book(text: str = BOOK) -> Document:
    return Document(id="book", page_content=text, metadata={"source": "book.md"})


def note() -> Document:
    return Document(id="note", page_content=NOTE, metadata={"source": "note.txt"})


def sections(*documents: Document) -> Counter[tuple[str, str, str]]:
    pieces = SPLITTER.split_documents(documents)
    return Counter(
        (piece.metadata["drillrank_section_id"], piece.metadata["drillrank_view"], piece.page_content)
        for piece in pieces
    )


class Indexed:
    """A store, the host's record of it, and the host's way to fill it, with and without waiting."""

    def __init__(self, how: str, source_id_key: str = "source") -> None:
        self.how = how
        self.source_id_key = source_id_key
        self.store = LangChain.index()
        self.records = InMemoryRecordManager("drillrank")
        self.records.create_schema()

    async def take(self, *documents: Document, cleanup: str, batch_size: int = 100) -> tuple[int, int, int]:
        """The numbers of documents added, skipped and deleted."""
        settings = {
            "record_manager": self.records,
            "vector_store": self.store,
            "cleanup": cleanup,
            "source_id_key": self.source_id_key,
            "key_encoder": "sha256",
            "batch_size": batch_size,
        }
        if self.how == "async":
            counts = await aindex(await SPLITTER.atransform_documents(documents), **settings)
        else:
            counts = index(SPLITTER.split_documents(documents), **settings)
        assert counts["num_updated"] == 0
        return counts["num_added"], counts["num_skipped"], counts["num_deleted"]

    def holds(self, *documents: Document) -> bool:
        entries = self.store.store.values()
        found = Counter(
            (entry["metadata"]["drillrank_section_id"], entry["metadata"]["drillrank_view"], entry["text"])
            for entry in entries
        )
        return found == sections(*documents)


both = pytest.mark.parametrize("how", ["sync", "async"])


@both
@pytest.mark.parametrize("source_id_key", ["source", "drillrank_source_id"])
@pytest.mark.parametrize("batch_size", [1, 100])
async def test_incremental(how: str, source_id_key: str, batch_size: int):
    indexed = Indexed(how, source_id_key)
    everything = sections(book(), note()).total()
    assert await indexed.take(book(), note(), cleanup="incremental") == (everything, 0, 0)
    assert await indexed.take(book(), note(), cleanup="incremental") == (0, everything, 0)
    added, skipped, deleted = await indexed.take(book(LATER), cleanup="incremental", batch_size=batch_size)
    assert indexed.holds(book(LATER), note())
    if batch_size == 100:
        assert added + skipped == sections(book(LATER)).total()
        assert skipped + deleted == sections(book()).total()
        assert min(added, skipped, deleted) > 0


@both
async def test_full_and_the_recipe_of_the_page_on_stores(how: str):
    """With scoped_full, what has not changed is not stored again, however few pieces are in a batch."""
    indexed = Indexed(how)
    await indexed.take(book(), note(), cleanup="full")
    assert await indexed.take(book(), note(), cleanup="full") == (0, sections(book(), note()).total(), 0)
    assert await indexed.take(note(), cleanup="full") == (0, sections(note()).total(), sections(book()).total())
    assert indexed.holds(note())
    everything, three = sections(book(), note()).total(), {"cleanup": "scoped_full", "batch_size": 3}
    assert (await indexed.take(book(), note(), **three))[0] == sections(book()).total()
    assert await indexed.take(book(), note(), **three) == (0, everything, 0)
    added, _, deleted = await indexed.take(book(LATER), note(), **three)
    assert added == len(sections(book(LATER)) - sections(book()))
    assert deleted == len(sections(book()) - sections(book(LATER)))
    assert indexed.holds(book(LATER), note())
    added, _, deleted = await indexed.take(book(), note(), cleanup="incremental", batch_size=3)
    added, _, deleted = await indexed.take(book(), note(), cleanup="incremental", batch_size=3)
    assert added == deleted > 0  # the clean-up of each batch: why the page has the other


@pytest.mark.parametrize(
    ("expand", "expected"),
    [
        (None, ["Rivers > The Rhine"]),
        ("neighbours", ["Rivers", "Rivers > The Rhine", "Rivers > The Thames"]),
        ("parent", ["Rivers", "Rivers > The Rhine", "Rivers > The Thames"]),
    ],
)
async def test_sections_are_found_under_the_ids_that_the_host_gives(expand: str | None, expected: list[str]):
    indexed = Indexed("sync")
    await indexed.take(book(), note(), cleanup="full")
    pieces = SPLITTER.split_documents([book()])
    assert not indexed.store.get_by_ids([piece.id for piece in pieces])
    retriever = MultiViewRetriever(source=indexed.store, top_n=1, expand=expand)
    found = retriever.invoke(QUESTION)
    raw = [piece for piece in pieces if piece.metadata["drillrank_view"] == "raw"]
    text_by_path = {piece.metadata["drillrank_section_path"]: piece.page_content for piece in raw}
    assert [hit.page_content for hit in found] == ["".join(map(text_by_path.__getitem__, expected))]
    assert found[0].id in {piece.id for piece in raw}
    assert found[0].metadata["drillrank_view"] == "raw"
    assert await retriever.ainvoke(QUESTION) == found


def test_documents_without_an_id_are_followed_by_their_source():
    indexed_documents = [Document(page_content=text, metadata={"source": "a.md"}) for text in (BOOK, LATER)]
    store, records = LangChain.index(), InMemoryRecordManager("drillrank")
    records.create_schema()
    for document in indexed_documents:
        pieces = SPLITTER.split_documents([document])
        index(pieces, records, store, cleanup="incremental", source_id_key="source", key_encoder="sha256")
        assert Counter(entry["text"] for entry in store.store.values()) == Counter(
            piece.page_content for piece in pieces
        )


async def test_drilling_down_puts_the_document_together_under_the_ids_that_the_host_gives():
    indexed = Indexed("sync")
    await indexed.take(book(), note(), cleanup="full")
    retriever = D3Retriever(source=indexed.store, settings={"max_documents": 1, "unit": "paragraph"}, top_n=100)
    found = retriever.invoke(QUESTION)
    whole = D3Retriever(documents=[book()], top_n=100, settings={"unit": "paragraph"}).invoke(QUESTION)
    assert Counter(hit.page_content for hit in found) == Counter(hit.page_content for hit in whole)
    assert len({hit.metadata["drillrank_section_path"] for hit in found}) > 3  # the store was asked for three hits
    assert await retriever.ainvoke(QUESTION) == found
