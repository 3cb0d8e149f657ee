"""Sources of passages: retrievers, functions that retrieve, and the handlers that answer a search's requests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from drillrank.errors import InvalidInput
from drillrank.llm import Handlers, LookupRequest, RetrievalRequest
from drillrank.multihop.result import Hop, OnHop
from drillrank.passages import Passage

RetrieveFunction = Callable[[str, int], Sequence[Passage]]
"""Function from a query and a number to at most that many passages, best first."""


class PassageSource(Protocol):
    """Source of passages."""

    def retrieve(self, query: str, n: int, /) -> Sequence[Passage]:
        """Return at most `n` passages for a query, best first."""
        ...

    def fetch(self, ids: Sequence[str], /) -> Sequence[Passage] | Sequence[tuple[str, Passage]]:
        """Return the passages with these ids, in any order, without those that do not exist.

        A source whose passages have other ids returns pairs of the requested id and the passage.
        """
        ...


class EmptySource:
    """Source without passages."""

    def retrieve(self, _query: str, _n: int, /) -> Sequence[Passage]:
        """Return no passages."""
        return ()

    def fetch(self, _ids: Sequence[str], /) -> Sequence[Passage]:
        """Return no passages."""
        return ()


@dataclass(frozen=True)
class _RetrieverSource(EmptySource):
    """Source around a plain function, which finds no passage by its id."""

    first_stage: RetrieveFunction

    def retrieve(self, query: str, n: int, /) -> Sequence[Passage]:
        return self.first_stage(query, n)


def as_source(first_stage: RetrieveFunction | PassageSource) -> PassageSource:
    """Return a source as it is, or a source around a plain function.

    Raises:
        InvalidInput: The argument is neither.

    >>> as_source(lambda query, n: [Passage(query)]).retrieve("who?", 1)[0].text
    'who?'
    """
    if hasattr(first_stage, "retrieve") and hasattr(first_stage, "fetch"):
        return first_stage
    if not callable(first_stage):
        raise InvalidInput(
            "first_stage must be a function (query, n) -> passages, or an object with retrieve(query, n) and "
            f"fetch(ids), got {first_stage!r:.100}. Pass a retriever."
        )
    return _RetrieverSource(first_stage)


def handlers(source: PassageSource, on_hop: OnHop | None = None) -> Handlers:
    """Return the functions that answer a search's requests, for `run` and `arun`.

    Args:
        source: Answers `RetrievalRequest` and `LookupRequest`.
        on_hop: Callback that receives each `Hop`.

    >>> from drillrank.llm import LookupRequest, RetrievalRequest, run
    >>> def twice():
    ...     [first], second = yield [RetrievalRequest("who?", 1), LookupRequest(("a",))]
    ...     return first.text, list(second)
    >>> run(twice(), handlers=handlers(as_source(lambda query, n: [Passage(query)])))
    ('who?', [])
    """
    return {
        RetrievalRequest: lambda request: source.retrieve(request.query, request.n),
        LookupRequest: lambda request: source.fetch(request.ids),
        Hop: on_hop or (lambda _: None),
    }
