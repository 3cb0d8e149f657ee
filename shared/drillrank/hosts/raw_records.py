"""Sections' raw records, looked up in a store: what a view of a section refers to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from drillrank.errors import warn
from drillrank.hosts.keys import prefixed
from drillrank.hosts.stored_sections import StoredSection
from drillrank.llm import Fetch, Requests

Read = Callable[[Any], StoredSection]
"""Reads a host's record, or hit."""


def raw_records(ids: Iterable[str], read: Read) -> Requests[tuple[dict[str, StoredSection], bool]]:
    """Raw records by section id, and whether the store could be asked; where it has ids of its own, by metadata.

    Args:
        ids: Of sections.
        read: Reads a host's record.
    """
    ids = list(dict.fromkeys(ids))
    [answer] = yield [Fetch(tuple(ids))]
    fetched = _sections(ids, map(read, answer or ()))
    left = tuple(id_ for id_ in ids if id_ not in fetched)
    if not left:
        return fetched, True
    [by_metadata] = yield [Fetch(where={prefixed("section_id"): left, prefixed("view"): "raw"})]
    fetched |= _sections(left, map(read, by_metadata or ()))
    return fetched, not (answer is None and by_metadata is None)


def at_hand(found: Iterable[StoredSection]) -> dict[str, StoredSection]:
    """Raw records among those found, by section id."""
    known: dict[str, StoredSection] = {}
    for section in found:
        if section.is_raw:
            known.setdefault(section.section_id, section)
    return known


def each_section_once(
    hits: Sequence[Any], read: Read, lent: Mapping[str, Any], *, sure: bool
) -> Requests[tuple[list[Any], list[str]]]:
    """Hits of a retriever that knows no views: each section once, where its first view stands, by its raw record.

    Args:
        hits: Best first.
        read: Reads one.
        lent: Records by section id that stand in where no store can be asked.
        sure: Whether the store that is asked is that of the hits, so that what it does not have is gone.

    Returns:
        Records, best first; and the ids of sections whose raw record is gone. Where that cannot be known, a section's
        best hit stands for it.
    """
    sections = [read(hit) for hit in hits]
    first: dict[tuple[str, int | None], int] = {}
    for number, section in enumerate(sections):
        first.setdefault((section.section_id, None if section.view else number), number)
    known = at_hand(sections)
    wanted = [s.section_id for s in sections if s.view is not None and s.section_id not in known]
    asked = False
    if wanted:
        fetched, asked = yield from raw_records(wanted, read)
        known |= fetched
    kept: list[Any] = []
    missing: list[str] = []
    for number in first.values():
        section = sections[number]
        if section.view is None:
            kept.append(section.record)
        elif section.section_id in known:
            kept.append(known[section.section_id].record)
        elif asked and sure:
            missing.append(section.section_id)
        else:
            kept.append(lent.get(section.section_id, section.record))
    return kept, missing


def tell_gone(component: str, ids: Sequence[str], where: str = "is no longer in the store") -> None:
    """Warn of sections that are left out.

    Args:
        component: That warns.
        ids: Of the sections; nothing is said of none.
        where: What is the matter with their raw records.
    """
    if ids:
        warn(
            f"{component}: the raw record of {len(ids)} sections, found by keywords or summary, {where}; for example "
            f"{ids[0]!r}. They are left out."
        )


def _sections(ids: Iterable[str], sections: Iterable[StoredSection]) -> dict[str, StoredSection]:
    wanted = set(ids)
    return {section.section_id: section for section in sections if section.is_raw and section.section_id in wanted}
