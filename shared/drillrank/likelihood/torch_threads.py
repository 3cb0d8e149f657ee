"""torch, imported so that its threads sleep while they wait for each other.

By default threads of OpenMP spin for some milliseconds first. Where another process computes on one of the cores they
spin on the others, and take turns with the very threads that they wait for.
"""

from __future__ import annotations

import logging
import os
import sys
from types import ModuleType

from drillrank.errors import require
from drillrank.likelihood.forks import used_before_fork, warn_of_one_thread

logger = logging.getLogger(__name__)

_POLICY = "OMP_WAIT_POLICY"
_CHOICES = (_POLICY, "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
"""Environment variables by which a user says how threads wait: OpenMP's, GNU's and LLVM's."""


def require_torch(extra: str) -> ModuleType:
    """Import torch with `OMP_WAIT_POLICY=passive`, unless it is there already or the user has chosen how threads wait.

    The policy is read as the library of threads is loaded, so the environment is then as it was before.

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
    logger.info(
        "Threads of torch sleep while they wait, so that other processes do not hold them up; on a machine that does "
        "nothing else, %s=active may be a little faster.",
        _POLICY,
    )
    return torch


def settle_threads() -> None:
    """Before each use of torch: one thread where others stayed behind in a fork."""
    if used_before_fork():
        import torch

        if torch.get_num_threads() > 1:
            torch.set_num_threads(1)
            warn_of_one_thread()
