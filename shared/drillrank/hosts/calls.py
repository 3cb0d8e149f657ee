"""What hosts offer in two forms, blocking and asynchronous: what is made of it is written once, as a generator.

The generator yields calls, receives what each returns, and returns its result. `run_calls` and `arun_calls` drive it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from drillrank.calling import Function, awaited, to_thread
from drillrank.dialogue import Finished, advance

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Call:
    """One call in both forms.

    Attributes:
        now: Blocks until it is answered.
        later: Does not block the event loop.
    """

    now: Callable[[], Any]
    later: Callable[[], Awaitable[Any]]


Calls = Generator[Call, Any, Result]


def call(function: Function, afunction: Function, *arguments: Any, own: Function | None = None, **named: Any) -> Call:
    """A function and its asynchronous twin; `own` is what the twin hands on to, as for `drillrank.calling.awaited`."""
    return Call(
        partial(function, *arguments, **named), partial(awaited, afunction, *arguments, own=own or afunction, **named)
    )


def on_thread(function: Function, *arguments: Any) -> Call:
    """A function without a twin."""
    return Call(partial(function, *arguments), partial(to_thread, function, *arguments))


def unless(error: type[Exception], asked: Call) -> Call:
    """The same call; where it raises this error, it returns None."""

    def now() -> Any:
        with suppress(error):
            return asked.now()

    async def later() -> Any:
        with suppress(error):
            return await asked.later()

    return Call(now, later)


def run_calls(calls: Calls[Result]) -> Result:
    """Drive calls to their result.

    >>> def doubled():
    ...     return 2 * (yield on_thread(int, "21"))
    >>> run_calls(doubled()), asyncio.run(arun_calls(doubled()))
    (42, 42)
    """
    step = advance(calls, None)
    while not isinstance(step, Finished):
        step = advance(calls, step.now())
    return step.result


async def arun_calls(calls: Calls[Result]) -> Result:
    """As `run_calls`, without blocking the event loop."""
    step = advance(calls, None)
    while not isinstance(step, Finished):
        step = advance(calls, await step.later())
    return step.result


class CalledOnce(Generic[Result]):
    """What a call returns, called once for each key however many ask for it, at the same time or later."""

    def __init__(self) -> None:
        self._made: dict[int, Result] = {}
        self._making: dict[int, asyncio.Lock] = {}

    def get(self, key: object, made: Call) -> Calls[Result]:
        """What the call for this key returns; keys are told apart by identity."""

        async def later() -> Result:
            async with self._making.setdefault(id(key), asyncio.Lock()):
                if id(key) not in self._made:
                    self._made[id(key)] = await made.later()
            return self._made[id(key)]

        if id(key) not in self._made:
            self._made[id(key)] = yield Call(made.now, later)
        return self._made[id(key)]
