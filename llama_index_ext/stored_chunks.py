"""LlamaIndex nodes as the chunks of a record store."""

from __future__ import annotations

from collections.abc import Iterable

from llama_index.core.schema import BaseNode

from drillrank.structure.stored_chunks import StoredChunk
from llama_index_ext._records import read_chunks


def read_nodes(nodes: Iterable[BaseNode]) -> list[StoredChunk[BaseNode]]:
    """Return each node as a chunk, with its place in the document that it was cut from.

    A `RecordStore` of a third party returns such chunks, and is then a `source` of retrievers.

    Args:
        nodes: Nodes of `MultiViewNodeParser` or of any other parser, or documents.

    >>> from llama_index.core.schema import TextNode
    >>> [chunk] = read_nodes([TextNode(text="It is old.", id_="1", metadata={"year": 1226})])
    >>> chunk.id, chunk.text, chunk.metadata
    ('1', 'It is old.', {'year': 1226})
    """
    return read_chunks(nodes)
