"""Requests and their two drivers: the same results from any LLM, retriever and store, in any of the ways of calling."""

from __future__ import annotations

import asyncio
import contextvars
import json
import pickle
import threading
from collections import UserDict
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace
from unittest.mock import AsyncMock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drillrank.errors import InvalidInput, LLMFailure, UnusableAnswer
from drillrank.frameworks.models import reported_tokens
from drillrank.llm import (
    CacheEntry,
    LLMRequest,
    LookupRequest,
    Reply,
    RetrievalRequest,
    Usage,
    arun,
    merge_requests,
    run,
    strip_reasoning,
)
from drillrank.text import count_tokens
from tests.drillrank.helpers import Writer, both_ways, drive
from tests.examples import examples

prompts = st.text("ab é!?", max_size=5)
scripts = st.lists(st.lists(prompts, max_size=4), max_size=4)


def scripted(script):
    """Asks the script's prompts, each batch with a memory of the answers so far; hands back every reply."""
    replies = []
    for batch in script:
        memory = sum(len(reply.text) for reply in replies)
        replies += yield [LLMRequest(f"{prompt}{memory}", on_failure="fallback") for prompt in batch]
    return replies


def asks(*prompts):
    replies = yield list(map(LLMRequest, prompts))
    return [reply.text for reply in replies]


def answer(prompt):
    """Raises at `!`, answers with something that is no string at `?`."""
    if "!" in prompt:
        raise ValueError(f"cannot answer {prompt}")
    return None if "?" in prompt else prompt.upper()


async def async_answer(prompt):
    await asyncio.sleep(0)
    return answer(prompt)


class Complete:
    def complete(self, prompt):
        return answer(prompt)

    def __call__(self, prompt):
        raise AssertionError("an object with methods is not called itself")


class Both(Complete):
    async def acomplete(self, prompt):
        return await async_answer(prompt)


class AsyncComplete:
    async def complete(self, prompt):
        return await async_answer(prompt)


class AsyncCall:
    async def __call__(self, prompt):
        return await async_answer(prompt)


class AsyncOnly:
    async def acomplete(self, prompt):
        return await async_answer(prompt)

    __call__ = Complete.__call__


def shown(replies):
    return [(reply.text, str(reply.failure)) for reply in replies]


# What is asked, and how


# fmt: off
ASYNC = [
    async_answer, partial(async_answer), partial(AsyncCall()), AsyncComplete(), AsyncCall(), AsyncOnly(),
    SimpleNamespace(acomplete=AsyncMock(side_effect=answer)),
]
EVERY_KIND = [
    answer, partial(answer), lambda prompt: async_answer(prompt), Complete(), Both(), *ASYNC,
    SimpleNamespace(complete=Complete().complete, acomplete=partial(async_answer)),
]
# fmt: on


@given(scripts, st.sampled_from(EVERY_KIND), st.integers(1, 5))
@settings(max_examples=examples(60))
def test_sync_and_async_do_not_differ_whatever_the_llm_is(script, llm, workers):
    sync_usage, async_usage = Usage(), Usage()
    expected = run(scripted(script), answer, usage=sync_usage)
    got = asyncio.run(arun(scripted(script), llm, workers=workers, usage=async_usage))
    assert shown(got) == shown(expected)
    assert async_usage == sync_usage
    assert shown(run(scripted(script), Complete(), workers=workers)) == shown(expected)


@pytest.mark.parametrize("llm", ASYNC)
def test_run_refuses_an_asynchronous_llm_before_anything_is_done(llm):
    begun = []

    def requests():
        begun.append(1)
        yield [LLMRequest("a")]

    with pytest.raises(InvalidInput, match="llm is asynchronous only"):
        run(requests(), llm)
    assert not begun


@both_ways
def test_who_is_missing_is_said(how):
    with pytest.raises(InvalidInput, match="Pass llm"):
        drive(how, asks("a"))
    with pytest.raises(InvalidInput, match="llm must be a function"):
        drive(how, asks("a"), "gpt")

    def retrieves():
        yield [RetrievalRequest("who?", 1)]

    with pytest.raises(InvalidInput, match="No handler for RetrievalRequest"):
        drive(how, retrieves(), answer, {LookupRequest: print})
    with pytest.raises(InvalidInput, match="workers"):
        drive(how, asks("a"), answer, workers=0)


class Event:
    """A request of the test's own."""


def mixed():
    [found, reply, _] = yield [RetrievalRequest("who?", 2), LLMRequest("hello"), Event()]
    [fetched, of_book] = yield [LookupRequest(("a", "b")), LookupRequest(where={"book": "Emma"})]
    nothing = yield []
    return found, reply.text, fetched, of_book, nothing


@both_ways
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_requests_of_several_kinds_are_answered_in_order(how, workers, asynchronous):
    events = []
    handlers = {
        RetrievalRequest: lambda request: [request.query] * request.n,
        LookupRequest: lambda request: list(request.ids) or dict(request.where),
        Event: events.append,
    }
    if how == "arun" and asynchronous:
        handlers[RetrievalRequest] = AsyncMock(side_effect=handlers[RetrievalRequest])
    result = drive(how, mixed(), str.upper, handlers, workers=workers)
    assert result == (["who?", "who?"], "HELLO", ["a", "b"], {"book": "Emma"}, [])
    assert len(events) == 1


# What goes wrong


@both_ways
@pytest.mark.parametrize("workers", [1, 2])
def test_what_a_handler_or_the_generator_raises_is_raised_and_the_generator_is_closed(how, workers):
    closed = []

    def requests(fails):
        try:
            yield [LLMRequest("a"), RetrievalRequest("who?", 1)]
            raise LLMFailure("given up")
        finally:
            closed.append(fails)

    def retrieve(request):
        raise ConnectionError("no route")

    with pytest.raises(ConnectionError, match="no route"):
        drive(how, requests("handler"), answer, {RetrievalRequest: retrieve}, workers=workers)
    with pytest.raises(LLMFailure, match="given up"):
        drive(how, requests("generator"), answer, {RetrievalRequest: id}, workers=workers)
    assert closed == ["handler", "generator"]


@both_ways
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    ("error", "on_failure", "raises"),
    [
        *((ConnectionError("no route"), policy, policy != "fallback") for policy in (None, "raise", "fallback")),
        *((UnusableAnswer("no route"), policy, policy == "raise") for policy in (None, "raise", "fallback")),
    ],
)
def test_a_failure_raises_or_falls_back_by_the_policy_of_its_request(how, workers, error, on_failure, raises):
    def llm(prompt):
        raise error

    def requests():
        replies = yield [
            LLMRequest(prompt, step="choose", on_failure=on_failure) for prompt in ("secret a", "secret b")
        ]
        return [reply.failure for reply in replies]

    if raises:
        with pytest.raises(LLMFailure, match=r"choose.*no route") as caught:
            drive(how, requests(), llm, workers=workers)
        failures = [caught.value]
    else:
        failures = drive(how, requests(), llm, workers=workers)
    for failure in failures:
        is_unusable = isinstance(error, UnusableAnswer)
        assert isinstance(failure, UnusableAnswer) == is_unusable
        assert failure.__cause__ is (None if is_unusable else error)
        assert failure.kind == type(error).__name__
        assert failure.reason == ("no route" if is_unusable else "ConnectionError: no route")
        assert "secret" not in str(failure)
        assert ('on_failure="fallback"' in str(failure)) == (is_unusable or on_failure != "raise")
        assert str(pickle.loads(pickle.dumps(failure))) == str(failure)


@both_ways
@pytest.mark.parametrize("workers", [1, 2])
def test_an_outage_ends_a_step_and_answers_that_came_before_stay_in_the_cache(how, workers):
    asked, answers, prompts = [], {}, [*"ab", "c!", *map(str, range(50))]

    def llm(prompt):
        asked.append(prompt)
        return answer(prompt)

    with pytest.raises(LLMFailure, match="cannot answer"):
        drive(how, remembering(answers, *prompts, on_failure=None), llm, workers=workers)
    assert len(asked) < len(prompts)
    assert {"a", "b"} <= answers.keys()
    asked.clear()
    drive(how, remembering(answers, *"ab", on_failure=None), llm, workers=workers)
    assert not asked


@both_ways
def test_an_interrupt_is_no_failed_call(how):
    def interrupted(prompt):
        raise SystemExit(3)

    async def async_interrupted(prompt):
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        drive(how, asks("a"), interrupted if how == "run" else async_interrupted)


# At the same time


class Meeting:
    """Answers only where so many calls are in flight at once; counts the most."""

    def __init__(self, size):
        self.met, self.lock = threading.Barrier(size), threading.Lock()
        self.now = self.most = 0

    def complete(self, prompt):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        self.met.wait(timeout=30)
        with self.lock:
            self.now -= 1
        return prompt


class AsyncMeeting(Meeting):
    async def acomplete(self, prompt):
        self.now += 1
        self.most = max(self.most, self.now)
        for _ in range(3):  # all that may come have come by then
            await asyncio.sleep(0)
        self.now -= 1
        return prompt


@both_ways
@pytest.mark.parametrize("kind", [Meeting, AsyncMeeting])
@pytest.mark.parametrize("workers", [1, 2, 8, 40])
def test_as_many_requests_at_once_as_is_said_and_answers_in_order(how, kind, workers):
    llm, numbers = kind(workers), list(map(str, range(2 * workers)))
    assert drive(how, asks(*numbers), llm, workers=workers) == numbers
    assert llm.most == workers


trace = contextvars.ContextVar("trace", default="lost")


@both_ways
@pytest.mark.parametrize("workers", [1, 3])
def test_calls_and_the_generator_see_the_callers_context(how, workers):
    def requests():
        before = trace.get()
        replies = yield [LLMRequest("a")] * 6
        [found] = yield [RetrievalRequest("a", 1)]
        return {before, trace.get(), found, *(reply.text for reply in replies)}

    token = trace.set("kept")
    try:
        told = drive(
            how, requests(), lambda prompt: trace.get(), {RetrievalRequest: lambda _: trace.get()}, workers=workers
        )
    finally:
        trace.reset(token)
    assert told == {"kept"}


# Event loops


async def test_the_loop_goes_on_while_others_compute_and_call():
    loop = asyncio.get_running_loop()

    def wait_for_the_loop(*_):
        beaten = threading.Event()
        loop.call_soon_threadsafe(beaten.set)
        assert beaten.wait(30)
        return "a"

    def requests():
        wait_for_the_loop()
        [reply, _] = yield [LLMRequest("a", cache_entry=CacheEntry(Slow(), "a")), RetrievalRequest("a", 1)]
        wait_for_the_loop()
        return reply.text

    class Slow(UserDict):
        def get(self, key, default=None):
            return wait_for_the_loop() and None

        def __setitem__(self, key, value):
            wait_for_the_loop()

    usage = Usage(count=lambda text: len(wait_for_the_loop()))
    assert await arun(requests(), wait_for_the_loop, {RetrievalRequest: wait_for_the_loop}, usage=usage) == "a"
    assert usage.prompt_tokens == 1


async def test_where_one_request_raises_the_others_are_cancelled():
    ended = []

    async def never(prompt):
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(prompt)

    def requests():
        yield [LLMRequest("a"), RetrievalRequest("who?", 1)]

    with pytest.raises(ConnectionError):
        await arun(requests(), never, {RetrievalRequest: AsyncMock(side_effect=ConnectionError)})
    await asyncio.sleep(0)
    assert ended == ["a"]


# Structured output


SCHEMA = {"type": "object"}


def held():
    replies = yield [LLMRequest("Which ones?", SCHEMA, on_failure="fallback"), LLMRequest("Why?")]
    return [reply.text for reply in replies]


class Held(Complete):
    """Can be held to a schema, too."""

    def complete_json(self, prompt, schema):
        assert schema is SCHEMA
        return {"ids": [len(prompt)]}


class HeldByBoth(Held):
    async def acomplete(self, prompt):
        return self.complete(prompt)

    async def acomplete_json(self, prompt, schema):
        return json.dumps(self.complete_json(prompt, schema))


@both_ways
@pytest.mark.parametrize(
    ("llm", "answer", "failures"),
    [
        *((kind(), '{"ids": [11]}', 0) for kind in (Held, HeldByBoth)),
        *((SimpleNamespace(complete_json=lambda *_, said=said: said), "", 1) for said in ({1, 2}, object(), b"ids")),
    ],
)
def test_only_requests_with_a_schema_are_held_to_it_and_what_is_no_json_is_a_failed_call(how, llm, answer, failures):
    llm.complete = str.upper
    usage = Usage()
    assert drive(how, held(), llm, usage=usage) == [answer, "WHY?"]
    assert (usage.calls, usage.failures) == (2, failures)


# Remembered answers


def remembering(answers, *prompts, useful=bool, on_failure="fallback"):
    entries = [CacheEntry(answers, prompt, useful) for prompt in prompts]
    replies = yield [
        LLMRequest(prompt, cache_entry=entry, on_failure=on_failure)
        for prompt, entry in zip(prompts, entries, strict=True)
    ]
    return [reply.text for reply in replies]


@both_ways
def test_a_remembered_answer_costs_nothing_and_what_is_of_no_use_is_asked_again_and_not_remembered(how):
    answers, usage, replies = {"a": "KNOWN", "b": "no", "c": 7}, Usage(), []
    requests = remembering(answers, "a", "b", "c", "d", "!", "", useful=str.isupper)
    assert drive(how, requests, answer, usage=usage, on_reply=replies.append) == ["KNOWN", "B", "C", "D", "", ""]
    assert answers == {"a": "KNOWN", "b": "B", "c": "C", "d": "D"}
    assert (usage.calls, [reply.from_cache for reply in replies]) == (5, [True] + [False] * 5)


class AsyncWriter(Writer):
    async def acomplete(self, prompt):
        await asyncio.sleep(0.01)
        return self.complete(prompt)


def crowd(llm, answers, workers, *prompts):
    """Eight threads ask, three of them on loops of their own, on each of which four tasks ask."""
    barrier = threading.Barrier(8)

    async def tasks():
        return await asyncio.gather(*(arun(remembering(answers, *prompts), llm, workers=workers) for _ in range(4)))

    def begin(number):
        barrier.wait()
        if number < 3:
            return asyncio.run(tasks())
        return [run(remembering(answers, *prompts), llm, workers=workers)]

    with ThreadPoolExecutor(8) as threads:
        return [told for several in threads.map(begin, range(8)) for told in several]


@pytest.mark.parametrize("kind", [Writer, AsyncWriter])
@pytest.mark.parametrize("workers", [1, 4])
def test_those_who_ask_the_same_at_the_same_time_ask_once(kind, workers):
    llm = kind()
    assert crowd(llm, {}, workers, "a", "b", "a", "c") == [["A", "B", "A", "C"]] * 17
    assert llm.calls == {"a": 1, "b": 1, "c": 1}
    crowd(llm, {}, workers, "a")  # other answers
    assert llm.calls["a"] == 2


def test_who_waited_in_vain_asks_itself():
    llm = Writer(fails=3)
    told = crowd(llm, {}, 4, "a")
    assert sorted(told) == [[""]] * 3 + [["A"]] * 14
    assert llm.calls["a"] == 4


async def test_who_waits_for_a_call_that_raises_asks_itself():
    llm = AsyncWriter(fails=1)
    answers = {}
    tasks = [arun(remembering(answers, "a", on_failure="raise"), llm) for _ in range(3)]
    first, *others = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(first, LLMFailure)
    assert others == [["A"]] * 2
    assert llm.calls["a"] == 2


async def test_who_waits_may_be_cancelled_and_who_asks_may_be_too():
    answers, asked, open_ = {}, [], asyncio.Event()

    async def llm(prompt):
        asked.append(prompt)
        await open_.wait()
        return "made"

    async def until(condition):
        while not condition():  # noqa: ASYNC110  # threads take part
            await asyncio.sleep(0.001)

    tasks = [asyncio.ensure_future(arun(remembering(answers, "a"), llm)) for _ in range(5)]
    await until(lambda: asked)
    first, *others = tasks
    others[0].cancel()
    await asyncio.gather(others[0], return_exceptions=True)
    assert not any(task.done() for task in (first, *others[1:]))
    first.cancel()
    await until(lambda: len(asked) == 2)  # one of those who waited
    open_.set()
    assert await asyncio.gather(*others[1:]) == [["made"]] * 3
    assert len(asked) == 2


@both_ways
def test_an_llm_that_needs_its_own_answer_does_not_wait_for_ever(how, monkeypatch):
    monkeypatch.setattr("drillrank.llm._MAX_WAIT", 0.05)
    answers, depth = {}, []

    def llm(prompt):
        depth.append(prompt)
        return run(remembering(answers, prompt), llm)[0] if len(depth) == 1 else "inner"

    assert drive(how, remembering(answers, "a"), llm) == ["inner"]


# What it cost


reported = st.none() | st.integers(-3, 99) | st.booleans()


@given(st.lists(st.tuples(st.text(max_size=9), st.text(max_size=9), reported, reported)), st.booleans())
def test_usage_takes_what_is_reported_and_counts_the_rest(calls, exact):
    usage, total = Usage(count=len) if exact else Usage(), Usage()
    count = len if exact else count_tokens
    prompts = completions = 0
    counted = False
    for prompt, text, prompted, completed in calls:
        usage.add(prompt, Reply(text, None, prompted, completed))
        for number, words in ((prompted, prompt), (completed, text)):
            if type(number) is not int or number <= 0:
                counted |= count(words) > 0
        prompts += prompted if type(prompted) is int and prompted > 0 else count(prompt)
        completions += completed if type(completed) is int and completed > 0 else count(text)
    assert (usage.prompt_tokens, usage.completion_tokens, usage.calls) == (prompts, completions, len(calls))
    assert usage.estimated == (counted and not exact)
    assert usage.as_metadata().get("tokens_estimated", False) is usage.estimated
    total.include(usage)
    assert total == pickle.loads(pickle.dumps(usage))


FORMS = ["prompt_tokens completion_tokens", "input_tokens output_tokens", "prompt_token_count candidates_token_count"]
MAKES = {"dict": dict, "mapping": UserDict, "object": lambda fields: SimpleNamespace(**fields)}


@pytest.mark.parametrize("names", FORMS)
@pytest.mark.parametrize("outer", MAKES.values(), ids=MAKES)
@pytest.mark.parametrize("inner", MAKES.values(), ids=MAKES)
@pytest.mark.parametrize("place", ["usage", "usage_metadata", "token_usage", None])
def test_every_form_of_report_is_read(names, outer, inner, place):
    usage = inner(dict(zip(names.split(), (12, 3), strict=True)) | {"total_tokens": 15})
    assert reported_tokens(usage if place is None else outer({"id": "x", place: usage})) == (12, 3)


def test_parts_of_a_report_add_up_and_the_first_report_that_has_a_number_counts():
    cached = {"input_tokens": 5, "cache_read_input_tokens": 100, "cache_creation_input_tokens": None}
    assert reported_tokens({"usage": cached | {"output_tokens": 2}}) == (105, 2)
    reasoned = {"prompt_token_count": 5, "candidates_token_count": 2, "thoughts_token_count": 40}
    assert reported_tokens({"usage_metadata": reasoned}) == (5, 42)
    nothing = {"usage": None, "usage_metadata": {"prompt_token_count": 0}}
    assert reported_tokens(nothing, {"prompt_tokens": 7}, {"prompt_tokens": 8, "completion_tokens": 2}) == (7, 2)
    assert reported_tokens(None, 7, "usage", {"prompt_tokens": "7", "completion_tokens": True}) == (None, None)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("3", "3"),
        ("<think>2? No.</think>3", "3"),
        ("<Thinking>2?</ thinking > 3 <think>sure?</think>.", " 3 ."),
        ("2? No.</think>3", "3"),
        ("<think>a<think>b</think>3", "3"),
        ("[THINK]2?[/THINK]3", "3"),
        ("◁think▷2?◁/think▷3", "3"),
        ("<|channel|>analysis<|message|>2?<|end|><|start|>assistant<|channel|>final<|message|>3<|return|>", "3 "),
        ("3 <think>or", "3 "),
        ("<think>2? Hm", None),
        (" <think>", None),
        ("", ""),
    ],
)
def test_reasoning_is_stripped(answer, text):
    assert strip_reasoning(answer) == text


@given(st.lists(st.lists(st.lists(st.text(max_size=3), max_size=3), max_size=4), max_size=5))
def test_together_equals_one_after_the_other(scripts):
    alone = [run(scripted(script), str.upper) for script in scripts]
    assert run(merge_requests([*map(scripted, scripts)]), str.upper) == alone
