"""Anything that talks to an LLM is a dialogue: a generator that yields prompts and receives answers, with no I/O in it.

A dialogue yields a list of prompts that may be asked at the same time, receives the list of their replies, and returns
its result. `run` and `arun` drive it, so that sync and async cannot differ and tokens and calls are counted once.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary

from drillrank.errors import InvalidInput, LLMFailure, check_positive
from drillrank.tokens import count_tokens

Result = TypeVar("Result")


class CompletesPrompts(Protocol):
    """Anything with `complete(prompt) -> str`; it may have an async `acomplete(prompt)` too."""

    def complete(self, prompt: str, /) -> str:
        """The LLM's answer to one prompt."""
        ...


LLM = CompletesPrompts | Callable[[str], str] | Callable[[str], Awaitable[str]]
"""An object with `complete`, a plain function, or an `async def` function."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to one prompt; empty, with the reason in `failure`, if the call raised."""

    text: str
    failure: LLMFailure | None = None


Dialogue = Generator[Sequence[str], Sequence[Reply], Result]


@dataclass(slots=True)
class Usage:
    """What a dialogue has cost so far: prompt tokens, completion tokens, calls, and calls that failed."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    calls: int = 0
    failures: int = 0

    def add(self, prompt: str, reply: Reply) -> None:
        """Count one call."""
        self.prompt_tokens += count_tokens(prompt)
        self.completion_tokens += count_tokens(reply.text)
        self.calls += 1
        self.failures += reply.failure is not None


class Workers:
    """At most so many calls at once, over all dialogues that share this object.

    The limit holds among the threads that `run` is called on, and among the tasks of each event loop.

    Raises:
        InvalidInput: `count` is below 1.
    """

    def __init__(self, count: int) -> None:
        check_positive(workers=count)
        self._count = count
        self._threads = threading.BoundedSemaphore(count)
        self._tasks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    def __reduce__(self) -> tuple[type[Workers], tuple[int]]:
        return Workers, (self._count,)

    @property
    def threads(self) -> threading.BoundedSemaphore:
        """Held by a thread while it calls."""
        return self._threads

    @property
    def tasks(self) -> asyncio.Semaphore:
        """Held by a task of the running event loop while it calls."""
        return self._tasks.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(self._count))


def run(dialogue: Dialogue[Result], llm: LLM, usage: Usage | None = None, *, workers: Workers | None = None) -> Result:
    """Drive a dialogue to its result, one call after the other.

    Args:
        dialogue: The generator; it decides what a failed call means.
        llm: `complete(prompt)` or a plain function.
        usage: Counts tokens and calls into this object, if given.
        workers: Limits the calls at once where several threads share it.

    Raises:
        InvalidInput: `llm` cannot be called, or is asynchronous only.

    >>> def shout():
    ...     replies = yield ["hello", "bye"]
    ...     return [reply.text for reply in replies]
    >>> run(shout(), str.upper)
    ['HELLO', 'BYE']
    """
    complete = _method(llm, "complete")
    if complete is None or _is_async(complete):
        raise InvalidInput(
            f"{llm!r:.100} cannot be asked synchronously: pass a plain function from prompt to answer or an object "
            "with complete(prompt), or use the asynchronous method."
        )
    try:
        prompts = next(dialogue)
        while True:
            replies = []
            for prompt in prompts:
                with workers.threads if workers else nullcontext():
                    replies.append(_ask(complete, prompt))
            _count(usage, prompts, replies)
            prompts = dialogue.send(replies)
    except StopIteration as stop:
        result: Result = stop.value
        return result


async def arun(
    dialogue: Dialogue[Result], llm: LLM, *, workers: int | Workers = 4, usage: Usage | None = None
) -> Result:
    """Drive a dialogue without blocking the event loop, with at most `workers` calls at once.

    `acomplete(prompt)` or an async function is awaited; anything else runs on a worker thread, and so does what the
    dialogue computes between its prompts. Same result as `run`.

    Raises:
        InvalidInput: `llm` cannot be called, or `workers` is below 1.

    >>> def shout():
    ...     replies = yield ["hello", "bye"]
    ...     return [reply.text for reply in replies]
    >>> asyncio.run(arun(shout(), str.upper))
    ['HELLO', 'BYE']
    """
    limit = (workers if isinstance(workers, Workers) else Workers(workers)).tasks
    complete = _method(llm, "acomplete") or _method(llm, "complete")
    if complete is None:
        raise InvalidInput(f"{llm!r:.100} is no LLM: pass a function from prompt to answer or an object with complete.")

    async def ask(prompt: str) -> Reply:
        async with limit:
            if not _is_async(complete):
                return await asyncio.to_thread(_ask, complete, prompt)
            try:
                return _as_reply(await complete(prompt))
            except Exception as cause:
                return _failed(cause)

    replies: Sequence[Reply] | None = None
    while True:
        step = await asyncio.to_thread(_advance, dialogue, replies)
        if isinstance(step, _Finished):
            return step.result
        replies = await asyncio.gather(*map(ask, step))
        await asyncio.to_thread(_count, usage, step, replies)


@dataclass(frozen=True, slots=True)
class _Finished(Generic[Result]):
    result: Result


def _advance(dialogue: Dialogue[Result], replies: Sequence[Reply] | None) -> Sequence[str] | _Finished[Result]:
    """The next prompts, or the result: a `StopIteration` cannot leave a thread."""
    try:
        return next(dialogue) if replies is None else dialogue.send(replies)
    except StopIteration as stop:
        return _Finished(stop.value)


def _method(llm: object, name: str) -> Callable[[str], Any] | None:
    method = getattr(llm, name, llm)
    return method if callable(method) else None


def _is_async(complete: Callable[[str], Any]) -> bool:
    return inspect.iscoroutinefunction(complete) or inspect.iscoroutinefunction(getattr(complete, "__call__", None))  # noqa: B004


def _ask(complete: Callable[[str], Any], prompt: str) -> Reply:
    try:
        return _as_reply(complete(prompt))
    except Exception as cause:
        return _failed(cause)


def _as_reply(answer: object) -> Reply:
    if not isinstance(answer, str):
        raise InvalidInput(f"The LLM answered with a {type(answer).__name__}, not a string.")
    return Reply(answer)


def _failed(cause: Exception) -> Reply:
    failure = LLMFailure(f"The LLM call failed: {type(cause).__name__}: {cause}")
    failure.__cause__ = cause
    return Reply("", failure)


def _count(usage: Usage | None, prompts: Sequence[str], replies: Sequence[Reply]) -> None:
    if usage is not None:
        for prompt, reply in zip(prompts, replies, strict=True):
            usage.add(prompt, reply)
