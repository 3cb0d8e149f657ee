"""Callers on any number of threads and tasks take turns: each gets exactly what it gets alone."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from drillrank import UPR, PromptRank
from drillrank.likelihood import HuggingFaceModel, NextTokenRequest, Request
from drillrank.prompts import TruncatableText
from tests.drillrank.neural.conftest import saved

DOCUMENTS = ["The old town of Basel lies on the Rhine.", "Zürich is a river town.", "café", "Europe " * 40]
QUESTIONS = [f"{word} {number}?" for number, word in enumerate(["which river", "who wrote it", "what", "where"] * 4)]
PATIENCE = 60.0


def requests_of(question):
    return [Request(("Passage: ", TruncatableText(document), " Question:"), question) for document in DOCUMENTS]


@pytest.fixture(scope="module", params=["t5-tied", "gpt2"])
def folder(request, tmp_path_factory):
    return saved(request.param, tmp_path_factory)


@pytest.fixture(scope="module")
def model(folder):
    return HuggingFaceModel(str(folder), dtype="float32")


def in_sixteen_threads(function, arguments):
    """What a function returns for each argument, called from sixteen threads that begin together."""
    barrier = threading.Barrier(16)

    def call(argument):
        barrier.wait(PATIENCE)
        return function(argument)

    with ThreadPoolExecutor(16) as threads:
        return list(threads.map(call, arguments))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_sixteen_threads_find_exactly_what_one_finds(folder, dtype):
    model = HuggingFaceModel(str(folder), dtype=dtype, device="cpu")

    def scores(question):
        answers = model.next_tokens([NextTokenRequest(("Is it relevant? ", TruncatableText(question)), ("a", "b"))])
        found = [*model.log_likelihood(requests_of(question)), *model.log_likelihood([("Basel", question)])]
        return [*(one.log_probs.tolist() for one in found), answers[0].values.tolist()]

    alone = [scores(question) for question in QUESTIONS]
    for _ in range(3):
        assert in_sixteen_threads(scores, QUESTIONS) == alone


class Gate:
    """Holds up a model's worker until it is opened."""

    def __init__(self, model):
        self.order = []
        self.begun, self.opened = asyncio.Event(), threading.Event()
        self._model = model

    def hold(self, loop):
        loop.call_soon_threadsafe(self.begun.set)
        assert self.opened.wait(PATIENCE)

    async def __aenter__(self):
        self._held = asyncio.create_task(self._model.run_in_worker(self.hold, asyncio.get_running_loop()))
        await self.begun.wait()
        return self

    async def __aexit__(self, *_):
        self.opened.set()
        await self._held


async def test_first_come_first_served_and_a_cancelled_task_gives_its_place_up(model):
    async with Gate(model) as gate:
        tasks = [asyncio.create_task(model.run_in_worker(gate.order.append, number)) for number in range(20)]
        await asyncio.sleep(0)
        for task in tasks[::3]:
            task.cancel()
        await asyncio.sleep(0)
    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(one, asyncio.CancelledError) for one in found] == [number % 3 == 0 for number in range(20)]
    assert gate.order == [number for number in range(20) if number % 3]


async def test_a_hundred_tasks_leave_the_loop_and_its_threads_free(model):
    """They wait for the model's own thread, and for no thread of the loop's, of which there are few."""
    upr, paths = UPR(model), PromptRank(model)
    async with Gate(model) as gate:
        tasks = [asyncio.create_task(upr.arank(question, DOCUMENTS)) for question in QUESTIONS * 5]
        tasks += [asyncio.create_task(paths.arank(question, [])) for question in QUESTIONS[:5]]
        tasks += [asyncio.create_task(upr.arank_many([question], [DOCUMENTS])) for question in QUESTIONS]
        await asyncio.sleep(0)
        other = asyncio.to_thread(time.monotonic)
        assert await asyncio.wait_for(other, PATIENCE / 2) > 0
        assert not gate.opened.is_set()
    beats = 0

    async def beat():
        nonlocal beats
        while True:
            beats += 1
            await asyncio.sleep(0.001)

    beating = asyncio.create_task(beat())
    found = await asyncio.gather(*tasks)
    beating.cancel()
    assert beats > 10
    expected = upr.rank(QUESTIONS[0], DOCUMENTS)
    np.testing.assert_array_equal([item.score for item in found[0]], [item.score for item in expected])


async def test_what_runs_on_the_worker_may_ask_the_model(model):
    """Threads of the function's own would wait for it for ever; it asks on its own."""
    found = await asyncio.wait_for(model.run_in_worker(model.log_likelihood, requests_of("who?")), PATIENCE)
    assert [one.total for one in found] == [one.total for one in model.log_likelihood(requests_of("who?"))]
