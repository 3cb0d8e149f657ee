"""Versions of one document in both hosts: dates come from names, or from what readers of files write."""

from __future__ import annotations

import asyncio
import datetime

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import Document as LlamaIndexDocument
from llama_index.core import MockEmbedding, SimpleDirectoryReader, VectorStoreIndex

import langchain_ext
import llama_index_ext

LEASE = "# Rent\n\nThe rent is {} francs.\n\n# Pets\n\nNo dogs.\n\nNo cats.\n\nNo parrots.\n\nNo snakes.\n\nNo mice.\n"
QUESTION = "What is the rent?"
DATES = {
    "by name": [{"file_name": "lease 2021.md"}, {"file_name": "lease 2023.md"}],
    "by the file": [
        {"file_name": "lease.md", "last_modified_date": "2021-05-01", "creation_date": "2024-01-01"},
        {"file_name": "lease.md", "last_modified_date": "2023-05-01", "creation_date": "2020-01-01"},
    ],
    "by the document before its file": [
        {"title": "lease", "date": "1 May 2021", "last_modified_date": "2024-05-01"},
        {"title": "lease", "date": datetime.date(2023, 5, 1), "last_modified_date": "2020-05-01"},
    ],
    "by a PDF's": [
        {"title": "lease", "moddate": "2021-05-01T10:00:00+00:00"},
        {"title": "lease", "moddate": "2023-05-01T10:00:00+00:00"},
    ],
}


def in_llama_index(metadata, **fields):
    documents = [
        LlamaIndexDocument(text=LEASE.format(100 * at), id_=str(at), metadata=one) for at, one in enumerate(metadata, 1)
    ]
    found = llama_index_ext.D3Retriever(documents, top_n=1, **fields).retrieve(QUESTION)
    return [(hit.get_content(), hit.node.metadata) for hit in found]


def in_langchain(metadata, **fields):
    documents = [Document(LEASE.format(100 * at), id=str(at), metadata=one) for at, one in enumerate(metadata, 1)]
    found = langchain_ext.D3Retriever(documents, top_n=1, **fields).invoke(QUESTION)
    return [(one.page_content, one.metadata) for one in found]


@pytest.mark.parametrize("host", [in_llama_index, in_langchain])
@pytest.mark.parametrize("metadata", DATES.values(), ids=DATES)
def test_the_newest_version_is_read_or_that_of_a_date(host, metadata):
    [(text, told)] = host(metadata)
    assert text == "The rent is 200 francs."
    assert told["drillrank_version"].startswith("2023")
    assert told["drillrank_other_versions"].startswith("lease")
    for as_of, rent in (("2022", 100), ("2023-06-30", 200)):
        assert host(metadata, settings={"as_of": as_of})[0][0] == f"The rent is {rent} francs."
    assert host(metadata, settings={"as_of": "2019"}) == []


def test_what_a_reader_of_files_writes_is_enough(tmp_path):
    for name, rent in (("lease 2021.md", 100), ("lease 2023.md", 200)):
        (tmp_path / name).write_text(LEASE.format(rent))
    documents = SimpleDirectoryReader(tmp_path).load_data()
    index = VectorStoreIndex.from_documents(
        documents, transformations=[llama_index_ext.MultiViewNodeParser()], embed_model=MockEmbedding(8)
    )
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    for given in ({"documents": documents}, {"source": index}):
        for as_of, rent in ((None, 200), (today, 200), ("2022-01", 100)):
            retriever = llama_index_ext.D3Retriever(**given, top_n=1, settings={"as_of": as_of})
            for found in (retriever.retrieve(QUESTION), asyncio.run(retriever.aretrieve(QUESTION))):
                assert [hit.get_content() for hit in found] == [f"The rent is {rent} francs."]


def test_versions_in_a_store_of_sections():
    documents = [
        Document(LEASE.format(100 * at), id=str(at), metadata={"source": f"lease {year}.md"})
        for at, year in ((1, 2021), (2, 2023))
    ]
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents(langchain_ext.MultiViewTextSplitter().split_documents(documents))
    for as_of, rent in ((None, 200), ("2022", 100)):
        retriever = langchain_ext.D3Retriever(source=store, top_n=1, settings={"as_of": as_of})
        assert [found.page_content for found in retriever.invoke(QUESTION)] == [f"The rent is {rent} francs."]
    mine = langchain_ext.D3Retriever(documents, filters=lambda document: "2021" in document.metadata["source"])
    assert "drillrank_other_versions" not in mine.invoke(QUESTION)[0].metadata  # nothing is told of what is hidden
