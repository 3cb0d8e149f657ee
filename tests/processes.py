"""Processes of the tests that are interrupted."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Sequence
from typing import Any


def interruptible(command: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
    """A process that heeds SIGINT, which what runs in the background ignores, and so does all that it starts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    finally:
        signal.signal(signal.SIGINT, before)
