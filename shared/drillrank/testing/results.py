"""Results of components as the kit compares them, and the checks that all of its classes share."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any, NamedTuple, TypeVar

import pytest

from drillrank.structure.stored_chunks import StoredChunk

ArgumentT = TypeVar("ArgumentT")
ReturnT = TypeVar("ReturnT")

N_THREADS = 8
_DEADLINE = 60.0  # seconds; a check that hangs fails


class Result(NamedTuple):
    """One result of a reranker or retriever.

    Attributes:
        id: Id of the record.
        text: Its text.
        score: Its score. None if it has none.
        metadata: Its metadata.
    """

    id: str | None
    text: str
    score: float | None
    metadata: dict[str, Any]


def expect(condition: object, message: str) -> None:
    """Fail the check unless a condition is true.

    Raises:
        AssertionError: The condition is false.
    """
    if not condition:
        raise AssertionError(message)


def call_hook(hook: Callable[..., ReturnT], *arguments: Any) -> ReturnT:
    """Call a method that a subclass may leave out. Skip the check if it was left out."""
    try:
        return hook(*arguments)
    except NotImplementedError:
        pytest.skip(f"{getattr(hook, '__name__', 'a method')} is not implemented, so this cannot be checked.")


def chunk_key(chunk: StoredChunk[Any]) -> tuple[str, str, str]:
    """Return id, view and text of a chunk, by which the kit tells chunks apart."""
    return chunk.id, chunk.view or "", chunk.view_text or chunk.text


def chunk_keys(chunks: Iterable[StoredChunk[Any]] | None, call: str) -> list[tuple[str, str, str]]:
    """Return the keys of chunks, sorted.

    Args:
        chunks: Chunks that a store returned.
        call: Description of the call that returned them, for the message.
    """
    expect(chunks is not None, f"{call} returned None. Return a list, or set the attribute that says so to False.")
    expect(
        all(isinstance(chunk, StoredChunk) for chunk in chunks or ()),
        f"{call} returned something else than StoredChunk objects. Convert each record of the store to a StoredChunk.",
    )
    return sorted(map(chunk_key, chunks or ()))


def chunk_fields(chunks: Sequence[StoredChunk[Any]] | None) -> list[tuple[Any, ...]] | None:
    """Return all that two calls must agree on, sorted; None for None. Scores are rounded."""
    if chunks is None:
        return None
    return sorted(
        (
            *chunk_key(chunk),
            repr(sorted(chunk.metadata.items(), key=repr)),
            "" if chunk.score is None else f"{chunk.score:.4f}",
        )
        for chunk in chunks
    )


def same_results(results: Sequence[Result], others: Sequence[Result], tolerance: float = 1e-5) -> bool:
    """Return True if two calls returned the same texts and metadata in the same order, with equal scores."""
    return len(results) == len(others) and all(
        (one.id, one.text) == (other.id, other.text)
        and _same_value(one.score, other.score, tolerance)
        and one.metadata.keys() == other.metadata.keys()
        and all(_same_value(value, other.metadata[key], tolerance) for key, value in one.metadata.items())
        for one, other in zip(results, others, strict=True)
    )


def _same_value(value: object, other: object, tolerance: float) -> bool:
    """Return True if two values are equal, or are two numbers that hardly differ."""
    if isinstance(value, float) and isinstance(other, float):
        return abs(value - other) <= tolerance
    return value == other


def snapshot(objects: ArgumentT) -> ArgumentT:
    """Return a deep copy, to be compared with the objects after a call."""
    return copy.deepcopy(objects)


def on_threads(function: Callable[[ArgumentT], ReturnT], arguments: Sequence[ArgumentT]) -> list[ReturnT]:
    """Call a function for each argument at the same time, on as many threads. Return the values in order."""
    barrier = Barrier(len(arguments))

    def call(argument: ArgumentT) -> ReturnT:
        barrier.wait(timeout=_DEADLINE)
        return function(argument)

    with ThreadPoolExecutor(len(arguments)) as pool:
        return list(pool.map(call, arguments, timeout=_DEADLINE))


def run_async(make: Callable[[], Awaitable[ReturnT]], close: Callable[[], Awaitable[object]] | None = None) -> ReturnT:
    """Run a coroutine in an event loop of its own.

    Args:
        make: Function that returns the coroutine.
        close: Function that closes what belongs to the event loop, such as connections.
    """

    async def main() -> ReturnT:
        try:
            return await asyncio.wait_for(make(), _DEADLINE)
        finally:
            if close is not None:
                await close()

    return asyncio.run(main())


def change_chunk(chunk: StoredChunk[Any]) -> None:
    """Write into whatever of a chunk can be written to."""
    change_metadata(chunk.metadata)
    change_metadata(getattr(chunk.record, "metadata", None))


def change_metadata(metadata: Any) -> None:
    """Change all values of metadata, unless they cannot be changed."""
    try:
        for key in list(metadata or ()):
            metadata[key] = "changed by the caller"
    except TypeError:
        return
