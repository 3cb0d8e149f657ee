"""The recipe of docs/stores.md for `langchain_core.indexing.index`: what has not changed is not stored again."""

from __future__ import annotations

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.indexing import InMemoryRecordManager, index
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_ext import MultiViewTextSplitter

BATCH = 10  # fewer than the pieces of one paper


def paper(number: int, changed: str = "") -> Document:
    sections = [
        f"# Part {part}\n\nSentence {part} of paper {number}.{changed if part == 6 else ''}" for part in range(7)
    ]
    return Document("\n\n".join(sections), id=f"paper-{number}", metadata={"source": f"paper-{number}.md"})


@pytest.fixture
def store():
    return InMemoryVectorStore(DeterministicFakeEmbedding(size=8))


@pytest.fixture
def stored(store):
    records = InMemoryRecordManager("papers")
    records.create_schema()

    def run(papers, cleanup="scoped_full"):
        pieces = MultiViewTextSplitter().split_documents(papers)
        options = {"source_id_key": "source", "key_encoder": "sha256", "batch_size": BATCH}
        result = index(pieces, records, store, cleanup=cleanup, **options)
        assert {found["text"] for found in store.store.values()} == {piece.page_content for piece in pieces}
        return result["num_added"], result["num_deleted"]

    return run


def test_identical_documents_are_neither_added_nor_deleted(stored):
    papers = [paper(number) for number in range(4)]
    assert stored(papers)[0] > 3 * BATCH
    assert stored(papers) == (0, 0)


def test_the_cleanup_of_each_batch_would_do_both(stored):
    papers = [paper(number) for number in range(4)]
    stored(papers, "incremental")
    added, deleted = stored(papers, "incremental")
    assert added == deleted > 0


def test_a_change_stores_the_changed_section_anew_and_no_other(stored):
    papers = [paper(number) for number in range(4)]
    stored(papers)
    added, deleted = stored([*papers[:3], paper(3, " And one more.")])
    assert 0 < added <= 3  # the views of the last section
    assert deleted <= 3
