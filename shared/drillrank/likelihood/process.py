"""What models on this machine need of the process: a worker thread each, threads of torch that sleep, and forks.

In a process that was forked after models were used, as by a web server that loads before it makes its workers, only
the thread that forks goes on. OpenMP, which shares matrix products among threads, would wait for the others for ever;
on one thread it waits for none.
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
"""Environment variables by which a user says how threads wait: OpenMP's, GNU's and LLVM's."""


class PerProcess(Generic[T]):
    """What each process makes for itself at its first use: no thread, lock or connection comes along in a fork.

    >>> mine = PerProcess(list)
    >>> mine() is mine()
    True
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: dict[int, T] = {}

    def __call__(self) -> T:
        """That of this process."""
        process = os.getpid()
        if process not in self._made:  # of threads that race, all take what one of them has made
            self._made.setdefault(process, self._make())
        return self._made[process]


class Worker:
    """One thread on which callers of any thread take turns: first come, first served.

    >>> Worker().run(pow, 2, 5)
    32
    """

    def __init__(self) -> None:
        self._pool = PerProcess(partial(ThreadPoolExecutor, 1, "drillrank", setattr, (_here, "worker", id(self))))

    def submit(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        """Have a function called on the worker, with the context variables of the caller."""
        return self._pool().submit(copy_context().run, function, *arguments)

    def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """What a function returns on the worker; if this is the worker, it is called at once."""
        if getattr(_here, "worker", None) == id(self):
            return function(*arguments)
        future = self.submit(function, *arguments)
        try:
            return future.result()
        finally:
            future.cancel()  # nobody waits any more, as after an interrupt


class _HoldsModel(Protocol):
    model: Any


_here = threading.local()  # `worker`: the id of the worker whose thread this is
_holders: WeakSet[_HoldsModel] = WeakSet()
_used_in: set[int] = set()  # processes: this one, and those that it was forked from
_warned_in: set[int] = set()


def used_before_fork() -> bool:
    """Whether models were used in a process that this one was forked from; to be asked before each use.

    >>> used_before_fork()
    False
    """
    _used_in.add(os.getpid())
    return len(_used_in) > 1


def warn_of_one_thread() -> None:
    """Say once in a process what it costs, and what to do."""
    if os.getpid() in _warned_in:
        return
    _warned_in.add(os.getpid())
    warn(
        "A model was used before this process was forked, and computes on one thread here: the others do not come "
        "along. Load models in each process, or start processes by spawn."
    )


def keep_in_children(holder: _HoldsModel) -> None:
    """Never free its model in processes that are forked from this one: it would wait for threads that are not there."""
    _holders.add(holder)


def _in_child() -> None:
    for holder in list(_holders):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(holder.model))


if hasattr(os, "register_at_fork"):  # Windows has no forks
    os.register_at_fork(after_in_child=_in_child)


def require_torch(extra: str) -> ModuleType:
    """Import torch with `OMP_WAIT_POLICY=passive`, unless it is there already or the user has chosen how threads wait.

    By default threads of OpenMP spin for some milliseconds before they sleep. Where another process computes on one of
    the cores they spin on the others, and take turns with the very threads that they wait for. The policy is read as
    the library of threads is loaded, so the environment is then as it was before.

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
        os.environ.pop(_POLICY, None)  # another thread may have been here
    logger.info("Threads of torch sleep while they wait; where nothing else runs, %s=active may be faster.", _POLICY)
    return torch


def settle_threads() -> None:
    """Before each use of torch: one thread where others stayed behind in a fork."""
    if used_before_fork():
        import torch

        if torch.get_num_threads() > 1:
            torch.set_num_threads(1)
            warn_of_one_thread()
