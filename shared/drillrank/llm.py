"""Requests to LLMs, retrievers and stores, and the two functions that get them answered.

A method that needs an LLM, a retriever or a store is a generator without I/O. It yields lists of requests that may be
answered at the same time, receives the list of their answers, and returns its result. `run` and `arun` drive any such
generator. Thus sync and async code cannot differ, and one place counts tokens and calls.
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

from drillrank.errors import (
    InvalidInput,
    LLMFailure,
    OnFailure,
    UnusableAnswer,
    check_positive,
    raise_or_fall_back,
)
from drillrank.text import TokenCount, count_tokens

_LOGGER = logging.getLogger(__name__)

Result = TypeVar("Result")
Function = Callable[..., Any]

_MAX_WAIT = 60.0  # seconds to wait for the same prompt of another caller, whose call may never end


# Requests and answers


@dataclass(frozen=True)
class CacheEntry:
    """Place in a cache for the answer to a prompt. Concurrent requests with the same entry share one call.

    Attributes:
        answers: Answers by key. Any mutable mapping of strings, for example a `diskcache.Cache`.
        key: Key of the prompt.
        is_useful: Function that returns True if an answer is worth storing. Failed calls are never stored.
    """

    answers: MutableMapping[str, str]
    key: str
    is_useful: Callable[[str], bool] = bool


@dataclass(frozen=True)
class LLMRequest:
    """Request for an LLM's `Reply` to a prompt.

    Attributes:
        prompt: The prompt. The LLM receives an instance of a subclass of `str` unchanged.
        schema: JSON schema of the answer, passed to an LLM with `complete_json(prompt, schema)`. Other LLMs get the
            prompt alone, so the prompt should describe the schema, too.
        cache_entry: Place of the answer in a cache; None for no cache.
        step: Task of the LLM in a few words, for messages: "choose sections (D3)".
        on_failure: Policy of the component that asks. With None and "raise", a call without an answer raises an
            `LLMFailure`, and the generator does not continue. With "fallback", the reply has the failure.
    """

    prompt: str
    schema: Mapping[str, Any] | None = field(default=None, hash=False)
    cache_entry: CacheEntry | None = field(default=None, repr=False, compare=False)
    step: str = field(default="answer", compare=False)
    on_failure: OnFailure | None = field(default=None, compare=False)


@dataclass(frozen=True)
class RetrievalRequest:
    """Request for the results nearest to a query, best first.

    Attributes:
        query: The query.
        n: Maximum number of results; 0 leaves it to the retriever.
        source: Name of one of several retrievers; None if there is only one.
        where: Metadata values that a record must have, by key.
    """

    query: str
    n: int
    source: str | None = None
    where: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class LookupRequest:
    """Request for passages or records by id or by metadata. The answer omits missing ones.

    Attributes:
        ids: Ids of the passages or records.
        where: Metadata values by key, used instead of ids. A record must have one of the values of a tuple.
    """

    ids: tuple[str, ...] = ()
    where: Mapping[str, str | tuple[str, ...]] | None = field(default=None, hash=False)


@dataclass(frozen=True)
class FunctionRequest:
    """Request for the return value of a function.

    Attributes:
        function: Function without arguments. A generator function may first yield requests of its own.
        afunction: Variant for `arun` that does not block the event loop; None if there is none.
    """

    function: Function
    afunction: Function | None = None

    @classmethod
    def of(cls, function: Function, afunction: Function | None, *arguments: Any, **options: Any) -> FunctionRequest:
        """Return the request for a function, and its variant if there is one, with these arguments."""
        acall = None if afunction is None else functools.partial(afunction, *arguments, **options)
        return cls(functools.partial(function, *arguments, **options), acall)


Requests = Generator[Sequence[Any], Sequence[Any], Result]
"""Generator that yields lists of requests, receives one answer for each request, and returns a result."""

Handlers = Mapping[Any, Function]
"""Functions from a request to its answer, by type of request. For `arun`, they may be asynchronous.

A generator function may first yield requests of its own.
"""


@dataclass(frozen=True)
class Reply:
    """Answer of an LLM to one prompt.

    An LLM's `complete` may return a `Reply` instead of a string to report token counts. It raises an error if it has no
    answer, and an `UnusableAnswer` if its answer does not follow the schema.

    Attributes:
        text: The answer; empty if the call failed.
        failure: Error of a failed call, otherwise None. Only components that fall back receive one.
        prompt_tokens: Number of tokens in the prompt that the LLM reports. None and 0 mean that drillrank counts them.
        completion_tokens: Number of tokens in the answer, likewise.
        from_cache: True if the answer was in a cache, so that the LLM was not called.
    """

    text: str
    failure: LLMFailure | None = None
    prompt_tokens: int | None = field(default=None, compare=False)
    completion_tokens: int | None = field(default=None, compare=False)
    from_cache: bool = field(default=False, compare=False)


OnReply = Callable[[Reply], object]
"""Callback that receives each reply of an LLM, on the thread that sent the prompt."""


class CompletesPrompts(Protocol):
    """Object with `complete(prompt) -> str`; it may have `acomplete`, `complete_json` and `acomplete_json`."""

    def complete(self, prompt: str, /) -> str | Reply:
        """Return the answer to a prompt."""
        ...


LLM = CompletesPrompts | Callable[[str], str | Reply] | Callable[[str], Awaitable[str | Reply]]
"""Object with `complete`, plain function, or `async def` function.

An object with `complete` or `acomplete` is never called itself, neither by `run` nor by `arun`.
"""


@dataclass(slots=True)
class Usage:
    """Tokens and calls spent so far.

    Attributes:
        prompt_tokens: Number of tokens in all prompts, as the LLM's replies report them, or else by `count`.
        completion_tokens: Number of tokens in all answers, likewise.
        calls: Number of calls of the LLM.
        failures: Number of calls that failed.
        estimated: True if a number of tokens is an estimate because no tokenizer was given.
        count: Function from a text to its number of tokens: see `drillrank.text.token_counter`.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    calls: int = 0
    failures: int = 0
    estimated: bool = False
    count: TokenCount = field(default=count_tokens, repr=False, compare=False)

    def add(self, prompt: str, reply: Reply) -> None:
        """Count one call. A reply from a cache costs nothing."""
        if reply.from_cache:
            return
        self.prompt_tokens += self._tokens(prompt, reply.prompt_tokens)
        self.completion_tokens += self._tokens(reply.text, reply.completion_tokens)
        self.calls += 1
        self.failures += reply.failure is not None

    def include(self, other: Usage) -> None:
        """Add the tokens and calls of another usage."""
        self.prompt_tokens += other.prompt_tokens
        self.completion_tokens += other.completion_tokens
        self.calls += other.calls
        self.failures += other.failures
        self.estimated |= other.estimated

    def _tokens(self, text: str, n_reported: int | None) -> int:
        """Return the number of tokens that the LLM reported for a text, or count them."""
        if type(n_reported) is int and n_reported > 0:  # servers that do not count report 0
            return n_reported
        n_counted = self.count(text)
        self.estimated |= n_counted > 0 and self.count is count_tokens
        return n_counted

    def as_metadata(self) -> dict[str, int]:
        """Return tokens and calls under their names in the results of frameworks.

        `tokens_estimated` is a key only if a number is an estimate.

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


# Drivers


def run(
    requests: Requests[Result],
    llm: LLM | None = None,
    handlers: Handlers | None = None,
    *,
    usage: Usage | None = None,
    workers: int = 1,
    on_reply: OnReply | None = None,
) -> Result:
    """Answer the requests of a generator until it returns its result.

    Errors of the LLM are raised as `LLMFailure`, or reach the generator as `Reply.failure`, depending on the request's
    policy (`LLMRequest.on_failure`). Errors of other requests are raised. Answers that came before an error stay in
    their caches.

    Args:
        requests: The generator.
        llm: Answers `LLMRequest`: an object with `complete(prompt)` or a plain function.
        handlers: Functions that answer all other requests, by type of request.
        usage: Counts tokens and calls, if given.
        workers: Maximum number of prompts at once. Several prompts at once are sent on threads of their own.
        on_reply: Callback that receives each reply of the LLM, on the thread that sent the prompt.

    Raises:
        InvalidInput: There is no handler for a request, `llm` cannot be called or is asynchronous only, or `workers`
            is below 1.
        LLMFailure: The LLM gave no answer, and the request's policy is to raise.

    >>> def shout():
    ...     reply, results = yield [LLMRequest("hello"), RetrievalRequest("who?", 2)]
    ...     return reply.text, results
    >>> run(shout(), str.upper, {RetrievalRequest: lambda request: [request.query] * request.n})
    ('HELLO', ['who?', 'who?'])
    """
    if workers != 1:
        check_positive(workers=workers)
    driver = _SyncDriver(llm, handlers, usage, workers, on_reply)
    return driver.drive(requests, usage)  # type: ignore[no-any-return]


async def arun(
    requests: Requests[Result],
    llm: LLM | None = None,
    handlers: Handlers | None = None,
    *,
    usage: Usage | None = None,
    workers: int = 4,
    on_reply: OnReply | None = None,
) -> Result:
    """Answer the requests of a generator without blocking the event loop; otherwise like `run`.

    `acomplete(prompt)` and functions declared `async` run on the event loop. Other functions and the generator itself
    run on threads. If a function returns an awaitable, it is awaited.

    Raises:
        InvalidInput: There is no handler for a request, `llm` cannot be called, or `workers` is below 1.
        LLMFailure: The LLM gave no answer, and the request's policy is to raise.

    >>> def shout():
    ...     replies = yield [LLMRequest("hello"), LLMRequest("bye")]
    ...     return [reply.text for reply in replies]
    >>> asyncio.run(arun(shout(), str.upper))
    ['HELLO', 'BYE']
    """
    check_positive(workers=workers)
    driver = _AsyncDriver(llm, handlers, usage, workers, on_reply)
    try:
        return await driver.drive(requests, usage)  # type: ignore[no-any-return]
    finally:
        driver.threads.shutdown(wait=False, cancel_futures=True)


class _SyncDriver:
    """Answers requests for `run`."""

    def __init__(
        self, llm: LLM | None, handlers: Handlers | None, usage: Usage | None, workers: int, on_reply: OnReply | None
    ) -> None:
        self._method_of = _llm_method(llm, "complete")
        if llm is not None and is_async(self._method_of(LLMRequest(""))[0]):
            raise InvalidInput(
                f"llm is asynchronous only, got {llm!r:.100}. Pass a plain function from prompt to answer or an object "
                "with a `complete` method, or use the asynchronous method of the component."
            )
        self._handlers = handlers
        self._usage = usage
        self._workers = workers
        self._on_reply = on_reply
        self._max_wait = _MAX_WAIT
        with suppress(RuntimeError):
            asyncio.get_running_loop()
            self._max_wait = 0.0  # the caller waited for may need this event loop to continue

    def drive(self, requests: Requests[Any], usage: Usage | None) -> Any:
        """Return the result of a generator. `usage` counts the prompts of its steps, not those of nested generators."""
        with closing(requests):
            step, result = _advance(requests)
            while step is not None:
                answers = self._answer_all(step)
                step, result = _advance(requests, step, answers, usage)
            return result

    def _answer_all(self, requests: Sequence[Any]) -> list[Any]:
        """Answer requests in order. With several workers, send prompts on threads and the rest on this thread."""
        if self._workers == 1 or len(requests) < 2:
            return list(map(self._answer, requests))
        with ThreadPoolExecutor(min(self._workers, len(requests)), "drillrank") as threads:
            try:
                calls = {
                    index: threads.submit(copy_context().run, self._answer, request)
                    for index, request in enumerate(requests)
                    if isinstance(request, LLMRequest)
                }
                answers = {i: self._answer(request) for i, request in enumerate(requests) if i not in calls}
                return [calls[i].result() if i in calls else answers[i] for i in range(len(requests))]
            finally:
                threads.shutdown(wait=False, cancel_futures=True)

    def _answer(self, request: Any) -> Any:
        if isinstance(request, Future):
            return bool(wait([request], self._max_wait).done)
        if not isinstance(request, LLMRequest):
            function = _find_function(self._handlers, request)
            return self.drive(function(), self._usage) if inspect.isgeneratorfunction(function) else function()
        entry = request.cache_entry
        # The step that contains this request counts its reply, so the nested generator counts nothing.
        reply: Reply = self._ask(request) if entry is None else self.drive(_ask_with_cache(request, entry), None)
        if self._on_reply is not None and (entry is None or reply.from_cache):
            self._on_reply(reply)
        return reply

    def _ask(self, request: LLMRequest) -> Reply:
        method, *arguments = self._method_of(request)
        try:
            return _as_reply(method(*arguments), is_structured=len(arguments) > 1)
        except Exception as cause:
            return _failed_reply(request, cause)


class _AsyncDriver:
    """Answers requests for `arun`."""

    def __init__(
        self, llm: LLM | None, handlers: Handlers | None, usage: Usage | None, workers: int, on_reply: OnReply | None
    ) -> None:
        self._method_of = _llm_method(llm, "acomplete", "complete")
        self._handlers = handlers
        self._usage = usage
        self._on_reply = on_reply
        self._limit = asyncio.Semaphore(workers)
        self._failure: LLMFailure | None = None  # ends the run: no further call is made
        # The event loop has few threads of its own, which other callers wait for.
        self.threads = ThreadPoolExecutor(workers, "drillrank")

    async def drive(self, requests: Requests[Any], usage: Usage | None) -> Any:
        """Return the result of a generator. `usage` counts the prompts of its steps, not those of nested generators."""
        try:
            step, result = await asyncio.to_thread(_advance, requests)
            while step is not None:
                tasks = [asyncio.ensure_future(self._answer(request)) for request in step]
                try:
                    answers = await asyncio.gather(*tasks)
                except LLMFailure as failure:
                    self._failure = failure
                    await asyncio.gather(*tasks, return_exceptions=True)  # answers under way reach their caches
                    raise
                finally:
                    for task in tasks:
                        task.cancel()
                step, result = await asyncio.to_thread(_advance, requests, step, answers, usage)
            return result
        finally:
            with suppress(ValueError):  # after a cancellation, the generator may still be running on its thread
                requests.close()

    async def _answer(self, request: Any) -> Any:
        if isinstance(request, Future):
            return bool((await asyncio.wait([asyncio.wrap_future(request)], timeout=_MAX_WAIT))[0])
        if not isinstance(request, LLMRequest):
            function = _find_function(self._handlers, request, asynchronous=True)
            return await (
                self.drive(function(), self._usage) if inspect.isgeneratorfunction(function) else self._call(function)
            )
        entry = request.cache_entry
        reply: Reply = await (
            self._ask(request) if entry is None else self.drive(_ask_with_cache(request, entry), None)
        )
        if self._on_reply is not None and (entry is None or reply.from_cache):
            self._on_reply(reply)
        return reply

    async def _ask(self, request: LLMRequest) -> Reply:
        method, *arguments = self._method_of(request)
        try:
            return _as_reply(await self._call(method, *arguments), is_structured=len(arguments) > 1)
        except Exception as cause:
            if cause is self._failure:
                raise
            return _failed_reply(request, cause)

    async def _call(self, function: Function, *arguments: Any) -> Any:
        async with self._limit:
            if self._failure is not None:
                raise self._failure
            if is_async(function):
                return await function(*arguments)
            loop = asyncio.get_running_loop()
            returned = await loop.run_in_executor(self.threads, copy_context().run, function, *arguments)
            return await returned if inspect.isawaitable(returned) else returned


def is_async(function: Function) -> bool:
    """Return True if a function, a method, or a callable object is declared `async`.

    >>> is_async(functools.partial(asyncio.sleep, 0)), is_async(print)
    (True, False)
    """
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def _advance(
    requests: Requests[Any],
    step: Sequence[Any] = (),
    answers: Sequence[Any] | None = None,
    usage: Usage | None = None,
) -> tuple[Sequence[Any] | None, Any]:
    """Send the answers of a step to the generator and count their tokens.

    Returns:
        The next step and None, or None and the result of a generator that has finished.
    """
    for request, reply in zip(step, answers or (), strict=True):
        if isinstance(request, LLMRequest) and request.cache_entry is None:
            outcome = reply.failure.kind if reply.failure else f"{len(reply.text)} characters"
            _LOGGER.debug("A prompt of %d characters was answered by %s", len(request.prompt), outcome)
        if isinstance(request, LLMRequest) and usage is not None:
            usage.add(request.prompt, reply)
    try:
        return requests.send(answers), None  # type: ignore[arg-type]  # None starts the generator
    except StopIteration as stop:
        return None, stop.value


def _find_function(handlers: Handlers | None, request: Any, asynchronous: bool = False) -> Function:
    """Return a function without arguments that answers a request to anything but an LLM."""
    if isinstance(request, FunctionRequest):
        return (asynchronous and request.afunction) or request.function
    handler = (handlers or {}).get(type(request))
    if handler is None:
        raise InvalidInput(f"No handler for {type(request).__name__} requests. Add one to `handlers`.")
    return functools.partial(handler, request)


def merge_requests(generators: Sequence[Requests[Result]]) -> Requests[list[Result]]:
    """Merge generators into one whose steps contain the requests of all of them.

    >>> def shout(word):
    ...     (reply,) = yield [LLMRequest(word)]
    ...     return reply.text
    >>> run(merge_requests([shout("a"), shout("b")]), str.upper)
    ['A', 'B']
    """
    results: dict[int, Result] = {}
    answers_by_index: dict[int, Sequence[Any] | None] = dict.fromkeys(range(len(generators)))
    while len(results) < len(generators):
        step_by_index: dict[int, Sequence[Any]] = {}
        for index, answers in answers_by_index.items():
            try:
                step_by_index[index] = generators[index].send(answers)  # type: ignore[arg-type]  # None starts it
            except StopIteration as stop:  # noqa: PERF203  # how a generator ends
                results[index] = stop.value
        if step_by_index:
            all_answers = iter((yield [request for step in step_by_index.values() for request in step]))
        answers_by_index = {index: list(islice(all_answers, len(step))) for index, step in step_by_index.items()}
    return [results[index] for index in range(len(generators))]


def _llm_method(llm: LLM | None, *names: str) -> Callable[[LLMRequest], tuple[Any, ...]]:
    """Return a function from a request to the LLM's method that answers it and the method's arguments.

    Args:
        llm: The LLM; None raises an error at the first request.
        names: Names of methods that take a prompt, the preferred one first.

    Raises:
        InvalidInput: The LLM has no such method and is not a function.
    """
    methods = [method for name in (*names, "acomplete") if callable(method := getattr(llm, name, None))]
    plain_method: Any = methods[0] if methods else llm  # an object with a method is not called itself
    if llm is not None and not callable(plain_method):
        raise InvalidInput(
            f"llm must be a function from prompt to answer or an object with a `complete` method, got {llm!r:.100}."
        )
    json_methods = [method for name in names if callable(method := getattr(llm, f"{name}_json", None))]

    def method_of(request: LLMRequest) -> tuple[Any, ...]:
        if llm is None:
            raise InvalidInput("A prompt needs an LLM, got llm=None. Pass llm.")
        if request.schema is not None and json_methods:
            return json_methods[0], request.prompt, request.schema
        return plain_method, request.prompt

    return method_of


def _as_reply(answer: object, is_structured: bool) -> Reply:
    """Convert the return value of an LLM. A structured call may return a parsed value instead of its JSON."""
    if isinstance(answer, Reply):
        return answer
    if not is_structured and not isinstance(answer, str):
        raise InvalidInput(f"llm must return a string, got {type(answer).__name__}.")
    return Reply(answer if isinstance(answer, str) else json.dumps(answer))


_MAX_REASON_CHARACTERS = 2_000


def _failed_reply(request: LLMRequest, cause: Exception) -> Reply:
    """Return the reply of a failed call, or raise, as the policy of the request says."""
    # Without control characters: a server may have sent some to a terminal.
    reason = "".join(sign if sign.isprintable() else " " for sign in str(cause)[:_MAX_REASON_CHARACTERS]).rstrip(". ")
    failure: LLMFailure
    if isinstance(cause, UnusableAnswer):
        failure = unusable_answer(request.step, reason)
        failure.__cause__ = cause.__cause__
    else:
        reason = f"{type(cause).__name__}: {reason}"
        advice = (
            "" if request.on_failure == "raise" else ', or set on_failure="fallback" to continue without its answer'
        )
        failure = LLMFailure(f"The LLM failed to {request.step}: {reason}. Check the LLM and its server{advice}.")
        failure.reason = reason
        failure.__cause__ = cause
    return Reply("", raise_or_fall_back(failure, request.on_failure))


def unusable_answer(step: str, problem: str) -> UnusableAnswer:
    """Return the error for an answer that cannot be used.

    Args:
        step: Task of the LLM, as for `LLMRequest`.
        problem: Description of what is wrong with the answer, without text of the answer, which messages must not show.

    >>> raise unusable_answer("choose sections (D3)", "it names no section")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    drillrank.errors.UnusableAnswer: The answer of the LLM, asked to choose sections (D3), cannot be used: it names...
    """
    failure = UnusableAnswer(
        f"The answer of the LLM, asked to {step}, cannot be used: {problem}. Use an LLM that follows the prompt, or "
        'set on_failure="fallback" to continue without its answer.'
    )
    failure.reason = problem
    return failure


_pending_lock = threading.Lock()
_pending_calls: dict[tuple[int, str], Future[None]] = {}  # by the id of the mapping for the answer, and its key


def _ask_with_cache(request: LLMRequest, entry: CacheEntry) -> Requests[Reply]:
    """Return the reply from the cache or from the LLM, which is called once for all callers that wait.

    Yields a future to wait for the call of another caller.
    """
    call_id = id(entry.answers), entry.key
    while True:
        own_call: Future[None] = Future()
        with _pending_lock:
            call = _pending_calls.setdefault(call_id, own_call)
        if call is not own_call:
            [has_ended] = yield [call]
            if has_ended:
                continue
            return (yield [replace(request, cache_entry=None)])[0]  # type: ignore[no-any-return]
        try:
            text = entry.answers.get(entry.key)
            if isinstance(text, str) and entry.is_useful(text):
                return Reply(text, from_cache=True)
            [reply] = yield [replace(request, cache_entry=None)]
            if reply.failure is None and entry.is_useful(reply.text):
                entry.answers[entry.key] = reply.text
            return reply  # type: ignore[no-any-return]
        finally:
            with _pending_lock:
                del _pending_calls[call_id]
            own_call.set_result(None)


# Reasoning in answers

_TAG = r"(?:think(?:ing)?|thoughts?|reason(?:ing)?|analysis|scratchpad|reflection)"
_MARK = re.compile(
    rf"(?P<open><\s*{_TAG}\s*>|\[{_TAG}\]|◁think▷|<\|channel\|>\s*analysis\s*<\|message\|>|<\|begin_of_thought\|>)"
    rf"|(?P<close><\s*/\s*{_TAG}\s*>|\[/{_TAG}\]|◁/think▷|<\|channel\|>\s*final\s*<\|message\|>|<\|end_of_thought\|>)",
    re.IGNORECASE,
)
_CONTROL = re.compile(r"<\|[a-z_]{1,30}\|>(?:assistant)?")


def strip_reasoning(answer: str) -> str | None:
    """Remove the reasoning that a model sends between marks.

    Text before a closing mark without an opening one is reasoning, too: some servers remove the opening mark.

    Returns:
        The rest of the answer; None if there is only reasoning that never ends.

    >>> strip_reasoning("<think>Is it 2? No, 3.</think> 3"), strip_reasoning("Is it 2? No, 3.</think> 3")
    (' 3', ' 3')
    >>> strip_reasoning("<think>Is it 2? Hm") is None
    True
    """
    parts: list[str] = []
    start, in_reasoning = 0, False
    for mark in _MARK.finditer(answer):
        if not in_reasoning:
            if mark["open"]:
                parts.append(answer[start : mark.start()])
            else:
                parts.clear()
        in_reasoning = bool(mark["open"])
        start = mark.end()
    if not in_reasoning:
        parts.append(answer[start:])
    text = _CONTROL.sub(" ", "".join(parts))
    return None if in_reasoning and not text.strip() else text
