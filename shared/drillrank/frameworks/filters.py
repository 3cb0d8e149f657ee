"""Metadata filters of frameworks, evaluated in Python for records that no store filters.

A condition has three answers, as in SQL: True, False, and None if the record does not say (the key is missing, or its
value cannot be compared). Only True lets a record pass, so a record without a tenant belongs to no tenant. The negation
of None is None.
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
"""Function from a record's metadata to True if the record may be seen. None counts as False."""

_Comparison = Callable[[Any, Any], "bool | None"]

_MAX_DEPTH = 20  # filters inside filters


# Comparisons of a metadata value with an operand


def _equal(value: Any, operand: Any) -> bool | None:
    """Compare two values. A comparison of True with 1 has no answer, since stores disagree about it."""
    if isinstance(value, bool) is not isinstance(operand, bool) and isinstance(value, int | float):
        return None if isinstance(operand, int | float) else False
    return bool(value == operand)


def _is_one_of(value: Any, operand: Any) -> bool | None:
    return _any([_equal(value, item) for item in _as_collection(operand)])


def _as_collection(value: Any) -> Collection[Any]:
    return value if isinstance(value, list | tuple | set | frozenset) else (value,)


def _ordered(compare: Callable[[Any, Any], Any]) -> _Comparison:
    def compare_alike(value: Any, operand: Any) -> bool | None:
        return bool(compare(value, operand)) if isinstance(value, bool) is isinstance(operand, bool) else None

    return compare_alike


def _contains(value: Any, operand: Any) -> bool | None:
    return operand in value if isinstance(value, str) else _is_one_of(operand, value)


_WILDCARDS = str.maketrans({"%": "*", "_": "?", "*": "[*]", "?": "[?]", "[": "[[]"})


def _like(value: Any, operand: Any) -> bool:
    """Match a pattern of SQL as file names are matched, which never backtracks to an earlier wildcard."""
    return fnmatchcase(_require_text(value), _require_text(operand).translate(_WILDCARDS))


def _require_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _any(answers: Sequence[bool | None]) -> bool | None:
    return True if True in answers else None if None in answers else False


def _all(answers: Sequence[bool | None]) -> bool | None:
    return False if False in answers else None if None in answers else True


def _not(answer: bool | None) -> bool | None:
    return None if answer is None else not answer


_COMPARISONS: dict[str, _Comparison] = {
    "eq": _equal,
    "ne": lambda value, operand: _not(_equal(value, operand)),
    "gt": _ordered(operator.gt),
    "gte": _ordered(operator.ge),
    "lt": _ordered(operator.lt),
    "lte": _ordered(operator.le),
    "in": _is_one_of,
    "nin": lambda value, operand: _not(_is_one_of(value, operand)),
    "any": lambda value, operand: _any([_is_one_of(item, operand) for item in _as_collection(value)]),
    "all": lambda value, operand: _all([_is_one_of(item, value) for item in _as_collection(operand)]),
    "contains": _contains,
    "not_contains": lambda value, operand: _not(_contains(value, operand)),
    "text_match": lambda value, operand: _require_text(operand) in _require_text(value),
    "text_match_insensitive": lambda value, operand: (
        _require_text(operand).casefold() in _require_text(value).casefold()
    ),
    "like": _like,
    "ilike": lambda value, operand: _like(_require_text(value).casefold(), _require_text(operand).casefold()),
}


# Conditions


def condition(key: str, operator_name: str, operand: Any = None) -> Condition:
    """Return the condition that compares one metadata value.

    Args:
        key: Metadata key.
        operator_name: `eq`, `ne`, `gt`, `gte`, `lt`, `lte`, `in`, `nin`, `between`, `any`, `all`, `contains`,
            `not_contains`, `text_match`, `text_match_insensitive`, `like`, `ilike`, `exists` or `is_empty`.
        operand: Value to compare with.

    Raises:
        InvalidInput: The operator is unknown, or `operand` is None and the operator needs a value.

    >>> is_mine = condition("tenant", "eq", "a")
    >>> is_mine({"tenant": "a"}), is_mine({"tenant": "b"}), is_mine({})
    (True, False, None)
    """
    if operator_name == "exists":
        return lambda metadata: (metadata.get(key) is not None) is (operand is not False)
    if operator_name == "is_empty":
        return lambda metadata: metadata.get(key) in (None, "", [], ())
    if operator_name == "between":
        if not isinstance(operand, list | tuple) or len(operand) != 2:
            raise InvalidInput(
                f"The filter on {key!r:.200} (between) needs two values, got {operand!r:.200}. Give the least and the "
                "greatest one."
            )
        return all_of([condition(key, "gte", operand[0]), condition(key, "lte", operand[1])])
    compare = _COMPARISONS.get(operator_name)
    if compare is None:
        raise InvalidInput(
            f"The filter on {key!r:.200} has the operator {operator_name!r:.200}, which drillrank cannot evaluate. Use "
            f"one of {', '.join(_COMPARISONS)}, between, exists, is_empty, or a function from a record to a bool."
        )
    if operand is None or (
        operator_name in ("in", "nin") and (isinstance(operand, str) or not _as_collection(operand))
    ):
        raise InvalidInput(
            f"The filter on {key!r:.200} ({operator_name}) compares with {operand!r:.200}. Give it the intended value."
        )

    def evaluate(metadata: Mapping[str, Any]) -> bool | None:
        value = metadata.get(key)
        if value is None:
            return None
        try:
            return compare(value, operand)
        except TypeError:  # the two values are of different kinds
            return None

    return evaluate


def all_of(conditions: Sequence[Condition]) -> Condition:
    """Return the condition that all of the conditions are met."""
    return lambda metadata: _all([is_met(metadata) for is_met in conditions])


def any_of(conditions: Sequence[Condition]) -> Condition:
    """Return the condition that at least one of the conditions is met."""
    return lambda metadata: _any([is_met(metadata) for is_met in conditions])


def negated(is_met: Condition) -> Condition:
    """Return the negation of a condition."""
    return lambda metadata: _not(is_met(metadata))


def check_depth(depth: int) -> None:
    """Check how deep a filter is nested.

    Raises:
        InvalidInput: It is more than 20 filters deep.
    """
    if depth > _MAX_DEPTH:
        raise InvalidInput(f"Filters may be nested up to {_MAX_DEPTH} deep, got a deeper one. Flatten the filter.")


# Filters that are dictionaries


def parse_filter(filter: Mapping[str, Any], depth: int = 0) -> Condition:
    """Return the condition of a dictionary with operators, in the form that vector stores take.

    Args:
        filter: `{"tenant": "a"}`, `{"year": {"$gte": 2020}}`, or filters under `$and`, `$or` and `$not` (of a list,
            none may be met). All keys of a dictionary must be met.
        depth: Number of filters around this one.

    Raises:
        InvalidInput: An operator is unknown, or a value is None.

    >>> is_recent = parse_filter({"$and": [{"tenant": "a"}, {"year": {"$gte": 2020}}]})
    >>> is_recent({"tenant": "a", "year": 2021}), is_recent({"tenant": "a", "year": 1999})
    (True, False)
    """
    if not isinstance(filter, Mapping) or not all(isinstance(key, str) for key in filter):
        raise InvalidInput(
            f"A filter must be a dictionary by metadata keys, or a function from a record to True or False, got "
            f"{filter!r:.200}."
        )
    check_depth(depth)
    return all_of([_parse_entry(key, value, depth) for key, value in filter.items()])


def _parse_entry(key: str, value: Any, depth: int) -> Condition:
    if key in _COMBINATIONS:
        filters = [value] if key == "$not" and isinstance(value, Mapping) else value
        if not isinstance(filters, list | tuple) or not filters:
            raise InvalidInput(f"{key} of a filter must be a list of filters, got {value!r:.100}.")
        return _COMBINATIONS[key]([parse_filter(inner, depth + 1) for inner in filters])
    if key.startswith("$") or value == {}:
        raise InvalidInput(
            f"A filter has {key!r:.200}: {value!r:.100}, which drillrank cannot evaluate. Use "
            f"{', '.join(_COMBINATIONS)}, or a metadata key with a value."
        )
    if not isinstance(value, Mapping):
        return condition(key, "eq", value)
    return all_of([condition(key, name.removeprefix("$"), operand) for name, operand in value.items()])


_COMBINATIONS: dict[str, Callable[[Sequence[Condition]], Condition]] = {
    "$and": all_of,
    "$or": any_of,
    "$not": lambda conditions: negated(any_of(conditions)),
}


def split_conditions(filter: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return each condition of a dictionary as a dictionary of its own. Several stores take no others under `$and`.

    >>> split_conditions({"tenant": "a", "year": {"$gte": 2020, "$lt": 2024}})
    [{'tenant': 'a'}, {'year': {'$gte': 2020}}, {'year': {'$lt': 2024}}]
    """
    conditions: list[dict[str, Any]] = []
    for key, value in filter.items():
        if key == "$and":
            conditions += [single for inner in value for single in split_conditions(inner)]
        elif key in _COMBINATIONS:
            filters = [value] if isinstance(value, Mapping) else value
            conditions.append({key: [_join_conditions(inner) for inner in filters]})
        elif isinstance(value, Mapping):
            conditions += [{key: {name: operand}} for name, operand in value.items()]
        else:
            conditions.append({key: value})
    return conditions


def _join_conditions(filter: Mapping[str, Any]) -> dict[str, Any]:
    conditions = split_conditions(filter)
    return conditions[0] if len(conditions) == 1 else {"$and": conditions}


# Filters that are functions


def require_sync_predicate(predicate: Callable[[Any], Any]) -> Callable[[Any], bool]:
    """Return a user's filter function, with a check that its answer is not an awaitable.

    Raises:
        InvalidInput: When the returned function is called, if the user's function is asynchronous.
    """

    def passes(record: Any) -> bool:
        answer = predicate(record)
        if inspect.isawaitable(answer):
            if inspect.iscoroutine(answer):
                answer.close()
            raise InvalidInput(
                "A filter function must return True or False, got an awaitable. Replace the asynchronous function."
            )
        return bool(answer)

    return passes


RecordT = TypeVar("RecordT")


def _list_attributes(part: object) -> Iterable[Any]:
    return getattr(part, "__dict__", {}).values()


def list_parts(
    source: object, kinds: tuple[type, ...], inner_parts: Callable[[Any], Iterable[Any]] = _list_attributes
) -> list[Any]:
    """Return a source and all its parts of these kinds, such as the retrievers of a fusion or an ensemble.

    A restriction of one part counts as a restriction of all that is looked up next to the source.
    """
    part_by_id: dict[int, Any] = {}
    pending: list[Any] = [source]
    while pending:
        part = pending.pop()
        if isinstance(part, kinds):
            if id(part) not in part_by_id:
                part_by_id[id(part)] = part
                pending += inner_parts(part)
        elif isinstance(part, Mapping | list | tuple):
            items = part.values() if isinstance(part, Mapping) else part
            if isinstance(next(iter(items), None), (*kinds, list, tuple)):  # skips lists of many records
                pending += items
    return list(part_by_id.values())


class AccessFilter(Generic[RecordT]):
    """Filter of the records that a component may see: its own filter, and that of its source.

    Args:
        component_filter: Function that returns True if a record passes the component's own filter. None: all pass.
        inherited: Such functions for the source's retrievers, applied to what is looked up next to them. A string
            describes a restriction that only the retriever's store understands.
    """

    def __init__(
        self, component_filter: Callable[[RecordT], bool] | None, inherited: Sequence[Callable[[RecordT], bool] | str]
    ) -> None:
        self._component_filter = component_filter
        self._inherited = inherited

    def filter_results(self, records: Iterable[RecordT], component: str = "") -> list[RecordT]:
        """Return the results of the source that pass the component's own filter.

        Args:
            records: Results of the source.
            component: Name of the component that warns if the filter removes all results. Empty: no warning.
        """
        results = list(records)
        passes = self._component_filter
        permitted = results if passes is None else [record for record in results if passes(record)]
        if results and not permitted and component:
            warn(
                f"{component}: the filter removed all records that the source returned. Check that it uses keys and "
                "values of the records' metadata."
            )
        return permitted

    def filter_fetched(self, records: Iterable[RecordT]) -> list[RecordT]:
        """Return the looked-up records that pass the component's filter and the source's.

        Raises:
            InvalidInput: The source has a filter that cannot be evaluated here, and the component has none.
        """
        for restriction in self._inherited:
            if isinstance(restriction, str) and self._component_filter is None:
                raise InvalidInput(
                    f"The retriever searches with {restriction:.100}, which drillrank cannot apply to records that it "
                    "looks up. Pass filters=... in a form that it can evaluate, or a function from a record to a bool."
                )
        return [record for record in self.filter_results(records) if self._passes_inherited(record)]

    def _passes_inherited(self, record: Any) -> bool:
        """Return True if a view of the record's section passes each filter of the source."""
        if not self._inherited:
            return True
        views = [record.model_copy(update={"metadata": metadata}) for metadata in list_view_metadata(record.metadata)]
        return all(any(map(passes, views)) for passes in self._inherited if not isinstance(passes, str))

    @property
    def restricts(self) -> bool:
        """True if some records may be hidden."""
        return self._component_filter is not None or bool(self._inherited)
