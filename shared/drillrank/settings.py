"""Settings by name: frozen dataclasses made from what JSON holds, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from drillrank.errors import InvalidInput

if TYPE_CHECKING:
    from typing_extensions import Self

T = TypeVar("T")


def as_settings(cls: type[T], given: T | Mapping[str, Any]) -> T:
    """Settings that are given as such or by name; lists become tuples.

    Args:
        cls: A dataclass.
        given: One of them, or its fields by name.

    Raises:
        InvalidInput: a name is unknown, or a value cannot be used.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, kw_only=True)
    ... class BeamSettings:
    ...     width: int = 5
    >>> as_settings(BeamSettings, {"width": 3})
    BeamSettings(width=3)
    >>> as_settings(BeamSettings, {"with": 3})
    Traceback (most recent call last):
    ...
    drillrank.errors.InvalidInput: BeamSettings has width; not {'with': 3}.
    """
    if isinstance(given, cls):
        return given
    known = [item.name for item in fields(cls)]  # type: ignore[arg-type]  # a dataclass
    if not isinstance(given, Mapping) or not given.keys() <= set(known):
        raise InvalidInput(f"{cls.__name__} has {', '.join(known)}; not {given!r:.200}.")
    return cls(**{name: tuple(value) if isinstance(value, list) else value for name, value in given.items()})


class Settings:
    """Base of frozen dataclasses of settings: each checks its own fields, and then has the next base check its."""

    def __post_init__(self) -> None:
        """Nothing is left to be checked."""

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """Settings by name, as JSON has them.

        Raises:
            InvalidInput: a name is unknown, or a value cannot be used.
        """
        return as_settings(cls, given)


def as_json(value: Any) -> Any:
    """As JSON has it: settings and other dataclasses by name, tuples as lists; what JSON has no form for stays.

    >>> as_json(("a", ("b",)))
    ['a', ['b']]
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: as_json(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Enum):  # a host's
        return value.value
    return list(map(as_json, value)) if isinstance(value, list | tuple) else value


def check_one_of(literal: Any, **values: object) -> None:
    """Refuse settings that are none of a `Literal`'s values.

    Raises:
        InvalidInput: names the first one, and what there is.

    >>> from typing import Literal
    >>> check_one_of(Literal["max", "mean"], ensemble="min")
    Traceback (most recent call last):
    ...
    drillrank.errors.InvalidInput: ensemble is "max" or "mean", not 'min'.
    """
    known = [f'"{value}"' for value in get_args(literal)]
    for name, value in values.items():
        if value not in get_args(literal):
            *others, last = known
            raise InvalidInput(f"{name} is {', '.join(others)} or {last}, not {value!r:.200}.")
