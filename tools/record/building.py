"""Components of either tree, from arguments as the first reference names them."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
import sys
import typing
from collections.abc import Callable, Iterator
from typing import Any

from .names import GONE, MOVED, RENAMED, VALUES


class NotBuilt(Exception):
    """A call does not fit this tree: a name is missing from the tables of `names.py`."""


def imported(place: str) -> Any:
    """A class or function by `"module:name"`, from where it was or from where it is now.

    Raises:
        NotBuilt: it is in neither place.
    """
    for known in dict.fromkeys([place, MOVED.get(place, place)]):
        module, _, name = known.partition(":")
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            continue
    raise NotBuilt(f"{place} is not in this tree, and names.MOVED does not say where it went.")


def build(component: Callable[..., Any], /, *arguments: Any, **pinned: Any) -> Any:
    """Call a class or function with named settings, each where it stands in this tree.

    A setting is passed as a keyword argument where there is one of that name; else in the keyword argument whose type
    is a dataclass with such a field, such as `settings=D3Settings(...)`.

    Raises:
        NotBuilt: a setting is nowhere, and not said to be gone.
    """
    flat: dict[str, Any] = {}
    nested: dict[str, dict[str, Any]] = {}
    holders = dict(_holders(component))
    parameters, anything = _parameters(component)
    for old, given in pinned.items():
        value = _renamed_value(old, given)
        names = [old, *filter(None, (RENAMED.get(f"{component.__name__}.{old}"), RENAMED.get(old)))]
        direct = next((name for name in names if name in parameters), None)
        if direct is not None:
            flat[direct] = value
            continue
        inside = [(holder, name) for name in names for holder, kind in holders.items() if name in _field_names(kind)]
        if inside:
            holder, name = inside[0]
            nested.setdefault(holder, {})[name] = value
        elif anything:
            flat[names[-1]] = value
        elif not {old, f"{component.__name__}.{old}"} & GONE:
            raise NotBuilt(f"{component.__name__} has no setting {old!r} here, and names.py does not say why.")
    for holder, values in nested.items():
        flat[holder] = holders[holder](**values)
    return component(*arguments, **flat)


def _parameters(component: Callable[..., Any]) -> tuple[set[str], bool]:
    """Keyword arguments, and whether others are handed on."""
    signature = inspect.signature(component).parameters.values()
    fields = set(getattr(component, "model_fields", {}))
    named = {one.name for one in signature if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)}
    return named | fields, not fields and any(one.kind == one.VAR_KEYWORD for one in signature)


def _holders(component: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """Arguments that take a dataclass, with that class."""
    fields = getattr(component, "model_fields", {})
    for name, parameter in inspect.signature(component).parameters.items():
        annotations = [parameter.annotation, *([fields[name].annotation] if name in fields else [])]
        kinds = [type(parameter.default), *(kind for one in annotations for kind in _classes(one, component))]
        kind = next((kind for kind in kinds if dataclasses.is_dataclass(kind)), None)
        if kind is not None:
            yield name, kind


def _classes(annotation: Any, component: Any) -> Iterator[Any]:
    """The classes that an annotation names, be it a string or a type."""
    if isinstance(annotation, str):
        for module in {one.__module__ for one in getattr(component, "__mro__", (component,))}:
            known = vars(sys.modules[module])
            yield from (known[word] for word in re.findall(r"\w+", annotation) if isinstance(known.get(word), type))
    elif isinstance(annotation, type):
        yield annotation
    for part in typing.get_args(annotation):
        yield from _classes(part, component)


def _field_names(kind: Any) -> set[str]:
    return {field.name for field in dataclasses.fields(kind) if field.init}


def _renamed_value(name: str, value: Any) -> Any:
    known = VALUES.get(name, {})
    if isinstance(value, str):
        return known.get(value, value)
    if known and isinstance(value, list | tuple):
        return type(value)(known.get(one, one) if isinstance(one, str) else one for one in value)
    return value


def got(value: Any, name: str) -> Any:
    """An attribute of a result by the name that it had, or has now; None of one that is gone."""
    kind = type(value).__name__
    for known in (name, RENAMED.get(f"{kind}.{name}"), RENAMED.get(name)):
        if known is not None and hasattr(value, known):
            return getattr(value, known)
    if name in GONE or f"{kind}.{name}" in GONE:
        return None
    raise NotBuilt(f"{kind} has no {name!r} here, and names.py does not say why.")
