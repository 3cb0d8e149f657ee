from __future__ import annotations

import asyncio
import pickle
import threading
import time
from functools import partial
from itertools import combinations
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drillrank.dialogue import Reply, Usage, arun, run
from drillrank.errors import InvalidInput, LLMFailure
from drillrank.structured import StructuredPrompt
from drillrank.tokens import count_tokens
from drillrank.workers import Workers

prompts = st.text("ab é!?", max_size=5)
scripts = st.lists(st.lists(prompts, max_size=4), max_size=4)


def scripted(script):
    """Asks the script's prompts, each batch with a memory of the answers so far; hands back every reply."""
    replies = []
    for batch in script:
        memory = sum(len(reply.text) for reply in replies)
        replies += yield [f"{prompt}{memory}" for prompt in batch]
    return replies


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


class Both(Complete):
    async def acomplete(self, prompt):
        return await async_answer(prompt)


class AsyncComplete:
    async def complete(self, prompt):
        return await async_answer(prompt)


def shown(replies):
    return [(reply.text, str(reply.failure)) for reply in replies]


@given(scripts, st.sampled_from([answer, async_answer, Complete(), Both(), AsyncComplete()]), st.integers(1, 5))
@settings(max_examples=100)
def test_sync_and_async_do_not_differ(script, llm, workers):
    sync_usage, async_usage = Usage(), Usage()
    expected = run(scripted(script), answer, sync_usage)
    got = asyncio.run(arun(scripted(script), llm, workers=workers, usage=async_usage))
    assert shown(got) == shown(expected)
    assert async_usage == sync_usage


@given(scripts)
def test_usage_counts_every_call(script):
    asked = []

    def llm(prompt):
        asked.append(prompt)
        return answer(prompt)

    usage = Usage()
    replies = run(scripted(script), llm, usage)
    assert usage == Usage(
        prompt_tokens=sum(map(count_tokens, asked)),
        completion_tokens=sum(count_tokens(reply.text) for reply in replies),
        calls=len(asked),
        failures=sum("!" in prompt or "?" in prompt for prompt in asked),
        estimated=bool(asked),
    )


@pytest.mark.parametrize("llm", [Complete(), Both()])
def test_an_object_completes(llm):
    assert run(scripted([["a"]]), llm) == [Reply("A0")]


def drive(dialogue, llm, how):
    return run(dialogue, llm) if how == "run" else asyncio.run(arun(dialogue, llm))


both_ways = pytest.mark.parametrize("how", ["run", "arun"])


@both_ways
@pytest.mark.parametrize(("prompt", "cause"), [("!", ValueError), ("?", InvalidInput)])
def test_a_failed_call_is_an_empty_reply_with_its_cause(how, prompt, cause):
    failed, fine = drive(scripted([[prompt, "fine"]]), answer, how)
    assert failed.text == ""
    assert isinstance(failed.failure, LLMFailure)
    assert isinstance(failed.failure.__cause__, cause)
    assert cause.__name__ in str(failed.failure)
    assert fine == Reply("FINE0")


@both_ways
@pytest.mark.parametrize("asked_before", [0, 1])
def test_what_the_dialogue_raises_is_raised(how, asked_before):
    def raising():
        for _ in range(asked_before):
            yield ["a"]
        raise LLMFailure("the dialogue gives up")
        yield []

    with pytest.raises(LLMFailure, match="gives up"):
        drive(raising(), answer, how)


@both_ways
def test_a_dialogue_may_raise_the_failure_it_received(how):
    def strict():
        [reply] = yield ["!"]
        if reply.failure:
            raise reply.failure
        return reply.text

    with pytest.raises(LLMFailure) as raised:
        drive(strict(), answer, how)
    assert isinstance(raised.value.__cause__, ValueError)


@both_ways
def test_a_dialogue_without_questions(how):
    assert drive(scripted([]), answer, how) == []
    assert drive(scripted([[], []]), answer, how) == []


@both_ways
def test_an_interrupt_is_no_failed_call(how):
    def interrupted(prompt):
        raise SystemExit(3)

    async def async_interrupted(prompt):
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        drive(scripted([["a"]]), interrupted if how == "run" else async_interrupted, how)


@pytest.mark.parametrize("llm", [async_answer, AsyncComplete()])
def test_run_refuses_an_asynchronous_llm(llm):
    asked = []

    def dialogue():
        asked.append((yield ["a"]))

    with pytest.raises(InvalidInput, match="asynchronous"):
        run(dialogue(), llm)
    assert asked == []


class Named:
    """Says which of its methods was called."""

    def complete(self, prompt):
        return "complete"

    async def acomplete(self, prompt):
        await asyncio.sleep(0)
        return "complete"

    def __call__(self, prompt):
        return "call"


METHODS = ("complete", "acomplete", "__call__")


@pytest.mark.parametrize("methods", [m for n in (1, 2, 3) for m in combinations(METHODS, n)], ids="+".join)
def test_run_and_arun_call_the_same_of_an_objects_methods(methods):
    llm = type("Llm", (), {name: vars(Named)[name] for name in methods})()
    expected = "call" if methods == ("__call__",) else "complete"
    assert drive(scripted([["a"]]), llm, "arun") == [Reply(expected)]
    if "complete" in methods or methods == ("__call__",):
        assert drive(scripted([["a"]]), llm, "run") == [Reply(expected)]
    else:
        with pytest.raises(InvalidInput, match="asynchronous"):
            drive(scripted([["a"]]), llm, "run")


@pytest.mark.parametrize("workers", [0, -1])
async def test_workers_are_at_least_one(workers):
    with pytest.raises(InvalidInput, match="workers"):
        await arun(scripted([["a"]]), answer, workers=workers)


class Busy:
    """Counts the calls in flight; the later a call was made, the sooner it is answered."""

    def __init__(self, calls):
        self.wait = {str(i): 0.002 * (calls - i) for i in range(calls)}
        self.lock = threading.Lock()
        self.now = self.most = 0

    def enter(self):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)

    def leave(self):
        with self.lock:
            self.now -= 1

    def complete(self, prompt):
        self.enter()
        time.sleep(self.wait[prompt])
        self.leave()
        return prompt


class AsyncBusy(Busy):
    async def acomplete(self, prompt):
        self.enter()
        await asyncio.sleep(self.wait[prompt])
        self.leave()
        return prompt


def all_at_once(calls):
    return (yield [str(i) for i in range(calls)])


@pytest.mark.parametrize("kind", [Busy, AsyncBusy])
@pytest.mark.parametrize("workers", [1, 3, 50])
async def test_at_most_so_many_calls_in_flight_and_replies_in_order(kind, workers):
    llm = kind(12)
    replies = await arun(all_at_once(12), llm, workers=workers)
    assert [reply.text for reply in replies] == [str(i) for i in range(12)]
    assert llm.now == 0
    if workers < 12:
        assert llm.most == workers
    else:
        assert workers >= llm.most > 1


class Thinker:
    """Thinks on the thread that asks it; its methods are of every kind that has nothing to wait for."""

    def think(self, prompt):
        self.threads.add(threading.get_ident())
        return prompt

    def __init__(self):
        self.threads = set()

    async def disguised(self, prompt):
        return self.think(prompt)

    async def held_to(self, prompt, schema):
        return self.think(prompt)


@pytest.mark.parametrize(
    "llm_of",
    [
        lambda thinker: thinker.think,
        lambda thinker: thinker.disguised,
        lambda thinker: partial(thinker.disguised),
        lambda thinker: SimpleNamespace(complete=thinker.think),
        lambda thinker: SimpleNamespace(acomplete=thinker.disguised),
        lambda thinker: SimpleNamespace(acomplete=async_answer, complete_json=lambda p, _: thinker.think(p)),
        lambda thinker: SimpleNamespace(acomplete=async_answer, acomplete_json=thinker.held_to),
    ],
)
async def test_what_does_not_wait_does_not_hold_up_the_event_loop(llm_of):
    def asks():
        [reply] = yield [StructuredPrompt("a", {})]
        return reply.text

    thinker = Thinker()
    assert await arun(asks(), llm_of(thinker)) == "a"
    assert thinker.threads
    assert threading.get_ident() not in thinker.threads


async def test_cancelling_cancels_the_calls():
    cancelled = []

    async def never(prompt):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(prompt)
            raise

    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(arun(scripted([["a", "b"]]), never), 0.05)
    assert sorted(cancelled) == ["a0", "b0"]


async def test_several_dialogues_share_a_loop_and_an_llm():
    usages = [Usage() for _ in range(5)]
    scripts = [[["a"] * i, ["b"]] for i in range(5)]
    together = await asyncio.gather(
        *(arun(scripted(script), Both(), usage=usage) for script, usage in zip(scripts, usages, strict=True))
    )
    assert [shown(replies) for replies in together] == [shown(run(scripted(script), answer)) for script in scripts]
    assert [usage.calls for usage in usages] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("kind", [Busy, AsyncBusy])
async def test_dialogues_that_share_their_workers_keep_the_limit_together(kind):
    llm, workers = kind(12), Workers(3)
    everything = await asyncio.gather(*(arun(all_at_once(12), llm, workers=workers) for _ in range(4)))
    assert [[reply.text for reply in replies] for replies in everything] == [[str(i) for i in range(12)]] * 4
    assert llm.most == 3


def test_threads_that_share_their_workers_keep_the_limit_together():
    llm, workers = Busy(6), pickle.loads(pickle.dumps(Workers(2)))
    threads = [threading.Thread(target=run, args=(all_at_once(6), llm), kwargs={"workers": workers}) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert llm.most == 2


def test_workers_serve_one_event_loop_after_another():
    workers = Workers(1)
    for _ in range(2):
        assert asyncio.run(arun(all_at_once(3), AsyncBusy(3), workers=workers))[2].text == "2"


async def test_what_a_dialogue_computes_does_not_block_the_loop():
    here = threading.get_ident()

    def thinking():
        before = threading.get_ident()
        yield ["a"]
        return {before, threading.get_ident()}

    assert here not in await arun(thinking(), answer)
