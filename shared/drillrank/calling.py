"""How what a user brings is called: by which of its methods, and whether that may run on an event loop."""

from __future__ import annotations

import asyncio
import dis
import functools
import inspect
import threading
from collections.abc import Callable, Coroutine
from contextvars import ContextVar, copy_context
from typing import Any, Concatenate, ParamSpec, TypeVar

Result = TypeVar("Result")
Owner = TypeVar("Owner")
P = ParamSpec("P")
Function = Callable[..., Any]

_WAITS = {"GET_AWAITABLE", "GET_ANEXT"}  # what `await`, `async with` and `async for` are compiled to


def method_of(given: object, *names: str) -> Function | None:
    """The first of these methods that there is; without any of them, the object itself if it is a function.

    >>> method_of("abc", "shout", "upper")()
    'ABC'
    """
    for name in names:
        method = getattr(given, name, None)
        if callable(method):
            return method  # type: ignore[no-any-return]
    return given if callable(given) else None


def is_async(function: Function) -> bool:
    """Whether what it returns has to be awaited."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def gives_way(function: Function) -> bool:
    """Whether an asynchronous function ever awaits.

    One that does not is synchronous in disguise: it would hold up the event loop from its beginning to its end. Where
    there is no bytecode to tell, as of a compiled function, it counts as one that awaits.

    >>> async def disguised(prompt):
    ...     return prompt.upper()
    >>> gives_way(disguised), gives_way(asyncio.sleep)
    (False, True)
    """
    while isinstance(function, functools.partial):
        function = function.func
    if not inspect.isroutine(function):
        function = getattr(function, "__call__", function)  # noqa: B004
    code = getattr(function, "__code__", None)
    return code is None or any(step.opname in _WAITS for step in dis.get_instructions(code))


def blocking(function: Function) -> Function | None:
    """The function as one for a thread to call; None if it awaits, and belongs on the event loop."""
    if not is_async(function):
        return function
    return None if gives_way(function) else lambda *arguments: asyncio.run(function(*arguments))


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
    """As `asyncio.to_thread`; when the task is cancelled, the thread learns of it by `caller_gave_up`.

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


def on_thread(
    method: Callable[Concatenate[Owner, P], Result],
) -> Callable[Concatenate[Owner, P], Coroutine[Any, Any, Result]]:
    """The asynchronous twin of a method that computes: the same on a thread, in subclasses as they override it.

    >>> class Ranker:
    ...     def rank(self, query):
    ...         return sorted(query)
    ...
    ...     arank = on_thread(rank)
    >>> asyncio.run(Ranker().arank("cab"))
    ['a', 'b', 'c']
    """
    name = method.__name__

    async def twin(self: Owner, /, *arguments: P.args, **named: P.kwargs) -> Result:
        own: Callable[P, Result] = getattr(self, name)
        return await to_thread(own, *arguments, **named)

    twin.__name__, twin.__qualname__ = f"a{name}", method.__qualname__.replace(name, f"a{name}")
    twin.__module__, twin.__doc__ = method.__module__, f"As `{name}`, without blocking the event loop."
    return twin


async def awaited(
    function: Callable[..., Coroutine[Any, Any, Result]], *arguments: Any, own: Function | None = None, **named: Any
) -> Result:
    """What an asynchronous function returns; one that never awaits runs on a thread, where it holds up no other task.

    Where it only hands on what another one does, that one is `own`.

    >>> async def disguised(prompt):
    ...     return prompt.upper()
    >>> asyncio.run(awaited(disguised, "a"))
    'A'
    """
    if gives_way(own or function):
        return await function(*arguments, **named)
    return await to_thread(lambda: asyncio.run(function(*arguments, **named)))
