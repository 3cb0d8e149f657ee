"""Models in a process that was forked after they were used, as by a web server that loads before it makes its workers.

Only the thread that forks goes on there. OpenMP, which shares matrix products among threads, would wait for the others
for ever; on one thread it waits for none.
"""

from __future__ import annotations

import ctypes
import os
import warnings
from typing import Any, Protocol
from weakref import WeakSet

from drillrank.errors import DrillrankWarning

_used_in: set[int] = set()  # processes: this one, and those that it was forked from


def used_before_fork() -> bool:
    """Whether models were used in a process that this one was forked from; to be asked before each use.

    >>> used_before_fork()
    False
    """
    _used_in.add(os.getpid())
    return len(_used_in) > 1


def warn_of_one_thread() -> None:
    """Say what it costs, and what to do."""
    warnings.warn(
        "A model was used before this process was forked, and computes on one thread here: the others do not come "
        "along. Load models in each process, or start processes by spawn.",
        DrillrankWarning,
        stacklevel=2,
    )


class _HoldsModel(Protocol):
    model: Any


_holders: WeakSet[_HoldsModel] = WeakSet()


def keep_in_children(holder: _HoldsModel) -> None:
    """Never free its model in processes that are forked from this one: it would wait for threads that are not there."""
    _holders.add(holder)


def _keep() -> None:
    for holder in list(_holders):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(holder.model))


if hasattr(os, "register_at_fork"):  # Windows has no forks
    os.register_at_fork(after_in_child=_keep)
