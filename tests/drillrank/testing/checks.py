"""Run the checks of a kit one by one, on purpose faulty parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def checks_of(kit: type) -> dict[str, Callable[..., None]]:
    """Return the checks of a class by name."""
    return {name: getattr(kit, name) for name in dir(kit) if name.startswith("test_")}


def run_check(tests: Any, check: Callable[..., None]) -> None:
    """Run a check with each of its parameters."""
    [marker] = getattr(check, "pytestmark", [None])
    for argument in marker.args[1] if marker else [None]:
        check(tests, *([argument] if marker else []))


def expect_failure(tests: Any, name: str) -> None:
    """Run the check with this part of a name. It fails, and says what is wrong and what to do."""
    [check] = [check for full_name, check in checks_of(type(tests)).items() if name in full_name]
    with pytest.raises(AssertionError) as caught:
        run_check(tests, check)
    assert len(str(caught.value).split(". ")) > 1
