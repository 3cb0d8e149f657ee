"""Cache of a limited number of values, for use by several threads."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

_lock = threading.RLock()


class LastUsed(dict[Key, Value]):
    """Dictionary that keeps the entries used last.

    Several threads may use `get`, `make` and assignment.

    Args:
        size: Largest number of entries.

    >>> numbers = LastUsed(2)
    >>> [numbers.make(key, lambda: len(numbers)) for key in "aba"], numbers.make("c", lambda: 3), list(numbers)
    ([0, 1, 0], 3, ['a', 'c'])
    """

    size = sys.maxsize

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        self._locks_by_key: dict[Key, Any] = {}

    def get(self, key: Key, default: Any = None) -> Any:
        """Return the value of a key, and mark it as the one used last."""
        with _lock:
            if key not in self:
                return default
            value = self[key] = self.pop(key)
            return value

    def __setitem__(self, key: Key, value: Value) -> None:
        with _lock:
            super().__setitem__(key, value)
            while len(self) > self.size:
                del self[next(iter(self))]

    def make(self, key: Key, make: Callable[[], Value]) -> Value:
        """Return the value of a key. One thread makes a missing value, and others that need it wait."""
        with _lock:
            key_lock = self._locks_by_key.setdefault(key, threading.RLock())
        with key_lock:
            try:
                value: Any = self.get(key, self)
                if value is self:
                    value = self[key] = make()
                return value  # type: ignore[no-any-return]
            finally:
                self._locks_by_key.pop(key, None)
