"""A record store in a dictionary with vectors: an example for `docs/testing.md`.

python examples/dictionary_store.py
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from drillrank.structure.record_store import RecordStore
from drillrank.structure.stored_chunks import StoredChunk, Where
from drillrank.vectors import Embed

Key = tuple[str, str | None]
"""Id and view of a chunk, as the views of a section share its id."""


@dataclass
class Database:
    """Chunks, with their vectors, by id and view."""

    embed: Embed
    chunks: dict[Key, StoredChunk[Any]] = field(default_factory=dict)
    lock: Any = field(default_factory=threading.Lock)

    def add(self, chunks: Iterable[StoredChunk[Any]]) -> None:
        """Add chunks, in place of those with the same id and view."""
        new_chunks = list(chunks)
        vectors = self.embed([chunk.view_text or chunk.text for chunk in new_chunks]) if new_chunks else []
        with self.lock:
            for chunk, vector in zip(new_chunks, vectors, strict=True):
                copied = copy.deepcopy(chunk)
                self.chunks[chunk.id, chunk.view] = replace(copied, vector=[float(number) for number in vector])

    def delete(self, ids: Iterable[str]) -> None:
        """Delete all views of these sections, or the records with these ids."""
        deleted_ids = set(ids)
        with self.lock:
            self.chunks = {key: chunk for key, chunk in self.chunks.items() if chunk.id not in deleted_ids}


class DictionaryStore(RecordStore):
    """Record store of one caller, over a database that several share.

    The asynchronous methods of `RecordStore` run these on a thread.

    Args:
        database: Chunks and vectors.
        visible: Metadata values of the records that the caller may see.
    """

    def __init__(self, database: Database, visible: Mapping[str, str] | None = None) -> None:
        self._database = database
        self._visible = dict(visible or {})

    def search(self, question: str, n: int, where: Where | None = None) -> list[StoredChunk[Any]]:
        """Return the chunks with the highest cosine to the question, best first."""
        query_vector = self.question_vector(question)
        scored = [
            replace(chunk, score=float(np.dot(chunk.vector or 0.0, query_vector)))
            for chunk in self._select(where or {})
        ]
        return sorted(scored, key=lambda chunk: -(chunk.score or 0.0))[:n]

    def get(self, ids: Sequence[str]) -> list[StoredChunk[Any]]:
        """Return the chunks with these ids."""
        return [chunk for chunk in self._select({}) if chunk.id in set(ids)]

    def find(self, where: Where) -> list[StoredChunk[Any]]:
        """Return the chunks with these metadata values."""
        return self._select(where)

    def question_vector(self, question: str) -> list[float]:
        """Return the vector of a question, by which `D3Retriever` adds embeddings to its scores."""
        return [float(number) for number in self._database.embed([question])[0]]

    def _select(self, where: Where) -> list[StoredChunk[Any]]:
        """Return copies of the chunks with these metadata values that the caller may see."""
        with self._database.lock:
            chunks = list(self._database.chunks.values())
        return [copy.deepcopy(chunk) for chunk in chunks if chunk.matches(self._visible) and chunk.matches(where)]
