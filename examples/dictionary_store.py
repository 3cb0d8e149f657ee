"""A record store in a dictionary with vectors: an example for `docs/testing.md`.

python examples/dictionary_store.py
"""

from __future__ import annotations

import asyncio
import copy
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from drillrank.structure.stored_chunks import StoredChunk, Where
from drillrank.vectors import Embed

Key = tuple[str, str | None]
"""Id and view of a chunk, as the views of a section share its id."""


@dataclass
class Database:
    """Chunks and their vectors by id and view."""

    embed: Embed
    chunks: dict[Key, StoredChunk[Any]] = field(default_factory=dict)
    vectors: dict[Key, Any] = field(default_factory=dict)
    lock: Any = field(default_factory=threading.Lock)

    def add(self, chunks: Iterable[StoredChunk[Any]]) -> None:
        """Add chunks, in place of those with the same id and view."""
        new_chunks = [copy.deepcopy(chunk) for chunk in chunks]
        vectors = self.embed([chunk.view_text or chunk.text for chunk in new_chunks]) if new_chunks else []
        keys = [(chunk.id, chunk.view) for chunk in new_chunks]
        with self.lock:
            self.chunks.update(zip(keys, new_chunks, strict=True))
            self.vectors.update(zip(keys, vectors, strict=True))

    def delete(self, ids: Iterable[str]) -> None:
        """Delete all views of these sections, or the records with these ids."""
        with self.lock:
            for key in [key for key in self.chunks if key[0] in set(ids)]:
                del self.chunks[key], self.vectors[key]


class DictionaryStore:
    """Record store of one caller, over a database that several share.

    Args:
        database: Chunks and vectors.
        visible: Metadata values of the records that the caller may see.
    """

    obeys_limits = True

    def __init__(self, database: Database, visible: Mapping[str, str] | None = None) -> None:
        self._database = database
        self._visible = dict(visible or {})

    def search(self, question: str, n: int, where: Where | None = None) -> list[StoredChunk[Any]]:
        """Return the chunks with the highest cosine to the question, best first."""
        query_vector = np.asarray(self._database.embed([question])[0])
        chunks = self._select(where or {})
        scores = [float(np.dot(vector, query_vector)) for _, vector in chunks]
        order = sorted(range(len(chunks)), key=lambda index: -scores[index])[:n]
        return [copy.deepcopy(replace(chunks[index][0], score=scores[index])) for index in order]

    def get(self, ids: Sequence[str]) -> list[StoredChunk[Any]]:
        """Return the chunks with these ids."""
        return [copy.deepcopy(chunk) for chunk, _ in self._select({}) if chunk.id in set(ids)]

    def find(self, where: Where) -> list[StoredChunk[Any]]:
        """Return the chunks with these metadata values."""
        return [copy.deepcopy(chunk) for chunk, _ in self._select(where)]

    async def asearch(self, question: str, n: int, where: Where | None = None) -> list[StoredChunk[Any]]:
        """Run `search` on a thread."""
        return await asyncio.to_thread(self.search, question, n, where)

    async def aget(self, ids: Sequence[str]) -> list[StoredChunk[Any]]:
        """Run `get` on a thread."""
        return await asyncio.to_thread(self.get, ids)

    async def afind(self, where: Where) -> list[StoredChunk[Any]]:
        """Run `find` on a thread."""
        return await asyncio.to_thread(self.find, where)

    def _select(self, where: Where) -> list[tuple[StoredChunk[Any], Any]]:
        """Return the chunks, with vectors, that match and that the caller may see."""
        with self._database.lock:
            rows = [(chunk, self._database.vectors[key]) for key, chunk in self._database.chunks.items()]
        return [row for row in rows if row[0].matches(self._visible) and row[0].matches(where)]
