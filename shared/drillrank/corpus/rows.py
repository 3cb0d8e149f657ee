"""Passages as rows of the database."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from typing import Any

from drillrank.passages import Passage
from drillrank.structure.packing import ParagraphSpan

PASSAGES_OF_DOCUMENT = (
    "FROM documents JOIN passages ON number >= first AND number < first + size WHERE documents.id = ?"
)
TITLED_TEXT = "CASE title WHEN '' THEN text ELSE title || ' ' || text END"


def read_passages(database: sqlite3.Connection, column: str, keys: Iterable[object]) -> list[Passage]:
    """Return the passages whose column has one of the keys, in the order of the keys. Unknown keys are skipped."""
    query = f"SELECT id, title, text, links, metadata FROM passages WHERE {column} = ? ORDER BY number"
    return [_build_passage(row) for key in keys for row in database.execute(query, (key,))]


def read_next_passages(database: sqlite3.Connection, after: int, limit: int) -> list[tuple[int, Passage]]:
    """Return at most `limit` passages whose numbers are higher than `after`, with their numbers."""
    query = "SELECT number FROM passages WHERE number > ? ORDER BY number LIMIT ?"
    numbers = [number for (number,) in database.execute(query, (after, limit))]
    return list(zip(numbers, read_passages(database, "number", numbers), strict=True))


def read_numbers(database: sqlite3.Connection, ids: Iterable[str]) -> dict[str, int]:
    """Return the numbers of passages by id. Unknown ids are skipped."""
    query = "SELECT id, number FROM passages WHERE id = ?"
    return {id_: number for key in ids for id_, number in database.execute(query, (key,))}


def read_document_passages(database: sqlite3.Connection, id_: str) -> list[Passage]:
    """Return the passages of a document in order. Metadata are those of `list_paragraphs`."""
    query = f"SELECT passages.id, title, text, links, metadata {PASSAGES_OF_DOCUMENT} ORDER BY number"
    rows = database.execute(query, (id_,)).fetchall()
    all_metadata = json.loads(f"[{','.join(row[-1] for row in rows)}]")  # much faster than row by row
    return [
        Passage(
            text,
            id=key,
            title=title,
            links=() if links == "[]" else json.loads(links),
            metadata={"document": id_, "section_path": (title,) if title else (), **_restore_tuples(metadata)},
        )
        for (key, title, text, links, _), metadata in zip(rows, all_metadata, strict=True)
    ]


def _restore_tuples(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return metadata as `list_paragraphs` makes them, with tuples in place of JSON's lists."""
    for name in ("section_path", "pages"):
        if name in metadata:
            metadata[name] = tuple(metadata[name])
    for name in ("section_paths", "links"):
        if name in metadata:
            metadata[name] = tuple(map(tuple, metadata[name]))
    if "paragraph_spans" in metadata:
        metadata["paragraph_spans"] = tuple([ParagraphSpan._make(span) for span in metadata["paragraph_spans"]])
    return metadata


def _build_passage(row: tuple[str, str, str, str, str]) -> Passage:
    id_, title, text, links, metadata = row
    return Passage(text, id=id_, title=title, links=json.loads(links), metadata=json.loads(metadata))
