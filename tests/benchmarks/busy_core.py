"""What another process does to a benchmark."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_UNTIL_ORPHANED = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"


@contextmanager
def busy_core() -> Iterator[None]:
    """Another process computes all the time."""
    process = subprocess.Popen([sys.executable, "-c", _UNTIL_ORPHANED])
    try:
        yield
    finally:
        process.kill()
        process.wait()
