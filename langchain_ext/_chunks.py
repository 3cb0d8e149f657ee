"""LangChain documents as the core's stored chunks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from langchain_core.documents import Document

from drillrank.hosts.chunks import ChunkRecord
from drillrank.hosts.headings import headings_by_level
from drillrank.hosts.metadata import count, is_section, own, prefixed, theirs
from drillrank.hosts.pages import pages_of
from drillrank.hosts.proposing import Reading
from drillrank.llm import Fetch
from langchain_ext._documents import document_names

SOURCE = "source"
"""The host's name for the key that says what a chunk was cut from."""

_PAGE = ("page", "page_number")


def given_chunks(documents: Iterable[Document]) -> list[ChunkRecord[Document]]:
    """What each of the documents given to a component is a piece of; no two are the same, if they have no ids."""
    documents = list(documents)
    return [_chunk(document, name) for document, name in zip(documents, document_names(documents), strict=True)]


def found_chunks(documents: Iterable[Document]) -> list[ChunkRecord[Document]]:
    """As `given_chunks`, for what a store or retriever brings, perhaps the same one more than once."""
    return [_chunk(document, document_names([document])[0]) for document in documents]


def holding(chunk: ChunkRecord[Document]) -> Fetch | None:
    """Asks a store for all records of a chunk's document."""
    space, id_ = chunk.document
    if chunk.kind != "section":
        return Fetch(where={SOURCE: id_}) if isinstance(chunk.metadata.get(SOURCE), str) else None
    return Fetch(where={prefixed("source_id"): id_, **({prefixed("namespace"): space} if space else {})})


READING = Reading(found_chunks, holding)


def _chunk(document: Document, name: str) -> ChunkRecord[Document]:
    if is_section(document.metadata):
        return _section(document)
    metadata = theirs(document.metadata)
    source, start = metadata.get(SOURCE), count(metadata.get("start_index"))
    headings = headings_by_level(metadata)
    start = None if start is None or start < 0 else start
    pages = [count(value) if isinstance(value, float) else value for value in map(metadata.get, _PAGE)]
    cut = isinstance(source, str) or start is not None or bool(headings)
    return ChunkRecord(
        document,
        name,
        document.page_content,
        ("", source if isinstance(source, str) else name),
        kind="chunk" if cut else "document",
        path=headings,
        # Splitters that write headings know no offsets: what has one was cut again, and it counts from there.
        start=None if headings else start,
        order=start if headings else None,
        page=next((page for page in pages if isinstance(page, int | str)), None),
        aliases=(name,),
        metadata=metadata,
        pages=pages_of(document.metadata),
    )


def _section(document: Document) -> ChunkRecord[Document]:
    found: dict[str, Any] = own(document.metadata)
    raw = found["view"] == "raw"
    return ChunkRecord(
        document,
        str(found["section_id"]),
        str(found.get("section_text", document.page_content if raw else "")),
        (str(found.get("namespace") or ""), str(found.get("source_id") or found["section_id"])),
        kind="section",
        raw=raw,
        path=str(found.get("section_path", "")),
        start=found.get("start"),
        end=found.get("end"),
        metadata=theirs(document.metadata),
        pages=pages_of(document.metadata),
    )
