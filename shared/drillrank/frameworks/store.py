"""What a retriever asks of a host's store for one question: nearest records, and records by id or by metadata.

What both hosts decide alike, such as which sections to return, is a generator of `RetrievalRequest` and
`LookupRequest` requests; the records stay what the host has them as.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any, TypeVar, cast

from drillrank.frameworks.settings import GenerationSettings
from drillrank.generation import generated_passages
from drillrank.llm import (
    FunctionRequest,
    Handlers,
    LookupRequest,
    Requests,
    RetrievalRequest,
    Usage,
    arun,
    merge_requests,
    run,
)
from drillrank.passages import Passage, check_query

Result = TypeVar("Result")

THE_QUESTION = ""
"""Query of a `RetrievalRequest` to a `Store`, which was made for one question."""

_WIDER, _TRIES = 4, 3  # where a store cannot filter as a component does, it is searched more widely

Records = Sequence[Any]
"""Of the host: nodes (with scores, where they were searched for) or documents."""

Answer = Records | None
"""None: the store cannot be asked this."""


class Store(ABC):
    """Answers the requests of one question; which call asks a retriever or a store, with what filter, is the host's.

    Args:
        source: A store, a retriever, or retrievers by name; None has nothing.
        retrieves: Whether the source is a retriever.
    """

    def __init__(self, source: object, retrieves: bool) -> None:
        self._retrievers: Mapping[Any, Any] = {None: source} if retrieves else {}
        if isinstance(source, Mapping):
            self._retrievers = source
        self.retrieves = bool(self._retrievers)
        self._computing = Lock()
        self._vectors: dict[int, list[float]] = {}

    def in_turn(self, search: Callable[..., Result], *arguments: Any, **named: Any) -> Result:
        """A search in memory, one at a time: threads that all compute would keep the event loop waiting for each."""
        with self._computing:
            return search(*arguments, **named)

    def vector(self, model: object, embed: Callable[[], list[float]]) -> Requests[list[float]]:
        """The question's vector by a model, which embeds it once, however many searches want it at the same time."""

        def embed_once() -> None:
            if id(model) not in self._vectors:
                self._vectors[id(model)] = embed()

        if id(model) not in self._vectors:
            yield [FunctionRequest(partial(self.in_turn, embed_once))]
        return self._vectors[id(model)]

    @property
    def handlers(self) -> Handlers:
        """Who answers requests, for `drillrank.llm.answered`."""
        return {RetrievalRequest: self.retrieve, LookupRequest: self.fetch}

    def retrieve(self, request: RetrievalRequest) -> Requests[Records]:
        """Records nearest to the question, as far as they may be seen, best first."""
        if self._retrievers:
            return (yield from self._retrieved(self._retrievers[request.source]))
        for width in self._widths(request.n):
            permitted, brought = yield from self._searched(width, request.where)
            if len(permitted) >= request.n or brought < width:
                break
        return permitted[: request.n]

    def _widths(self, n: int) -> Iterator[int]:
        """How many records to search for, one after the other, until there are `n` that may be seen."""
        return (n * _WIDER**tried for tried in range(_TRIES))

    @abstractmethod
    def _retrieved(self, retriever: Any) -> Requests[Records]:
        """What a retriever finds, as far as it may be seen."""

    @abstractmethod
    def _searched(self, k: int, where: Mapping[str, str]) -> Requests[tuple[Records, int]]:
        """Of the nearest `k` records with these metadata those that may be seen, and how many there were."""

    @abstractmethod
    def fetch(self, request: LookupRequest) -> Requests[Answer]:
        """Records by id or by metadata, as far as they may be seen, in any order."""


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


@dataclass(frozen=True, slots=True)
class RetrievedPassages:
    """A host's retriever as a retriever of passages, as `drillrank.SelfAsk` takes one.

    Attributes:
        store: Asks the retriever a question.
        passage: From a record, or hit, to a passage that brings it along.
    """

    store: Callable[[str], Store]
    passage: Callable[[Any], Passage]

    def retrieve(self, question: str) -> PassagesWithUsage:
        """Return the passages that the retriever finds, and the cost of its LLM calls."""
        usages: list[Usage] = []
        token = _reported_usages.set(usages)
        try:
            return PassagesWithUsage(run(self._found(question)), usages)
        finally:
            _reported_usages.reset(token)

    async def aretrieve(self, question: str) -> PassagesWithUsage:
        """Run `retrieve` without blocking the event loop."""
        usages: list[Usage] = []
        token = _reported_usages.set(usages)
        try:
            return PassagesWithUsage(await arun(self._found(question)), usages)
        finally:
            _reported_usages.reset(token)

    def _found(self, question: str) -> Requests[list[Passage]]:
        records = yield from self.store(question).retrieve(RetrievalRequest(THE_QUESTION, 0))
        return list(map(self.passage, records))


def answered(requests: Requests[Result], handlers: Handlers) -> Requests[Result]:
    """The same, with the requests that have a handler here handed on as calls of it.

    >>> def once():
    ...     [found] = yield [RetrievalRequest("who?", 1)]
    ...     return found
    >>> run(answered(once(), {RetrievalRequest: lambda request: [request.query]}))
    ['who?']
    """
    answers: Sequence[Any] | None = None
    with closing(requests):
        while True:
            try:
                step = requests.send(answers)  # type: ignore[arg-type]  # None begins
            except StopIteration as stop:
                return stop.value  # type: ignore[no-any-return]
            answers = yield [
                FunctionRequest(partial(handlers[type(request)], request)) if type(request) in handlers else request
                for request in step
            ]


def retrieved_and_generated(
    settings: GenerationSettings, query: str, n: int, store: Store
) -> Requests[tuple[Answer, list[Passage]]]:
    """What a retriever finds, and passages that an LLM writes at the same time.

    Args:
        settings: Of the component.
        query: The question.
        n: Passages to write, one call each.
        store: The retriever.

    Raises:
        InvalidInput: the query is blank.
    """
    written = generated_passages(check_query(query), n, settings.prompts, settings.on_failure)
    retrieval = store.retrieve(RetrievalRequest(THE_QUESTION, 0))
    found, passages = yield from merge_requests([cast("Requests[Any]", retrieval), written])
    return found, passages
