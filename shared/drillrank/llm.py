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
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, MutableMapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol, TypeVar

from drillrank.errors import InvalidInput, LLMFailure, check_positive
from drillrank.tokens import TokenCount, count_tokens, is_estimate

_LOGGER = logging.getLogger(__name__)

Result = TypeVar("Result")
Function = Callable[..., Any]

_PATIENCE = 60.0  # seconds that one who wants the same answer waits for another one's call, which may never end


# Requests and answers


@dataclass(frozen=True)
class Memo:
    """Where the answer to a prompt is remembered; others who ask the same at the same time wait for it.

    Attributes:
        answers: Answers by key: any mutable mapping of strings, for example a `diskcache.Cache`.
        key: Of this prompt.
        useful: Whether an answer is worth remembering; a failed call never is.
    """

    answers: MutableMapping[str, str]
    key: str
    useful: Callable[[str], bool] = bool

    def recall(self) -> Reply | None:
        """What is remembered, if it is of use."""
        text = self.answers.get(self.key)
        return Reply(text, remembered=True) if isinstance(text, str) and self.useful(text) else None

    def keep(self, reply: Reply) -> Reply:
        """The reply, remembered if it is of use."""
        if reply.failure is None and self.useful(reply.text):
            self.answers[self.key] = reply.text
        return reply


@dataclass(frozen=True)
class Ask:
    """An LLM's `Reply` to a prompt is wanted.

    Attributes:
        prompt: The prompt; a subclass of `str` reaches the LLM as it is.
        schema: JSON schema of the answer: an LLM with `complete_json(prompt, schema)` is held to it, any other one is
            asked in words.
        memo: Where the answer is remembered.
    """

    prompt: str
    schema: Mapping[str, Any] | None = field(default=None, hash=False)
    memo: Memo | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class Retrieve:
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
class Fetch:
    """Passages or records are wanted that are known by id, or by their metadata; those that do not exist are left out.

    Attributes:
        ids: Their ids.
        where: In place of ids: metadata values by key, or a tuple of values of which a record has one.
    """

    ids: tuple[str, ...] = ()
    where: Mapping[str, str | tuple[str, ...]] | None = field(default=None, hash=False)


@dataclass(frozen=True)
class Call:
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
    `drillrank.tokens`. `estimated` says whether any of them are an estimate, for want of a tokenizer.
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

    def _tokens(self, text: str, reported: int | None) -> int:
        if (number := _positive(reported)) is not None:
            return number
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
        llm: Answers `Ask`: `complete(prompt)` or a plain function.
        handlers: Answer all other requests, by their type.
        usage: Counts tokens and calls into this object, if given.
        workers: Most prompts at once, on threads of their own if it is several.
        on_reply: Callback, called with each reply of the LLM, on the thread that asked.

    Raises:
        InvalidInput: a request finds nobody who answers it, `llm` cannot be called or is asynchronous only, or
            `workers` is below 1.

    >>> def shout():
    ...     reply, found = yield [Ask("hello"), Retrieve("who?", 2)]
    ...     return reply.text, found
    >>> run(shout(), str.upper, {Retrieve: lambda request: [request.query] * request.n})
    ('HELLO', ['who?', 'who?'])
    """
    check_positive(workers=workers)
    method = _llm_method(llm, "complete")
    if llm is not None and is_async(method(Ask(""))[0]):
        raise InvalidInput(
            f"{llm!r:.100} cannot be asked synchronously: pass a plain function from prompt to answer or an object "
            "with complete(prompt), or use the asynchronous method."
        )
    patience = _PATIENCE
    with suppress(RuntimeError):
        asyncio.get_running_loop()
        patience = 0.0  # on the thread of a loop that others may need to go on

    def ask(request: Ask) -> Reply:
        function, *arguments = method(request)
        try:
            return _as_reply(function(*arguments), held=len(arguments) > 1)
        except Exception as cause:
            return _failed(cause)

    def recalled_or_asked(request: Ask, memo: Memo) -> Reply:
        while True:
            with _claim(memo) as pending:
                if pending is None:
                    return memo.recall() or memo.keep(ask(request))
            if not wait([pending], patience).done:
                return ask(request)

    def answer(request: Any) -> Any:
        if not isinstance(request, Ask):
            function = _function(handlers, request)
            return drive(function()) if inspect.isgeneratorfunction(function) else function()
        reply = ask(request) if request.memo is None else recalled_or_asked(request, request.memo)
        if on_reply is not None:
            on_reply(reply)
        return reply

    def drive(requests: Requests[Any]) -> Any:
        with closing(requests):
            step: Sequence[Any] = ()
            answers: list[Any] | None = None
            while True:
                finished, wanted = _advance(requests, step, answers, usage)
                if finished:
                    return wanted
                step = wanted
                if workers == 1 or len(step) < 2:
                    answers = list(map(answer, step))
                    continue
                with ThreadPoolExecutor(min(workers, len(step)), "drillrank") as threads:
                    futures = {
                        place: threads.submit(copy_context().run, answer, request)
                        for place, request in enumerate(step)
                        if isinstance(request, Ask)
                    }
                    try:  # stores and retrievers are asked on the caller's thread
                        others = {place: answer(step[place]) for place in range(len(step)) if place not in futures}
                        answers = [
                            futures[place].result() if place in futures else others[place] for place in range(len(step))
                        ]
                    finally:
                        threads.shutdown(wait=False, cancel_futures=True)

    return drive(requests)  # type: ignore[no-any-return]


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
    ...     replies = yield [Ask("hello"), Ask("bye")]
    ...     return [reply.text for reply in replies]
    >>> asyncio.run(arun(shout(), str.upper))
    ['HELLO', 'BYE']
    """
    check_positive(workers=workers)
    method = _llm_method(llm, "acomplete", "complete")
    loop, limit = asyncio.get_running_loop(), asyncio.Semaphore(workers)
    threads = ThreadPoolExecutor(workers, "drillrank")  # the loop's own are few, and others wait for them

    async def call(function: Function, *arguments: Any) -> Any:
        async with limit:
            if is_async(function):
                return await function(*arguments)
            returned = await loop.run_in_executor(threads, copy_context().run, function, *arguments)
            return await returned if inspect.isawaitable(returned) else returned

    async def ask(request: Ask) -> Reply:
        function, *arguments = method(request)
        try:
            return _as_reply(await call(function, *arguments), held=len(arguments) > 1)
        except Exception as cause:
            return _failed(cause)

    async def recalled_or_asked(request: Ask, memo: Memo) -> Reply:
        while True:
            with _claim(memo) as pending:
                if pending is None:
                    if reply := await loop.run_in_executor(threads, memo.recall):
                        return reply
                    return await loop.run_in_executor(threads, memo.keep, await ask(request))
            done, _ = await asyncio.wait([asyncio.wrap_future(pending)], timeout=_PATIENCE)
            if not done:
                return await ask(request)

    async def answer(request: Any) -> Any:
        if not isinstance(request, Ask):
            function = _function(handlers, request, asynchronous=True)
            return await (drive(function()) if inspect.isgeneratorfunction(function) else call(function))
        reply = await (ask(request) if request.memo is None else recalled_or_asked(request, request.memo))
        if on_reply is not None:
            on_reply(reply)
        return reply

    async def drive(requests: Requests[Any]) -> Any:
        step: Sequence[Any] = ()
        answers: list[Any] | None = None
        try:
            while True:
                finished, wanted = await asyncio.to_thread(_advance, requests, step, answers, usage)
                if finished:
                    return wanted
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
        return await drive(requests)  # type: ignore[no-any-return]
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
) -> tuple[bool, Any]:
    """Whether the generator has finished, given the answers to its last step; its result, or its next step."""
    for request, reply in zip(step, answers or (), strict=True):
        if isinstance(request, Ask):
            _LOGGER.debug("%d characters were answered by %r", len(request.prompt), reply.failure or reply.text)
            if usage is not None:
                usage.add(request.prompt, reply)
    try:
        return False, requests.send(answers)  # type: ignore[arg-type]  # None begins
    except StopIteration as stop:
        return True, stop.value


def _function(handlers: Handlers | None, request: Any, asynchronous: bool = False) -> Function:
    """What answers a request that is no `Ask`, without arguments."""
    if isinstance(request, Call):
        return (asynchronous and request.afunction) or request.function
    handler = (handlers or {}).get(type(request))
    if handler is None:
        raise InvalidInput(f"Nobody answers a {type(request).__name__} here: pass a handler for it.")
    return functools.partial(handler, request)


def together(several: Sequence[Requests[Result]]) -> Requests[list[Result]]:
    """Several generators of requests as one, so that all of their requests can be answered at the same time.

    >>> def shout(word):
    ...     (reply,) = yield [Ask(word)]
    ...     return reply.text
    >>> run(together([shout("a"), shout("b")]), str.upper)
    ['A', 'B']
    """
    results: dict[int, Result] = {}
    answers: dict[int, Sequence[Any] | None] = dict.fromkeys(range(len(several)))
    while len(results) < len(several):
        asking: dict[int, Sequence[Any]] = {}
        for number, own in answers.items():
            try:
                asking[number] = several[number].send(own)  # type: ignore[arg-type]  # None begins
            except StopIteration as stop:  # noqa: PERF203  # how a generator ends
                results[number] = stop.value
        if asking:
            answered = iter((yield [request for requests in asking.values() for request in requests]))
        answers = {number: list(islice(answered, len(requests))) for number, requests in asking.items()}
    return [results[number] for number in range(len(several))]


def answered(requests: Requests[Result], handlers: Handlers) -> Requests[Result]:
    """The same, with the requests that have a handler here handed on as calls of it.

    >>> def once():
    ...     [found] = yield [Retrieve("who?", 1)]
    ...     return found
    >>> run(answered(once(), {Retrieve: lambda request: [request.query]}))
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
                Call(functools.partial(handlers[type(request)], request)) if type(request) in handlers else request
                for request in step
            ]


def _llm_method(llm: LLM | None, *names: str) -> Callable[[Ask], tuple[Any, ...]]:
    """From a request to the LLM's method that answers it, the first one of these names, with its arguments.

    Raises:
        InvalidInput: the LLM has none and is no function.
    """
    methods = [name for name in (*names, "acomplete") if callable(getattr(llm, name, None))]
    plain: Any = getattr(llm, methods[0]) if methods else llm  # what has a method is not called itself
    if llm is not None and not callable(plain):
        raise InvalidInput(f"{llm!r:.100} is no LLM: pass a function from prompt to answer or an object with complete.")
    held = [method for name in names if callable(method := getattr(llm, f"{name}_json", None))]

    def method_of(request: Ask) -> tuple[Any, ...]:
        if llm is None:
            raise InvalidInput("An LLM is asked, but none was given: pass llm.")
        if request.schema is not None and held:
            return held[0], request.prompt, request.schema
        return plain, request.prompt

    return method_of


def _as_reply(answer: object, held: bool) -> Reply:
    """What an LLM returned; one that is held to a schema may return what the JSON stands for."""
    if isinstance(answer, Reply):
        return answer
    if not held and not isinstance(answer, str):
        raise InvalidInput(f"The LLM answered with a {type(answer).__name__}, not a string.")
    return Reply(answer if isinstance(answer, str) else json.dumps(answer))


def _failed(cause: Exception) -> Reply:
    failure = LLMFailure(f"The LLM call failed: {type(cause).__name__}: {cause}")
    failure.__cause__ = cause
    return Reply("", failure)


_lock = threading.Lock()
_asking: dict[tuple[int, str], Future[None]] = {}  # what is being asked, by the mapping that will hold it, and its key


@contextmanager
def _claim(memo: Memo) -> Iterator[Future[None] | None]:
    """Yields None to one who may ask, for as long as that one is inside; to others what is done when it has left."""
    place = id(memo.answers), memo.key
    mine: Future[None] = Future()
    with _lock:
        pending = _asking.setdefault(place, mine)
    if pending is not mine:
        yield pending
        return
    try:
        yield None
    finally:
        with _lock:
            del _asking[place]
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


# Where a response keeps its usage, and what the parts of it are called that add up to one number.
_PLACES = ("usage", "usage_metadata", "token_usage")
_PROMPT = (
    ("prompt_tokens",),  # OpenAI
    ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),  # Anthropic, LangChain
    ("prompt_token_count",),  # Google
)
_COMPLETION = (("completion_tokens",), ("output_tokens",), ("candidates_token_count", "thoughts_token_count"))


def reported_tokens(*reports: object) -> tuple[int | None, int | None]:
    """The tokens of the prompt and of the completion in the first report that has them; None where none has.

    Args:
        reports: What hosts give: responses with their usage, or the usage itself, as mappings or objects in the forms
            of OpenAI, Anthropic, Google and those who follow them. Anything else reports nothing.

    >>> reported_tokens({"usage": {"prompt_tokens": 12, "completion_tokens": 3}})
    (12, 3)
    >>> reported_tokens(None, {"input_tokens": 12, "output_tokens": "many"})
    (12, None)
    """
    usages = [usage for report in reports for usage in (report, *(_part(report, place) for place in _PLACES))]
    return _first(usages, _PROMPT), _first(usages, _COMPLETION)


def _first(usages: Sequence[object], forms: Sequence[Sequence[str]]) -> int | None:
    for usage in usages:
        for main, *others in forms:
            number = _positive(_part(usage, main))
            if number is not None:
                return number + sum(_positive(_part(usage, other)) or 0 for other in others)
    return None


def _part(whole: object, name: str) -> object:
    return whole.get(name) if isinstance(whole, Mapping) else getattr(whole, name, None)


def _positive(value: object) -> int | None:
    # 0 is what servers say that do not count.
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
