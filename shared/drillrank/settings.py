"""Settings as frozen dataclasses, which are converted from and to JSON values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from difflib import get_close_matches
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from drillrank.errors import InvalidInput

if TYPE_CHECKING:
    from typing_extensions import Self

SettingsT = TypeVar("SettingsT")

Preset = Literal["paper"]
"""Name of a set of values: `"paper"` for those that the paper of a method fixes."""


def as_settings(cls: type[SettingsT], settings: SettingsT | Mapping[str, Any]) -> SettingsT:
    """Convert a mapping of field names to an instance of a dataclass. Lists become tuples.

    Args:
        cls: The dataclass.
        settings: Mapping from field names to values, or an instance, which is returned.

    Raises:
        InvalidInput: A field does not exist, or its value cannot be used.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, kw_only=True)
    ... class BeamSettings:
    ...     width: int = 5
    >>> as_settings(BeamSettings, {"width": 3})
    BeamSettings(width=3)
    >>> as_settings(BeamSettings, {"with": 3})
    Traceback (most recent call last):
    ...
    drillrank.errors.InvalidInput: BeamSettings has no field 'with'. Did you mean 'width'? Its fields are width.
    """
    if isinstance(settings, cls):
        return settings
    names = [item.name for item in fields(cls)]  # type: ignore[arg-type]  # a dataclass
    if not isinstance(settings, Mapping):
        raise InvalidInput(f"settings must be {cls.__name__} or a dictionary of its fields, got {settings!r:.200}.")
    for name in settings.keys() - set(names):
        similar = get_close_matches(str(name)[:100], names, 1)
        advice = f"Did you mean {similar[0]!r}? " if similar else ""
        raise InvalidInput(f"{cls.__name__} has no field {name!r:.200}. {advice}Its fields are {', '.join(names)}.")
    return cls(**{name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()})


class Settings:
    """Base class of frozen dataclasses of settings.

    A subclass checks its own fields in `__post_init__` and then calls that of its base class.
    """

    def __post_init__(self) -> None:
        """End the chain of checks."""

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> Self:
        """Convert a mapping of field names, such as parsed JSON, to settings.

        Raises:
            InvalidInput: A field does not exist, or its value cannot be used.
        """
        return as_settings(cls, settings)


def with_preset(settings: SettingsT, preset: Preset | None) -> SettingsT:
    """Return the settings with the preset of a component; None keeps that of the settings.

    Raises:
        InvalidInput: The preset is neither "paper" nor None.
    """
    return settings if preset is None else replace(settings, preset=preset)  # type: ignore[type-var]  # a dataclass


def check_preset(preset: object) -> None:
    """Refuse a preset that is neither "paper" nor None.

    Raises:
        InvalidInput: The preset is not.
    """
    if preset not in ("paper", None):
        raise InvalidInput(f'preset must be "paper" or None, got {preset!r:.200}.')


def as_json(value: Any) -> Any:
    """Convert dataclasses to dictionaries, tuples to lists, and enum members to values. Return the rest unchanged.

    >>> as_json(("a", ("b",)))
    ['a', ['b']]
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: as_json(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Enum):  # a setting of a framework
        return value.value
    return list(map(as_json, value)) if isinstance(value, list | tuple) else value


def check_one_of(literal: Any, **values: object) -> None:
    """Refuse arguments that are not among the values of a `Literal`.

    Raises:
        InvalidInput: An argument is not. The message names the first such argument and the values.

    >>> from typing import Literal
    >>> check_one_of(Literal["max", "mean"], ensemble="min")
    Traceback (most recent call last):
    ...
    drillrank.errors.InvalidInput: ensemble must be "max" or "mean", got 'min'.
    """
    choices = get_args(literal)
    for name, value in values.items():
        if value not in choices:
            *others, last = [f'"{choice}"' for choice in choices]
            raise InvalidInput(f"{name} must be {', '.join(others)} or {last}, got {value!r:.200}.")
