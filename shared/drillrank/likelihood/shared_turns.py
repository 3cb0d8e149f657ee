"""Calls that arrive while others are computed wait, and are computed together in the next turn.

A caller who is alone computes at once, on its own thread: nobody waits for a batch to fill. While it does, requests of
other threads gather. Then the first of those computes a turn for all of them, and hands on when its own are done.
"""

from __future__ import annotations

import asyncio
import functools
import threading
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import CancelledError
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from typing import Any, Generic, ParamSpec, TypeVar

from drillrank.errors import Overloaded

Item = TypeVar("Item")
Result = TypeVar("Result")
P = ParamSpec("P")

_PER_TURN = 512  # items: enough to fill batches, few enough that a long call does not make short ones wait for its end
_WAITING = 1024  # calls


class GaveUp(threading.Event):
    """Whether the task that waits for a thread was cancelled, for what the thread waits for in turn."""

    def __init__(self) -> None:
        super().__init__()
        self._then: list[Callable[[], object]] = []

    def then(self, function: Callable[[], object]) -> None:
        """Have a function called when it happens; at once, if it has happened."""
        self._then.append(function)
        if self.is_set():
            function()

    def set(self) -> None:
        """It was cancelled."""
        super().set()
        for function in tuple(self._then):
            function()


caller_gave_up: ContextVar[GaveUp | None] = ContextVar("caller_gave_up", default=None)


async def to_thread(function: Callable[P, Result], *arguments: P.args, **named: P.kwargs) -> Result:
    """As `asyncio.to_thread`; when the task is cancelled, a call that waits for its turn on the thread is freed.

    >>> asyncio.run(to_thread(pow, 2, 5))
    32
    """
    gave_up, context = GaveUp(), copy_context()
    context.run(caller_gave_up.set, gave_up)
    try:
        return await asyncio.get_running_loop().run_in_executor(
            None, functools.partial(context.run, function, *arguments, **named)
        )
    except asyncio.CancelledError:
        gave_up.set()
        raise


@dataclass(eq=False, slots=True)
class _Call(Generic[Item, Result]):
    items: Sequence[Item]
    options: Hashable
    results: list[Result] = field(default_factory=list)
    error: Exception | None = None
    leads: bool = False
    left: bool = False  # nobody waits for it any more
    woken: threading.Event = field(default_factory=threading.Event)

    @property
    def finished(self) -> bool:
        return self.error is not None or len(self.results) == len(self.items)


class SharedTurns(Generic[Item, Result]):
    """One computation at a time for callers on any number of threads.

    Args:
        compute: From items and options to as many results. A result must not depend on the items beside it.

    A turn serves the calls of one kind of options, those first that have waited longest; if they have more items than
    a turn takes, short calls are served whole and long ones go on in the next turn, behind the others.

    >>> turns = SharedTurns(lambda words, shout: [word.upper() if shout else word for word in words])
    >>> turns.run(["a", "b"], True)
    ['A', 'B']
    """

    def __init__(self, compute: Callable[[list[Item], Any], Sequence[Result]]) -> None:
        self._compute = compute
        self._lock = threading.Lock()
        self._waiting: deque[_Call[Item, Result]] = deque()
        self._led = False  # somebody computes, or is about to

    def run(self, items: Sequence[Item], options: Hashable = None) -> list[Result]:
        """The items' results. An error is raised in the call whose items caused it, and in no other.

        Raises:
            Overloaded: 1,024 calls wait already.
            CancelledError: the task that waited for this thread was cancelled; its place in the queue is free.
        """
        if not items:
            return []
        call: _Call[Item, Result] = _Call(items, options)
        gave_up = caller_gave_up.get()
        with self._lock:
            if len(self._waiting) >= _WAITING:
                raise Overloaded(f"{_WAITING} calls wait for this model: ask later, or ask fewer at a time.")
            self._waiting.append(call)
            call.leads, self._led = not self._led, True
        try:
            if not call.leads:
                if gave_up is not None:
                    gave_up.then(call.woken.set)
                call.woken.wait()
            while not call.finished:
                if gave_up is not None and gave_up.is_set():
                    raise CancelledError
                self._take_turn()
        finally:
            self._leave(call)
        if call.error is not None:
            raise call.error
        return call.results

    def _take_turn(self) -> None:
        with self._lock:
            options = self._waiting[0].options
            calls = [call for call in self._waiting if call.options == options][:_PER_TURN]
            for call in calls:
                self._waiting.remove(call)
        try:
            self._serve(calls, options)
        finally:
            with self._lock:
                self._waiting.extend(call for call in calls if not call.finished and not call.left)
            for call in calls:
                if call.finished:
                    call.woken.set()

    def _serve(self, calls: Sequence[_Call[Item, Result]], options: Hashable) -> None:
        """Compute what comes next of each of these calls."""
        shares = self._shares(calls)
        try:
            results = iter(self._compute([item for share in shares for item in share], options))
            for call, share in zip(calls, shares, strict=True):
                call.results += [next(results) for _ in share]
        except Exception as error:
            if len(calls) == 1:
                calls[0].error = error
                return
            for call in calls:  # the error is that of one of them
                self._serve([call], options)

    def _shares(self, calls: Sequence[_Call[Item, Result]]) -> list[Sequence[Item]]:
        left, shares = _PER_TURN, dict.fromkeys(calls, 0)
        open_ = {call: len(call.items) - len(call.results) for call in calls}
        for number, call in enumerate(sorted(calls, key=open_.__getitem__)):
            shares[call] = min(open_[call], max(1, left // (len(calls) - number)))
            left -= shares[call]
        return [call.items[(at := len(call.results)) : at + shares[call]] for call in calls]

    def _leave(self, call: _Call[Item, Result]) -> None:
        """Free the call's place; if it leads, the next one does."""
        with self._lock:
            call.left = True
            if call in self._waiting:
                self._waiting.remove(call)
            if not call.leads:
                return
            self._led = bool(self._waiting)
            if self._waiting:
                self._waiting[0].leads = True
                self._waiting[0].woken.set()
