"""How much a test tries: part of it in `make test`, all of it in `make test-thorough`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

CaseT = TypeVar("CaseT")

IS_THOROUGH = os.environ.get("DRILLRANK_HYPOTHESIS") == "thorough"


def examples(number: int) -> int:
    """Return the number of examples for hypothesis: a quarter, at least 10; all of them in a thorough run."""
    return number if IS_THOROUGH else max(number // 4, min(number, 10))


def size(number: int) -> int:
    """Return the length of a text or the number of repetitions: a quarter; all of it in a thorough run."""
    return number if IS_THOROUGH else -(-number // 4)


def some(cases: Sequence[CaseT], step: int) -> list[CaseT]:
    """Return every case whose index is a multiple of a step; all of them in a thorough run.

    Choose a step that has no factor in common with the numbers of cases that were combined: then each value of each
    parameter is among the chosen ones.
    """
    return list(cases) if IS_THOROUGH else list(cases[::step])
