"""What a component makes of its fields when it is built, shared with others of equal fields.

A host that varies one setting for one call (`configurable_fields`) builds the component anew each time; what takes
long, an index of its documents, must not be built again. It lives as long as one of the components that share it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

from drillrank.likelihood import LanguageModel
from drillrank.likelihood.unigram import UNSAVED

Made = TypeVar("Made")


class Shared(Generic[Made]):
    """Something made, with the fields that it was made of: while it lives, their identities are taken."""

    __slots__ = ("__weakref__", "fields", "made")

    def __init__(self, made: Made, fields: Mapping[str, object]) -> None:
        self.made = made
        self.fields = fields


_alive: WeakValueDictionary[Hashable, Shared[object]] = WeakValueDictionary()


def shared(kind: str, fields: Mapping[str, object] | None, make: Callable[[], Made]) -> Shared[Made]:
    """What was made of equal fields, or what `make` makes; nobody shares what is made of None.

    Strings, numbers, lists, tuples and mappings are compared by value, anything else by identity.

    >>> first = shared("list", {"words": ["a", "b"]}, lambda: ["made"])
    >>> shared("list", {"words": ["a", "b"]}, lambda: ["made again"]) is first
    True
    >>> shared("list", {"words": ["a", "c"]}, lambda: ["made again"]).made
    ['made again']
    """
    if fields is None:
        return Shared(make(), {})
    key = (kind, _identity(fields))
    found = _alive.get(key)
    if found is None:
        found = Shared(make(), fields)
        _alive[key] = found
    return found  # type: ignore[return-value]  # one kind, one type


def model_fields(model: LanguageModel) -> object:
    """Specification and options of a model that they can build again; any other model itself."""
    ours = type(model).__module__.startswith("drillrank.")
    return (model.spec, model.options) if ours and UNSAVED not in model.spec else model


def _identity(value: object) -> Hashable:
    if value is None or isinstance(value, str | bytes | int | float):
        return type(value), value
    if isinstance(value, Mapping):
        return dict, tuple((name, _identity(item)) for name, item in value.items())
    if isinstance(value, list | tuple):
        return list, tuple(map(_identity, value))
    return object, id(value)
