"""Cache of values that take long to compute from records, such as an index, for readers who may see the same records.

No index contains records that its reader may not see, so a score reveals nothing about hidden records. A framework that
varies one setting for one call (`configurable_fields`) rebuilds the component. Components with equal fields share
their computed values.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Generic, TypeVar
from weakref import WeakValueDictionary

from drillrank.frameworks.filters import AccessFilter
from drillrank.likelihood import LanguageModel
from drillrank.likelihood.unigram import UNSAVED

ValueT = TypeVar("ValueT")

MAX_INDEXES = 16
"""Largest number of indexes of a component, one for each set of records that a question may see."""


class CachedValue(Generic[ValueT]):
    """Computed value with the fields it depends on, which keep their identities while the value exists."""

    __slots__ = ("__weakref__", "fields", "value")

    def __init__(self, value: ValueT, fields: object) -> None:
        self.value = value
        self.fields = fields


_cached_values: WeakValueDictionary[Hashable, CachedValue[Any]] = WeakValueDictionary()
_compute_lock = threading.RLock()


def get_or_compute(
    kind: str, fields: Mapping[str, object] | None, compute: Callable[[], ValueT]
) -> CachedValue[ValueT]:
    """Return the cached value for equal fields, or compute and cache it.

    Strings, numbers, lists, tuples and mappings are compared by value, other objects by identity. The value is not
    cached if the fields are None or nested too deeply.

    >>> first = get_or_compute("list", {"words": ["a", "b"]}, lambda: ["first"])
    >>> get_or_compute("list", {"words": ["a", "b"]}, lambda: ["second"]) is first
    True
    >>> get_or_compute("list", {"words": ["a", "c"]}, lambda: ["third"]).value
    ['third']
    """
    try:
        key = fields and (kind, _identity_key(fields))
    except RecursionError:
        key = None
    if key is None:
        return CachedValue(compute(), {})
    with _compute_lock:
        cached = _cached_values.get(key)
        if cached is None:
            cached = _cached_values[key] = CachedValue(compute(), fields)
    return cached


def list_visible(records: Sequence[Any], access_filter: AccessFilter[Any]) -> tuple[int, ...]:
    """Return the indices of the records that pass the filter."""
    if not access_filter.restricts:
        return tuple(range(len(records)))
    permitted = set(map(id, access_filter.filter_fetched(records)))
    return tuple(index for index, record in enumerate(records) if id(record) in permitted)


def model_fields(model: LanguageModel) -> object:
    """Return the specification and options of a model that can be built from them, else the model itself."""
    is_drillrank_model = type(model).__module__.startswith("drillrank.")
    return (model.spec, model.options) if is_drillrank_model and UNSAVED not in model.spec else model


def _identity_key(value: object) -> Hashable:
    """Return a key that compares strings, numbers, lists, tuples and mappings by value and the rest by identity."""
    if value is None or isinstance(value, str | bytes | int | float):
        return type(value), value
    if isinstance(value, Mapping):
        return dict, tuple((name, _identity_key(item)) for name, item in value.items())
    if isinstance(value, list | tuple):
        return list, tuple(map(_identity_key, value))
    return object, id(value)
