"""An event loop's heartbeat: what blocks until the loop's next beat shows whether the loop waits for it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable
from typing import TypeVar

import numpy as np

from drillrank.likelihood import NextTokens, UnigramModel

PATIENCE = 5.0  # seconds until a loop counts as held up

Result = TypeVar("Result")


class Heartbeat:
    """Whoever waits for it on the loop's own thread waits in vain.

    Attributes:
        waited: Names of those who have waited.
        in_vain: Those of them during whose call the loop never came round.
    """

    def __init__(self) -> None:
        self.waited: set[str] = set()
        self.in_vain: set[str] = set()
        self._beating = False
        self._waiting: list[threading.Event] = []

    def __reduce__(self) -> str:
        return "Heartbeat"

    def __deepcopy__(self, memo: object) -> Heartbeat:
        return self

    def wait(self, name: str) -> None:
        """What a blocking call of that name does: nothing before the loop has come round again."""
        if not self._beating or name in self.in_vain:
            return
        self.waited.add(name)
        beat = threading.Event()
        self._waiting.append(beat)
        if not beat.wait(PATIENCE):
            self.in_vain.add(name)

    async def during(self, work: Awaitable[Result]) -> Result:
        """Beats while the work is done."""

        async def beat() -> None:
            while True:
                while self._waiting:
                    self._waiting.pop().set()
                await asyncio.sleep(0.001)

        beating = asyncio.create_task(beat())
        await asyncio.sleep(0)
        self._beating = True
        try:
            return await work
        finally:
            self._beating = False
            beating.cancel()


class SlowJudge(UnigramModel):
    """A language model of which every ranker takes all that it says, and takes long to say it."""

    def __init__(self, heart: Heartbeat) -> None:
        super().__init__()
        self._heart = heart

    @property
    def reads_instructions(self) -> bool:
        return True

    @property
    def wants_fit(self) -> bool:
        return False

    @property
    def tells_next_tokens(self) -> bool:
        return True

    def _log_likelihood(self, *arguments):
        self._heart.wait("model")
        return super()._log_likelihood(*arguments)

    def _next_tokens(self, requests, logits):
        self._heart.wait("model")
        return [NextTokens(np.log([0.5, 0.5])) for _ in requests]
