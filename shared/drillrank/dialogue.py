"""Anything that talks to an LLM is a dialogue: a generator that yields prompts and receives answers, with no I/O in it.

A dialogue yields a list of prompts that may be asked at the same time, receives the list of their replies, and returns
its result. `run` and `arun` drive it, so that sync and async cannot differ and tokens and calls are counted once.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Generic, ParamSpec, Protocol, TypeVar

from drillrank.calling import blocking, is_async, method_of, to_thread
from drillrank.errors import InvalidInput, LLMFailure
from drillrank.once import Waiting, caller
from drillrank.reported import Answer
from drillrank.structured import method_for
from drillrank.tokens import TokenCount, count_tokens, is_estimate
from drillrank.workers import Workers

_LOGGER = logging.getLogger(__name__)

Result = TypeVar("Result")
Given = ParamSpec("Given")
Wanted = TypeVar("Wanted")
Answers = TypeVar("Answers")


class CompletesPrompts(Protocol):
    """Anything with `complete(prompt) -> str`.

    It may have an async `acomplete(prompt)`, and `complete_json(prompt, schema)`: see `drillrank.structured`. Answers
    that are a `drillrank.reported.Answer` tell what they cost.
    """

    def complete(self, prompt: str, /) -> str:
        """The LLM's answer to one prompt."""
        ...


LLM = CompletesPrompts | Callable[[str], str] | Callable[[str], Awaitable[str]]
"""An object with `complete`, a plain function, or an `async def` function.

An object that has `complete` or `acomplete` is never called itself, whether it is asked synchronously or not.
"""


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to one prompt; empty, with the reason in `failure`, if the call raised."""

    text: str
    failure: LLMFailure | None = None


Dialogue = Generator[Sequence[str], Sequence[Reply], Result]


def limited(workers: int | Workers) -> Workers:
    """What limits calls to so many at once.

    Raises:
        InvalidInput: the number is below 1.
    """
    return workers if isinstance(workers, Workers) else Workers(workers)


class Conversation(Dialogue[Result]):
    """A dialogue that says so: handed over by a function that may also return a generator of something else."""

    def __init__(self, dialogue: Dialogue[Result]) -> None:
        self._dialogue = dialogue

    def send(self, replies: Sequence[Reply], /) -> Sequence[str]:
        """The next prompts."""
        return self._dialogue.send(replies)

    def throw(self, *error: Any) -> Sequence[str]:
        """An error where the last prompts were yielded; the next prompts."""
        return self._dialogue.throw(*error)


def conversation(function: Callable[Given, Dialogue[Result]]) -> Callable[Given, Conversation[Result]]:
    """Decorates a generator function that is a dialogue, so that its results are told from other generators.

    >>> @conversation
    ... def shout():
    ...     [reply] = yield ["hello"]
    ...     return reply.text
    >>> isinstance(shout(), Conversation), run(shout(), str.upper)
    (True, 'HELLO')
    """

    @wraps(function)
    def started(*args: Given.args, **kwargs: Given.kwargs) -> Conversation[Result]:
        return Conversation(function(*args, **kwargs))

    return started


@dataclass(slots=True)
class Usage:
    """What a dialogue has cost so far: prompt tokens, completion tokens, calls, and calls that failed.

    Tokens are those that the LLM reports with its `drillrank.reported.Answer`; the others are counted by `count`,
    offline: see `drillrank.tokens`. `estimated` says whether any of them are an estimate, for want of a tokenizer.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    calls: int = 0
    failures: int = 0
    estimated: bool = False
    count: TokenCount = field(default=count_tokens, repr=False, compare=False)

    def add(self, prompt: str, reply: Reply) -> None:
        """Count one call."""
        answer = reply.text if isinstance(reply.text, Answer) else Answer(reply.text)
        self.prompt_tokens += self._tokens(prompt, answer.prompt_tokens)
        self.completion_tokens += self._tokens(answer, answer.completion_tokens)
        self.calls += 1
        self.failures += reply.failure is not None

    def _tokens(self, text: str, reported: int | None) -> int:
        if reported is not None:
            return reported
        counted = self.count(text)
        self.estimated |= counted > 0 and is_estimate(self.count)
        return counted

    def as_metadata(self) -> dict[str, int]:
        """Tokens and calls under the names that hosts' results carry them; `tokens_estimated` only if they are.

        >>> usage = Usage()
        >>> usage.add("Where is Basel?", Reply("On the Rhine."))
        >>> usage.as_metadata()
        {'prompt_tokens': 4, 'completion_tokens': 4, 'llm_calls': 1, 'tokens_estimated': True}
        """
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "llm_calls": self.calls,
            **({"tokens_estimated": True} if self.estimated else {}),
        }


def run(dialogue: Dialogue[Result], llm: LLM, usage: Usage | None = None, *, workers: int | Workers = 1) -> Result:
    """Drive a dialogue to its result, with at most `workers` calls at once, on threads of their own if it is several.

    Args:
        dialogue: The generator; it decides what a failed call means.
        llm: `complete(prompt)` or a plain function.
        usage: Counts tokens and calls into this object, if given.
        workers: A number, or what limits the calls of several dialogues together.

    Raises:
        InvalidInput: `llm` cannot be called, or is asynchronous only; or `workers` is below 1.

    >>> def shout():
    ...     replies = yield ["hello", "bye"]
    ...     return [reply.text for reply in replies]
    >>> run(shout(), str.upper, workers=2)
    ['HELLO', 'BYE']
    """
    limit = workers.inside() if isinstance(workers, Workers) else Workers(workers)
    complete = method_of(llm, "complete", "acomplete")
    if complete is None or is_async(complete):
        raise InvalidInput(
            f"{llm!r:.100} cannot be asked synchronously: pass a plain function from prompt to answer or an object "
            "with complete(prompt), or use the asynchronous method."
        )

    def ask(prompt: str) -> Reply:
        return _ask(method_for(prompt, llm, complete, "complete_json"), prompt)

    replies: Sequence[Reply] | None = None
    try:
        with caller():
            while True:
                step = advance(dialogue, replies)
                if isinstance(step, Finished):
                    return step.result
                if isinstance(step, Waiting):
                    step.wait()
                replies = limit.map(ask, step)
                _count(usage, step, replies)
    finally:
        dialogue.close()  # at once, for others may wait for what it has begun


async def arun(
    dialogue: Dialogue[Result], llm: LLM, *, workers: int | Workers = 4, usage: Usage | None = None
) -> Result:
    """Drive a dialogue without blocking the event loop, with at most `workers` calls at once.

    `acomplete(prompt)` or an async function is awaited. What does not await anything runs on one of `workers` threads,
    whether it is declared `async` or not; what the dialogue computes between its prompts runs on a thread, too. Same
    result as `run`.

    Raises:
        InvalidInput: `llm` cannot be called, or `workers` is below 1.

    >>> def shout():
    ...     replies = yield ["hello", "bye"]
    ...     return [reply.text for reply in replies]
    >>> asyncio.run(arun(shout(), str.upper))
    ['HELLO', 'BYE']
    """
    limit = workers.inside() if isinstance(workers, Workers) else Workers(workers)
    complete = method_of(llm, "acomplete", "complete")
    if complete is None:
        raise InvalidInput(f"{llm!r:.100} is no LLM: pass a function from prompt to answer or an object with complete.")
    loop = asyncio.get_running_loop()
    threads = ThreadPoolExecutor(limit.count, "drillrank")  # the loop's own are few, and others wait for them

    async def ask(prompt: str) -> Reply:
        method = method_for(prompt, llm, complete, "acomplete_json", "complete_json")
        on_a_thread = blocking(method)
        async with limit.task():
            if on_a_thread is not None:
                return await loop.run_in_executor(threads, copy_context().run, _ask, on_a_thread, prompt)
            try:
                return _as_reply(await method(prompt))
            except Exception as cause:
                return _failed(cause)

    resting = threading.Lock()  # nobody else may touch the dialogue while it computes

    def following(replies: Sequence[Reply] | None) -> Sequence[str] | Finished[Result]:
        with resting:
            return advance(dialogue, replies)

    def close() -> None:
        with resting:
            dialogue.close()

    replies: Sequence[Reply] | None = None
    try:
        with caller():
            while True:
                step = await to_thread(following, replies)
                if isinstance(step, Finished):
                    return step.result
                if isinstance(step, Waiting):
                    await step.await_()
                replies = await asyncio.gather(*map(ask, step))
                await to_thread(_count, usage, step, replies)
    except BaseException:
        with suppress(RuntimeError):  # the loop ends, and with it all that waited
            loop.run_in_executor(None, close)  # at once, for others may wait for what it has begun
        raise
    finally:
        threads.shutdown(wait=False)


@dataclass(frozen=True, slots=True)
class Finished(Generic[Result]):
    """A generator has returned this."""

    result: Result


def advance(steps: Generator[Wanted, Answers, Result], answers: Answers | None) -> Wanted | Finished[Result]:
    """What a generator wants next, or its result: a `StopIteration` cannot leave a thread."""
    try:
        return next(steps) if answers is None else steps.send(answers)
    except StopIteration as stop:
        return Finished(stop.value)


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
    for prompt, reply in zip(prompts, replies, strict=True):
        _LOGGER.debug("%d characters were answered by %r", len(prompt), reply.failure or reply.text)
        if usage is not None:
            usage.add(prompt, reply)
