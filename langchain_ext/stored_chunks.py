"""LangChain documents as the chunks of a record store."""

from __future__ import annotations

from collections.abc import Iterable

from langchain_core.documents import Document

from drillrank.structure.stored_chunks import StoredChunk
from langchain_ext._records import read_found


def read_documents(documents: Iterable[Document]) -> list[StoredChunk[Document]]:
    """Return each document as a chunk, with its place in the document that it was cut from.

    A `RecordStore` of a third party returns such chunks, and is then a `source` of retrievers.

    Args:
        documents: Documents of `MultiViewTextSplitter`, of any other splitter, or of a loader.

    >>> [chunk] = read_documents([Document("It is old.", id="1", metadata={"source": "basel.md", "start_index": 40})])
    >>> chunk.id, chunk.document, chunk.start
    ('1', ('', 'basel.md'), 40)
    """
    return read_found(documents)
