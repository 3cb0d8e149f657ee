"""What long work makes of given records, an index of them: kept for those who may see the same of them.

No index holds what its reader may not see, so that a score tells nothing of it. A host that varies one setting for one
call (`configurable_fields`) builds the component anew each time; components of equal fields share what was made.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Generic, TypeVar
from weakref import WeakValueDictionary

from drillrank.drilldown.last_used import LastUsed
from drillrank.errors import InvalidInput
from drillrank.frameworks.filters import AccessFilter
from drillrank.likelihood import LanguageModel
from drillrank.likelihood.unigram import UNSAVED
from drillrank.llm import FunctionRequest, Requests

Record = TypeVar("Record")
Made = TypeVar("Made")

_READERS = 16  # groups of records that are kept, those that were asked for last


class Shared(Generic[Made]):
    """Something made, with the fields that it was made of: while it lives, their identities are taken."""

    __slots__ = ("__weakref__", "fields", "made")

    def __init__(self, made: Made, fields: object) -> None:
        self.made = made
        self.fields = fields


_alive: WeakValueDictionary[Hashable, Shared[Any]] = WeakValueDictionary()
_making = threading.RLock()


def shared(kind: str, fields: Mapping[str, object] | None, make: Callable[[], Made]) -> Shared[Made]:
    """What was made of equal fields, or what `make` makes, once; nobody shares what is made of None.

    Strings, numbers, lists, tuples and mappings are compared by value, anything else by identity.

    >>> first = shared("list", {"words": ["a", "b"]}, lambda: ["made"])
    >>> shared("list", {"words": ["a", "b"]}, lambda: ["made again"]) is first
    True
    >>> shared("list", {"words": ["a", "c"]}, lambda: ["made again"]).made
    ['made again']
    """
    if fields is None:
        return Shared(make(), {})
    try:
        key = (kind, _identity(fields))
    except RecursionError as cause:
        raise InvalidInput("Records or settings are nested too deeply. Store deep metadata as a string.") from cause
    with _making:
        found = _alive.get(key)
        if found is None:
            found = _alive[key] = Shared(make(), fields)
    return found


class Indexes(Generic[Record, Made]):
    """One index for each group of the given records that a question may see.

    Args:
        records: As they were given.
        make: Of the numbers of some of them.

    >>> indexes = Indexes(["a", "b"], lambda seen: [f"index of {seen}"])
    >>> indexes.of((0, 1)), indexes.of((0,)) is indexes.of((0,))
    (['index of (0, 1)'], True)
    """

    def __init__(self, records: Sequence[Record], make: Callable[[tuple[int, ...]], Made]) -> None:
        self.records = records
        self._make = make
        self._selected: LastUsed[tuple[int, ...], Made] = LastUsed(_READERS)

    def of(self, seen: tuple[int, ...]) -> Made:
        """The index of these; whoever asks for it at the same time waits for one."""
        return self._selected.make(seen, lambda: self._make(seen))

    def seen(self, access_filter: AccessFilter[Any]) -> Requests[tuple[int, ...]]:
        """Numbers of the records that may be seen; filters are asked off the event loop."""
        [seen] = yield [FunctionRequest(lambda: self.numbers(access_filter))]
        return seen  # type: ignore[no-any-return]

    def numbers(self, access_filter: AccessFilter[Any]) -> tuple[int, ...]:
        """Numbers of the records that may be seen."""
        permitted = set(map(id, access_filter.filter_fetched(self.records)))
        return tuple(number for number, record in enumerate(self.records) if id(record) in permitted)


def model_fields(model: LanguageModel) -> object:
    """Specification and options of a model that they can build again; any other model itself."""
    ours = type(model).__module__.startswith("drillrank.")
    return (model.spec, model.options) if ours and UNSAVED not in model.spec else model


def _identity(value: object) -> Hashable:
    """Strings, numbers, lists, tuples and mappings by value, anything else by identity."""
    if value is None or isinstance(value, str | bytes | int | float):
        return type(value), value
    if isinstance(value, Mapping):
        return dict, tuple((name, _identity(item)) for name, item in value.items())
    if isinstance(value, list | tuple):
        return list, tuple(map(_identity, value))
    return object, id(value)
