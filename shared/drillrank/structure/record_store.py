"""Protocol of a store of records: three methods, which an adapter implements once for each framework or store."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

from drillrank.llm import FunctionRequest
from drillrank.structure.stored_chunks import StoredChunk, Where


@runtime_checkable
class RecordStore(Protocol):
    """Store, index or retriever that drilling down, multi-view retrieval and path search read from.

    A store object belongs to one caller: it returns only records that this caller may see, and all three methods obey
    the same filter. No method changes a record that it returns or that was given to it. The asynchronous methods return
    the same as the others and do not block the event loop. A subclass inherits asynchronous methods that run the others
    on a thread.

    Evidence retrieval uses the vectors of a store that has a method `question_vector(question)`, which returns the
    vector with which the question was searched for, or None. Chunks have their vectors in `StoredChunk.vector`, or a
    method `read_vectors(chunks)` returns one for each chunk, or None. Without vectors, `StoredChunk.score` counts.
    """

    @property
    def obeys_limits(self) -> bool:
        """True if `search` obeys `n` and `where`. False for a retriever, which has its own limit."""
        return True

    def search(self, question: str, n: int, where: Where | None = None) -> Sequence[StoredChunk[Any]]:
        """Return the records nearest to a question, best first.

        Args:
            question: The question.
            n: Maximum number of records.
            where: Metadata values that each record must have.
        """
        ...

    def get(self, ids: Sequence[str]) -> Sequence[StoredChunk[Any]] | None:
        """Return the records with these ids, in any order, without the missing ones.

        None means that the store cannot be asked for records by id.
        """
        ...

    def find(self, where: Where) -> Sequence[StoredChunk[Any]] | None:
        """Return all records with these metadata values, in any order.

        None means that the store cannot be asked for records by metadata.
        """
        ...

    async def asearch(self, question: str, n: int, where: Where | None = None) -> Sequence[StoredChunk[Any]]:
        """Return what `search` returns."""
        return await asyncio.to_thread(self.search, question, n, where)

    async def aget(self, ids: Sequence[str]) -> Sequence[StoredChunk[Any]] | None:
        """Return what `get` returns."""
        return await asyncio.to_thread(self.get, ids)

    async def afind(self, where: Where) -> Sequence[StoredChunk[Any]] | None:
        """Return what `find` returns."""
        return await asyncio.to_thread(self.find, where)


def read_question_vector(store: RecordStore, question: str) -> Sequence[float] | None:
    """Return the vector with which a store searched for a question. None if it is not known."""
    vector: Sequence[float] | None = getattr(store, "question_vector", lambda _: None)(question)
    return vector


def read_chunk_vectors(store: RecordStore, chunks: Sequence[StoredChunk[Any]]) -> Sequence[Sequence[float] | None]:
    """Return the vectors of chunks that a store returned. None for those without one."""
    read_vectors = getattr(store, "read_vectors", None)
    vectors: Sequence[Sequence[float] | None] = (
        [chunk.vector for chunk in chunks] if read_vectors is None else read_vectors(chunks)
    )
    return vectors


def search_request(store: RecordStore, question: str, n: int, where: Where | None = None) -> FunctionRequest:
    """Return the request for `store.search`."""
    return FunctionRequest.of(store.search, store.asearch, question, n, where)


def get_request(store: RecordStore, ids: Sequence[str]) -> FunctionRequest:
    """Return the request for `store.get`."""
    return FunctionRequest.of(store.get, store.aget, ids)


def find_request(store: RecordStore, where: Where) -> FunctionRequest:
    """Return the request for `store.find`."""
    return FunctionRequest.of(store.find, store.afind, where)


def find_requests(store: RecordStore, conditions: Iterable[Where]) -> list[FunctionRequest]:
    """Return as few requests for `store.find` as possible for records that meet one of the conditions."""
    return [find_request(store, where) for where in merge_conditions(conditions)]


def merge_conditions(conditions: Iterable[Where]) -> list[Where]:
    """Merge conditions that differ in the value of their first key only: a store is asked once for all documents.

    >>> merge_conditions([{"source": "a", "space": "x"}, {"source": "b", "space": "x"}, {"source": "c"}])
    [{'source': ('a', 'b'), 'space': 'x'}, {'source': 'c'}]
    """
    values_by_rest: dict[Any, dict[str, None]] = {}
    for where in conditions:
        (key, value), *rest = where.items()
        values = [value] if isinstance(value, str) else value
        values_by_rest.setdefault((key, tuple(rest)), {}).update(dict.fromkeys(values))
    return [
        {key: tuple(values) if len(values) > 1 else next(iter(values)), **dict(rest)}
        for (key, rest), values in values_by_rest.items()
    ]
