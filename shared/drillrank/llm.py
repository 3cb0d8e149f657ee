"""Requests to LLMs, retrievers and stores, and the two functions that have them answered.

A method that needs an LLM, a retriever or a store is a generator with no I/O in it: it yields a list of requests that
may be answered at the same time, receives the list of their answers, and returns its result. `run` and `arun` drive any
such generator, so that sync and async cannot differ, and tokens and calls are counted in one place.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import logging
import re
import threading
from collections.abc import Awaitable, Callable, Generator, Mapping, MutableMapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing, suppress
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Protocol, TypeVar

from drillrank.errors import InvalidInput, LLMFailure, check_positive
from drillrank.text import TokenCount, count_tokens

_LOGGER = logging.getLogger(__name__)

Result = TypeVar("Result")
Function = Callable[..., Any]

_PATIENCE = 60.0  # seconds that one who wants the same answer waits for another one's call, which may never end


# Requests and answers


@dataclass(frozen=True)
class CacheEntry:
    """Where the answer to a prompt is remembered; others who ask the same at the same time wait for it.

    Attributes:
        answers: Answers by key: any mutable mapping of strings, for example a `diskcache.Cache`.
        key: Of this prompt.
        useful: Whether an answer is worth remembering; a failed call never is.
    """

    answers: MutableMapping[str, str]
    key: str
    useful: Callable[[str], bool] = bool


@dataclass(frozen=True)
class LLMRequest:
    """An LLM's `Reply` to a prompt is wanted.

    Attributes:
        prompt: The prompt; a subclass of `str` reaches the LLM as it is.
        schema: JSON schema of the answer: an LLM with `complete_json(prompt, schema)` is held to it, any other one is
            asked in words.
        memo: Where the answer is remembered.
    """

    prompt: str
    schema: Mapping[str, Any] | None = field(default=None, hash=False)
    memo: CacheEntry | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class RetrievalRequest:
    """What is nearest to a query is wanted, best first.

    Attributes:
        query: The query.
        n: How many at most; 0 leaves it to the retriever.
        source: Which of several retrievers is asked; None is the only one.
        where: Metadata values that a record must have, by key.
    """

    query: str
    n: int
    source: str | None = None
    where: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class LookupRequest:
    """Passages or records are wanted that are known by id, or by their metadata; those that do not exist are left out.

    Attributes:
        ids: Their ids.
        where: In place of ids: metadata values by key, or a tuple of values of which a record has one.
    """

    ids: tuple[str, ...] = ()
    where: Mapping[str, str | tuple[str, ...]] | None = field(default=None, hash=False)


@dataclass(frozen=True)
class FunctionRequest:
    """What a function returns is wanted.

    Attributes:
        function: Called without arguments; a generator function may yield requests of its own first.
        afunction: The same without blocking the event loop, for `arun`; None where there is no such function.
    """

    function: Function
    afunction: Function | None = None


Requests = Generator[Sequence[Any], Sequence[Any], Result]
"""Yields requests, receives one answer for each, returns the result."""

Handlers = Mapping[Any, Function]
"""By type of request a function from the request to its answer; for `arun` it may be asynchronous.

A generator function may yield requests of its own first.
"""


@dataclass(frozen=True)
class Reply:
    """An LLM's answer to one prompt; empty, with the reason in `failure`, if the call raised.

    An LLM's `complete` may return one in place of a string, to report the tokens that its host has counted.

    Attributes:
        text: The answer.
        failure: Why there is none.
        prompt_tokens: As reported; None, for them to be counted, unless it is a number above 0.
        completion_tokens: Likewise.
        remembered: Whether the answer was known, and nobody was asked.
    """

    text: str
    failure: LLMFailure | None = None
    prompt_tokens: int | None = field(default=None, compare=False)
    completion_tokens: int | None = field(default=None, compare=False)
    remembered: bool = field(default=False, compare=False)


class CompletesPrompts(Protocol):
    """Anything with `complete(prompt) -> str`; it may have `acomplete`, `complete_json` and `acomplete_json`."""

    def complete(self, prompt: str, /) -> str | Reply:
        """The LLM's answer to one prompt."""
        ...


LLM = CompletesPrompts | Callable[[str], str | Reply] | Callable[[str], Awaitable[str | Reply]]
"""An object with `complete`, a plain function, or an `async def` function.

An object that has `complete` or `acomplete` is never called itself, whether it is asked synchronously or not.
"""


@dataclass(slots=True)
class Usage:
    """What has been spent so far: prompt tokens, completion tokens, calls, and calls that failed.

    Tokens are those that the LLM reports with its `Reply`; the others are counted by `count`, offline: see
    `drillrank.text`. `estimated` says whether any of them are an estimate, for want of a tokenizer.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    calls: int = 0
    failures: int = 0
    estimated: bool = False
    count: TokenCount = field(default=count_tokens, repr=False, compare=False)

    def add(self, prompt: str, reply: Reply) -> None:
        """Count one call; a remembered answer costs nothing."""
        if reply.remembered:
            return
        self.prompt_tokens += self._tokens(prompt, reply.prompt_tokens)
        self.completion_tokens += self._tokens(reply.text, reply.completion_tokens)
        self.calls += 1
        self.failures += reply.failure is not None

    def include(self, other: Usage) -> None:
        """Count what was spent elsewhere, too."""
        self.prompt_tokens += other.prompt_tokens
        self.completion_tokens += other.completion_tokens
        self.calls += other.calls
        self.failures += other.failures
        self.estimated |= other.estimated

    def _tokens(self, text: str, from_server: int | None) -> int:
        if type(from_server) is int and from_server > 0:  # 0 is what servers say that do not count
            return from_server
        counted = self.count(text)
        self.estimated |= counted > 0 and self.count is count_tokens
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


# The two drivers


def run(
    requests: Requests[Result],
    llm: LLM | None = None,
    handlers: Handlers | None = None,
    *,
    usage: Usage | None = None,
    workers: int = 1,
    on_reply: Callable[[Reply], object] | None = None,
) -> Result:
    """Have requests answered until there is a result.

    Args:
        requests: The generator; it decides what a failed LLM call means. What any other request raises is raised.
        llm: Answers `LLMRequest`: `complete(prompt)` or a plain function.
        handlers: Answer all other requests, by their type.
        usage: Counts tokens and calls into this object, if given.
        workers: Most prompts at once, on threads of their own if it is several.
        on_reply: Callback, called with each reply of the LLM, on the thread that asked.

    Raises:
        InvalidInput: a request finds nobody who answers it, `llm` cannot be called or is asynchronous only, or
            `workers` is below 1.

    >>> def shout():
    ...     reply, found = yield [LLMRequest("hello"), RetrievalRequest("who?", 2)]
    ...     return reply.text, found
    >>> run(shout(), str.upper, {RetrievalRequest: lambda request: [request.query] * request.n})
    ('HELLO', ['who?', 'who?'])
    """
    check_positive(workers=workers)
    call_of = _llm_method(llm, "complete")
    if llm is not None and is_async(call_of(LLMRequest(""))[0]):
        raise InvalidInput(
            f"{llm!r:.100} cannot be asked synchronously: pass a plain function from prompt to answer or an object "
            "with complete(prompt), or use the asynchronous method."
        )
    patience = _PATIENCE
    with suppress(RuntimeError):
        asyncio.get_running_loop()
        patience = 0.0  # on the thread of a loop that others may need to go on

    def ask(request: LLMRequest) -> Reply:
        function, *arguments = call_of(request)
        try:
            return _as_reply(function(*arguments), structured=len(arguments) > 1)
        except Exception as cause:
            return _failed(cause)

    def answer(request: Any) -> Any:
        if isinstance(request, Future):
            return bool(wait([request], patience).done)
        if not isinstance(request, LLMRequest):
            function = _function(handlers, request)
            return drive(function(), usage) if inspect.isgeneratorfunction(function) else function()
        reply: Reply = ask(request) if request.memo is None else drive(_ask_with_cache(request, request.memo))
        if on_reply is not None and (request.memo is None or reply.remembered):
            on_reply(reply)
        return reply

    def drive(requests: Requests[Any], usage: Usage | None = None) -> Any:
        with closing(requests):
            step: Sequence[Any] = ()
            answers: list[Any] | None = None
            while True:
                wanted, result = _advance(requests, step, answers, usage)
                if wanted is None:
                    return result
                step = wanted
                if workers == 1 or len(step) < 2:
                    answers = list(map(answer, step))
                    continue
                with ThreadPoolExecutor(min(workers, len(step)), "drillrank") as threads:
                    try:  # stores and retrievers are asked on the caller's thread
                        submitted = [
                            threads.submit(copy_context().run, answer, one) if isinstance(one, LLMRequest) else None
                            for one in step
                        ]
                        others = [
                            answer(one) if call is None else None for one, call in zip(step, submitted, strict=True)
                        ]
                        answers = [
                            call.result() if call else other for call, other in zip(submitted, others, strict=True)
                        ]
                    finally:
                        threads.shutdown(wait=False, cancel_futures=True)

    return drive(requests, usage)  # type: ignore[no-any-return]


async def arun(
    requests: Requests[Result],
    llm: LLM | None = None,
    handlers: Handlers | None = None,
    *,
    usage: Usage | None = None,
    workers: int = 4,
    on_reply: Callable[[Reply], object] | None = None,
) -> Result:
    """As `run`, without blocking the event loop.

    `acomplete(prompt)`, and any function that is declared `async`, is called on the loop, and must give way there. All
    else runs on threads: other functions, of which an awaitable result is awaited, and what the generator computes.

    Raises:
        InvalidInput: a request finds nobody who answers it, `llm` cannot be called, or `workers` is below 1.

    >>> def shout():
    ...     replies = yield [LLMRequest("hello"), LLMRequest("bye")]
    ...     return [reply.text for reply in replies]
    >>> asyncio.run(arun(shout(), str.upper))
    ['HELLO', 'BYE']
    """
    check_positive(workers=workers)
    call_of = _llm_method(llm, "acomplete", "complete")
    loop, limit = asyncio.get_running_loop(), asyncio.Semaphore(workers)
    threads = ThreadPoolExecutor(workers, "drillrank")  # the loop's own are few, and others wait for them

    async def call(function: Function, *arguments: Any) -> Any:
        async with limit:
            if is_async(function):
                return await function(*arguments)
            returned = await loop.run_in_executor(threads, copy_context().run, function, *arguments)
            return await returned if inspect.isawaitable(returned) else returned

    async def ask(request: LLMRequest) -> Reply:
        function, *arguments = call_of(request)
        try:
            return _as_reply(await call(function, *arguments), structured=len(arguments) > 1)
        except Exception as cause:
            return _failed(cause)

    async def answer(request: Any) -> Any:
        if isinstance(request, Future):
            return bool((await asyncio.wait([asyncio.wrap_future(request)], timeout=_PATIENCE))[0])
        if not isinstance(request, LLMRequest):
            function = _function(handlers, request, asynchronous=True)
            return await (drive(function(), usage) if inspect.isgeneratorfunction(function) else call(function))
        reply: Reply = await (ask(request) if request.memo is None else drive(_ask_with_cache(request, request.memo)))
        if on_reply is not None and (request.memo is None or reply.remembered):
            on_reply(reply)
        return reply

    async def drive(requests: Requests[Any], usage: Usage | None = None) -> Any:
        step: Sequence[Any] = ()
        answers: list[Any] | None = None
        try:
            while True:
                wanted, result = await asyncio.to_thread(_advance, requests, step, answers, usage)
                if wanted is None:
                    return result
                step = wanted
                tasks = [asyncio.ensure_future(answer(request)) for request in step]
                try:
                    answers = list(await asyncio.gather(*tasks))
                finally:
                    for task in tasks:
                        task.cancel()
        finally:
            with suppress(ValueError):  # after a cancellation it may still compute
                requests.close()

    try:
        return await drive(requests, usage)  # type: ignore[no-any-return]
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


def is_async(function: Function) -> bool:
    """Whether a function, a method, or an object that can be called is declared `async`.

    >>> is_async(functools.partial(asyncio.sleep, 0)), is_async(print)
    (True, False)
    """
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def _advance(
    requests: Requests[Any], step: Sequence[Any], answers: Sequence[Any] | None, usage: Usage | None
) -> tuple[Sequence[Any] | None, Any]:
    """The generator's next step, given the answers to its last one; None and its result if it has finished."""
    for request, reply in zip(step, answers or (), strict=True):
        if isinstance(request, LLMRequest) and request.memo is None:
            _LOGGER.debug("%d characters were answered by %r", len(request.prompt), reply.failure or reply.text)
        if isinstance(request, LLMRequest) and usage is not None:
            usage.add(request.prompt, reply)
    try:
        return requests.send(answers), None  # type: ignore[arg-type]  # None begins
    except StopIteration as stop:
        return None, stop.value


def _function(handlers: Handlers | None, request: Any, asynchronous: bool = False) -> Function:
    """What answers a request that is no `LLMRequest`, without arguments."""
    if isinstance(request, FunctionRequest):
        return (asynchronous and request.afunction) or request.function
    handler = (handlers or {}).get(type(request))
    if handler is None:
        raise InvalidInput(f"Nobody answers a {type(request).__name__} here: pass a handler for it.")
    return functools.partial(handler, request)


def merge_requests(several: Sequence[Requests[Result]]) -> Requests[list[Result]]:
    """Several generators of requests as one, so that all of their requests can be answered at the same time.

    >>> def shout(word):
    ...     (reply,) = yield [LLMRequest(word)]
    ...     return reply.text
    >>> run(together([shout("a"), shout("b")]), str.upper)
    ['A', 'B']
    """
    results: dict[int, Result] = {}
    answers: dict[int, Sequence[Any] | None] = dict.fromkeys(range(len(several)))
    while len(results) < len(several):
        asking: dict[int, Sequence[Any]] = {}
        for number, replies in answers.items():
            try:
                asking[number] = several[number].send(replies)  # type: ignore[arg-type]  # None begins
            except StopIteration as stop:  # noqa: PERF203  # how a generator ends
                results[number] = stop.value
        if asking:
            answered = iter((yield [request for requests in asking.values() for request in requests]))
        answers = {number: list(islice(answered, len(requests))) for number, requests in asking.items()}
    return [results[number] for number in range(len(several))]


def _llm_method(llm: LLM | None, *names: str) -> Callable[[LLMRequest], tuple[Any, ...]]:
    """From a request to the LLM's method that answers it, the first one of these names, with its arguments.

    Raises:
        InvalidInput: the LLM has none and is no function.
    """
    methods = [function for name in (*names, "acomplete") if callable(function := getattr(llm, name, None))]
    plain: Any = methods[0] if methods else llm  # what has a method is not called itself
    if llm is not None and not callable(plain):
        raise InvalidInput(f"{llm!r:.100} is no LLM: pass a function from prompt to answer or an object with complete.")
    structured = [function for name in names if callable(function := getattr(llm, f"{name}_json", None))]

    def method_of(request: LLMRequest) -> tuple[Any, ...]:
        if llm is None:
            raise InvalidInput("An LLM is asked, but none was given: pass llm.")
        if request.schema is not None and structured:
            return structured[0], request.prompt, request.schema
        return plain, request.prompt

    return method_of


def _as_reply(answer: object, structured: bool) -> Reply:
    """What an LLM returned; one that is bound to a schema may return what the JSON stands for."""
    if isinstance(answer, Reply):
        return answer
    if not structured and not isinstance(answer, str):
        raise InvalidInput(f"The LLM answered with a {type(answer).__name__}, not a string.")
    return Reply(answer if isinstance(answer, str) else json.dumps(answer))


_REASON_CHARACTERS = 2_000


def _failed(cause: Exception) -> Reply:
    # An exception may quote what a server sent: no control characters may reach a terminal.
    reason = "".join(sign if sign.isprintable() else " " for sign in str(cause)[:_REASON_CHARACTERS])
    failure = LLMFailure(f"The LLM call failed: {type(cause).__name__}: {reason}")
    failure.__cause__ = cause
    return Reply("", failure)


_lock = threading.Lock()
_asking: dict[tuple[int, str], Future[None]] = {}  # what is being asked, by the mapping that will hold it, and its key


def _ask_with_cache(request: LLMRequest, memo: CacheEntry) -> Requests[Reply]:
    """The reply from memory, or by the one call of all who want it now; yields a future to wait for that to end."""
    location = id(memo.answers), memo.key
    while True:
        mine: Future[None] = Future()
        with _lock:
            pending = _asking.setdefault(location, mine)
        if pending is not mine:
            if (yield [pending])[0]:
                continue
            return (yield [replace(request, memo=None)])[0]  # type: ignore[no-any-return]
        try:
            text = memo.answers.get(memo.key)
            if isinstance(text, str) and memo.useful(text):
                return Reply(text, remembered=True)
            [reply] = yield [replace(request, memo=None)]
            if reply.failure is None and memo.useful(reply.text):
                memo.answers[memo.key] = reply.text
            return reply  # type: ignore[no-any-return]
        finally:
            with _lock:
                del _asking[location]
            mine.set_result(None)


# What answers hold beside the answer

_TAG = r"(?:think(?:ing)?|thoughts?|reason(?:ing)?|analysis|scratchpad|reflection)"
_MARK = re.compile(
    rf"(?P<open><\s*{_TAG}\s*>|\[{_TAG}\]|◁think▷|<\|channel\|>\s*analysis\s*<\|message\|>|<\|begin_of_thought\|>)"
    rf"|(?P<close><\s*/\s*{_TAG}\s*>|\[/{_TAG}\]|◁/think▷|<\|channel\|>\s*final\s*<\|message\|>|<\|end_of_thought\|>)",
    re.IGNORECASE,
)
_CONTROL = re.compile(r"<\|[a-z_]{1,30}\|>(?:assistant)?")


def strip_reasoning(answer: str) -> str | None:
    """An answer without the reasoning that models send along between marks; None if that never ends and is all.

    Reasoning whose opening mark the server has cut off goes, too.

    >>> strip_reasoning("<think>Is it 2? No, 3.</think> 3"), strip_reasoning("Is it 2? No, 3.</think> 3")
    (' 3', ' 3')
    >>> strip_reasoning("<think>Is it 2? Hm") is None
    True
    """
    parts: list[str] = []
    at, inside = 0, False
    for mark in _MARK.finditer(answer):
        if not inside:
            if mark["open"]:
                parts.append(answer[at : mark.start()])
            else:
                parts.clear()
        inside = bool(mark["open"])
        at = mark.end()
    if not inside:
        parts.append(answer[at:])
    text = _CONTROL.sub(" ", "".join(parts))
    return None if inside and not text.strip() else text
