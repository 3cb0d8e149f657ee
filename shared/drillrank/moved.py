"""Modules and names that were changed: what was imported under the old one is handed on for one release."""

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


def renamed_names(module: str, **names: str) -> Callable[[str], Any]:
    """The `__getattr__` of a module of which some names were changed.

    Args:
        module: Its name.
        names: The new name of each old one.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     found = renamed_names("drillrank.passages", Rank="Ranked")("Rank")
    >>> found.__name__, str(caught[0].message)
    ('Ranked', 'Rank of drillrank.passages is called Ranked now.')
    """

    def handed_on(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warn(f"{name} of {module} is called {names[name]} now.", DeprecationWarning, stacklevel=2)
        return getattr(importlib.import_module(module), names[name])

    return handed_on
