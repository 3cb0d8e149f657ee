"""Concurrent calls share turns: same results as alone, in fair order, and errors stay with their callers."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drillrank.errors import Overloaded
from drillrank.likelihood import shared_turns
from drillrank.likelihood.shared_turns import SharedTurns, to_thread


class Gate:
    """Computes squares; the first turn waits until it is opened, so that calls gather behind it."""

    def __init__(self, fails_on=()):
        self.turns: list[tuple[list[int], object]] = []
        self.opened = threading.Event()
        self.begun = threading.Event()
        self.fails_on = set(fails_on)
        self.shared = SharedTurns(self.compute)

    def compute(self, items, options):
        self.turns.append((list(items), options))
        self.begun.set()
        assert self.opened.wait(30)
        if bad := self.fails_on.intersection(items):
            raise ValueError(f"cannot square {min(bad)}")
        return [item * item for item in items]

    def gathered(self, calls: int) -> None:
        """Wait until so many calls stand in the queue."""
        end = time.monotonic() + 30
        while len(self.shared._waiting) != calls and time.monotonic() < end:
            time.sleep(0.001)
        assert len(self.shared._waiting) == calls


@pytest.fixture
def threads():
    with ThreadPoolExecutor(24) as pool:
        yield pool


def test_a_caller_who_is_alone_computes_at_once_on_its_own_thread():
    seen = []
    shared = SharedTurns(lambda items, options: [seen.append(threading.get_ident()) or item for item in items])
    assert shared.run([1, 2]) == [1, 2]
    assert set(seen) == {threading.get_ident()}
    assert shared.run([]) == []


def test_calls_that_gather_are_one_turn(threads):
    gate = Gate()
    first = threads.submit(gate.shared.run, [0])
    assert gate.begun.wait(30)
    calls = [threads.submit(gate.shared.run, [n, n + 100]) for n in range(1, 9)]
    gate.gathered(8)
    gate.opened.set()
    assert first.result(30) == [0]
    assert [call.result(30) for call in calls] == [[n * n, (n + 100) ** 2] for n in range(1, 9)]
    assert [len(items) for items, _ in gate.turns] == [1, 16]


def test_calls_of_other_options_have_turns_of_their_own_in_the_order_of_arrival(threads):
    gate = Gate()
    first = threads.submit(gate.shared.run, [0], "a")
    assert gate.begun.wait(30)
    calls = []
    for n, options in enumerate(["b", "a", "b", "c"], start=1):
        calls.append(threads.submit(gate.shared.run, [n], options))
        gate.gathered(n)
    gate.opened.set()
    assert [call.result(30) for call in [first, *calls]] == [[0], [1], [4], [9], [16]]
    assert gate.turns == [([0], "a"), ([1, 3], "b"), ([2], "a"), ([4], "c")]


def test_an_error_is_raised_where_it_belongs_and_nowhere_else(threads):
    gate = Gate(fails_on=[2, 3])
    first = threads.submit(gate.shared.run, [0])
    assert gate.begun.wait(30)
    calls = [threads.submit(gate.shared.run, [n]) for n in (1, 2, 3, 4)]
    gate.gathered(4)
    gate.opened.set()
    assert first.result(30) == [0]
    assert calls[0].result(30) == [1]
    assert calls[3].result(30) == [16]
    for call, n in zip(calls[1:3], (2, 3), strict=True):
        with pytest.raises(ValueError, match=f"cannot square {n}"):
            call.result(30)
    assert gate.shared.run([5]) == [25]


def test_a_long_call_lets_short_ones_pass(threads, monkeypatch):
    monkeypatch.setattr(shared_turns, "_PER_TURN", 10)
    gate = Gate()
    long = threads.submit(gate.shared.run, list(range(35)))
    assert gate.begun.wait(30)
    short = [threads.submit(gate.shared.run, [100 + n]) for n in range(3)]
    gate.gathered(3)
    gate.opened.set()
    assert [call.result(30) for call in short] == [[(100 + n) ** 2] for n in range(3)]
    assert long.result(30) == [n * n for n in range(35)]
    assert [len(items) for items, _ in gate.turns] == [10, 10, 10, 8]
    assert {100, 101, 102} <= set(gate.turns[1][0])


def test_a_full_queue_refuses_and_serves_on(threads, monkeypatch):
    monkeypatch.setattr(shared_turns, "_WAITING", 2)
    gate = Gate()
    first = threads.submit(gate.shared.run, [0])
    assert gate.begun.wait(30)
    calls = [threads.submit(gate.shared.run, [n]) for n in (1, 2)]
    gate.gathered(2)
    with pytest.raises(Overloaded, match="2 calls wait"):
        gate.shared.run([3])
    gate.opened.set()
    assert [call.result(30) for call in [first, *calls]] == [[0], [1], [4]]
    assert gate.shared.run([3]) == [9]


def test_an_interrupted_leader_hands_on(threads):
    turns = []

    def compute(items, options):
        turns.append(list(items))
        begun.set()
        assert opened.wait(30)
        if len(turns) == 1:
            raise KeyboardInterrupt
        return items

    begun, opened = threading.Event(), threading.Event()
    shared = SharedTurns(compute)
    first = threads.submit(shared.run, [0])
    assert begun.wait(30)
    second = threads.submit(shared.run, [1])
    while not shared._waiting:
        time.sleep(0.001)
    opened.set()
    with pytest.raises(KeyboardInterrupt):
        first.result(30)
    assert second.result(30) == [1]
    assert shared.run([2]) == [2]


async def test_a_cancelled_task_frees_its_place(threads):
    gate = Gate()
    first = threads.submit(gate.shared.run, [0])
    assert await asyncio.to_thread(gate.begun.wait, 30)
    waiting = asyncio.create_task(to_thread(gate.shared.run, [1]))
    other = asyncio.create_task(to_thread(gate.shared.run, [2]))
    await asyncio.to_thread(gate.gathered, 2)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await asyncio.to_thread(gate.gathered, 1)
    gate.opened.set()
    assert await other == [4]
    assert first.result(30) == [0]
    assert [items for items, _ in gate.turns] == [[0], [2]]


async def test_a_cancelled_leader_ends_after_its_turn(monkeypatch):
    monkeypatch.setattr(shared_turns, "_PER_TURN", 2)
    gate = Gate()
    leading = asyncio.create_task(to_thread(gate.shared.run, [0, 1, 2, 3]))
    assert await asyncio.to_thread(gate.begun.wait, 30)
    other = asyncio.create_task(to_thread(gate.shared.run, [4]))
    await asyncio.to_thread(gate.gathered, 1)
    leading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leading
    gate.opened.set()
    assert await other == [16]
    assert [items for items, _ in gate.turns] == [[0, 1], [4]]


@settings(max_examples=20)
@given(
    st.lists(st.tuples(st.lists(st.integers(-9, 9), max_size=7), st.sampled_from("ab")), max_size=12),
    st.integers(1, 5),
)
def test_whatever_comes_together_has_the_results_that_it_has_alone(calls, per_turn):
    def compute(items, options):
        assert len(items) <= max(per_turn, len(calls))
        with alone:  # one at a time
            if 9 in items:
                raise ValueError
            return [(item, options) for item in items]

    class One:
        busy = False

        def __enter__(self):
            assert not self.busy
            self.busy = True

        def __exit__(self, *_):
            self.busy = False

    alone, before = One(), shared_turns._PER_TURN
    shared = SharedTurns(compute)
    shared_turns._PER_TURN = per_turn
    try:
        with ThreadPoolExecutor(8) as pool:
            results = [pool.submit(shared.run, items, options) for items, options in calls]
            for (items, options), result in zip(calls, results, strict=True):
                if 9 in items:
                    with pytest.raises(ValueError):  # noqa: PT011
                        result.result(30)
                else:
                    assert result.result(30) == [(item, options) for item in items]
    finally:
        shared_turns._PER_TURN = before
    assert not shared._waiting
    assert not shared._led
