"""Errors and warnings of drillrank, and checks of arguments. Messages say what was wrong, where, and what to do."""

from __future__ import annotations

import importlib
import json
import sys
import threading
import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Literal, TypeVar, get_args

ItemT = TypeVar("ItemT", bound=Hashable)

OnFailure = Literal["raise", "fallback"]
"""Reaction of a component to an LLM that fails: raise an `LLMFailure`, or fall back to its method without an LLM.

Components take `OnFailure | None`. With None, a call without an answer raises, and an answer that cannot be used falls
back.
"""


class DrillrankError(Exception):
    """Base class of all errors that drillrank raises on purpose."""


class InvalidInput(DrillrankError, ValueError):
    """An argument or a document cannot be used as it is."""


class UnknownModel(InvalidInput):
    """A model specification does not name a known kind of language model."""


class LacksCapability(InvalidInput):
    """A language model cannot compute what a component needs. The message names models that can."""


class ServerFailure(DrillrankError):
    """The model server was unreachable, refused the request or sent an invalid response. The message quotes the server.

    Attributes:
        status: HTTP status of the response; None if there was no response with an error status.
    """

    status: int | None = None


class LLMFailure(DrillrankError):
    """An LLM gave no answer: it could not be reached, refused, timed out or failed in another way.

    The LLM's own error is the cause (`__cause__`).

    Attributes:
        reason: Type and message of the LLM's own error, or what was wrong with its answer.
    """

    reason: str = ""

    @property
    def kind(self) -> str:
        """Type of the LLM's own error, or of this one, for warnings, which must not quote texts."""
        return type(self.__cause__ or self).__name__


class UnusableAnswer(LLMFailure):
    """An LLM gave an answer that cannot be used."""


class MissingExtra(DrillrankError, ImportError):
    """An optional dependency is not installed. The message contains the command that installs it."""


class DrillrankWarning(UserWarning):
    """Input was repaired, truncated or skipped, and the result is still usable."""


def raise_or_fall_back(failure: LLMFailure, on_failure: OnFailure | None) -> LLMFailure:
    """Raise a failure of an LLM, or return it if the component falls back.

    Every component with an LLM follows this rule, and only states its policy.

    Args:
        failure: The failure. An `UnusableAnswer` is an answer that cannot be used, and any other is a missing answer.
        on_failure: Policy of the component.

    >>> raise_or_fall_back(UnusableAnswer("No id."), None), raise_or_fall_back(LLMFailure("No route."), "fallback")
    (UnusableAnswer('No id.'), LLMFailure('No route.'))
    >>> raise_or_fall_back(LLMFailure("No route."), None)
    Traceback (most recent call last):
    ...
    drillrank.errors.LLMFailure: No route.
    """
    policy = on_failure or ("fallback" if isinstance(failure, UnusableAnswer) else "raise")
    if policy == "raise":
        raise failure
    return failure


def check_on_failure(on_failure: object) -> None:
    """Refuse a policy that does not exist.

    Raises:
        InvalidInput: `on_failure` is not "raise", "fallback" or None.
    """
    if on_failure not in (*get_args(OnFailure), None):
        raise InvalidInput(f'on_failure must be "raise", "fallback" or None, got {on_failure!r:.200}.')


_LIBRARY_PACKAGES = {
    *("drillrank", "llama_index_ext", "langchain_ext", "llama_index", "llama_index_instrumentation"),
    *("langchain", "langchain_core", "langchain_classic", "pydantic"),
    *("asyncio", "concurrent", "contextlib", "dataclasses", "functools", "threading"),
}


def warn(message: str) -> None:
    """Issue a `DrillrankWarning` that points to the first line outside drillrank and the frameworks.

    Python and logs keep the text of each warning. So it contains no question, no document text and no id, and is
    constant for each kind of problem.
    """
    level, frame = 2, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in _LIBRARY_PACKAGES:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, DrillrankWarning, stacklevel=level)


_MAX_KNOWN_ITEMS = 10_000  # of each `WarnOnce`
_lock = threading.Lock()


class WarnOnce:
    """Record of the items that a warning has named, so that none is repeated. Only the last 10,000 items are kept.

    >>> warned = WarnOnce()
    >>> warned.new("outdated", ["a.md"]), warned.new("outdated", ["a.md", "b.md"]), warned.new("missing", ["a.md"])
    (['a.md'], ['b.md'], ['a.md'])
    """

    def __init__(self) -> None:
        self._known_items: dict[tuple[str, Hashable], None] = {}

    def new(self, kind: str, items: Iterable[ItemT]) -> list[ItemT]:
        """Return the items without a warning of this kind so far, and record them as warned about."""
        with _lock:
            new_items = [item for item in dict.fromkeys(items) if (kind, item) not in self._known_items]
            self._known_items.update(dict.fromkeys((kind, item) for item in new_items))
            while len(self._known_items) > _MAX_KNOWN_ITEMS:
                del self._known_items[next(iter(self._known_items))]
        return new_items


def check_positive(**numbers: int) -> None:
    """Refuse arguments that are not whole numbers of at least 1.

    Raises:
        InvalidInput: An argument is not. The message names the first such argument.

    >>> check_positive(hops=2, beam=0)
    Traceback (most recent call last):
    ...
    drillrank.errors.InvalidInput: beam must be a whole number of at least 1, got 0.
    """
    for name, number in numbers.items():
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            raise InvalidInput(f"{name} must be a whole number of at least 1, got {number!r:.200}.")


def check_limits(**numbers: int | None) -> None:
    """Apply `check_positive` to the arguments that are not None.

    Raises:
        InvalidInput: As for `check_positive`.

    >>> check_limits(top_n=None, max_tokens=100)
    """
    check_positive(**{name: number for name, number in numbers.items() if number is not None})


def check_number(minimum: float = 0.0, /, **numbers: float) -> None:
    """Refuse arguments that are not finite numbers above `minimum`.

    Raises:
        InvalidInput: An argument is not. The message names the first such argument.

    >>> check_number(temperature=1.4, prior_weight=0)
    Traceback (most recent call last):
    ...
    drillrank.errors.InvalidInput: prior_weight must be a finite number above 0, got 0.
    """
    for name, number in numbers.items():
        if (
            not isinstance(number, int | float)
            or isinstance(number, bool)
            or not minimum < number <= sys.float_info.max
        ):
            raise InvalidInput(f"{name} must be a finite number above {minimum:g}, got {number!r:.200}.")


def check_mappings(**mappings: object) -> None:
    """Refuse arguments that are neither mappings nor None.

    Raises:
        InvalidInput: An argument is not. The message names the first such argument.

    >>> check_mappings(parameters={"temperature": 0}, model_kwargs="dtype")
    Traceback (most recent call last):
    ...
    drillrank.errors.InvalidInput: model_kwargs must be a mapping from names to values, got 'dtype'.
    """
    for name, value in mappings.items():
        if not isinstance(value, Mapping | None):
            raise InvalidInput(f"{name} must be a mapping from names to values, got {value!r:.200}.")


def require(module: str, extra: str) -> ModuleType:
    """Import an optional dependency.

    Args:
        module: Dotted name of the module to import.
        extra: Extra of this distribution that installs it.

    Raises:
        MissingExtra: The module cannot be imported. The message contains the command that installs it.

    >>> require("json", "hf").__name__
    'json'
    >>> require("no_such_module", "hf")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    drillrank.errors.MissingExtra: 'no_such_module' is not available: ... pip install "drillrank[hf]...
    """
    try:
        return importlib.import_module(module)
    except MissingExtra:  # raised by an adapter without its framework, with the right command
        raise
    except ImportError as cause:
        message = f"{module!r:.200} is not available: {cause}. Install it with: {install_command(extra)}"
        raise MissingExtra(message) from cause


def install_command(extra: str) -> str:
    """Return the command that installs an extra from the source of this distribution, an index or an address.

    >>> install_command("hf")  # doctest: +ELLIPSIS
    'pip install "drillrank[hf]...'
    """
    from importlib import metadata  # takes longer to import than the rest of this module

    try:
        recorded = metadata.distribution("drillrank").read_text("direct_url.json")  # PEP 610
    except metadata.PackageNotFoundError:
        recorded = None
    origin = json.loads(recorded or "{}")
    kind = f"{origin['vcs_info']['vcs']}+" if "vcs_info" in origin else ""
    return f'pip install "drillrank[{extra}]{" @ " + kind + origin["url"] if origin else ""}"'


@contextmanager
def invalid_input(message: str, advice: str = "") -> Iterator[None]:
    """Convert any error of a third-party library that reads user files to an `InvalidInput`.

    Args:
        message: Description of what failed. At most 1,000 characters of the library's message follow.
        advice: Sentence after the library's message.

    Raises:
        InvalidInput: The block raised an error that is not a `DrillrankError`.

    >>> with invalid_input("The model 'm' cannot be loaded", "Download it again."):
    ...     {}["weight"]
    Traceback (most recent call last):
    ...
    drillrank.errors.InvalidInput: The model 'm' cannot be loaded: KeyError: 'weight'. Download it again.
    """
    try:
        yield
    except DrillrankError:
        raise
    except Exception as error:
        kind = "" if isinstance(error, OSError | ValueError) else f"{type(error).__name__}: "
        reason = str(error)[:1000].rstrip(".")
        raise InvalidInput(f"{message}: {kind}{reason}. {advice}".rstrip()) from error
