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
        size: Largest total size of the entries. The entry used last is kept whatever its size.
        measure: Function from a value to its size. None gives each value the size 1.

    >>> numbers = LastUsed(2)
    >>> [numbers.make(key, lambda: len(numbers)) for key in "aba"], numbers.make("c", lambda: 3), list(numbers)
    ([0, 1, 0], 3, ['a', 'c'])
    >>> texts = LastUsed(5, len)
    >>> [texts.make(text, lambda: text) for text in ("ab", "cd", "efg")], list(texts)
    (['ab', 'cd', 'efg'], ['cd', 'efg'])
    """

    size = sys.maxsize  # of a copy, whose entries are set before its attributes
    _measure: Callable[[Value], int] | None = None
    _total_size = 0

    def __init__(self, size: int, measure: Callable[[Value], int] | None = None) -> None:
        super().__init__()
        self.size = size
        self._measure = measure
        self._locks_by_key: dict[Key, Any] = {}

    def get(self, key: Key, default: Any = None) -> Any:
        """Return the value of a key, and mark it as the one used last."""
        with _lock:
            if key not in self:
                return default
            value = self.pop(key)
            super().__setitem__(key, value)
            return value

    def __setitem__(self, key: Key, value: Value) -> None:
        with _lock:
            if key in self:
                self._total_size -= self._size_of(self[key])
            super().__setitem__(key, value)
            self._total_size += self._size_of(value)
            while self._total_size > self.size and len(self) > 1:
                self._total_size -= self._size_of(self.pop(next(iter(self))))

    def _size_of(self, value: Value) -> int:
        return 1 if self._measure is None else self._measure(value)

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
