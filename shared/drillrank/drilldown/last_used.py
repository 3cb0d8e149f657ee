"""What takes long to make, kept for as long as it is among what was used last."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

_lock = threading.RLock()


class LastUsed(dict[Key, Value]):
    """A dictionary of so many entries, those of last use; `get`, `make` and assignment may be used by several threads.

    Args:
        size: How many entries.

    >>> numbers = LastUsed(2)
    >>> [numbers.make(key, lambda: len(numbers)) for key in "aba"], numbers.make("c", lambda: 3), list(numbers)
    ([0, 1, 0], 3, ['a', 'c'])
    """

    size = sys.maxsize

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        self._making: dict[Key, Any] = {}

    def get(self, key: Key, default: Any = None) -> Any:
        """The value, which is now the last one that was used."""
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
        """The value, made if there is none: by one thread, while others that want the same wait for it."""
        with _lock:
            making = self._making.setdefault(key, threading.RLock())
        with making:
            try:
                value: Any = self.get(key, self)
                if value is self:
                    value = self[key] = make()
                return value  # type: ignore[no-any-return]
            finally:
                self._making.pop(key, None)
