"""Records of pages as records of files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from drillrank.hosts.chunks import ChunkRecord, Record
from drillrank.hosts.pages import Joined, at_pages, joined
from drillrank.hosts.proposing import Paragraph


def with_pages_joined(chunks: Sequence[ChunkRecord[Record]]) -> list[ChunkRecord[Record]]:
    """Records that are pages of one file, each whole, as one; the others as they are."""
    bare = [chunk for chunk in chunks if chunk.is_bare and (chunk.kind == "document" or chunk.page is not None)]
    if len(bare) < len(chunks):
        return list(chunks)
    return [
        _of_file([chunks[at] for at in one.members], one)
        for one in joined((chunk.text, chunk.metadata) for chunk in chunks)
    ]


def paragraph_metadata(paragraph: Paragraph[Any]) -> dict[str, Any]:
    """The user's, of the record that a paragraph stands in; pages are the paragraph's own."""
    return at_pages(paragraph.chunk.metadata, paragraph.chunk.pages, paragraph.start, paragraph.end)


def _of_file(members: Sequence[ChunkRecord[Record]], one: Joined) -> ChunkRecord[Record]:
    first = members[0]
    if len(members) == 1:
        return replace(first, pages=first.pages or one.pages)
    aliases = tuple(dict.fromkeys(alias for page in members for alias in (*page.aliases, page.id)))
    return replace(first, text=one.text, kind="document", page=None, pages=one.pages, aliases=aliases)
