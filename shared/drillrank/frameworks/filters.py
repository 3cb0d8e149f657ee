"""Which records a question may see: one reading of the hosts' metadata filters, for look-ups that no store filters.

A condition knows three answers, as SQL does: yes, no, and None where the record does not say (the key is missing, or
holds what cannot be compared). Only yes lets a record through, so that a record without a tenant is nobody's; the
negation of None is None.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Generic, TypeVar

from drillrank.errors import InvalidInput, warn
from drillrank.frameworks.metadata import list_view_metadata

Condition = Callable[[Mapping[str, Any]], "bool | None"]
"""From a record's metadata to whether it may be seen; None is no."""

_Comparison = Callable[[Any, Any], "bool | None"]


def _equal(value: Any, wanted: Any) -> bool | None:
    """Some stores take True for 1, others do not: who compares them gets no answer."""
    if isinstance(value, bool) is not isinstance(wanted, bool) and isinstance(value, int | float):
        return None if isinstance(wanted, int | float) else False
    return bool(value == wanted)


def _one_of(value: Any, wanted: Any) -> bool | None:
    return _either([_equal(value, one) for one in _several(wanted)])


def _several(value: Any) -> Collection[Any]:
    return value if isinstance(value, list | tuple | set | frozenset) else (value,)


def _ordered(compare: Callable[[Any, Any], Any]) -> _Comparison:
    def compared(value: Any, wanted: Any) -> bool | None:
        return bool(compare(value, wanted)) if isinstance(value, bool) is isinstance(wanted, bool) else None

    return compared


def _contains(value: Any, wanted: Any) -> bool | None:
    return wanted in value if isinstance(value, str) else _one_of(wanted, value)


_WILDCARDS = str.maketrans({"%": "*", "_": "?", "*": "[*]", "?": "[?]", "[": "[[]"})


def _like(value: Any, wanted: Any) -> bool:
    """As the names of files are matched, which goes back for no wildcard: no pattern takes for ever."""
    return fnmatchcase(_text(value), _text(wanted).translate(_WILDCARDS))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _either(answers: Sequence[bool | None]) -> bool | None:
    return True if True in answers else None if None in answers else False


def _together(answers: Sequence[bool | None]) -> bool | None:
    return False if False in answers else None if None in answers else True


def _not(answer: bool | None) -> bool | None:
    return None if answer is None else not answer


_COMPARISONS: dict[str, _Comparison] = {
    "eq": _equal,
    "ne": lambda value, wanted: _not(_equal(value, wanted)),
    "gt": _ordered(operator.gt),
    "gte": _ordered(operator.ge),
    "lt": _ordered(operator.lt),
    "lte": _ordered(operator.le),
    "in": _one_of,
    "nin": lambda value, wanted: _not(_one_of(value, wanted)),
    "any": lambda value, wanted: _either([_one_of(one, wanted) for one in _several(value)]),
    "all": lambda value, wanted: _together([_one_of(one, value) for one in _several(wanted)]),
    "contains": _contains,
    "not_contains": lambda value, wanted: _not(_contains(value, wanted)),
    "text_match": lambda value, wanted: _text(wanted) in _text(value),
    "text_match_insensitive": lambda value, wanted: _text(wanted).casefold() in _text(value).casefold(),
    "like": _like,
    "ilike": lambda value, wanted: _like(_text(value).casefold(), _text(wanted).casefold()),
}


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
    if named == "exists":
        return lambda metadata: (metadata.get(key) is not None) is (wanted is not False)
    if named == "is_empty":
        return lambda metadata: metadata.get(key) in (None, "", [], ())
    if named == "between":
        if not isinstance(wanted, list | tuple) or len(wanted) != 2:
            raise InvalidInput(
                f"The filter on {key!r:.200} (between) takes the least and the greatest value, not {wanted!r:.200}."
            )
        return all_of([condition(key, "gte", wanted[0]), condition(key, "lte", wanted[1])])
    compare = _COMPARISONS.get(named)
    if compare is None:
        raise InvalidInput(
            f"A filter on {key!r:.200} has the operator {named!r:.200}, which drillrank cannot check on what it "
            f"fetches; it knows {', '.join(_COMPARISONS)}, between, exists, is_empty. Or give a function from a record "
            "to a bool."
        )
    if wanted is None or (named in ("in", "nin") and (isinstance(wanted, str) or not _several(wanted))):
        raise InvalidInput(
            f"The filter on {key!r:.200} ({named}) compares with {wanted!r:.200}: give it the value meant."
        )

    def compared(metadata: Mapping[str, Any]) -> bool | None:
        value = metadata.get(key)
        if value is None:
            return None
        try:
            return compare(value, wanted)
        except TypeError:  # of another kind than what it is compared with
            return None

    return compared


def all_of(conditions: Sequence[Condition]) -> Condition:
    """Whether all of the conditions hold."""
    return lambda metadata: _together([holds(metadata) for holds in conditions])


def any_of(conditions: Sequence[Condition]) -> Condition:
    """Whether one of the conditions holds at least."""
    return lambda metadata: _either([holds(metadata) for holds in conditions])


def negated(holds: Condition) -> Condition:
    """Whether a condition does not hold."""
    return lambda metadata: _not(holds(metadata))


def check_depth(depth: int) -> None:
    """Refuse filters inside filters inside filters and so on.

    Raises:
        InvalidInput: there are more than 20 of them.
    """
    if depth > 20:
        raise InvalidInput("Filters stand inside filters up to 20 deep.")


def from_dictionary(filter: Mapping[str, Any], depth: int = 0) -> Condition:
    """The condition that a dictionary with operators states, as vector stores take it.

    Args:
        filter: `{"tenant": "a"}`, `{"year": {"$gte": 2020}}`, and these under `$and`, `$or` and `$not` (of a list:
            none of them holds); several keys hold together.
        depth: Inside how many others it stands.

    Raises:
        InvalidInput: an operator is unknown, or a value is None.

    >>> recent = from_dictionary({"$and": [{"tenant": "a"}, {"year": {"$gte": 2020}}]})
    >>> recent({"tenant": "a", "year": 2021}), recent({"tenant": "a", "year": 1999})
    (True, False)
    """
    if not isinstance(filter, Mapping) or not all(isinstance(key, str) for key in filter):
        raise InvalidInput(
            f"A filter is a dictionary by metadata keys, or a function from a record to True or False; not "
            f"{filter!r:.200}."
        )
    check_depth(depth)
    return all_of([_entry(key, value, depth) for key, value in filter.items()])


def _entry(key: str, value: Any, depth: int) -> Condition:
    if key in _COMBINED:
        listed = [value] if key == "$not" and isinstance(value, Mapping) else value
        if not isinstance(listed, list | tuple) or not listed:
            raise InvalidInput(f"{key} of a filter holds a list of filters, not {value!r:.100}.")
        return _COMBINED[key]([from_dictionary(one, depth + 1) for one in listed])
    if key.startswith("$") or value == {}:
        raise InvalidInput(
            f"A filter has {key!r:.200}: {value!r:.100}, which drillrank cannot check; of operators it knows "
            f"{', '.join(_COMBINED)}, and a key is compared with a value."
        )
    if not isinstance(value, Mapping):
        return condition(key, "eq", value)
    return all_of([condition(key, name.removeprefix("$"), wanted) for name, wanted in value.items()])


_COMBINED: dict[str, Callable[[Sequence[Condition]], Condition]] = {
    "$and": all_of,
    "$or": any_of,
    "$not": lambda conditions: negated(any_of(conditions)),
}


def one_by_one(filter: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The conditions of a dictionary, each in one of its own: several stores take no more under `$and`.

    >>> one_by_one({"tenant": "a", "year": {"$gte": 2020, "$lt": 2024}})
    [{'tenant': 'a'}, {'year': {'$gte': 2020}}, {'year': {'$lt': 2024}}]
    """
    found: list[dict[str, Any]] = []
    for key, value in filter.items():
        if key == "$and":
            found += [single for one in value for single in one_by_one(one)]
        elif key in _COMBINED:
            found.append({key: [_together_again(one) for one in ([value] if isinstance(value, Mapping) else value)]})
        elif isinstance(value, Mapping):
            found += [{key: {name: wanted}} for name, wanted in value.items()]
        else:
            found.append({key: value})
    return found


def _together_again(filter: Mapping[str, Any]) -> dict[str, Any]:
    single = one_by_one(filter)
    return single[0] if len(single) == 1 else {"$and": single}


def answered(predicate: Callable[[Any], Any]) -> Callable[[Any], bool]:
    """A user's function from a record to whether it may be seen; an awaitable is no answer.

    Raises:
        InvalidInput: when the function is called, and is asynchronous.
    """

    def holds(record: Any) -> bool:
        answer = predicate(record)
        if inspect.isawaitable(answer):
            if inspect.iscoroutine(answer):
                answer.close()
            raise InvalidInput("A filter that is a function says True or False at once; this one is asynchronous.")
        return bool(answer)

    return holds


Record = TypeVar("Record")


def _attributes(part: object) -> Iterable[Any]:
    return getattr(part, "__dict__", {}).values()


def parts_of(
    source: object, kinds: tuple[type, ...], inside: Callable[[Any], Iterable[Any]] = _attributes
) -> list[Any]:
    """A source and what it holds of these kinds, however deep, such as the retrievers of a fusion or of an ensemble.

    What restricts one of them is taken to restrict all that is looked up beside the source.
    """
    found: dict[int, Any] = {}
    pending: list[Any] = [source]
    while pending:
        one = pending.pop()
        if isinstance(one, kinds):
            if id(one) not in found:
                found[id(one)] = one
                pending += inside(one)
        elif isinstance(one, Mapping | list | tuple):
            items = one.values() if isinstance(one, Mapping) else one
            if isinstance(next(iter(items), None), (*kinds, list, tuple)):  # of many records, none is asked
                pending += items
    return list(found.values())


class AccessFilter(Generic[Record]):
    """What a component may see: its own filter, and beside a source also that of the source.

    Args:
        component_filter: Whether a record passes the component's own filter; None lets everything pass.
        inherited: Likewise of the source's retrievers, for what is looked up beside them; a string shows a restriction
            that only their store understands.
    """

    def __init__(
        self, component_filter: Callable[[Record], bool] | None, inherited: Sequence[Callable[[Record], bool] | str]
    ) -> None:
        self._component_filter = component_filter
        self._inherited = inherited

    def filter_results(self, records: Iterable[Record], component: str = "") -> list[Record]:
        """Those of a source's records that pass the component's own filter.

        Args:
            records: What the source brought.
            component: The component that warns if none of some does; without a name none does.
        """
        found = list(records)
        seen = (
            found if self._component_filter is None else [record for record in found if self._component_filter(record)]
        )
        if found and not seen and component:
            warn(
                f"{component}: the source brought nothing that the filter shows. Does it compare what the records hold?"
            )
        return seen

    def filter_fetched(self, records: Iterable[Record]) -> list[Record]:
        """Those that may be looked up beside the source: its filter governs them, too.

        Raises:
            InvalidInput: the source has a filter that cannot be checked here, and the component has none.
        """
        for one in self._inherited:
            if isinstance(one, str) and self._component_filter is None:
                raise InvalidInput(
                    f"The retriever searches with {one:.100}, which drillrank cannot check on what is fetched beside: "
                    "pass filters=... that can be checked, or a function from a record to True or False."
                )
        return [record for record in self.filter_results(records) if self._passes(record)]

    def _passes(self, record: Any) -> bool:
        """Whether what the source searches for may be a view of the record's section."""
        if not self._inherited:
            return True
        forms = [record.model_copy(update={"metadata": form}) for form in list_view_metadata(record.metadata)]
        return all(any(map(holds, forms)) for holds in self._inherited if not isinstance(holds, str))

    @property
    def restricts(self) -> bool:
        """Whether there is anything that may not be seen."""
        return self._component_filter is not None or bool(self._inherited)
