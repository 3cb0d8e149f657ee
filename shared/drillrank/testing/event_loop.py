"""Probes that notice a blocked event loop."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

ReturnT = TypeVar("ReturnT")


class Heartbeat:
    """Event loop that others wait for. A call on the loop's own thread waits in vain.

    A slow part of a component calls `wait`. It returns as soon as the event loop has done something else, which it
    cannot if the part runs on the loop's thread.

    Attributes:
        waited: Names of the parts that waited.
        in_vain: Names of the parts that waited until `patience` ended.
        patience: Seconds after which the loop counts as blocked.
    """

    def __init__(self, patience: float = 5.0) -> None:
        self.waited: set[str] = set()
        self.in_vain: set[str] = set()
        self.patience = patience
        self._is_beating = False
        self._beats: list[threading.Event] = []

    def __reduce__(self) -> str:
        return "Heartbeat"

    def __deepcopy__(self, memo: object) -> Heartbeat:
        return self

    def wait(self, name: str) -> None:
        """Wait until the event loop has done something else. Outside `during`, return at once.

        Args:
            name: Name of the part that waits.
        """
        if not self._is_beating or name in self.in_vain:
            return
        self.waited.add(name)
        beat = threading.Event()
        self._beats.append(beat)
        if not beat.wait(self.patience):
            self.in_vain.add(name)

    async def during(self, work: Awaitable[ReturnT]) -> ReturnT:
        """Return the result of an awaitable, with a heart that beats while it works."""

        async def beat() -> None:
            while True:
                while self._beats:
                    self._beats.pop().set()
                await asyncio.sleep(0.001)

        beating = asyncio.create_task(beat())
        await asyncio.sleep(0)
        self._is_beating = True
        try:
            return await work
        finally:
            self._is_beating = False
            beating.cancel()


async def longest_stall(make: Callable[[], Awaitable[object]], attempts: int = 3) -> float:
    """Return the longest time in seconds in which an event loop does nothing else while it runs a coroutine.

    Args:
        make: Function that returns the coroutine.
        attempts: Number of runs. The best one counts, as other processes may hold up a machine.
    """
    best = float("inf")
    for _ in range(attempts):
        stalls = [0.0]

        async def watch(stalls: list[float] = stalls) -> None:
            before = time.perf_counter()
            while True:
                await asyncio.sleep(0.001)
                after = time.perf_counter()
                stalls.append(after - before)
                before = after

        watching = asyncio.create_task(watch())
        await asyncio.sleep(0)
        await make()
        await asyncio.sleep(0.002)  # the watch notes a stall that ended with the work
        watching.cancel()
        best = min(best, max(stalls))
    return best
