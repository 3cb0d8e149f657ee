"""Sections as a host's store has them, and as they were given beside it; see `drillrank.hosts.views`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from drillrank.errors import InvalidInput, WarnOnce, warn
from drillrank.hosts.metadata import is_section, prefixed, result_metadata, user_metadata
from drillrank.llm import Fetch, Requests
from drillrank.views import Expansion

AROUND: dict[Expansion | None, tuple[str, ...]] = {
    None: (),
    "parent": ("parent_id",),
    "neighbours": ("previous_id", "next_id"),
}
"""The names under which a section has the ids of those around it."""

_PLACE = ("section_path", "start", "end")


@dataclass(frozen=True, slots=True)
class StoredSection:
    """What is read of a host's record.

    Attributes:
        record: The host's own.
        section_id: Of the section; of a chunk that another splitter made, its own id.
        view: Which view of the section it is; None for another splitter's chunk.
        document: Namespace, or nothing, and id of the document that it is a piece of; None if it does not say so.
        text: Of the view; of the raw one the section's own, without context.
        metadata: The user's.
        place: The section's in its document.
        around: Ids of the sections around it, by name.
    """

    record: Any
    section_id: str
    view: str | None
    document: tuple[str, str] | None
    text: str
    metadata: Mapping[str, Any]
    place: tuple[Any, ...]
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
        metadata=user_metadata(metadata),
        place=tuple(names.get(name) for name in _PLACE),
        around={name: str(link) for name, link in links.items() if link is not None},
    )


@dataclass
class Given:
    """The sections that a component was given beside a source: they lend what no store can be asked for.

    Args:
        sections: By id and view.
        name: Of the component's parameter.
        allowed: Of the host's records those that may be looked up beside the source.
        told: What the component's user was told.
    """

    sections: Mapping[tuple[str, str | None], StoredSection]
    name: str
    allowed: Callable[[Iterable[Any]], Collection[Any]]
    told: WarnOnce
    _differing: dict[str, StoredSection] = field(init=False, default_factory=dict)

    def __contains__(self, section_id: str) -> bool:
        return (section_id, "raw") in self.sections

    def check(self, found: Iterable[StoredSection]) -> None:
        """Compare with what the source holds; what differs lends nothing, and one warning a document says so."""
        differing: list[Hashable] = []
        for section in found:
            given = self.sections.get((section.section_id, section.view)) or self.sections.get(
                (section.section_id, "raw")
            )
            if given is not None and _differ(given, section):
                self._differing.setdefault(section.section_id, given)
                differing.append(given.document or given.section_id)
        if outdated := self.told.new("differ", differing):
            sections = sum(differing.count(document) for document in outdated)
            warn(
                f"{self.name} differ from what the source holds, in {sections} sections at least: what the source "
                "holds counts."
            )

    def lent(self, ids: Iterable[str], *, found: bool) -> dict[str, StoredSection]:
        """Raw sections by id, as far as they are here and may be seen.

        Args:
            ids: Of sections.
            found: Whether they were found by another view, which was compared; sections around those found are not
                taken from a document of which anything differs.
        """
        documents = {given.document for given in self._differing.values()}
        sections = [self.sections[id_, "raw"] for id_ in ids if id_ in self]
        sections = [section for section in sections if section.section_id not in self._differing]
        if not found:
            sections = [section for section in sections if section.document not in documents]
        return {section.section_id: section for section in sections if self.allowed([section.record])}


def raw_sections(sections: Iterable[StoredSection], name: str) -> dict[str, StoredSection]:
    """Those that retrieval returns, by id.

    Args:
        sections: That may be seen.
        name: Of the parameter that they were given as.

    Raises:
        InvalidInput: two of them have one id and say different things.
    """
    raw: dict[str, StoredSection] = {}
    for section in sections:
        if section.is_raw and raw.setdefault(section.section_id, section).text != section.text:
            raise InvalidInput(
                f"Two of the {name} are section {section.section_id!r:.200} with different texts, as of two "
                "versions or of two documents under one id: give documents ids of their own or a namespace, or a "
                "filter that shows one of them."
            )
    return raw


def by_view(
    sections: Sequence[StoredSection], visible: Callable[[Iterable[Any]], Iterable[Any]]
) -> dict[tuple[str, str | None], StoredSection]:
    """Sections by id and view, as `Given` takes them.

    Args:
        sections: All that were given.
        visible: Of the host's records those that may be seen, as far as is known: they go before others under one id.
    """
    named = {(section.section_id, section.view): section for section in sections}
    if len(named) < len(sections):
        seen = set(map(id, visible(section.record for section in sections)))
        named |= {(one.section_id, one.view): one for one in sections if id(one.record) in seen}
    return named


def _differ(given: StoredSection, found: StoredSection) -> bool:
    """Whether two records of a section are of different versions: hosts add metadata, but do not change them."""
    both = given.metadata.keys() & found.metadata.keys()
    return (
        any(None not in (one, other) and one != other for one, other in zip(given.place, found.place, strict=True))
        or (given.view == found.view and given.text != found.text)
        or any(_plain(given.metadata[key]) and given.metadata[key] != found.metadata[key] for key in both)
    )


def _plain(value: object) -> bool:
    return isinstance(value, str | int)  # stores give others back in a form of their own


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


def deduplicate_sections(
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


def _sections(ids: Iterable[str], sections: Iterable[StoredSection]) -> dict[str, StoredSection]:
    wanted = set(ids)
    return {section.section_id: section for section in sections if section.is_raw and section.section_id in wanted}
