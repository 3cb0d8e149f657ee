"""Number of examples that hypothesis tries: few in `make test`, all in `make test-thorough`."""

from __future__ import annotations

import os

IS_THOROUGH = os.environ.get("DRILLRANK_HYPOTHESIS") == "thorough"


def examples(number: int) -> int:
    """Return a quarter of the number, at least 10; all of them in a thorough run."""
    return number if IS_THOROUGH else max(number // 4, min(number, 10))
