"""What a retriever looks up in a store for one question, and how it is driven.

What both hosts decide alike, such as which sections to return, is a generator with no I/O in it: it yields lists of
look-ups that may be done at the same time, receives their answers, and returns its result. `run_lookups` and
`arun_lookups` drive it, so that sync and async cannot differ. The records stay what the host has them as.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from drillrank.calling import to_thread
from drillrank.dialogue import Finished, advance
from drillrank.hosts.calls import Call, Calls, arun_calls, run_calls
from drillrank.passages import Passage

Result = TypeVar("Result")


@dataclass(frozen=True)
class Search:
    """The records nearest to the question are wanted, best first.

    Attributes:
        k: How many.
        wanted: Metadata values that they must have, beside the component's own filter.
        source: Which of several retrievers is asked; None is the only one.
    """

    k: int
    wanted: Mapping[str, str] = field(default_factory=dict)
    source: str | None = None


@dataclass(frozen=True, slots=True)
class ById:
    """The records with these ids are wanted; those that the store does not have, or hides, are left out."""

    ids: tuple[str, ...]


@dataclass(frozen=True)
class Holding:
    """All records with these metadata values are wanted, in any order: a document's pieces, for example.

    Attributes:
        wanted: By metadata key the value, or a tuple of values of which a record has one.
    """

    wanted: Mapping[str, str | tuple[str, ...]]


Lookup = Search | ById | Holding
Records = Sequence[Any]
"""Of the host: nodes (with scores, where they were searched for) or documents."""

Answer = Records | None
"""None: the store cannot be asked this."""

Lookups = Generator[Sequence[Lookup], Sequence[Answer], Result]
"""Yields look-ups, receives one answer for each, returns the result."""


@dataclass(frozen=True, slots=True)
class RetrievedPassages:
    """A host's retriever as a retriever of passages, as `drillrank.SelfAsk` takes one.

    Attributes:
        store: Asks the retriever a question.
        passage: From a record, or hit, to a passage that brings it along.
    """

    store: Callable[[str], Store]
    passage: Callable[[Any], Passage]

    def retrieve(self, question: str) -> list[Passage]:
        """What the retriever finds."""
        return list(map(self.passage, self.store(question).answer(Search(0)) or ()))

    async def aretrieve(self, question: str) -> list[Passage]:
        """As `retrieve`, without blocking the event loop."""
        return list(map(self.passage, await self.store(question).aanswer(Search(0)) or ()))


class Store(ABC):
    """Answers the look-ups of one question; which call asks a retriever or a store, with what filter, is the host's.

    Args:
        source: A store, a retriever, or retrievers by name; None has nothing.
        retriever: The host's kind of retriever.
    """

    def __init__(self, source: object, retriever: type) -> None:
        self._retrievers: Mapping[Any, Any] = {None: source} if isinstance(source, retriever) else {}
        if isinstance(source, Mapping):
            self._retrievers = source

    def answer(self, lookup: Lookup) -> Any:
        """Records, as far as they may be seen, or None where the store cannot be asked."""
        return run_calls(self._answer(lookup))

    async def aanswer(self, lookup: Lookup) -> Any:
        """As `answer`, without blocking the event loop."""
        return await arun_calls(self._answer(lookup))

    def _answer(self, lookup: Lookup) -> Calls[Answer]:
        if not isinstance(lookup, Search):
            return (yield from self._fetched(lookup))
        if self._retrievers:
            return (yield from self._retrieved(self._retrievers[lookup.source]))
        for asked in widths(lookup.k):
            kept, brought = yield from self._searched(asked, lookup.wanted)
            if len(kept) >= lookup.k or brought < asked:
                break
        return kept[: lookup.k]

    @abstractmethod
    def _retrieved(self, retriever: Any) -> Calls[Records]:
        """What a retriever finds, as far as it may be seen."""

    @abstractmethod
    def _searched(self, k: int, wanted: Mapping[str, str]) -> Calls[tuple[Records, int]]:
        """Of the nearest `k` records with these metadata those that may be seen, and how many there were."""

    @abstractmethod
    def _fetched(self, lookup: ById | Holding) -> Calls[Answer]:
        """Records that are not searched for."""


_WIDER, _TRIES = 4, 3


def widths(k: int) -> Iterator[int]:
    """How many records to search for, one after the other, where the store cannot filter as the component does.

    >>> list(widths(5))
    [5, 20, 80]
    """
    return (k * _WIDER**tried for tried in range(_TRIES))


def run_lookups(lookups: Lookups[Result], answer: Callable[[Lookup], Answer]) -> Result:
    """Drive look-ups to their result, one after the other.

    >>> def twice():
    ...     [found], nothing = yield [Search(1), ById(("a",))]
    ...     return found, nothing
    >>> run_lookups(twice(), lambda lookup: ["hit"] if isinstance(lookup, Search) else None)
    ('hit', None)
    """
    answers: Sequence[Answer] | None = None
    while True:
        step = advance(lookups, answers)
        if isinstance(step, Finished):
            return step.result
        answers = [answer(lookup) for lookup in step]


def looked_up(lookups: Lookups[Any], store: Store) -> Call:
    """Look-ups that a store answers, as one call: its result is theirs."""
    return Call(partial(run_lookups, lookups, store.answer), partial(arun_lookups, lookups, store.aanswer))


async def arun_lookups(lookups: Lookups[Result], answer: Callable[[Lookup], Awaitable[Answer]]) -> Result:
    """As `run_lookups`, without blocking the event loop: look-ups that are yielded together are done together.

    What is computed between them runs on a worker thread.

    >>> async def answer(lookup):
    ...     return ["hit"]
    >>> def once():
    ...     [[found]] = yield [Search(1)]
    ...     return found
    >>> asyncio.run(arun_lookups(once(), answer))
    'hit'
    """
    answers: Sequence[Answer] | None = None
    while True:
        step = await to_thread(advance, lookups, answers)
        if isinstance(step, Finished):
            return step.result
        answers = await asyncio.gather(*map(answer, step))
