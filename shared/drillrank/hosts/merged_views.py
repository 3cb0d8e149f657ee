"""Sections out of a store: each view is searched, the rankings are merged, and what is returned is the raw record.

A hit in the keywords or the summary is a reference and no more: text and metadata of a result come from the section's
raw record as the store has it at that moment.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from drillrank.errors import WarnOnce, warn
from drillrank.hosts.lookups import THE_QUESTION
from drillrank.hosts.raw_records import at_hand, raw_records, tell_gone
from drillrank.hosts.stored_sections import AROUND, Given, StoredSection
from drillrank.hosts.view_rankings import Rankings, of_hits, of_store
from drillrank.llm import Requests, Retrieve
from drillrank.views import VIEWS, Expansion, Merge, MergedSection, View, expanded, merge_views

Merged = tuple[StoredSection, MergedSection, str | None]
"""A section, how it was found, and for one that was not found the id of the section that it stands around."""

_Fetched = tuple[dict[str, StoredSection], bool]  # by id, and whether the store could be asked


@dataclass(frozen=True, slots=True)
class MergedViews:
    """Sections for a question, out of a host's store or retrievers.

    Args:
        top_n: Sections wanted.
        weights: Of the views, as `merge_views` takes them.
        expand: What comes behind each section found.
        source: `"store"`: one that is searched by metadata, for each view; the views that have a retriever each;
            or None for a single retriever, whose results are ranked by their view.
        read: Reads a host's record, or hit.
        given: Sections at hand beside the source.
        restricted: What decides on what may be seen, if anything: records that are missing may be there.
        maker: What cuts sections, in this host.
        told: What the component's user was told.
        merge: As for `merge_views`.
        views: Those that are ranked, where the source is not a list of them.
    """

    top_n: int
    weights: Mapping[str, float] | None
    expand: Expansion | None
    source: Literal["store"] | list[View] | None
    read: Callable[[Any], StoredSection]
    given: Given
    restricted: str
    maker: str
    told: WarnOnce
    merge: Merge = "fusion"
    views: Sequence[View] = VIEWS

    def lookups(self) -> Requests[list[Merged]]:
        """The sections found, best first, each once, and behind each those around it."""
        hits, beside = yield from self._hits()
        found = [section for of_view in hits.values() for section in of_view]
        self.given.check(found)
        known, asked = yield from self._raw(found, beside)
        self._tell_missing([section for section in found if section.section_id not in known], asked)
        rankings = {
            view: [section.section_id for section in of_view if section.section_id in known]
            for view, of_view in hits.items()
        }
        sections = merge_views(rankings, self.top_n, self.weights, self.merge)
        if not sections and (self.restricted or (not found and self.source == "store")):
            _tell_nothing("source", self.restricted)
        around = {section.section_id: _around(known[section.section_id], self.expand) for section in sections}
        wanted = [id_ for ids in around.values() for id_ in ids if id_ not in known]
        if wanted:
            fetched, asked = yield from raw_records(wanted, self.read)
            self.given.check(fetched.values())
            known |= fetched if asked else self.given.lent(wanted, found=False)
            missing = {
                id_: known[section_id].document or section_id
                for section_id, ids in around.items()
                for id_ in ids
                if id_ not in known and not self.restricted
            }
            self._tell_missing_around(missing)
        return _with_those_around(sections, known, around)

    def _hits(self) -> Requests[tuple[Rankings, list[StoredSection]]]:
        """The rankings, and what else was found."""
        beside: list[StoredSection] = []
        if self.source is None:
            [answer] = yield [Retrieve(THE_QUESTION, self.top_n)]
            hits = of_hits(map(self.read, answer or ()), self.views)
        elif self.source == "store":
            hits, beside = yield from of_store(self.top_n, self.read, self.views)
        else:
            answers = yield [Retrieve(THE_QUESTION, self.top_n, view) for view in self.source]
            hits = {view: [*map(self.read, answer or ())] for view, answer in zip(self.source, answers, strict=True)}
        tell_foreign((section for of_view in hits.values() for section in of_view), self.maker, self.told)
        return hits, beside

    def _raw(self, found: Sequence[StoredSection], beside: Sequence[StoredSection]) -> Requests[_Fetched]:
        """The raw records of the sections found; some are among these, or beside them."""
        ids = {section.section_id for section in found}
        near = [section for section in (*found, *beside) if section.section_id in ids]
        known = at_hand(near)
        wanted = [section.section_id for section in found if section.section_id not in known]
        if not wanted:
            return known, True
        fetched, asked = yield from raw_records(wanted, self.read)
        if asked:
            self.given.check(fetched.values())
            return known | fetched, True
        return self.given.lent(wanted, found=True) | known, False

    def _tell_missing(self, missing: Iterable[StoredSection], asked: bool) -> None:
        if asked and self.restricted:  # perhaps they are hidden: nothing is said of them
            return
        left = [section.section_id for section in missing if asked or section.section_id not in self.given]
        where = "is no longer in the store" if asked else f"cannot be looked up: pass {self.given.name}, too"
        tell_gone("MultiViewRetriever", self.told.new("raw", left), where)

    def _tell_missing_around(self, missing: Mapping[str, Hashable]) -> None:
        """Warn of sections that are not there, by the document that they are missing of."""
        documents = self.told.new("around", missing.values())
        ids = [id_ for id_, document in missing.items() if document in documents]
        if ids:
            _warn(f"{len(ids)} sections around those found are not at hand, for example {ids[0]!r}. They are left out")


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
    return _with_those_around(sections, raw, around)


def tell_foreign(sections: Iterable[StoredSection], maker: str, told: WarnOnce) -> None:
    """Warn if another splitter made one of them, once."""
    if any(section.view is None for section in sections) and told.new("foreign", [maker]):
        _warn(
            f"there are chunks that {maker} did not make: they are ranked as they are, each by its text alone, without "
            f"keywords and summaries. Cut the documents with {maker} to have these"
        )


def _with_those_around(
    sections: Sequence[MergedSection], known: Mapping[str, StoredSection], around: Mapping[str, list[str]]
) -> list[Merged]:
    return [
        (known[section.section_id], _as_matched(section, known[section.section_id]), origin)
        for section, origin in expanded(sections, around.__getitem__)
        if section.section_id in known
    ]


def _as_matched(section: MergedSection, stored: StoredSection) -> MergedSection:
    """Of another splitter's chunk, which stands in all rankings, the view that it has."""
    if stored.view is not None or section.best_rank is None:
        return section
    return replace(section, ranks={"raw": section.ranks.get("raw", section.best_rank)})


def _around(section: StoredSection, expand: Expansion | None) -> list[str]:
    return [section.around[name] for name in AROUND[expand] if name in section.around]


def _tell_nothing(where: str, restricted: str) -> None:
    _warn(
        f"nothing was found: the {where} holds nothing"
        + (f", or nothing that {restricted} shows" if restricted else "")
    )


def _warn(what: str) -> None:
    warn(f"MultiViewRetriever: {what}.")
