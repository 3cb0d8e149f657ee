"""Base of the adapters' record stores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from threading import Lock
from typing import Any, TypeVar

from drillrank.frameworks.filters import AccessFilter
from drillrank.frameworks.metadata import prefixed
from drillrank.llm import FunctionRequest, Requests, arun, run
from drillrank.structure.record_store import (
    RecordStore,
    find_request,
    get_request,
    read_chunk_vectors,
    read_question_vector,
    search_request,
)
from drillrank.structure.stored_chunks import StoredChunk, Where

Result = TypeVar("Result")

_WIDENING_FACTOR, _MAX_SEARCHES = 4, 3  # a store that cannot filter as its component does is searched more widely


class FrameworkStore(ABC):
    """Base of the adapters' record stores (see `drillrank.structure.record_store.RecordStore`).

    An adapter implements the abstract methods once, as generators of requests, with the calls of its framework. They
    apply `access_filter`. This class adds the three methods of `RecordStore` with their asynchronous twins, applies the
    filter to a `RecordStore` of a third party, and searches more widely if the filter removed too much.

    A store object belongs to one question's caller.

    Args:
        source: A store of the framework, a retriever, retrievers by view, or any `RecordStore` with records of the
            framework. None for no source.
        is_retriever: True if the source is a retriever.
        access_filter: Filter of the records that the caller may see.
    """

    def __init__(self, source: object, is_retriever: bool, access_filter: AccessFilter[Any]) -> None:
        self.access_filter = access_filter
        self._retriever_by_view: Mapping[Any, Any] = source if isinstance(source, Mapping) else {}
        self._retriever = source if is_retriever else None
        self._record_store = source if isinstance(source, RecordStore) and not is_retriever else None
        self._is_empty = source is None
        self.obeys_limits = (  # False for retrievers, which have limits of their own
            not is_retriever and not self._retriever_by_view
            if self._record_store is None
            else self._record_store.obeys_limits
        )
        self._computing = Lock()
        self._vectors: dict[tuple[int, str], list[float]] = {}

    def search(self, question: str, n: int, where: Where | None = None) -> list[StoredChunk[Any]]:
        """Return the records nearest to a question that the caller may see, best first."""
        return run(self._search_requests(question, n, where or {}))

    async def asearch(self, question: str, n: int, where: Where | None = None) -> list[StoredChunk[Any]]:
        """Run `search` without blocking the event loop."""
        return await arun(self._search_requests(question, n, where or {}))

    def get(self, ids: Sequence[str]) -> list[StoredChunk[Any]] | None:
        """Return the records with these ids that the caller may see. None if the store cannot be asked by id."""
        return run(self._get_requests(ids))

    async def aget(self, ids: Sequence[str]) -> list[StoredChunk[Any]] | None:
        """Run `get` without blocking the event loop."""
        return await arun(self._get_requests(ids))

    def find(self, where: Where) -> list[StoredChunk[Any]] | None:
        """Return the records with these metadata values that the caller may see. None if that cannot be asked."""
        return run(self._find_requests(where))

    async def afind(self, where: Where) -> list[StoredChunk[Any]] | None:
        """Run `find` without blocking the event loop."""
        return await arun(self._find_requests(where))

    def _search_requests(self, question: str, n: int, where: Where) -> Requests[list[StoredChunk[Any]]]:
        if self._is_empty:
            return []
        if self._retriever_by_view:
            return (yield from self._retrieve(self._retriever_by_view[where[prefixed("view")]], question))
        if self._retriever is not None:
            return (yield from self._retrieve(self._retriever, question))
        permitted: list[StoredChunk[Any]] = []
        for attempt in range(_MAX_SEARCHES):
            width = n * _WIDENING_FACTOR**attempt
            if self._record_store is None:
                permitted, n_hits = yield from self._search_store(question, width, where)
            else:
                [hits] = yield [search_request(self._record_store, question, width, where)]
                permitted, n_hits = _permit(hits, self.access_filter.filter_results), len(hits)
            # A third party's retriever returns the same records however many are asked for.
            if len(permitted) >= n or n_hits < width or not self.obeys_limits:
                break
        return permitted[:n] if self.obeys_limits else permitted

    def _get_requests(self, ids: Sequence[str]) -> Requests[list[StoredChunk[Any]] | None]:
        if self._record_store is None:
            return (yield from self._get_from_store(list(ids)))
        return (yield from self._fetch(get_request(self._record_store, list(ids))))

    def _find_requests(self, where: Where) -> Requests[list[StoredChunk[Any]] | None]:
        if self._record_store is None:
            return (yield from self._find_in_store(where))
        return (yield from self._fetch(find_request(self._record_store, where)))

    def _fetch(self, request: FunctionRequest) -> Requests[list[StoredChunk[Any]] | None]:
        """Return the answer of a store of a third party, without records that the caller may not see."""
        [chunks] = yield [request]
        return None if chunks is None else _permit(chunks, self.access_filter.filter_fetched)

    def run_alone(self, search: Callable[..., Result], *arguments: Any, **named: Any) -> Result:
        """Run a search in memory, one at a time: several that compute would make the event loop wait for each."""
        with self._computing:
            return search(*arguments, **named)

    def embed_once(self, model: object, question: str, embed: Callable[[], list[float]]) -> Requests[list[float]]:
        """Return the question's vector. A model embeds each question once, however many searches need the vector."""
        key = id(model), question

        def embed_if_missing() -> None:
            if key not in self._vectors:
                self._vectors[key] = embed()

        if key not in self._vectors:
            yield [FunctionRequest(partial(self.run_alone, embed_if_missing))]
        return self._vectors[key]

    def question_vector(self, question: str) -> Sequence[float] | None:
        """Return the vector with which a question was searched for. None if none or several are known."""
        if self._record_store is not None:
            return read_question_vector(self._record_store, question)
        vectors = [vector for (_, text), vector in self._vectors.items() if text == question]
        return vectors[0] if len(vectors) == 1 else None

    def read_vectors(self, chunks: Sequence[StoredChunk[Any]]) -> Sequence[Sequence[float] | None]:
        """Return the vectors of chunks that this store returned. None for those without one."""
        if self._record_store is not None:
            return read_chunk_vectors(self._record_store, chunks)
        return [chunk.vector for chunk in chunks]

    @abstractmethod
    def _retrieve(self, retriever: Any, question: str) -> Requests[list[StoredChunk[Any]]]:
        """Return what a retriever finds and the caller may see."""

    @abstractmethod
    def _search_store(self, question: str, n: int, where: Where) -> Requests[tuple[list[StoredChunk[Any]], int]]:
        """Search a store once. Return the records that the caller may see, and the number of all that it found."""

    @abstractmethod
    def _get_from_store(self, ids: Sequence[str]) -> Requests[list[StoredChunk[Any]] | None]:
        """Ask the framework's store, or the one behind its retriever, for visible records by id."""

    @abstractmethod
    def _find_in_store(self, where: Where) -> Requests[list[StoredChunk[Any]] | None]:
        """Ask the framework's store, or the one behind its retriever, for visible records by metadata."""


def _permit(
    chunks: Sequence[StoredChunk[Any]], filter_records: Callable[[list[Any]], list[Any]]
) -> list[StoredChunk[Any]]:
    """Return the chunks whose records pass a filter."""
    permitted = set(map(id, filter_records([chunk.record for chunk in chunks])))
    return [chunk for chunk in chunks if id(chunk.record) in permitted]
