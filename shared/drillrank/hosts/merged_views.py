"""Sections out of a store: each view is searched, the rankings are merged, and what is returned is the raw record.

A hit in the keywords or the summary is a reference and no more: text and metadata of a result come from the section's
raw record as the store has it at that moment.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from drillrank.errors import DrillrankWarning
from drillrank.hosts.keys import prefixed
from drillrank.hosts.lookups import ById, Holding, Lookups, Search
from drillrank.hosts.stored_sections import AROUND, Given, StoredSection
from drillrank.views import VIEWS, Expansion, MergedSection, View, expanded, merge_views

Merged = tuple[StoredSection, MergedSection, str | None]
"""A section, how it was found, and for one that was not found the id of the section that it stands around."""

_Fetched = tuple[dict[str, StoredSection], bool]  # by id, and whether the store could be asked


@dataclass(frozen=True, slots=True)
class MergedViews:
    """Sections for a question, out of a host's store or retrievers.

    Args:
        k: Sections wanted.
        weights: Of the views, as `merge_views` takes them.
        expand: What comes behind each section found.
        source: `"store"`: one that is searched once for each view, by metadata; the views that have a retriever each;
            or None for a single retriever, whose results are ranked by their view.
        read: Reads a host's record, or hit.
        given: Sections at hand beside the source.
        restricted: What decides on what may be seen, if anything: records that are missing may be there.
        resolved: Whether the source's retrievers replace views by a copy of their section.
        maker: What cuts sections, in this host.
    """

    k: int
    weights: Mapping[str, float] | None
    expand: Expansion | None
    source: Literal["store"] | list[View] | None
    read: Callable[[Any], StoredSection]
    given: Given
    restricted: str
    resolved: bool
    maker: str

    def lookups(self) -> Lookups[list[Merged]]:
        """The sections found, best first, each once, and behind each those around it."""
        hits = yield from self._hits()
        found = [section for of_view in hits.values() for section in of_view]
        self.given.check(found)
        known, asked = yield from self._raw(found)
        self._tell_missing([section.section_id for section in found if section.section_id not in known], asked)
        rankings = {
            view: [section.section_id for section in of_view if section.section_id in known]
            for view, of_view in hits.items()
        }
        sections = merge_views(rankings, self.k, self.weights)
        if not sections and (self.restricted or (not found and self.source == "store")):
            _tell_nothing("source", self.restricted)
        around = {section.section_id: _around(known[section.section_id], self.expand) for section in sections}
        wanted = [id_ for ids in around.values() for id_ in ids if id_ not in known]
        if wanted:
            beside, asked = yield from self._fetched(wanted, any(section.old for section in found))
            self.given.check(beside.values())
            known |= beside if asked else self.given.lent(wanted, found=False)
            if not self.restricted:
                _tell_missing_around([id_ for id_ in wanted if id_ not in known])
        return [
            (known[section.section_id], section, origin)
            for section, origin in expanded(sections, around.__getitem__)
            if section.section_id in known
        ]

    def _hits(self) -> Lookups[dict[str, list[StoredSection]]]:
        if self.source is None:
            [answer] = yield [Search(self.k)]
            return self._by_view(map(self.read, answer or ()))
        if self.source != "store":
            answers = yield [Search(self.k, source=view) for view in self.source]
            hits: dict[str, list[StoredSection]] = {
                view: [*map(self.read, answer or ())] for view, answer in zip(self.source, answers, strict=True)
            }
            tell_foreign((section for of_view in hits.values() for section in of_view), self.maker)
            return hits
        hits = yield from self._searched(prefixed("view"))
        if not any(hits.values()):
            [answer] = yield [Search(self.k)]
            anything = [*map(self.read, answer or ())]
            hits = self._by_view(anything)
            if any(section.old for section in anything):
                hits = yield from self._searched("view")
        return hits

    def _searched(self, key: str) -> Lookups[dict[str, list[StoredSection]]]:
        """What the store finds in each view, by the key that names it there."""
        answers = yield [Search(self.k, {key: view}) for view in VIEWS]
        read = {view: map(self.read, answer or ()) for view, answer in zip(VIEWS, answers, strict=True)}
        return {view: [section for section in of_view if section.view == view] for view, of_view in read.items()}

    def _by_view(self, sections: Iterable[StoredSection]) -> dict[str, list[StoredSection]]:
        found: dict[str, list[StoredSection]] = {}
        for section in sections:
            found.setdefault(section.view or "raw", []).append(section)
        tell_foreign((section for of_view in found.values() for section in of_view), self.maker)
        return found

    def _raw(self, found: Sequence[StoredSection]) -> Lookups[_Fetched]:
        """The raw records of the sections found."""
        at_hand = {section.section_id: section for section in reversed(found) if section.is_raw}
        known = {id_: section for id_, section in at_hand.items() if not (section.old and self.resolved)}
        wanted = [section.section_id for section in found if section.section_id not in known]
        if not wanted:
            return known, True
        fetched, asked = yield from self._fetched(wanted, any(section.old for section in found))
        if asked:
            self.given.check(fetched.values())
            return known | fetched, True
        copies = {section.section_id: self.read(section.copy) for section in found if section.copy is not None}
        return copies | self.given.lent(wanted, found=True) | at_hand, False

    def _fetched(self, ids: Sequence[str], old: bool) -> Lookups[_Fetched]:
        """Raw records by section id; where the store has ids of its own, by metadata."""
        ids = list(dict.fromkeys(ids))
        [answer] = yield [ById(tuple(ids))]
        fetched = self._sections(ids, answer or ())
        left = tuple(id_ for id_ in ids if id_ not in fetched)
        if not left:
            return fetched, True
        names = ("section_id", "view") if old else (prefixed("section_id"), prefixed("view"))
        [by_metadata] = yield [Holding(dict(zip(names, (left, "raw"), strict=True)))]
        return fetched | self._sections(left, by_metadata or ()), not (answer is None and by_metadata is None)

    def _sections(self, ids: Iterable[str], records: Iterable[Any]) -> dict[str, StoredSection]:
        wanted = set(ids)
        sections = map(self.read, records)
        return {section.section_id: section for section in sections if section.is_raw and section.section_id in wanted}

    def _tell_missing(self, ids: Sequence[str], asked: bool) -> None:
        if asked and self.restricted:  # perhaps they are hidden: nothing is said of them
            return
        ids = ids if asked else [id_ for id_ in ids if id_ not in self.given]
        if ids:
            where = "is no longer in the store" if asked else f"cannot be looked up: pass {self.given.name}, too"
            _warn(
                f"the raw record of {len(set(ids))} sections, found by keywords or summary, {where}; for example "
                f"{ids[0]!r}. They are left out"
            )


def merged_in_memory(
    sections: Sequence[MergedSection], raw: Mapping[str, StoredSection], expand: Expansion | None, restricted: bool
) -> list[Merged]:
    """Sections that an index in memory found, and behind each those around it.

    Args:
        sections: Best first.
        raw: What may be seen, by section id.
        expand: What comes behind each section found.
        restricted: Whether a filter hides sections.
    """
    if not sections and restricted:
        _tell_nothing("index", "the filter")
    around = {section.section_id: _around(raw[section.section_id], expand) for section in sections}
    return [
        (raw[section.section_id], section, origin)
        for section, origin in expanded(sections, around.__getitem__)
        if section.section_id in raw
    ]


def tell_foreign(sections: Iterable[StoredSection], maker: str) -> None:
    """Warn if another splitter made one of them."""
    if any(section.view is None for section in sections):
        _warn(
            f"there are chunks that {maker} did not make: they are ranked as they are, each by its text alone, without "
            f"keywords and summaries. Cut the documents with {maker} to have these"
        )


def _around(section: StoredSection, expand: Expansion | None) -> list[str]:
    return [section.around[name] for name in AROUND[expand] if name in section.around]


def _tell_missing_around(ids: Sequence[str]) -> None:
    if ids:
        _warn(f"{len(set(ids))} sections around those found are not at hand, for example {ids[0]!r}. They are left out")


def _tell_nothing(where: str, restricted: str) -> None:
    _warn(
        f"nothing was found: the {where} holds nothing"
        + (f", or nothing that {restricted} shows" if restricted else "")
    )


def _warn(what: str) -> None:
    warnings.warn(f"MultiViewRetriever: {what}.", DrillrankWarning, stacklevel=3)
