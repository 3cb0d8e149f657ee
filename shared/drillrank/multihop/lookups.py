"""What a path search asks the world for: passages for a query, passages by id, what an LLM says.

The search is a generator with no I/O in it: it yields lists of lookups that may be done at the same time, receives the
list of their answers, and returns its result. `run_steps` and `arun_steps` drive it, so that sync and async cannot
differ, and no thread waits for a retriever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from drillrank.calling import to_thread
from drillrank.dialogue import LLM, Dialogue, Finished, Reply, Usage, advance, arun, run
from drillrank.errors import InvalidInput
from drillrank.passages import Passage, Path, Ranked

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Retrieval:
    """Passages for a query are wanted, `n` at most, best first."""

    query: str
    n: int


@dataclass(frozen=True, slots=True)
class Fetch:
    """Passages with these ids are wanted; those that do not exist are left out of the answer."""

    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ask:
    """An LLM's `Reply` to a prompt is wanted."""

    prompt: str


@dataclass(frozen=True, slots=True)
class Hop:
    """Nothing is wanted: the paths of one hop have been scored.

    Attributes:
        number: 1 for single passages.
        paths: The hop's paths with their scores, best first.
    """

    number: int
    paths: tuple[Ranked[Path], ...]


Lookup = Retrieval | Fetch | Ask | Hop
Answer = Sequence[Passage] | Sequence[tuple[str, Passage]]
"""Passages; of a `Fetch` also with the ids that were asked for, where the source calls them otherwise."""

Steps = Generator[Sequence[Lookup], Sequence[Any], Result]
"""Yields lookups, receives one `Answer` (or `Reply`) for each, returns the result."""

OnHop = Callable[[Hop], object]
FirstStage = Callable[[str, int], Sequence[Passage]]
"""A retriever: from a question and a number to that many passages, best first."""


class Source(Protocol):
    """Where passages come from."""

    def retrieve(self, query: str, n: int, /) -> Sequence[Passage]:
        """At most `n` passages for a query, best first."""
        ...

    def fetch(self, ids: Sequence[str], /) -> Answer:
        """The passages with these ids that exist, in any order."""
        ...


class AsyncSource(Protocol):
    """Where passages come from, without blocking the event loop."""

    async def aretrieve(self, query: str, n: int, /) -> Sequence[Passage]:
        """At most `n` passages for a query, best first."""
        ...

    async def afetch(self, ids: Sequence[str], /) -> Answer:
        """The passages with these ids that exist, in any order."""
        ...


@dataclass(frozen=True, slots=True)
class OnThreads:
    """A source whose lookups run on threads, for `arun_steps`.

    Attributes:
        source: Answers them.
    """

    source: Source

    async def aretrieve(self, query: str, n: int, /) -> Sequence[Passage]:
        """As the source's `retrieve`."""
        return await to_thread(self.source.retrieve, query, n)

    async def afetch(self, ids: Sequence[str], /) -> Answer:
        """As the source's `fetch`."""
        return await to_thread(self.source.fetch, ids)


class Nowhere:
    """A source that knows no passage."""

    def retrieve(self, _query: str, _n: int, /) -> Sequence[Passage]:
        """Nothing."""
        return ()

    def fetch(self, _ids: Sequence[str], /) -> Sequence[Passage]:
        """Nothing."""
        return ()


@dataclass(frozen=True)
class _RetrieverSource(Nowhere):
    """A plain retriever function, which knows no passage by its id."""

    first_stage: FirstStage

    def retrieve(self, query: str, n: int, /) -> Sequence[Passage]:
        return self.first_stage(query, n)


def as_source(first_stage: FirstStage | Source) -> Source:
    """The source itself, or one around a plain retriever function.

    Raises:
        InvalidInput: it is neither.

    >>> as_source(lambda query, n: [Passage(query)]).retrieve("who?", 1)[0].text
    'who?'
    """
    if hasattr(first_stage, "retrieve") and hasattr(first_stage, "fetch"):
        return first_stage
    if not callable(first_stage):
        raise InvalidInput(
            f"{first_stage!r:.100} retrieves nothing: pass a function (query, n) -> passages, or an object with "
            "retrieve(query, n) and fetch(ids)."
        )
    return _RetrieverSource(first_stage)


def run_steps(
    steps: Steps[Result],
    source: Source,
    on_hop: OnHop | None = None,
    *,
    llm: LLM | None = None,
    usage: Usage | None = None,
) -> Result:
    """Drive a search to its result, one lookup after the other.

    Args:
        steps: The generator.
        source: Answers the lookups.
        on_hop: Is told of every hop.
        llm: Answers prompts; a search that has none asks for nothing.
        usage: Counts the tokens and calls of the LLM.

    >>> def twice():
    ...     [first], second = yield [Retrieval("who?", 1), Fetch(("a",))]
    ...     return first.text, list(second)
    >>> run_steps(twice(), as_source(lambda query, n: [Passage(query)]))
    ('who?', [])
    """

    def answer(lookup: Lookup) -> Answer | Reply:
        if isinstance(lookup, Retrieval):
            return source.retrieve(lookup.query, lookup.n)
        if isinstance(lookup, Fetch):
            return source.fetch(lookup.ids)
        if isinstance(lookup, Ask):
            return run(_asked(lookup), _present(llm), usage=usage)
        if on_hop is not None:
            on_hop(lookup)
        return ()

    answers: Sequence[Answer | Reply] | None = None
    while True:
        step = advance(steps, answers)
        if isinstance(step, Finished):
            return step.result
        answers = [answer(lookup) for lookup in step]


async def arun_steps(
    steps: Steps[Result],
    source: AsyncSource,
    on_hop: Callable[[Hop], Awaitable[object]] | None = None,
    *,
    llm: LLM | None = None,
    usage: Usage | None = None,
) -> Result:
    """Drive a search without blocking the event loop; lookups that are yielded together are done at the same time.

    What the search computes between its lookups runs on a worker thread. Same result as `run_steps`.

    >>> class Echo:
    ...     async def aretrieve(self, query, n):
    ...         return [Passage(query)]
    >>> def once():
    ...     [[found]] = yield [Retrieval("who?", 1)]
    ...     return found.text
    >>> asyncio.run(arun_steps(once(), Echo()))
    'who?'
    """

    async def answer(lookup: Lookup) -> Answer | Reply:
        if isinstance(lookup, Retrieval):
            return await source.aretrieve(lookup.query, lookup.n)
        if isinstance(lookup, Fetch):
            return await source.afetch(lookup.ids)
        if isinstance(lookup, Ask):
            return await arun(_asked(lookup), _present(llm), usage=usage)
        if on_hop is not None:
            await on_hop(lookup)
        return ()

    answers: Sequence[Answer | Reply] | None = None
    while True:
        step = await to_thread(advance, steps, answers)
        if isinstance(step, Finished):
            return step.result
        answers = await asyncio.gather(*map(answer, step))


def _asked(lookup: Ask) -> Dialogue[Reply]:
    [reply] = yield [lookup.prompt]
    return reply


def _present(llm: LLM | None) -> LLM:
    if llm is None:
        raise InvalidInput("This search asks an LLM, but was given none: pass llm.")
    return llm
