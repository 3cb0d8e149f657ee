"""Processes of models on this machine: one worker thread per model, PyTorch threads that sleep, and forks.

A web server may load models before it forks its workers. Then only the thread that forks survives. OpenMP, which
divides matrix products among threads, would wait for the others forever. With one thread it waits for none.
"""

from __future__ import annotations

import ctypes
import logging
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from types import ModuleType
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakSet

from drillrank.errors import require, warn

T = TypeVar("T")

logger = logging.getLogger(__name__)

_POLICY = "OMP_WAIT_POLICY"
_CHOICES = (_POLICY, "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
"""Environment variables that set how threads wait: OpenMP's, GNU's and LLVM's."""


class PerProcess(Generic[T]):
    """Object that each process creates at its first use, because threads, locks and connections do not survive a fork.

    >>> mine = PerProcess(list)
    >>> mine() is mine()
    True
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: dict[int, T] = {}

    def __call__(self) -> T:
        """Return the object of this process."""
        process = os.getpid()
        if process not in self._made:  # of threads that race, all take what one of them has made
            self._made.setdefault(process, self._make())
        return self._made[process]


class Worker:
    """One thread that serves callers of any thread in order of arrival.

    >>> Worker().run(pow, 2, 5)
    32
    """

    def __init__(self) -> None:
        self._pool = PerProcess(partial(ThreadPoolExecutor, 1, "drillrank", setattr, (_here, "worker", id(self))))

    def submit(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        """Call a function on the worker later, with the context variables of the caller."""
        return self._pool().submit(copy_context().run, function, *arguments)

    def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function on the worker and return its result. On the worker itself, it is called at once."""
        if getattr(_here, "worker", None) == id(self):
            return function(*arguments)
        future = self.submit(function, *arguments)
        try:
            return future.result()
        finally:
            future.cancel()  # the caller has stopped waiting, as after an interrupt


class _HoldsModel(Protocol):
    model: Any


_here = threading.local()  # `worker`: the id of the worker whose thread this is
_holders: WeakSet[_HoldsModel] = WeakSet()
_used_in: set[int] = set()  # ids of this process and those that it was forked from
_warned_in: set[int] = set()


def used_before_fork() -> bool:
    """Return True if models were used in a process that this one was forked from. Call it before each use.

    >>> used_before_fork()
    False
    """
    _used_in.add(os.getpid())
    return len(_used_in) > 1


def warn_of_one_thread() -> None:
    """Warn once per process that a fork leaves one thread, and say what to do."""
    if os.getpid() in _warned_in:
        return
    _warned_in.add(os.getpid())
    warn(
        "A model was used before this process was forked, and computes on one thread here, because the others do not "
        "survive a fork. Load models in each process, or start processes by spawn."
    )


def keep_in_children(holder: _HoldsModel) -> None:
    """Never free the holder's model in processes forked from this one, which would wait for threads that are gone."""
    _holders.add(holder)


def _in_child() -> None:
    for holder in list(_holders):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(holder.model))


if hasattr(os, "register_at_fork"):  # Windows has no forks
    os.register_at_fork(after_in_child=_in_child)


def require_torch(extra: str) -> ModuleType:
    """Import torch with `OMP_WAIT_POLICY=passive`, unless it is imported or the user has set how threads wait.

    By default, threads of OpenMP spin for some milliseconds before they sleep. If another process uses one of the
    cores, they compete with the threads that they wait for. OpenMP reads the policy when it is loaded, so the
    environment is restored afterwards.

    Args:
        extra: Extra of this distribution that installs torch.

    Raises:
        MissingExtra: torch cannot be imported.
    """
    if "torch" in sys.modules or any(name in os.environ for name in _CHOICES):
        return require("torch", extra)
    os.environ[_POLICY] = "passive"
    try:
        torch = require("torch", extra)
    finally:
        os.environ.pop(_POLICY, None)  # another thread may have done so
    logger.info("Threads of torch sleep while they wait. On an idle machine, %s=active may be faster.", _POLICY)
    return torch


def settle_threads() -> None:
    """Use one thread of torch if a fork left the others behind. Call it before each use."""
    if used_before_fork():
        import torch

        if torch.get_num_threads() > 1:
            torch.set_num_threads(1)
            warn_of_one_thread()
