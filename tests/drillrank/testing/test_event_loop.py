"""The probes of the kit notice a blocked event loop."""

from __future__ import annotations

import asyncio
import time

from drillrank.testing import Heartbeat
from drillrank.testing.event_loop import longest_stall


async def test_a_part_on_the_thread_of_the_loop_waits_in_vain():
    heart = Heartbeat(patience=0.01)

    async def work():
        heart.wait("itself")

    await heart.during(work())
    assert heart.waited == heart.in_vain == {"itself"}


async def test_a_part_on_another_thread_goes_on():
    heart = Heartbeat()
    await heart.during(asyncio.to_thread(heart.wait, "thread"))
    assert heart.waited == {"thread"}
    assert not heart.in_vain


async def test_the_longest_stall_is_that_of_the_best_run():
    seconds = iter([0.06, 0.03])

    async def work():
        time.sleep(next(seconds))  # noqa: ASYNC251

    assert 0.03 <= await longest_stall(work, attempts=2) < 0.06
