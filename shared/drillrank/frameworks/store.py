"""Base of the adapters' record stores, and the components that search one store and ask an LLM."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any, TypeVar, cast

from drillrank.frameworks.filters import AccessFilter
from drillrank.frameworks.metadata import prefixed
from drillrank.frameworks.sections import deduplicate_sections, warn_missing
from drillrank.frameworks.settings import GenerationSettings
from drillrank.generation import generated_passages
from drillrank.llm import FunctionRequest, Requests, Usage, arun, merge_requests, run
from drillrank.passages import Passage, check_query
from drillrank.structure.record_store import RecordStore, find_request, get_request, search_request
from drillrank.structure.stored_chunks import StoredChunk, Where

Result = TypeVar("Result")

_WIDENING_FACTOR, _MAX_SEARCHES = 4, 3  # a store that cannot filter as its component does is searched more widely


class _PickledLock:
    """Lock that a pickle contains as a new one: components that keep a store are pickled."""

    def __init__(self) -> None:
        self._lock = Lock()

    def __reduce__(self) -> tuple[type[_PickledLock], tuple[()]]:
        return type(self), ()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class FrameworkStore(ABC):
    """Base of the adapters' record stores (see `drillrank.structure.record_store.RecordStore`).

    An adapter writes each method once, as a generator of requests. A store object belongs to one question's caller.

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
        self._computing = _PickledLock()
        self._vectors: dict[tuple[int, str], list[float]] = {}

    @property
    def obeys_limits(self) -> bool:
        """True if `search` obeys `n` and `where`. False for retrievers, which have limits of their own."""
        if self._record_store is not None:
            return self._record_store.obeys_limits
        return self._retriever is None and not self._retriever_by_view

    def search(self, question: str, n: int, where: Where | None = None) -> list[StoredChunk[Any]]:
        """Return the records nearest to a question that the caller may see, best first."""
        return run(self._search_requests(question, n, where or {}))

    async def asearch(self, question: str, n: int, where: Where | None = None) -> list[StoredChunk[Any]]:
        """Run `search` without blocking the event loop."""
        return await arun(self._search_requests(question, n, where or {}))

    def get(self, ids: Sequence[str]) -> list[StoredChunk[Any]] | None:
        """Return the records with these ids that the caller may see. None if the store cannot be asked by id."""
        return run(self._all_get_requests(ids))

    async def aget(self, ids: Sequence[str]) -> list[StoredChunk[Any]] | None:
        """Run `get` without blocking the event loop."""
        return await arun(self._all_get_requests(ids))

    def find(self, where: Where) -> list[StoredChunk[Any]] | None:
        """Return the records with these metadata values that the caller may see. None if that cannot be asked."""
        return run(self._all_find_requests(where))

    async def afind(self, where: Where) -> list[StoredChunk[Any]] | None:
        """Run `find` without blocking the event loop."""
        return await arun(self._all_find_requests(where))

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
                [permitted] = yield [FunctionRequest(partial(self._permit, hits, self.access_filter.filter_results))]
                n_hits = len(hits)
            if len(permitted) >= n or n_hits < width:
                break
        return permitted[:n] if self.obeys_limits else permitted

    def _all_get_requests(self, ids: Sequence[str]) -> Requests[list[StoredChunk[Any]] | None]:
        if self._record_store is None:
            return (yield from self._get_requests(list(ids)))
        return (yield from self._fetch(get_request(self._record_store, list(ids))))

    def _all_find_requests(self, where: Where) -> Requests[list[StoredChunk[Any]] | None]:
        if self._record_store is None:
            return (yield from self._find_requests(where))
        return (yield from self._fetch(find_request(self._record_store, where)))

    def _fetch(self, request: FunctionRequest) -> Requests[list[StoredChunk[Any]] | None]:
        [chunks] = yield [request]
        if chunks is None:
            return None
        [permitted] = yield [FunctionRequest(partial(self._permit, chunks, self.access_filter.filter_fetched))]
        return permitted  # type: ignore[no-any-return]

    def _permit(
        self, chunks: Sequence[StoredChunk[Any]], filter_records: Callable[[list[Any]], list[Any]]
    ) -> list[StoredChunk[Any]]:
        """Return the chunks whose records pass a filter."""
        permitted = set(map(id, filter_records([chunk.record for chunk in chunks])))
        return [chunk for chunk in chunks if id(chunk.record) in permitted]

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
            return getattr(self._record_store, "question_vector", lambda _: None)(question)
        vectors = [vector for (_, text), vector in self._vectors.items() if text == question]
        return vectors[0] if len(vectors) == 1 else None

    def read_vectors(self, chunks: Sequence[StoredChunk[Any]]) -> Sequence[Sequence[float] | None]:
        """Return the vectors of chunks that this store returned. None for those without one."""
        read_vectors = getattr(self._record_store, "read_vectors", None)
        return [chunk.vector for chunk in chunks] if read_vectors is None else read_vectors(chunks)

    @abstractmethod
    def _retrieve(self, retriever: Any, question: str) -> Requests[list[StoredChunk[Any]]]:
        """Return what a retriever finds and the caller may see."""

    @abstractmethod
    def _search_store(self, question: str, n: int, where: Where) -> Requests[tuple[list[StoredChunk[Any]], int]]:
        """Search a store once. Return the records that the caller may see, and the number of all that it found."""

    @abstractmethod
    def _get_requests(self, ids: Sequence[str]) -> Requests[list[StoredChunk[Any]] | None]:
        """Return what `get` returns."""

    @abstractmethod
    def _find_requests(self, where: Where) -> Requests[list[StoredChunk[Any]] | None]:
        """Return what `find` returns."""


_reported_usages: ContextVar[list[Usage] | None] = ContextVar("reported_usages", default=None)
"""Usages of the retrievers that work for one self-ask question, in whatever thread or task they run."""


def report_usage(usage: Usage) -> None:
    """Report what a retriever's LLM calls cost to the self-ask component that called the retriever, if one did."""
    usages = _reported_usages.get()
    if usages is not None:
        usages.append(usage)


@dataclass(frozen=True, slots=True)
class PassagesWithUsage:
    """Passages of a retriever, and the cost of its LLM calls.

    Attributes:
        passages: The passages, best first.
        usages: Usage of each D3 retriever that took part.
    """

    passages: Sequence[Passage]
    usages: Sequence[Usage]

    def __iter__(self) -> Iterator[Passage]:
        return iter(self.passages)

    @property
    def usage(self) -> Usage:
        """Usage of all of them."""
        total = Usage()
        for usage in self.usages:
            total.include(usage)
        return total


def search_sections(store: RecordStore, question: str, n: int) -> Requests[list[StoredChunk[Any]]]:
    """Search a store, and return one chunk for each section: its raw record, or the best view if none can be fetched.

    Args:
        store: The store.
        question: The question.
        n: Number of records that a store is asked for. A retriever has its own limit.
    """
    [hits] = yield [search_request(store, question, n)]
    chunks, deleted_ids = yield from deduplicate_sections(hits, store, is_store_of_hits=True)
    access_filter = getattr(store, "access_filter", None)
    if access_filter is None or not access_filter.restricts:  # a warning would reveal that hidden sections exist
        warn_missing("The source", deleted_ids)
    return chunks


@dataclass(frozen=True, slots=True)
class RetrievedPassages:
    """Retriever of passages for `drillrank.SelfAsk` that searches a framework's retriever or store.

    Attributes:
        store: Function that returns the store for one question.
        passage: Function from a chunk to a passage that contains its record.
        n: Number of records that a store is asked for. A retriever has its own limit.
    """

    store: Callable[[], RecordStore]
    passage: Callable[[StoredChunk[Any]], Passage]
    n: int = 5

    def retrieve(self, question: str) -> PassagesWithUsage:
        """Return the passages that the retriever finds, and the cost of its LLM calls."""
        usages: list[Usage] = []
        token = _reported_usages.set(usages)
        try:
            return PassagesWithUsage(run(self._search(question)), usages)
        finally:
            _reported_usages.reset(token)

    async def aretrieve(self, question: str) -> PassagesWithUsage:
        """Run `retrieve` without blocking the event loop."""
        usages: list[Usage] = []
        token = _reported_usages.set(usages)
        try:
            return PassagesWithUsage(await arun(self._search(question)), usages)
        finally:
            _reported_usages.reset(token)

    def _search(self, question: str) -> Requests[list[Passage]]:
        chunks = yield from search_sections(self.store(), question, self.n)
        return list(map(self.passage, chunks))


def retrieve_and_generate(
    settings: GenerationSettings, question: str, n_generated: int, store: RecordStore, n_retrieved: int
) -> Requests[tuple[Sequence[StoredChunk[Any]], list[Passage]]]:
    """Search a store, and let an LLM write passages at the same time.

    Args:
        settings: Settings of the generation.
        question: The question.
        n_generated: Number of passages that the LLM writes, with one call each.
        store: The store.
        n_retrieved: Number of records that the store is asked for. A retriever has its own limit.

    Raises:
        InvalidInput: The question is blank.
    """
    passages = generated_passages(check_query(question), n_generated, settings.prompts, settings.on_failure)

    search = search_sections(store, question, n_retrieved)
    chunks, generated = yield from merge_requests([search, cast("Requests[Any]", passages)])
    return chunks, generated
