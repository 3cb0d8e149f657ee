"""Names of packages and functions that are loaded at their first use."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


def lazy_names(package: str, module_by_name: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a `__getattr__` for a package.

    Args:
        package: Name of the package.
        module_by_name: Module of each public name, relative to the package.

    >>> get = lazy_names("drillrank", {"D3": "drilldown.d3"})
    >>> get("D3").__name__
    'D3'
    """

    def get(name: str) -> Any:
        if name not in module_by_name:
            raise AttributeError(f"module {package!r:.200} has no attribute {name!r:.200}")
        value = getattr(importlib.import_module(f"{package}.{module_by_name[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return get


@dataclass(frozen=True, slots=True)
class LazyFunction:
    """Function that loads its module at the first call.

    Attributes:
        reference: Module and name of the function.

    >>> LazyFunction("math:sqrt")(9.0)
    3.0
    """

    reference: str

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Call the function."""
        module, _, name = self.reference.partition(":")
        return getattr(importlib.import_module(module), name)(*args, **options)
