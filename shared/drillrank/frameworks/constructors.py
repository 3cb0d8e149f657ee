"""Constructors of components, alike in both frameworks: argument checks, and a short `repr` without document texts."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import inspect
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, TypeVar

from drillrank.errors import InvalidInput
from drillrank.likelihood import LanguageModel
from drillrank.settings import Settings

ComponentT = TypeVar("ComponentT")

_MAX_TEXT = 60  # characters of a string in a `repr`
_MAX_ITEMS = 5
_COMPARED_BY_VALUE = (str, int, float, Enum, list, tuple, dict, Settings)


def component(cls: type[ComponentT]) -> type[ComponentT]:
    """Give a dataclass the argument checks and the `repr` of components: `@component` above `@dataclass(repr=False)`.

    >>> @component
    ... @dataclasses.dataclass(repr=False)
    ... class Retriever:
    ...     documents: list[object]
    ...     top_n: int = 5
    >>> Retriever([object(), object()])
    Retriever(documents=<2 object>)
    >>> Retriever([], topn=3)
    Traceback (most recent call last):
    ...
    drillrank.errors.InvalidInput: Retriever has no argument 'topn'; did you mean 'top_n'?
    """
    dataclass_init: Any = cls.__init__
    parameters = dict(list(inspect.signature(dataclass_init).parameters.items())[1:])

    @functools.wraps(dataclass_init)
    def checked_init(self: Any, *arguments: Any, **named: Any) -> None:
        name = type(self).__name__
        positional = [key for key, parameter in parameters.items() if parameter.kind is not parameter.KEYWORD_ONLY]
        check_positional(name, positional, len(arguments))
        settings = parameters["settings"].default if "settings" in parameters else None
        for key in named:
            if key not in parameters:
                raise InvalidInput(describe_unknown_argument(name, key, parameters, settings))
        for key, parameter in parameters.items():
            if parameter.default is parameter.empty and key not in (*positional[: len(arguments)], *named):
                raise InvalidInput(f"{name} needs {key}. Pass it.")
        dataclass_init(self, *arguments, **named)

    cls.__init__, cls.__repr__ = checked_init, render_dataclass  # type: ignore[method-assign]
    return cls


def check_positional(name: str, positional: list[str], n_arguments: int) -> None:
    """Refuse more positional arguments than a component has.

    Raises:
        InvalidInput: There are more. The message names the positional arguments.
    """
    if n_arguments > len(positional):
        raise InvalidInput(
            f"{name} takes at most {len(positional)} positional arguments, got {n_arguments}. "
            f"Pass {', '.join(positional) or 'nothing'} by position and all else by name."
        )


def describe_unknown_argument(component_name: str, name: str, names: Iterable[str], settings: object) -> str:
    """Return the message for an unknown argument, with the closest known one.

    Args:
        component_name: Name of the component's class.
        name: Unknown argument.
        names: Arguments of the component.
        settings: Default settings of the component, or None.
    """
    if hasattr(settings, name):
        return f"{name} of {component_name} is one of its settings: give settings={{{name!r:.200}: ...}}."
    similar = difflib.get_close_matches(name, list(names), 1, cutoff=0.65)
    hint = f"; did you mean {similar[0]!r:.200}?" if similar else f". Its arguments are: {', '.join(sorted(names))}."
    return f"{component_name} has no argument {name!r:.200}{hint}"


def render_dataclass(instance: Any) -> str:
    """Render a dataclass with the fields that differ from their defaults."""
    texts = [
        f"{field.name}={render_value(getattr(instance, field.name))}"
        for field in dataclasses.fields(instance)
        if not is_default(getattr(instance, field.name, field.default), field.default)
    ]
    return f"{type(instance).__name__}({', '.join(texts)})"


def is_default(value: object, default: object) -> bool:
    """Return True if a value is its default, or an empty collection. Live objects are compared by identity."""
    if value is default or (isinstance(value, list | tuple | Mapping) and not value):
        return True
    return isinstance(value, _COMPARED_BY_VALUE) and type(value) is type(default) and value == default


def render_value(value: Any) -> str:
    """Render a value of a component: no document text, models by specification, live objects by type.

    >>> [render_value(value) for value in (("titles", "names"), {"tenant": "a"}, [object()], print)]
    ["('titles', 'names')", "{'tenant': ...}", '<1 object>', '<builtin_function_or_method>']
    """
    if value is None or isinstance(value, bool | int | float | Enum):
        return f"{value!r:.{_MAX_TEXT}}"
    if isinstance(value, str):
        return repr(value if len(value) <= _MAX_TEXT else value[:_MAX_TEXT] + "…")
    if isinstance(value, LanguageModel):
        return render_value(value.spec)
    if isinstance(value, Settings):
        return render_dataclass(value)
    if isinstance(value, Mapping):
        more = ", ..." if len(value) > _MAX_ITEMS else ""
        return "{" + ", ".join(f"{key!r:.{_MAX_TEXT}}: ..." for key in list(value)[:_MAX_ITEMS]) + more + "}"
    if isinstance(value, list | tuple) and value:
        if len(value) <= _MAX_ITEMS and all(isinstance(item, str | int | float) for item in value):
            return f"({', '.join(map(render_value, value))})"
        return f"<{len(value)} {type(value[0]).__name__}>"
    return f"<{type(value).__name__}>"
