"""Where the passages of a path search come from, and how it tells of its hops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from drillrank.errors import InvalidInput
from drillrank.llm import Fetch, Handlers, Retrieve
from drillrank.passages import Passage, Path, Ranked


@dataclass(frozen=True, slots=True)
class Hop:
    """A request for which nothing is wanted: the paths of one hop have been scored.

    Attributes:
        number: 1 for single passages.
        paths: The hop's paths with their scores, best first.
    """

    number: int
    paths: tuple[Ranked[Path], ...]


OnHop = Callable[[Hop], object]
FirstStage = Callable[[str, int], Sequence[Passage]]
"""A retriever: from a question and a number to that many passages, best first."""


class Source(Protocol):
    """Where passages come from."""

    def retrieve(self, query: str, n: int, /) -> Sequence[Passage]:
        """At most `n` passages for a query, best first."""
        ...

    def fetch(self, ids: Sequence[str], /) -> Sequence[Passage] | Sequence[tuple[str, Passage]]:
        """The passages with these ids that exist, in any order; with the ids, if the source calls them otherwise."""
        ...


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


def handlers(source: Source, on_hop: OnHop | None = None) -> Handlers:
    """Who answers a search's requests, for `run` and `arun`.

    Args:
        source: Answers `Retrieve` and `Fetch`.
        on_hop: Callback, called with each `Hop`.

    >>> from drillrank.llm import run
    >>> def twice():
    ...     [first], second = yield [Retrieve("who?", 1), Fetch(("a",))]
    ...     return first.text, list(second)
    >>> run(twice(), handlers=handlers(as_source(lambda query, n: [Passage(query)])))
    ('who?', [])
    """
    return {
        Retrieve: lambda request: source.retrieve(request.query, request.n),
        Fetch: lambda request: source.fetch(request.ids),
        Hop: on_hop or (lambda _: None),
    }
