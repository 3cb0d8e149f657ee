"""Fields of a host's components: unknown names are refused, and a changed one changes what the component does.

A component prepares much of its work when it is built. So to assign a field is to build it anew with that field.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from drillrank.errors import InvalidInput

if TYPE_CHECKING:
    from typing_extensions import Self

_STATE = ("__dict__", "__pydantic_private__", "__pydantic_extra__")


def check_names(component: str, given: Iterable[str], known: Collection[str], settings: object = None) -> None:
    """Refuse names that a component does not know.

    Args:
        component: Its name.
        given: Names of what it was given.
        known: Names of its fields.
        settings: What its field `settings` is by default: what stands in there has to be given so.

    Raises:
        InvalidInput: names the first one, and the known one that it resembles.

    >>> check_names("UPRRerank", ["top_k"], ["model", "top_n"])
    Traceback (most recent call last):
    ...
    drillrank.errors.InvalidInput: UPRRerank has no field 'top_k'; did you mean 'top_n'?
    """
    for name in given:
        if name not in known:
            if hasattr(settings, name):
                raise InvalidInput(
                    f"{name} of {component} is one of its settings: give settings={{{name!r:.200}: ...}}."
                )
            near = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]!r:.200}?" if near else f". Its fields are: {', '.join(sorted(known))}."
            raise InvalidInput(f"{component} has no field {name!r:.200}{hint}")


def check_fields(cls: Any, given: Any) -> None:
    """`check_names` for a pydantic class; what its own serialisation adds is known, too."""
    if isinstance(given, Mapping):
        settings = cls.model_fields["settings"].default if "settings" in cls.model_fields else None
        check_names(cls.__name__, given, [*cls.model_fields, *cls.model_computed_fields, "class_name"], settings)


class Rebuilt:
    """Mixin for pydantic components, in front of the host's class: an assignment builds the component anew.

    A ready language model, `_language_model`, stays unless `model` or `model_options` is assigned.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if name in type(self).model_fields:  # type: ignore[attr-defined]  # a pydantic class
            self._rebuild({name: value})
        else:
            super().__setattr__(name, value)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Any:
        """A copy, built anew if it differs."""
        copied = super().model_copy(deep=deep)  # type: ignore[misc]  # a pydantic class
        if update:
            copied._rebuild(update)
        return copied

    def _rebuild(self, update: Mapping[str, Any]) -> None:
        cls: Any = type(self)
        check_fields(cls, update)
        values = {name: getattr(self, name) for name in cls.model_fields} | dict(update)
        if "model" in update:
            values["model_options"] = update.get("model_options", {})
        elif "model_options" not in update and "model_options" in values:
            values |= {"model": self._language_model, "model_options": {}}  # type: ignore[attr-defined]
        built = cls(**values)
        chosen = {*self.__pydantic_fields_set__, *update}  # type: ignore[attr-defined]
        for part in _STATE:
            object.__setattr__(self, part, getattr(built, part))
        object.__setattr__(self, "__pydantic_fields_set__", chosen)


class Fixed:
    """Mixin for other components: arguments of the constructor cannot be assigned later, as nothing would change.

    A class that takes other fields as `**fields` lists them as `_also_fixed`.
    """

    _also_fixed: Collection[str] = ()

    def __new__(cls, *_args: Any, **given: Any) -> Self:
        """Refuse unknown names before Python does, without a hint."""
        parameters = inspect.signature(cls.__init__).parameters
        if cls._also_fixed or not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
            known = [name for name in parameters if name != "self"]
            settings = parameters["settings"].default if "settings" in parameters else None
            check_names(cls.__name__, given, [*known, *cls._also_fixed], settings)
        return super().__new__(cls)

    def __setattr__(self, name: str, value: Any) -> None:
        fixed = [*inspect.signature(type(self).__init__).parameters, *self._also_fixed]
        own: list[str] = [item.name for item in fields(self)] if is_dataclass(self) else []
        built_now = name in own and name not in self.__dict__
        if name in fixed and name != "callback_manager" and not built_now:  # which hosts exchange
            raise InvalidInput(
                f"{name} of {type(self).__name__} is fixed once it is built: build a new one with {name}=..."
            )
        super().__setattr__(name, value)
