"""Modules that were renamed: what was imported from the old one is handed on for one release."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any
from warnings import warn


def moved(old: str, new: str) -> Callable[[str], Any]:
    """The `__getattr__` of a module under its old name.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     found = moved("drillrank.ranks", "drillrank.passages")("Ranked")
    >>> found.__name__, str(caught[0].message)
    ('Ranked', 'drillrank.ranks is called drillrank.passages now.')
    """

    def handed_on(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # what Python and its tools ask of every module
        found = getattr(importlib.import_module(new), name)
        warn(f"{old} is called {new} now.", DeprecationWarning, stacklevel=2)
        return found

    return handed_on
