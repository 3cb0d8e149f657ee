"""Made once: one computes, the others wait, on threads, on event loops, and on both."""

from __future__ import annotations

import asyncio
import copy
import pickle
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from drillrank import D3
from drillrank.dialogue import arun, run
from drillrank.drilldown.rebuilding import PreparedCache, StoredChunk
from drillrank.once import Once, Told

BOOK = "\n\n".join(
    f"# Part {n}\n\n" + " ".join(f"Sentence {m} of part {n} is about stones." for m in range(20)) + "\n\nThe end."
    for n in range(6)
)
QUESTION = "Which stones?"


def at_once(count, function):
    """What a function returns on so many threads that begin together."""
    barrier = threading.Barrier(count)

    def begin(number):
        barrier.wait()
        return function(number)

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(begin, range(count)))


class Writer:
    """Counts its prompts, and answers the first ones when others had the time to come."""

    def __init__(self, fails=0):
        self.calls = Counter()
        self.lock = threading.Lock()
        self.fails = fails
        self.go_on = threading.Event()

    def complete(self, prompt):
        kind = "summary" if "summarization" in prompt else "question"
        with self.lock:
            self.calls[kind] += 1
            self.fails -= 1
            if self.fails >= 0:
                raise ConnectionError("no route")
        self.go_on.wait(0.02)
        return "Stones." if kind == "summary" else "none"


class AsyncWriter(Writer):
    async def acomplete(self, prompt):
        await asyncio.sleep(0.01)
        return self.complete(prompt)


def threads(d3, ready):
    at_once(8, lambda _: d3.retrieve(QUESTION, ready))


def tasks(d3, ready):
    async def questions():
        await asyncio.gather(*(d3.aretrieve(QUESTION, ready) for _ in range(16)))  # more than there are threads

    asyncio.run(questions())


def loops_and_threads(d3, ready):
    async def questions():
        await asyncio.gather(*(d3.aretrieve(QUESTION, ready) for _ in range(3)))

    at_once(6, lambda n: asyncio.run(questions()) if n % 2 else d3.retrieve(QUESTION, ready))


@pytest.mark.parametrize("writer", [Writer, AsyncWriter])
@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("ask", [threads, tasks, loops_and_threads])
def test_first_questions_at_the_same_time_make_the_summaries_once(ask, writer, workers):
    llm = writer()
    d3 = D3(
        llm,
        settings={"summarizer": "llm", "workers": workers},
    )
    ask(d3, d3.prepare([BOOK]))
    assert llm.calls["summary"] == 6


@pytest.mark.filterwarnings("ignore::drillrank.errors.DrillrankWarning")
def test_failed_summaries_are_not_remembered():
    llm = Writer(fails=1)
    d3 = D3(llm, settings={"summarizer": "llm"})
    threads(d3, d3.prepare([BOOK]))
    assert llm.calls["summary"] == 12


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("later", [False, True])
def test_an_llm_that_asks_the_same_component_does_not_wait_for_itself(later, workers):
    depth = threading.local()
    calls = Counter()

    class Circular:
        def complete(self, prompt):
            kind = "summary" if "summarization" in prompt else "question"
            calls[kind] += 1
            if not getattr(depth, "inside", False) and kind == "summary":
                depth.inside = True
                try:
                    d3.retrieve(QUESTION, ready)
                finally:
                    depth.inside = False
            return "Stones." if kind == "summary" else "none"

    class CircularLater(Circular):
        open = True

        async def acomplete(self, prompt):
            kind = "summary" if "summarization" in prompt else "question"
            calls[kind] += 1
            if self.open:
                self.open = False
                await d3.aretrieve(QUESTION, ready)
            await asyncio.sleep(0)
            return "Stones." if kind == "summary" else "none"

    d3 = D3(
        CircularLater() if later else Circular(),
        settings={"summarizer": "llm", "workers": workers},
    )
    ready = d3.prepare([BOOK])
    if later:
        asyncio.run(d3.aretrieve(QUESTION, ready))
    else:
        at_once(3, lambda _: d3.retrieve(QUESTION, ready))
    before = calls["summary"]
    d3.retrieve(QUESTION, ready)
    assert calls["summary"] == before


def test_two_that_need_what_the_other_one_makes_do_not_wait_for_each_other():
    once = Once()
    both = threading.Barrier(2)

    def outer(number):
        def make():
            both.wait()
            return once.get(1 - number, lambda: (both.wait(), f"{1 - number} made by {number}")[1])

        return once.get(number, make)

    assert at_once(2, outer) == ["1 made by 0", "0 made by 1"]


def dialogue_of(once, made):
    def make():
        made.append(1)
        replies = yield ["go on"]
        return replies[0].text

    return once.steps("key", make)


async def test_who_waits_may_be_cancelled_and_who_makes_may_be_too():
    once, made = Once(), []
    open_ = asyncio.Event()

    async def llm(prompt):
        await open_.wait()
        return "made"

    def asked():
        return asyncio.ensure_future(arun(dialogue_of(once, made), llm))

    async def until(condition):
        while not condition():  # noqa: ASYNC110  # a thread works on it
            await asyncio.sleep(0.001)

    maker = asked()
    await until(lambda: made)
    waiters = [asked() for _ in range(4)]
    await asyncio.sleep(0.02)
    waiters[0].cancel()
    await asyncio.gather(waiters[0], return_exceptions=True)
    assert not any(task.done() for task in (maker, *waiters[1:]))
    maker.cancel()
    await asyncio.gather(maker, return_exceptions=True)
    await until(lambda: len(made) == 2)  # one of those who waited takes over
    open_.set()
    assert await asyncio.gather(*waiters[1:]) == ["made"] * 3
    assert len(made) == 2
    assert run(dialogue_of(once, made), str.upper) == "made"


async def test_a_blocking_call_on_the_loop_that_the_maker_needs_does_not_wait():
    once, made = Once(), []
    going = asyncio.Event()

    async def llm(prompt):
        going.set()
        await asyncio.sleep(0.02)
        return "by the task"

    task = asyncio.ensure_future(arun(dialogue_of(once, made), llm))
    await going.wait()
    assert run(dialogue_of(once, made), lambda prompt: "by itself") == "by itself"
    assert await task == once.get("key", lambda: "anew") == "by the task"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_is_raised_where_it_came_up_and_others_try_again(error):
    once, tries = Once(), []

    def make():
        tries.append(1)
        if len(tries) == 1:
            raise error
        return "made"

    with pytest.raises(error):
        once.get("key", make)
    assert at_once(8, lambda _: once.get("key", make)) == ["made"] * 8
    assert len(tries) == 2


def test_the_values_of_last_use_are_remembered():
    once, made = Once(2), []

    def get(key):
        return once.get(key, lambda: made.append(key) or key)

    for key in "abacab":
        assert get(key) == key
    assert "".join(made) == "abcb"


@pytest.mark.parametrize("later", [False, True])
def test_a_collection_is_prepared_once(later):
    prepared = []

    def prepare(sections):
        prepared.append(1)
        threading.Event().wait(0.05)
        return D3().prepare(sections)

    library = PreparedCache(prepare)

    async def all_at_once():
        return await asyncio.gather(*(asyncio.to_thread(library.ready, [[StoredChunk(BOOK)]]) for _ in range(8)))

    found = asyncio.run(all_at_once()) if later else at_once(8, lambda _: library.ready([[StoredChunk(BOOK)]]))
    assert len(prepared) == 1
    assert all(ready is found[0] for ready in found)


def test_of_many_threads_one_is_told_each_thing():
    told = Told()
    things = [f"document {number}" for number in range(200)]
    with ThreadPoolExecutor(8) as pool:
        heard = list(pool.map(lambda _: told.anew("stale", things), range(8)))
    assert sorted(thing for one in heard for thing in one) == sorted(things)
    assert told.anew("missing", things[:1]) == things[:1]


def test_a_copy_has_told_nothing():
    told = Told()
    assert told.anew("stale", ["a"]) == ["a"]
    assert copy.deepcopy(told).anew("stale", ["a"]) == pickle.loads(pickle.dumps(told)).anew("stale", ["a"]) == ["a"]
    assert told.anew("stale", ["a"]) == []
