"""What is made once: one caller makes it, the others wait for it, whatever threads and event loops they run on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")
Thing = TypeVar("Thing", bound=Hashable)
Steps = Generator[Any, Any, Value]


class _Caller:
    """One who makes things, or waits for them."""

    making = 0  # how many it is making now


_callers: ContextVar[tuple[_Caller, ...]] = ContextVar("drillrank_callers", default=())  # outermost first


@contextmanager
def caller() -> Iterator[None]:
    """What is made inside, in threads and tasks that share this context too, is made by one caller."""
    token = _callers.set((*_callers.get(), _Caller()))
    try:
        yield
    finally:
        _callers.reset(token)


class Waiting(list[str]):
    """No prompts: what a dialogue yields if another one has to be done with something first."""

    def __init__(self, until: Future[Any]) -> None:
        super().__init__()
        self._until = until

    @property
    def over(self) -> bool:
        """Whether there is nothing to wait for any more."""
        return self._until.done()

    def wait(self) -> None:
        """Wait on this thread; not on that of an event loop, where what is waited for may have to run."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            self._until.result()

    async def await_(self) -> None:
        """Wait without blocking the event loop; being cancelled does not concern anyone else."""
        await asyncio.wrap_future(self._until)


class Told:
    """What somebody was told: nothing is told twice, whatever threads ask.

    >>> told = Told()
    >>> told.anew("stale", ["a.md"]), told.anew("stale", ["a.md", "b.md"]), told.anew("missing", ["a.md"])
    (['a.md'], ['b.md'], ['a.md'])
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._told: set[tuple[str, Hashable]] = set()

    def __reduce__(self) -> tuple[type[Told], tuple[()]]:
        """A copy has told nothing."""
        return type(self), ()

    def anew(self, kind: str, things: Iterable[Thing]) -> list[Thing]:
        """Of what is told of some things those of which it was not told before; now it is.

        Args:
            kind: What is told.
            things: Of which.
        """
        wanted = dict.fromkeys(things)
        with self._lock:
            new = [thing for thing in wanted if (kind, thing) not in self._told]
            self._told.update((kind, thing) for thing in new)
        return new


class Once(Generic[Value]):
    """Values by key, each made by whoever asks first.

    Failures are not remembered: whoever waited tries for itself, as it does if the maker is cancelled. Who is making
    something never waits, so that no two can wait for each other; it makes what it lacks for itself.

    Args:
        remembered: How many values are remembered, those of last use; None for all.
        keep: Whether a value is good enough to be remembered; None for any.

    >>> once = Once()
    >>> once.get("key", lambda: "made"), once.get("key", lambda: "made again")
    ('made', 'made')
    """

    def __init__(self, remembered: int | None = None, keep: Callable[[Value], bool] | None = None) -> None:
        self._remembered = remembered
        self._keep = keep
        self._lock = threading.Lock()
        self._known: dict[Hashable, Value] = {}
        self._making: dict[Hashable, Future[tuple[Value] | None]] = {}

    def __reduce__(self) -> tuple[type[Once[Value]], tuple[object, ...]]:
        """A copy remembers nothing."""
        return type(self), (self._remembered, self._keep)

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value; this thread may have to wait for it."""

        def at_once() -> Steps[Value]:
            yield from ()
            return make()

        with caller():
            steps = self.steps(key, at_once)
            try:
                waiting = next(steps)
                while True:
                    waiting.wait()
                    waiting = steps.send(())
            except StopIteration as stop:
                value: Value = stop.value
                return value

    def steps(self, key: Hashable, make: Callable[[], Steps[Value]]) -> Steps[Value]:
        """As `get`, for something that a dialogue makes: a dialogue, which also yields `Waiting`."""
        while True:
            with self._lock:
                if key in self._known:
                    value = self._known[key] = self._known.pop(key)
                    return value
                theirs = self._making.get(key)
                if theirs is None:
                    mine = self._making[key] = Future()
                    mine.set_running_or_notify_cancel()  # who waits cannot cancel it
            if theirs is None:
                return (yield from self._made(key, mine, make))
            if any(caller.making for caller in _callers.get()):
                return (yield from make())
            yield Waiting(theirs)
            if not theirs.done():  # whoever runs this could not wait
                return (yield from make())
            if made := theirs.result():
                return made[0]

    @contextmanager
    def claimed(self, keys: Iterable[Hashable]) -> Iterator[tuple[set[Hashable], dict[Hashable, Waiting]]]:
        """The keys that nobody is making something for: inside, the caller is; and what to wait for of the others.

        For things that are made many at a time and remembered elsewhere. Wait outside only, where nothing is claimed;
        who is making something else with `get` or `steps` has nothing to wait for, and makes what it lacks.
        """
        mine: dict[Hashable, Future[tuple[Value] | None]] = {}
        theirs: dict[Hashable, Waiting] = {}
        wanted = set(keys)
        with self._lock:
            for key in wanted:
                if key in self._making:
                    theirs[key] = Waiting(self._making[key])
                else:
                    mine[key] = self._making[key] = Future()
                    mine[key].set_running_or_notify_cancel()
        if any(caller.making for caller in _callers.get()):
            theirs = {}
        try:
            yield wanted - theirs.keys(), theirs
        finally:
            with self._lock:
                for key in mine:
                    del self._making[key]
            for future in mine.values():
                future.set_result(None)

    def _made(self, key: Hashable, mine: Future[tuple[Value] | None], make: Callable[[], Steps[Value]]) -> Steps[Value]:
        *_, maker = (_Caller(), *_callers.get())
        maker.making += 1
        made: tuple[Value] | None = None
        try:
            value = yield from make()
            made = (value,) if self._keep is None or self._keep(value) else None
            return value
        finally:
            maker.making -= 1
            with self._lock:
                del self._making[key]
                if made:
                    self._known[key] = made[0]
                    if self._remembered is not None and len(self._known) > self._remembered:
                        del self._known[next(iter(self._known))]
            mine.set_result(made)
