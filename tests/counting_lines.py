"""Work of a function, counted in executed lines of Python."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType


def lines_run(work: Callable[[str], object], text: str) -> int:
    """How many lines of Python the work takes."""
    count = 0

    def local(frame: FrameType, event: str, argument: object) -> object:
        nonlocal count
        count += 1
        return local

    before = sys.gettrace()
    sys.settrace(local)  # type: ignore[arg-type]
    try:
        work(text)
    finally:
        sys.settrace(before)
    return count
