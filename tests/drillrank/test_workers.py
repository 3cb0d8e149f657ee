"""The limit on calls holds over threads and event loops together, and no worker is ever lost."""

from __future__ import annotations

import asyncio
import contextvars
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drillrank import D3, SelfAsk
from drillrank.dialogue import arun, run
from drillrank.errors import InvalidInput
from drillrank.workers import Workers


class Crowd:
    """An LLM of both kinds that counts its calls in flight."""

    def __init__(self, seconds: float = 0.005) -> None:
        self.seconds = seconds
        self.lock = threading.Lock()
        self.now = self.most = self.calls = 0

    def enter(self) -> None:
        with self.lock:
            self.calls += 1
            self.now += 1
            self.most = max(self.most, self.now)

    def leave(self) -> None:
        with self.lock:
            self.now -= 1

    def complete(self, prompt: str) -> str:
        self.enter()
        time.sleep(self.seconds)
        self.leave()
        return "1"

    async def acomplete(self, prompt: str) -> str:
        self.enter()
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.leave()
        return "1"


async def until(met) -> None:
    while not met():  # noqa: ASYNC110  # threads take part, too
        await asyncio.sleep(0.001)


def asks(prompts: int):
    replies = yield ["a"] * prompts
    return [reply.text for reply in replies]


def in_threads(*jobs) -> list:
    with ThreadPoolExecutor(len(jobs)) as pool:
        return [future.result(timeout=60) for future in [pool.submit(job) for job in jobs]]


def several(dialogues: int, llm: Crowd, workers: Workers):
    """A job that runs some dialogues on an event loop of its own."""

    async def together():
        return await asyncio.gather(*(arun(asks(3), llm, workers=workers) for _ in range(dialogues)))

    return lambda: asyncio.run(together())


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 4), st.integers(0, 8), st.lists(st.integers(1, 4), max_size=3))
def test_threads_and_loops_keep_one_limit(count, threads, loops):
    llm, workers = Crowd(0.001), Workers(count)
    plain = [lambda: run(asks(2), llm, workers=workers)] * threads
    if plain or loops:
        in_threads(*plain, *(several(dialogues, llm, workers) for dialogues in loops))
    assert llm.calls == 2 * threads + 3 * sum(loops)
    assert llm.most <= count
    in_threads(*[lambda: run(asks(1), llm, workers=workers)] * count)  # none of the workers was lost


def test_all_workers_are_used():
    llm, workers = Crowd(0.05), pickle.loads(pickle.dumps(Workers(4)))
    in_threads(*[lambda: run(asks(1), llm, workers=workers)] * 4, several(4, llm, workers))
    assert llm.most == 4


BOOK = "# One\n\nThe first.\n\nThe second.\n\n# Two\n\nThe third."


def test_one_d3_and_one_self_ask_for_two_loops_and_eight_threads():
    llm = Crowd()
    d3 = D3(
        llm,
        settings={"sections_by": "ids", "workers": 3},
    )
    ready = d3.prepare([BOOK])
    expected = [item.passage.text for item in d3.retrieve("Which is first?", ready)]

    def on_a_loop():
        async def together():
            return await asyncio.gather(*(d3.aretrieve("Which is first?", ready) for _ in range(4)))

        return asyncio.run(together())

    llm.most = 0
    *one_by_one, first, second = in_threads(*[lambda: d3.retrieve("Which is first?", ready)] * 8, on_a_loop, on_a_loop)
    assert llm.most == 3
    assert [[item.passage.text for item in ranking] for ranking in (*one_by_one, *first, *second)] == [expected] * 16
    assert {(ranking.usage.calls, ranking.usage.prompt_tokens) for ranking in (*one_by_one, *first, *second)} == {
        (2, one_by_one[0].usage.prompt_tokens)
    }

    llm = Crowd()
    asked = SelfAsk(llm, lambda question: ["A fact."], workers=3)
    *answers, late = in_threads(
        *[lambda: asked.answer("What is it?")] * 8, lambda: asyncio.run(asked.aanswer("What is it?"))
    )
    assert {answer.answer for answer in (*answers, late)} == {"1"}
    assert llm.most == 3


async def test_who_gives_up_waiting_or_calling_leaves_no_gap():
    llm, workers = Crowd(30), Workers(2)
    calling = [asyncio.create_task(arun(asks(1), llm, workers=workers)) for _ in range(5)]
    await until(lambda: llm.now == 2)
    calling[4].cancel()  # waits
    calling[0].cancel()  # calls
    await until(lambda: llm.calls == 3)
    assert llm.now == 2
    for task in calling:
        task.cancel()
    await asyncio.gather(*calling, return_exceptions=True)
    quick = Crowd(0)
    assert await arun(asks(8), quick, workers=workers) == ["1"] * 8
    assert quick.most == 2


async def test_cancelling_at_any_moment_loses_no_worker():
    llm, workers = Crowd(0.002), Workers(2)
    for round_ in range(30):
        tasks = [asyncio.create_task(arun(asks(3), llm, workers=workers)) for _ in range(4)]
        await asyncio.sleep(0.0005 * (round_ % 7))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    llm.most = 0
    await asyncio.wait_for(arun(asks(6), llm, workers=workers), 30)
    assert llm.most == 2


async def test_a_blocking_call_on_the_loops_own_thread_does_not_wait_for_the_loop():
    llm, workers = Crowd(0.05), Workers(1)
    task = asyncio.create_task(arun(asks(2), llm, workers=workers))
    await until(lambda: llm.now)
    assert run(asks(2), Crowd(0), workers=workers) == ["1", "1"]
    assert await task == ["1", "1"]
    assert llm.most == 1


async def test_a_blocking_call_on_an_idle_loops_thread_keeps_the_limit():
    llm, workers = Crowd(0.02), Workers(1)
    busy = threading.Thread(target=run, args=(asks(3), llm), kwargs={"workers": workers})
    busy.start()
    run(asks(3), llm, workers=workers)
    busy.join()
    assert llm.most == 1


def test_a_call_that_raises_gives_its_worker_back():
    workers = Workers(1)

    def interrupted(prompt):
        raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            run(asks(1), interrupted, workers=workers)
    assert run(asks(1), Crowd(0), workers=workers) == ["1"]


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True])
def test_workers_are_counted_from_one(wrong):
    with pytest.raises(InvalidInput, match="workers"):
        Workers(wrong)


def meeting(size: int):
    """An LLM whose calls wait for each other: it answers only where so many are in flight at once."""
    met, crowd = threading.Barrier(size), Crowd(0)

    def complete(prompt: str) -> str:
        crowd.enter()
        met.wait(timeout=30)
        crowd.leave()
        return prompt

    return complete, crowd


both_ways = pytest.mark.parametrize(
    "drive", [run, lambda *given, **more: asyncio.run(arun(*given, **more))], ids=["run", "arun"]
)


@both_ways
@pytest.mark.parametrize("workers", [1, 2, 8, 40])
def test_as_many_calls_at_once_as_is_said(drive, workers):
    def numbered():
        replies = yield [str(number) for number in range(2 * workers)]
        return [reply.failure or int(reply.text) for reply in replies]

    llm, crowd = meeting(workers)
    assert drive(numbered(), llm, workers=workers) == list(range(2 * workers))
    assert crowd.most == workers


@pytest.mark.parametrize("how", ["retrieve", "aretrieve"])
def test_d3_asks_for_as_many_summaries_at_once_as_is_said(how):
    question = "Where does part 3 end?"
    meet, crowd = meeting(8)
    llm = lambda prompt: "1" if question in prompt else meet(prompt)  # noqa: E731
    book = "\n\n".join(f"# Part {part}\n\n{'A long story. ' * 60}" for part in range(8))
    found = getattr(
        D3(
            llm,
            settings={"summarizer": "llm", "workers": 8, "sections_by": "ids"},
        ),
        how,
    )(question, [book])
    assert asyncio.run(found) if how == "aretrieve" else found
    assert crowd.most == 8


@both_ways
def test_calls_on_threads_see_the_callers_context(drive):
    trace = contextvars.ContextVar("trace", default="lost")
    trace.set("kept")
    assert drive(asks(6), lambda prompt: trace.get(), workers=3) == ["kept"] * 6


def test_what_a_call_on_a_thread_raises_is_raised_once_and_the_rest_is_left():
    calls = Crowd(0)

    def interrupted(prompt):
        calls.enter()
        if calls.calls == 1:
            raise KeyboardInterrupt
        time.sleep(0.01)
        return "1"

    workers = Workers(2)
    with pytest.raises(KeyboardInterrupt):
        run(asks(50), interrupted, workers=workers)
    assert calls.calls < 50
    assert run(asks(4), Crowd(0), workers=workers) == ["1"] * 4
