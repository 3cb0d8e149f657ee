"""Versions of one document in both hosts: dates come from names, or from what readers of files write."""

from __future__ import annotations

import datetime

import pytest
from llama_index.core import MockEmbedding, SimpleDirectoryReader, VectorStoreIndex

from drillrank.drilldown import preparing
from drillrank.text_digests import text_digests
from tests.conformance.frameworks import LlamaIndex, both_frameworks

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


def leases(host, metadata):
    return [host.document(LEASE.format(100 * at), str(at), **one) for at, one in enumerate(metadata, 1)]


def found(host, documents=(), as_of=None, **fields):
    retriever = host.ext.D3Retriever(list(documents), top_n=1, settings={"as_of": as_of, "unit": "paragraph"}, **fields)
    return host.both(retriever, QUESTION)


def rents(hits):
    return [int(one.text.split()[3]) for one in hits]


@both_frameworks
@pytest.mark.parametrize("metadata", DATES.values(), ids=DATES)
def test_the_newest_version_is_read_or_that_of_a_date(host, metadata):
    documents = leases(host, metadata)
    [newest] = found(host, documents)
    assert rents([newest]) == [200]
    assert newest.metadata["drillrank_version"].startswith("2023")
    assert newest.metadata["drillrank_other_versions"].startswith("lease")
    for as_of, rent in (("2022", [100]), ("2023-06-30", [200]), ("2019", [])):
        assert rents(found(host, documents, as_of)) == rent


def test_what_a_reader_of_files_writes_is_enough(tmp_path):
    for name, rent in (("lease 2021.md", 100), ("lease 2023.md", 200)):
        (tmp_path / name).write_text(LEASE.format(rent))
    documents = SimpleDirectoryReader(tmp_path).load_data()
    index = VectorStoreIndex.from_documents(
        documents, transformations=[LlamaIndex.splitter()], embed_model=MockEmbedding(8)
    )
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    for as_of, rent in ((None, 200), (today, 200), ("2022-01", 100)):
        for given in ({"documents": documents}, {"source": index}):
            assert rents(found(LlamaIndex, as_of=as_of, **given)) == [rent]


@both_frameworks
def test_versions_in_a_store_of_sections(host):
    documents = leases(host, [{"source": "lease 2021.md"}, {"source": "lease 2023.md"}])
    store = host.index(*host.split(documents))
    for as_of, rent in ((None, 200), ("2022", 100)):
        assert rents(found(host, as_of=as_of, source=store)) == [rent]
    [mine] = found(host, documents, filters=lambda record: "2021" in record.metadata["source"])
    assert "drillrank_other_versions" not in mine.metadata  # nothing is told of what is hidden


@both_frameworks
def test_stored_versions_are_compared_without_reading_their_texts_again(host, monkeypatch):
    read = []
    monkeypatch.setattr(preparing, "text_digests", lambda texts: read.append(1) or text_digests(texts))
    index = host.index(*host.split(leases(host, [{"source": "lease 2021.md"}, {"source": "lease 2023.md"}])))
    retriever = host.ext.D3Retriever(source=index, top_n=1, settings={"unit": "paragraph"})
    for number in range(2):
        assert rents(host.both(retriever, QUESTION)) == [200]
        assert len(read) == 2
        host.add(index, *host.split([host.document("# Owls\n\nThey hoot.\n", f"owls {number}", source="owls.md")]))
