"""Settings, declared once: name, type, default, description and check.

The settings of a method are a dataclass whose fields stay as they are. The method's class inherits it, and so do its
components in both hosts (`drillrank.hosts.component`): a setting that is added there appears everywhere, and means the
same.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any, TypeVar, get_args
from warnings import warn

from drillrank.errors import DrillrankWarning, InvalidInput, OnFailure, check_positive
from drillrank.settings_file import OF_THE_MODEL, sections_for

if TYPE_CHECKING:
    from typing_extensions import Self, dataclass_transform
else:

    def dataclass_transform(**_: object) -> Callable[[Any], Any]:
        """Tells a type checker alone."""
        return lambda decorator: decorator


Value = TypeVar("Value")
Target = TypeVar("Target", bound=Callable[..., Any])


def setting(*, default: Any, description: str, kw_only: bool = True) -> Any:
    """A setting of a `declared` class.

    Args:
        default: Of a type that nobody can change.
        description: What it does: for help, editors and schemas, so it is said here alone.
        kw_only: Whether it has to be named where it is given.
    """
    return field(default=default, kw_only=kw_only, metadata={"description": description})


@dataclass_transform(kw_only_default=True, field_specifiers=(setting,))
def declared(cls: type[Value]) -> type[Value]:
    """A settings class: keyword arguments, compared by value, described in its docstring.

    A setting that it only annotates anew is that of the class that it inherits, as a keyword, and of the type given.
    """
    _annotated_anew(cls, kw_only=True)
    return described(dataclass(unsafe_hash=True, kw_only=True)(cls))


@dataclass_transform(field_specifiers=(field,))
def method(cls: type[Value]) -> type[Value]:
    """A class that inherits settings and adds arguments of its own, such as its model; compared by identity.

    A setting that it annotates anew has another type there; default and description stay.
    """
    _annotated_anew(cls)
    return described(dataclass(eq=False)(cls))


def _annotated_anew(cls: type, *, kw_only: bool = False) -> None:
    inherited = getattr(cls, "__dataclass_fields__", {})
    for name in inspect.get_annotations(cls):
        known = inherited.get(name)
        if known is not None and known.metadata and name not in vars(cls):
            setattr(cls, name, setting(default=known.default, kw_only=kw_only or known.kw_only, **known.metadata))


def described(cls: type[Value]) -> type[Value]:
    """The class, with its settings listed at the end of its docstring."""
    lines = [
        fill(f"{item.name}: {item.metadata['description']}", 116, initial_indent=" " * 8, subsequent_indent=" " * 12)
        for item in fields(cls)  # type: ignore[arg-type]  # a dataclass
        if item.metadata
    ]
    if lines and cls.__doc__:  # not under python -OO
        cls.__doc__ = "\n".join([cls.__doc__.rstrip(), "", "    Settings:", *lines, "    "])
    return cls


@declared
class Settings:
    """Base of the settings of a method.

    >>> @declared
    ... class Beam(Settings):
    ...     width: int = setting(default=5, description="Paths that are extended.")
    >>> Beam(width=3).to_dict()
    {'width': 3}
    >>> Beam.from_dict({"with": 3})
    Traceback (most recent call last):
    ...
    drillrank.errors.InvalidInput: Settings of Beam are width; not {'with': 3}.
    """

    def __post_init__(self) -> None:
        for name, value in settings_of(self, type(self)).items():
            if isinstance(value, list):  # JSON has no tuples
                object.__setattr__(self, name, tuple(value))
        self.check()

    def __setattr__(self, name: str, value: object) -> None:
        # No `frozen=True`: then hosts' classes, which set attributes of their own, could not inherit it.
        if name in self.__dict__ and name in {item.name for item in fields(self)}:
            raise InvalidInput(
                f"{name} of {type(self).__name__} is fixed once it is built: build a new one with {name}=..."
            )
        super().__setattr__(name, value)

    def check(self) -> None:
        """Refuse values that cannot be used.

        Raises:
            InvalidInput: names the first one.
        """

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON and for keyword arguments."""
        return {name: _plain(value) for name, value in settings_of(self, type(self)).items()}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Settings from `to_dict`.

        Raises:
            InvalidInput: a name is unknown, or a value cannot be used.
        """
        names = [item.name for item in fields(cls) if "description" in item.metadata]
        if not isinstance(data, Mapping) or not set(data) <= set(names):
            raise InvalidInput(f"Settings of {cls.__name__} are {', '.join(names)}; not {data!r:.200}.")
        return cls(**data)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *arguments: Any, **named: Any) -> Self:
        """One of this class with the settings of a file that `drillrank tune` wrote.

        Args:
            path: The file.
            arguments: What is no setting, such as the model.
            named: The same with a name, and what takes the place of settings in the file.

        Raises:
            InvalidInput: the file cannot be read, is something else, says nothing for this class, or holds what it
                does not know or cannot use.

        Warns:
            DrillrankWarning: the settings were chosen with another model than the one given.
        """
        found = settings_in_file(path, cls)
        of_model = {name: found.pop(name) for name in OF_THE_MODEL if name in found}
        parameters = list(inspect.signature(cls).parameters)
        if "model" in parameters:
            place = parameters.index("model")
            given = arguments[place] if place < len(arguments) else named.get("model")
            found |= cls._with_model(*_model_and_options(path, of_model, given))
            if place < len(arguments):
                arguments = (*arguments[:place], found.pop("model"), *arguments[place + 1 :])
            else:
                named.pop("model", None)
        return cls(*arguments, **{**found, **named})

    @classmethod
    def _with_model(cls, model: Any, options: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments that stand for a language model; a class without `model_options` loads it here."""
        return {"model": model} | ({"model_options": dict(options)} if options else {})

    @classmethod
    def configured(cls, settings: Settings, *arguments: Any, **named: Any) -> Self:
        """One of this class with settings that are declared elsewhere, such as in a host's component.

        Args:
            settings: Has all that this class declares, perhaps more.
            arguments: What is no setting, such as the model.
            named: What is no setting and has a name, and what takes the place of settings.
        """
        return cls(*arguments, **{**settings_of(settings, cls), **named})


def settings_of(settings: Settings, cls: type[Settings]) -> dict[str, Any]:
    """The values of all settings that a class declares or inherits; its other arguments are none."""
    return {item.name: getattr(settings, item.name) for item in fields(cls) if "description" in item.metadata}


def settings_in_file(path: str | os.PathLike[str], cls: type[Settings]) -> dict[str, Any]:
    """All that a file of settings says for a class, with `model` and `model_options`, if they are there.

    Raises:
        InvalidInput: as `Settings.load`.
    """
    found: dict[str, Any] = {}
    for base, section in sections_for(path, cls).items():
        own = {name: value for name, value in section.items() if name not in OF_THE_MODEL}
        try:
            base.from_dict(own)  # type: ignore[attr-defined]  # only settings classes are named in files
        except (InvalidInput, TypeError, ValueError) as problem:
            raise InvalidInput(f"{path}, {base.__name__}: {problem}") from problem
        found |= section
    return found


def _model_and_options(
    path: str | os.PathLike[str], tuned: Mapping[str, Any], given: Any
) -> tuple[Any, Mapping[str, Any]]:
    """The model given, else that of the file; the file's options, where they are those of such a model."""
    model, options = tuned.get("model", "unigram"), tuned.get("model_options", {})
    if given is None or given == model:
        return model, options
    spec = getattr(given, "spec", given)
    kinds = [str(name).partition(":")[0] for name in (spec, model)]
    if kinds[0] == kinds[1] == "unigram" and isinstance(given, str):
        return given, options
    has = getattr(given, "options", {})
    if spec != model or any(has.get(name) != value for name, value in options.items()):
        chosen, got = (
            f"{name!r}" + (f" and {dict(more)}" if more else "")
            for name, more in ((model, options), (spec, {key: has[key] for key in options if key in has}))
        )
        warn(f"The settings of {path} were chosen with {chosen}, not with {got}.", DrillrankWarning, stacklevel=3)
    return given, {}


def _plain(value: object) -> object:
    """As JSON has it."""
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return list(value) if isinstance(value, tuple) else value


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
            raise InvalidInput(f"{name} is {', '.join(others)} or {last}, not {value!r}.")


@declared
class FailureSettings(Settings):
    """What becomes of a failure.

    Raises:
        InvalidInput: the value is not one of those named.
    """

    on_failure: OnFailure = setting(
        default="continue",
        description='Where a call fails, or brings nothing of use: `"continue"` with what there is without it, and a '
        '`DrillrankWarning`; or `"raise"`.',
    )

    def check(self) -> None:
        """Refuse what cannot be used."""
        super().check()
        check_one_of(OnFailure, on_failure=self.on_failure)


@declared
class LLMSettings(FailureSettings):
    """How an LLM is asked, whatever for.

    Raises:
        InvalidInput: a value is not one of those named, or below 1.
    """

    workers: int = setting(
        default=4, description="Most LLM calls at the same time: of one question, or of one call with documents."
    )

    def check(self) -> None:
        """Refuse what cannot be used."""
        super().check()
        check_positive(workers=self.workers)
