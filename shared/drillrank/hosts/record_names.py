"""Passages that were given beside a store: which of its records they are, and whether they still say the same."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from drillrank.errors import DrillrankWarning, WarnOnce
from drillrank.passages import Passage, by_id, stable_uuid


class GivenPassages:
    """Given passages, by id and by text; made once for all questions."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self.by_id = by_id(passages)
        self._of_text: dict[str, list[Passage]] = {}
        for passage in self.by_id.values():
            self._of_text.setdefault(passage.text, []).append(passage)

    def alike(self, record: Passage) -> list[str]:
        """Ids of the given passages with the record's text and title, whose metadata do not contradict it."""
        return [given.id for given in self._of_text.get(record.text, ()) if not differ(given, record)]


class RecordNames:
    """The records of one search under one name each: that of the given passage that they are, or else their own id.

    So a link to a given passage leads to its record, though the store calls it otherwise, and neither comes twice.

    Args:
        given: The given passages.
        seen: Ids of those that there are for this question; None is all.

    >>> given = GivenPassages([Passage("It is old.", id="a.md", title="Basel")])
    >>> records = RecordNames(given)
    >>> records.name(Passage("It is old.", id="17", title="Basel")), records.own_id("a.md")
    ('a.md', '17')
    """

    def __init__(self, given: GivenPassages, seen: Collection[str] | None = None) -> None:
        self._given = given
        self._seen = given.by_id if seen is None else seen
        self._names: dict[str, str] = {}  # by the store's id
        self._own_ids: dict[str, str] = {}  # by name
        self._changed: dict[str, None] = {}
        self._by_given_id = False

    def name(self, record: Passage, *, fetched: bool = False) -> str:
        """What the search calls a record; `fetched` by its id, it may be one that was retrieved under another one."""
        known = self._names.get(record.id)
        if known is not None:
            return known
        if record.id in self._seen:
            name = record.id
            self._by_given_id = True
            if differ(self._given.by_id[name], record):
                self._changed[name] = None
        else:
            alike = [name for name in self._given.alike(record) if name in self._seen]
            free = alike if fetched else [name for name in alike if name not in self._own_ids]
            name = free[0] if free else record.id
            if fetched and name in self._own_ids and free:
                return name
        if name in self._own_ids:
            name = stable_uuid(name, record.id)
        self._names[record.id] = name
        self._own_ids[name] = record.id
        return name

    def own_id(self, name: str) -> str:
        """What the store calls it."""
        return self._own_ids.get(name, name)

    def warn(self, missed: Collection[str], warned: WarnOnce) -> None:
        """Say what of the given passages is not as the store has it, of each once.

        Args:
            missed: Ids of given passages that the store was asked for and did not bring.
            warned: What there was a warning about before.
        """
        if changed := warned.new("changed", self._changed):
            warnings.warn(
                f"{len(changed)} of the documents given are not what the store holds under their id now, such as "
                f"{changed[0]!r:.200}: the store's text and metadata are used. Give the documents anew.",
                DrillrankWarning,
                stacklevel=2,
            )
        if missed and not self._by_given_id and warned.new("unknown", ["all"]):
            warnings.warn(
                "The store knows none of the documents given by their ids, so that no link leads to them: pass "
                "docstore=..., one that knows the documents under these ids, or give them the ids that they have in "
                "the store.",
                DrillrankWarning,
                stacklevel=2,
            )


def differ(given: Passage, record: Passage) -> bool:
    """Whether a record has another text or title, or another value under a metadata key that both have.

    Values that stores turn into others, such as lists, say nothing.

    >>> differ(Passage("a", metadata={"page": 1}), Passage("a", metadata={"page": 1, "seen": True}))
    False
    """
    same = (given.text, given.title) == (record.text, record.title)
    return not same or any(
        _plain(value) and _plain(record.metadata[key]) and value != record.metadata[key]
        for key, value in _shared(given.metadata, record.metadata)
    )


def _shared(given: Mapping[str, Any], record: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [(key, value) for key, value in given.items() if key in record and not key.startswith("drillrank_")]


def _plain(value: object) -> bool:
    return isinstance(value, str | int | float)
