"""A limit on the calls in flight that holds across threads and event loops."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, nullcontext
from contextvars import ContextVar, copy_context
from typing import TypeVar

from drillrank.errors import check_positive

Item = TypeVar("Item")
Result = TypeVar("Result")


_held: ContextVar[tuple[Workers, ...]] = ContextVar("drillrank_workers", default=())  # by the calls around this one


class Workers:
    """At most so many calls at once, over all dialogues that share this object, whatever thread or loop they run on.

    Who waits longest comes next. One kind of call is not held back: a blocking one on the thread of an event loop whose
    own tasks hold workers or wait for them. They cannot go on before it returns, so waiting for them would never end.

    Raises:
        InvalidInput: `count` is below 1.

    >>> with Workers(1).thread():
    ...     "one call at a time"
    'one call at a time'
    """

    def __init__(self, count: int) -> None:
        check_positive(workers=count)
        self.count = count
        self._free = count
        self._lock = threading.Lock()
        self._waiting: deque[Future[None]] = deque()
        self._of_loops: Counter[int] = Counter()  # tasks that hold a worker or wait for one, by the id of their loop

    def __reduce__(self) -> tuple[type[Workers], tuple[int]]:
        return Workers, (self.count,)

    def inside(self) -> Workers:
        """What limits calls made from here: inside a call that holds a worker, that one, one call after the other."""
        return Workers(1) if self in _held.get() else self

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """What a function returns for each item, in order, called on as many threads as there are workers.

        Each call sees the caller's context variables. What one of them raises is raised, and those that have not begun
        are left.

        >>> Workers(2).map(str.upper, ["a", "b", "c"])
        ['A', 'B', 'C']
        """
        held = nullcontext if self._would_never_end() else self.thread

        def call(item: Item) -> Result:
            with held():
                return function(item)

        if self.count == 1 or len(items) < 2:
            return list(map(call, items))
        with ThreadPoolExecutor(min(self.count, len(items)), "drillrank") as threads:
            calls = [threads.submit(copy_context().run, call, item) for item in items]
            try:
                return [done.result() for done in calls]
            finally:
                threads.shutdown(wait=False, cancel_futures=True)

    @contextmanager
    def thread(self) -> Iterator[None]:
        """Held by a thread while it calls."""
        if self._would_never_end():
            yield
            return
        ticket = self._ticket()
        try:
            ticket.result()
            with self._holding():
                yield
        finally:
            self._give_back(ticket)

    @contextmanager
    def _holding(self) -> Iterator[None]:
        token = _held.set((*_held.get(), self))
        try:
            yield
        finally:
            _held.reset(token)

    @asynccontextmanager
    async def task(self) -> AsyncIterator[None]:
        """Held by a task of an event loop while it calls."""
        loop = id(asyncio.get_running_loop())
        ticket = self._ticket(loop)
        try:
            await asyncio.wrap_future(ticket)
            with self._holding():
                yield
        finally:
            self._give_back(ticket, loop)

    def _would_never_end(self) -> bool:
        try:
            loop = id(asyncio.get_running_loop())
        except RuntimeError:
            return False
        with self._lock:
            return self._of_loops[loop] > 0

    def _ticket(self, loop: int | None = None) -> Future[None]:
        """Is done when its holder has a worker."""
        ticket: Future[None] = Future()
        with self._lock:
            if loop is not None:
                self._of_loops[loop] += 1
            if self._free:
                self._free -= 1
                ticket.set_result(None)
            else:
                self._waiting.append(ticket)
        return ticket

    def _give_back(self, ticket: Future[None], loop: int | None = None) -> None:
        """Whoever waits longest gets the worker; a ticket that was cancelled before its turn never had one."""
        had_one = not ticket.cancel()
        following = None
        with self._lock:
            if loop is not None:
                self._of_loops[loop] -= 1
                self._of_loops += Counter()  # forgets loops at zero
            while had_one and self._waiting and following is None:
                first = self._waiting.popleft()
                following = first if first.set_running_or_notify_cancel() else None
            self._free += had_one and following is None
        if following is not None:
            following.set_result(None)
