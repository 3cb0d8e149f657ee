"""Sections as a host's store has them, and as they were given beside it; see `drillrank.hosts.views`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from drillrank.errors import InvalidInput, warn
from drillrank.hosts.metadata import is_section, prefixed, result_metadata
from drillrank.llm import Fetch, Requests
from drillrank.views import Expansion

AROUND: dict[Expansion | None, tuple[str, ...]] = {
    None: (),
    "parent": ("parent_id",),
    "neighbours": ("previous_id", "next_id"),
}
"""The names under which a section has the ids of those around it."""


@dataclass(frozen=True, slots=True)
class StoredSection:
    """What is read of a host's record.

    Attributes:
        record: The host's own.
        section_id: Of the section; of a chunk that another splitter made, its own id.
        view: Which view of the section it is; None for another splitter's chunk.
        document: Namespace, or nothing, and id of the document that it is a piece of; None if it does not say so.
        text: Of the view; of the raw one the section's own, without context.
        around: Ids of the sections around it, by name.
    """

    record: Any
    section_id: str
    view: str | None
    document: tuple[str, str] | None
    text: str
    around: Mapping[str, str]

    @property
    def is_raw(self) -> bool:
        """Whether its text is what retrieval returns."""
        return self.view in (None, "raw")


def stored_section(
    record: Any,
    metadata: Mapping[str, Any],
    text: str,
    *,
    id: str,
    document: str | None = None,
    around: Mapping[str, str | None] | None = None,
) -> StoredSection:
    """Read a record.

    Args:
        record: The host's.
        metadata: Its metadata.
        text: Of the view.
        id: Its id in the store.
        document: Of the document that it is a piece of, where the metadata do not tell.
        around: Where the host has its own links between sections.

    >>> stored_section("record", {"drillrank_section_id": "7", "drillrank_view": "raw"}, "Tall.", id="1").section_id
    '7'
    >>> stored_section("record", {"view": "of the lake"}, "Tall.", id="1").section_id
    '1'
    """
    ours = is_section(metadata)
    names = result_metadata(metadata) if ours else {}
    source = names.get("source_id", document)
    links = around if around is not None else {name: names.get(name) for name in sum(AROUND.values(), ())}
    return StoredSection(
        record=record,
        section_id=str(names["section_id"]) if ours else id,
        view=names["view"] if ours else None,
        document=None if source is None else (str(names.get("namespace") or ""), str(source)),
        text=text,
        around={name: str(link) for name, link in links.items() if link is not None},
    )


def raw_sections(sections: Iterable[StoredSection]) -> dict[str, StoredSection]:
    """Those that retrieval returns, by id.

    Args:
        sections: Given ones that may be seen.

    Raises:
        InvalidInput: two of them have one id and say different things.
    """
    raw: dict[str, StoredSection] = {}
    for section in sections:
        if section.is_raw and raw.setdefault(section.section_id, section).text != section.text:
            raise InvalidInput(
                f"Two of the documents are section {section.section_id!r:.200} with different texts, as of two "
                "versions or of two documents under one id: give documents ids of their own or a namespace, or a "
                "filter that shows one of them."
            )
    return raw


Read = Callable[[Any], StoredSection]
"""Reads a host's record, or hit."""


def raw_records(ids: Iterable[str], read: Read) -> Requests[tuple[dict[str, StoredSection], bool]]:
    """Raw records by section id, and whether the store could be asked; where it has ids of its own, by metadata.

    Args:
        ids: Of sections.
        read: Reads a host's record.
    """
    ids = dict.fromkeys(ids)
    [answer] = yield [Fetch(tuple(ids))]
    fetched = at_hand(map(read, answer or ()), ids)
    left = tuple(id_ for id_ in ids if id_ not in fetched)
    if not left:
        return fetched, True
    [by_metadata] = yield [Fetch(where={prefixed("section_id"): left, prefixed("view"): "raw"})]
    fetched |= at_hand(map(read, by_metadata or ()), set(left))
    return fetched, not (answer is None and by_metadata is None)


def at_hand(found: Iterable[StoredSection], ids: Collection[str] | None = None) -> dict[str, StoredSection]:
    """The first raw record of each section among those found, by section id; of these ids alone, if there are some."""
    raw = [section for section in found if section.is_raw and (ids is None or section.section_id in ids)]
    return {section.section_id: section for section in reversed(raw)}


def deduplicate_sections(
    hits: Sequence[Any], read: Read, fallbacks: Mapping[str, Any], *, sure: bool
) -> Requests[tuple[list[Any], list[str]]]:
    """Hits of a retriever that knows no views: each section once, where its first view stands, by its raw record.

    Args:
        hits: Best first.
        read: Reads one.
        fallbacks: Records by section id that stand in where no store can be asked.
        sure: Whether the store that is asked is that of the hits, so that what it does not have is gone.

    Returns:
        Records, best first; and the ids of sections whose raw record is gone. Where that cannot be known, a section's
        best hit stands for it.
    """
    sections = [read(hit) for hit in hits]
    known = at_hand(sections)
    wanted = [s.section_id for s in sections if s.view is not None and s.section_id not in known]
    fetched, store_answers = (yield from raw_records(wanted, read)) if wanted else ({}, False)
    known |= fetched
    records: list[Any] = []
    missing: list[str] = []
    seen: set[str] = set()
    for section in sections:
        id_ = section.section_id
        if section.view is None:
            records.append(section.record)
        elif id_ not in seen and id_ not in known and store_answers and sure:
            missing.append(id_)
        elif id_ not in seen:
            records.append(known[id_].record if id_ in known else fallbacks.get(id_, section.record))
        seen |= {id_} if section.view is not None else set()
    return records, missing


def check_searched(component: Any) -> None:
    """Refuse a component that has nothing to search.

    Raises:
        InvalidInput: says what to give.
    """
    if component.source is None and not component.documents:
        raise InvalidInput(f"{type(component).__name__} has nothing to search: give it documents, or a source.")


def warn_missing(component: str, ids: Sequence[str], where: str = "is no longer in the store") -> None:
    """Warn of sections that are left out.

    Args:
        component: That warns.
        ids: Of the sections; nothing is said of none.
        where: What is the matter with their raw records.
    """
    if ids:
        warn(
            f"{component}: the raw record of {len(ids)} sections, found by keywords or summary, {where}; for example "
            f"{ids[0]!r:.200}. They are left out."
        )
