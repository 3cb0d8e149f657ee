"""Qdrant through `langchain-qdrant`, which takes no dictionaries as filters and returns ids as metadata."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

from drillrank.errors import InvalidInput

_ID_KEYS = ("_id", "_collection_name")  # metadata that the store adds to each result


def is_qdrant(store: VectorStore | None) -> bool:
    """Return True for a store of `langchain-qdrant`."""
    classes = [(base.__module__.partition(".")[0], base.__name__) for base in type(store).__mro__]
    return ("langchain_qdrant", "QdrantVectorStore") in classes


def move_ids(documents: Iterable[Document]) -> list[Document]:
    """Return copies of a search's results with the id in its field instead of in the metadata."""
    copies = []
    for document in documents:
        metadata = {key: value for key, value in document.metadata.items() if key not in _ID_KEYS}
        id = document.id or document.metadata.get("_id")
        copies.append(document.model_copy(update={"id": None if id is None else str(id), "metadata": metadata}))
    return copies


def list_point_ids(ids: Iterable[str]) -> list[Any]:
    """Return the ids that a point can have, which are UUIDs and numbers. A server refuses the others."""
    point_ids: list[Any] = []
    for id in ids:
        if id.isascii() and id.isdigit():
            point_ids.append(int(id))
            continue
        with suppress(ValueError):
            point_ids.append(str(uuid.UUID(id)))
    return point_ids


def read_point_vectors(store: Any, ids: Iterable[str]) -> dict[str, Sequence[float]]:
    """Return the dense vectors of points by id. Points without one are missing."""
    points = store.client.retrieve(
        store.collection_name, ids=list_point_ids(ids), with_payload=False, with_vectors=True
    )
    vector_by_id = {}
    for point in points:
        vector = point.vector.get(store.vector_name) if isinstance(point.vector, Mapping) else point.vector
        if vector is not None:
            vector_by_id[str(point.id)] = vector
    return vector_by_id


def qdrant_filter(store: Any, filters: Sequence[Mapping[str, Any]]) -> Any:
    """Return Qdrant's form of filters that must all be met. None means no filter.

    Args:
        store: The store, which has the metadata under a key of its own.
        filters: Filters in the form that `drillrank.frameworks.filters.split_conditions` returns.

    Raises:
        InvalidInput: Qdrant has no such condition.
    """
    if not filters:
        return None
    from qdrant_client import models

    return _Translation(models, store.metadata_payload_key).all_of(filters)


def parse_qdrant_filter(filter: Any, prefix: str) -> dict[str, Any]:
    """Return a filter of Qdrant as a dictionary that `drillrank.frameworks.filters.parse_filter` takes.

    Args:
        filter: A `qdrant_client.models.Filter`.
        prefix: Key of the metadata in a point's payload.

    Raises:
        InvalidInput: It has a condition that drillrank cannot evaluate.
    """
    if getattr(filter, "min_should", None) is not None:
        raise InvalidInput("A filter of Qdrant has min_should, which drillrank cannot evaluate. Use should.")
    parsed: dict[str, Any] = {}
    for name, operator in (("must", "$and"), ("should", "$or"), ("must_not", "$not")):
        conditions = getattr(filter, name) or []
        conditions = conditions if isinstance(conditions, list) else [conditions]
        if conditions:
            parsed[operator] = [_parse_condition(condition, prefix) for condition in conditions]
    return parsed


def _parse_condition(condition: Any, prefix: str) -> dict[str, Any]:
    if hasattr(condition, "must"):
        return parse_qdrant_filter(condition, prefix)
    if (empty := getattr(condition, "is_empty", None)) is not None and not isinstance(empty, bool):
        return {_metadata_key(empty.key, prefix): {"$exists": False}}
    match: Any = getattr(condition, "match", None)
    range: Any = getattr(condition, "range", None)
    if (match is None) == (range is None):
        raise InvalidInput(f"A filter of Qdrant has {condition!r:.200}, which drillrank cannot evaluate.")
    if range is not None:
        comparisons = {f"${name}": limit for name, limit in range.model_dump().items() if limit is not None}
    else:
        values = match.model_dump()
        comparisons = {
            operator: values[name]
            for name, operator in (("value", "$eq"), ("any", "$in"), ("except_", "$nin"))
            if name in values
        }
    return {_metadata_key(condition.key, prefix): comparisons}


def _metadata_key(path: str, prefix: str) -> str:
    if not path.startswith(f"{prefix}."):
        raise InvalidInput(f"A filter of Qdrant compares {path!r:.200}, which is not metadata of a document.")
    return path.removeprefix(f"{prefix}.").strip('"')


class _Translation:
    """Conversion of filters to the classes of `qdrant_client.models`.

    Args:
        models: The module.
        prefix: Key of the metadata in a point's payload.
    """

    def __init__(self, models: Any, prefix: str) -> None:
        self._models = models
        self._prefix = prefix

    def all_of(self, filters: Iterable[Mapping[str, Any]]) -> Any:
        conditions = [self._convert_entry(key, value) for filter in filters for key, value in filter.items()]
        return self._models.Filter(must=conditions)

    def _convert_entry(self, key: str, value: Any) -> Any:
        if key == "$and":
            return self.all_of(value)
        if key in ("$or", "$not"):
            filters = [self.all_of([filter]) for filter in ([value] if isinstance(value, Mapping) else value)]
            return self._models.Filter(**{"should" if key == "$or" else "must_not": filters})
        if not isinstance(value, Mapping):
            return self._compare(key, "eq", value)
        return self._models.Filter(
            must=[self._compare(key, name.removeprefix("$"), operand) for name, operand in value.items()]
        )

    def _compare(self, key: str, operator: str, operand: Any) -> Any:
        """Return the condition of one comparison. A point without the key does not meet it, also if it is negated."""
        if operator == "exists":
            return self._is_present(key) if operand is not False else self._is_missing(key)
        if operator in ("eq", "in"):
            return self._is_one_of(key, operand if operator == "in" else [operand])
        if operator in ("ne", "nin"):
            excluded = self._is_one_of(key, operand if operator == "nin" else [operand])
            return self._models.Filter(must=[self._is_present(key)], must_not=[excluded])
        if operator == "between":
            return self._range(key, gte=operand[0], lte=operand[1])
        if operator in ("gt", "gte", "lt", "lte"):
            return self._range(key, **{operator: operand})
        raise InvalidInput(
            f"The filter on {key!r:.200} has the operator {operator!r:.200}, which Qdrant lacks. Use $eq, $ne, "
            "$in, $nin, $gt, $gte, $lt, $lte, $between or $exists, or a function from a document to a bool."
        )

    def _path(self, key: str) -> str:
        return f'{self._prefix}."{key}"' if set(key) & set('."[]') else f"{self._prefix}.{key}"

    def _is_missing(self, key: str) -> Any:
        return self._models.IsEmptyCondition(is_empty=self._models.PayloadField(key=self._path(key)))

    def _is_present(self, key: str) -> Any:
        return self._models.Filter(must_not=[self._is_missing(key)])

    def _is_one_of(self, key: str, values: Iterable[Any]) -> Any:
        conditions = []
        values = list(values)
        for kind in (str, int):
            if of_kind := [value for value in values if type(value) is kind]:
                match = self._models.MatchAny(any=of_kind)
                conditions.append(self._models.FieldCondition(key=self._path(key), match=match))
        for value in values:
            if isinstance(value, bool):
                match = self._models.MatchValue(value=value)
                conditions.append(self._models.FieldCondition(key=self._path(key), match=match))
            elif not isinstance(value, str | int):
                conditions.append(self._range(key, gte=value, lte=value))
        return self._models.Filter(should=conditions)

    def _range(self, key: str, **limits: Any) -> Any:
        if not all(isinstance(limit, int | float) and not isinstance(limit, bool) for limit in limits.values()):
            raise InvalidInput(
                f"The filter on {key!r:.200} compares with {limits!r:.200}. Qdrant orders only numbers: use numbers, "
                "or a function from a document to a bool."
            )
        return self._models.FieldCondition(key=self._path(key), range=self._models.Range(**limits))
