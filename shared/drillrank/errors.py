"""Errors and warnings of drillrank: each says what was wrong, where, and what to do."""

from __future__ import annotations

import importlib
import json
import math
import sys
import threading
import warnings
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Literal, TypeVar

Thing = TypeVar("Thing", bound=Hashable)

OnFailure = Literal["continue", "raise"]
"""What a failed LLM call means: go on without it, or raise."""


class DrillrankError(Exception):
    """Base class of every error that drillrank raises on purpose."""


class InvalidInput(DrillrankError, ValueError):
    """An argument or a document that cannot be used as it is."""


class UnknownModel(InvalidInput):
    """A model specification that names no known kind of language model."""


class LacksCapability(InvalidInput):
    """A language model was asked for what it cannot tell; the message names what would do."""


class ServerFailure(DrillrankError):
    """A server of language models that could not be reached, refused, or answered what cannot be; with its words.

    Attributes:
        status: HTTP status, where the server answered with an error.
    """

    status: int | None = None


class LLMFailure(DrillrankError):
    """An LLM call that raised; the cause is chained."""


class MissingExtra(DrillrankError, ImportError):
    """An optional dependency is not installed; the message names the extra."""


class DrillrankWarning(UserWarning):
    """Something was repaired, shortened or left out, and the result is still usable."""


_NOT_THE_USER = {
    *("drillrank", "llama_index_ext", "langchain_ext", "llama_index", "llama_index_instrumentation"),
    *("langchain", "langchain_core", "langchain_classic", "pydantic"),
    *("asyncio", "concurrent", "contextlib", "dataclasses", "functools", "threading"),
}


def warn(message: str) -> None:
    """A `DrillrankWarning` that points to the user's line: the first one outside of this package and the hosts."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in _NOT_THE_USER:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, DrillrankWarning, stacklevel=level)


_REMEMBERED = 10_000  # warnings of each `WarnOnce`
_lock = threading.Lock()


class WarnOnce:
    """What has been warned of, so that nothing is said twice; beyond 10,000 warnings the oldest are forgotten.

    >>> warned = WarnOnce()
    >>> warned.new("outdated", ["a.md"]), warned.new("outdated", ["a.md", "b.md"]), warned.new("missing", ["a.md"])
    (['a.md'], ['b.md'], ['a.md'])
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, Hashable], None] = {}

    def new(self, kind: str, things: Iterable[Thing]) -> list[Thing]:
        """Those of the things that there was no warning of this kind about; now there is."""
        with _lock:
            new = [thing for thing in dict.fromkeys(things) if (kind, thing) not in self._known]
            self._known.update(dict.fromkeys((kind, thing) for thing in new))
            while len(self._known) > _REMEMBERED:
                del self._known[next(iter(self._known))]
        return new


def check_positive(**numbers: int) -> None:
    """Reject settings that must be whole numbers from 1 on.

    Raises:
        InvalidInput: names the first one that is not.

    >>> check_positive(hops=2, beam=0)
    Traceback (most recent call last):
    ...
    drillrank.errors.InvalidInput: beam must be a whole number, at least 1; not 0.
    """
    for name, number in numbers.items():
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            raise InvalidInput(f"{name} must be a whole number, at least 1; not {number!r:.200}.")


def check_limits(**numbers: int | None) -> None:
    """`check_positive` for settings that may be None: no limit, or the method's own."""
    check_positive(**{name: number for name, number in numbers.items() if number is not None})


def check_number(least: float = 0.0, **numbers: float) -> None:
    """Reject settings that must be finite numbers above `least`.

    Raises:
        InvalidInput: names the first one that is not.

    >>> check_number(temperature=1.4, prior_weight=0)
    Traceback (most recent call last):
    ...
    drillrank.errors.InvalidInput: prior_weight is a finite number above 0, not 0.
    """
    for name, number in numbers.items():
        if not isinstance(number, int | float) or isinstance(number, bool) or not least < number < math.inf:
            raise InvalidInput(f"{name} is a finite number above {least:g}, not {number!r:.200}.")


def require(module: str, extra: str) -> ModuleType:
    """Import an optional dependency, or say which extra brings it.

    Args:
        module: Dotted name of the module to import.
        extra: Extra of this distribution that installs it.

    Raises:
        MissingExtra: the module cannot be imported; the original error is chained.

    >>> require("json", "hf").__name__
    'json'
    >>> require("no_such_module", "hf")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    drillrank.errors.MissingExtra: 'no_such_module' is not available: ... pip install "drillrank[hf]...
    """
    try:
        return importlib.import_module(module)
    except MissingExtra:  # an adapter that misses its framework has said so already
        raise
    except ImportError as cause:
        message = f"{module!r:.200} is not available: {cause}. To install it: {install_command(extra)}"
        raise MissingExtra(message) from cause


def install_command(extra: str) -> str:
    """What installs an extra from where this distribution came: an index, or the address that the installer noted.

    >>> install_command("hf")  # doctest: +ELLIPSIS
    'pip install "drillrank[hf]...'
    """
    from importlib import metadata  # costs more than the rest of this module

    try:
        recorded = metadata.distribution("drillrank").read_text("direct_url.json")  # PEP 610
    except metadata.PackageNotFoundError:
        recorded = None
    origin = json.loads(recorded or "{}")
    kind = f"{origin['vcs_info']['vcs']}+" if "vcs_info" in origin else ""
    return f'pip install "drillrank[{extra}]{" @ " + kind + origin["url"] if origin else ""}"'


@contextmanager
def invalid_input(message: str, advice: str = "") -> Iterator[None]:
    """Around what a library does with files of the user's: whatever it raises becomes one `InvalidInput`.

    Args:
        message: What cannot be done; the library's words follow, at most 1,000 characters of them.
        advice: Stands after them.

    Raises:
        InvalidInput: the block raised an error that is not ours.

    >>> with invalid_input("'m' is no model that can be loaded"):
    ...     {}["weight"]
    Traceback (most recent call last):
    ...
    drillrank.errors.InvalidInput: 'm' is no model that can be loaded: KeyError: 'weight'.
    """
    try:
        yield
    except DrillrankError:
        raise
    except Exception as error:
        kind = "" if isinstance(error, OSError | ValueError) else f"{type(error).__name__}: "
        words = str(error)[:1000].rstrip(".")
        raise InvalidInput(f"{message}: {kind}{words}. {advice}".rstrip()) from error
