"""Which records a question may see: one reading of the hosts' metadata filters, for look-ups that no store filters.

A condition knows three answers, as SQL does: yes, no, and None where the record does not say (the key is missing, or
holds what cannot be compared). Only yes lets a record through, so that a record without a tenant is nobody's; the
negation of None is None.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from drillrank.errors import InvalidInput

Condition = Callable[[Mapping[str, Any]], "bool | None"]
"""From a record's metadata to whether it may be seen; None is no."""

_Comparison = Callable[[Any, Any], bool]
_Missing = object()


def _equal(held: Any, wanted: Any) -> bool:
    return isinstance(held, bool) is isinstance(wanted, bool) and bool(held == wanted)


def _one_of(held: Any, wanted: Any) -> bool:
    return any(_equal(held, one) for one in _several(wanted))


def _several(value: Any) -> Collection[Any]:
    return value if isinstance(value, list | tuple | set | frozenset) else (value,)


def _like(held: Any, wanted: Any, flags: int = 0) -> bool:
    pattern = "".join({"%": ".*", "_": "."}.get(sign, re.escape(sign)) for sign in _text(wanted))
    return re.fullmatch(pattern, _text(held), flags | re.DOTALL) is not None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


_COMPARISONS: dict[str, _Comparison] = {
    "eq": _equal,
    "ne": lambda held, wanted: not _equal(held, wanted),
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
    "in": _one_of,
    "nin": lambda held, wanted: not _one_of(held, wanted),
    "between": lambda held, wanted: bool(wanted[0] <= held <= wanted[1]),
    "any": lambda held, wanted: any(_one_of(one, wanted) for one in _several(held)),
    "all": lambda held, wanted: all(_one_of(one, held) for one in _several(wanted)),
    "contains": lambda held, wanted: wanted in held if isinstance(held, str) else _one_of(wanted, held),
    "not_contains": lambda held, wanted: wanted not in held if isinstance(held, str) else not _one_of(wanted, held),
    "text_match": lambda held, wanted: _text(wanted) in _text(held),
    "text_match_insensitive": lambda held, wanted: _text(wanted).casefold() in _text(held).casefold(),
    "like": _like,
    "ilike": lambda held, wanted: _like(held, wanted, re.IGNORECASE),
}
_OF_PRESENCE = ("exists", "is_empty")


def condition(key: str, named: str, wanted: Any = None) -> Condition:
    """One comparison of a metadata value.

    Args:
        key: Of the metadata.
        named: `eq`, `ne`, `gt`, `gte`, `lt`, `lte`, `in`, `nin`, `between`, `any`, `all`, `contains`, `not_contains`,
            `text_match`, `text_match_insensitive`, `like`, `ilike`, `exists` or `is_empty`.
        wanted: What it is compared with.

    Raises:
        InvalidInput: the operator is unknown, or `wanted` is None where a value is needed.

    >>> mine = condition("tenant", "eq", "a")
    >>> mine({"tenant": "a"}), mine({"tenant": "b"}), mine({})
    (True, False, None)
    """
    if named in _OF_PRESENCE:
        return lambda metadata: _present(metadata.get(key, _Missing), named, wanted)
    compare = _COMPARISONS.get(named)
    if compare is None:
        raise InvalidInput(
            f"A filter on {key!r} has the operator {named!r}, which drillrank cannot check on what it fetches; it "
            f"knows {', '.join((*_COMPARISONS, *_OF_PRESENCE))}. Give a function from a record to True or False."
        )
    if wanted is None or (named in ("in", "nin", "between") and (isinstance(wanted, str) or len(_several(wanted)) < 1)):
        raise InvalidInput(f"The filter on {key!r} ({named}) compares with {wanted!r}: give it the value meant.")

    def compared(metadata: Mapping[str, Any]) -> bool | None:
        held = metadata.get(key)
        if held is None:
            return None
        try:
            return bool(compare(held, wanted))
        except (TypeError, IndexError):  # of another kind than what it is compared with
            return None

    return compared


def all_of(conditions: Sequence[Condition]) -> Condition:
    """Whether all of the conditions hold."""

    def together(metadata: Mapping[str, Any]) -> bool | None:
        answers = [holds(metadata) for holds in conditions]
        return False if False in answers else None if None in answers else True

    return together


def any_of(conditions: Sequence[Condition]) -> Condition:
    """Whether one of the conditions holds at least."""

    def either(metadata: Mapping[str, Any]) -> bool | None:
        answers = [holds(metadata) for holds in conditions]
        return True if True in answers else None if None in answers else False

    return either


def negated(holds: Condition) -> Condition:
    """Whether a condition does not hold."""

    def denied(metadata: Mapping[str, Any]) -> bool | None:
        answer = holds(metadata)
        return None if answer is None else not answer

    return denied


def from_dictionary(filter: Mapping[str, Any]) -> Condition:
    """The condition that a dictionary with operators states, as vector stores take it.

    Args:
        filter: `{"tenant": "a"}`, `{"year": {"$gte": 2020}}`, and these under `$and`, `$or` and `$not`; several keys
            hold together.

    Raises:
        InvalidInput: an operator is unknown, or a value is None.

    >>> recent = from_dictionary({"$and": [{"tenant": "a"}, {"year": {"$gte": 2020}}]})
    >>> recent({"tenant": "a", "year": 2021}), recent({"tenant": "a", "year": 1999})
    (True, False)
    """
    if not isinstance(filter, Mapping):
        raise InvalidInput(f"A filter is a dictionary, or a function from a record to True or False; not {filter!r}.")
    return all_of([_entry(key, value) for key, value in filter.items()])


def _entry(key: str, value: Any) -> Condition:
    if key in ("$and", "$or"):
        if not isinstance(value, list | tuple) or not value:
            raise InvalidInput(f"{key} of a filter holds a list of filters, not {value!r:.100}.")
        combine = all_of if key == "$and" else any_of
        return combine([from_dictionary(one) for one in value])
    if key == "$not":
        listed = value if isinstance(value, list | tuple) else [value]
        return negated(all_of([from_dictionary(one) for one in listed]))
    if key.startswith("$"):
        raise InvalidInput(
            f"A filter has the operator {key!r}, which drillrank cannot check; it knows $and, $or, $not."
        )
    if isinstance(value, Mapping):
        return all_of([condition(key, name.removeprefix("$"), wanted) for name, wanted in value.items()])
    return condition(key, "eq", value)


def _present(held: Any, named: str, wanted: Any) -> bool:
    if named == "exists":
        return (held is not _Missing and held is not None) is (wanted is not False)
    return held is _Missing or held is None or held in ("", [], ())
