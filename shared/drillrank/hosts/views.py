"""Retrieval over views, as both hosts do it: rankings of a store's views, merged, and sections in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count, zip_longest
from typing import Any, Literal

from drillrank.errors import InvalidInput, WarnOnce, warn
from drillrank.explanation import Explanation
from drillrank.explanation.explanations import explains
from drillrank.hosts.filters import AccessFilter
from drillrank.hosts.metadata import prefixed, result_metadata
from drillrank.hosts.models import HostEmbedding
from drillrank.hosts.sections import (
    AROUND,
    StoredSection,
    at_hand,
    raw_records,
    raw_sections,
    warn_missing,
)
from drillrank.hosts.settings import check_switch
from drillrank.hosts.shared import Indexes, Shared, shared
from drillrank.hosts.store import THE_QUESTION, Store, answered
from drillrank.llm import Requests, Retrieve
from drillrank.settings import check_one_of
from drillrank.text import check_language
from drillrank.vectors import Embed
from drillrank.views import (
    VIEWS,
    Expansion,
    Merge,
    MergedSection,
    MultiViewIndex,
    RetrieverName,
    View,
    ViewText,
    check_views,
    check_weights,
    expanded,
    explain_views,
    merge_views,
)

Rankings = dict[str, list[StoredSection]]
"""By view the records of it, best first."""

_Identity = tuple[str, "str | None"]

_OF_SECTIONS = VIEWS[1:]  # what only sections have; anything else stands by its own text


def oversampled(k: int) -> int:
    """How many records are searched for without a view, so that `k` are seldom not among them that are none.

    Twice the views of `k` sections, and room for chance where `k` is small.

    >>> oversampled(5)
    80
    """
    return 2 * len(VIEWS) * k + 50


def of_store(
    k: int, read: Callable[[Any], StoredSection], views: Sequence[View] = VIEWS
) -> Requests[tuple[Rankings, list[StoredSection]]]:
    """The `k` best records of some views in a store, and all that the search without a view found.

    One search, one each of the keywords and the summaries where these are wanted, and one more where fewer than `k`
    raw texts are in sight.

    Args:
        k: Records of each view.
        read: Reads a host's hit.
        views: Those that are ranked.
    """
    of_sections = [view for view in _OF_SECTIONS if view in views]

    def of_view(view: View) -> Retrieve:
        return Retrieve(THE_QUESTION, k, where={prefixed("view"): view})

    answers = yield [Retrieve(THE_QUESTION, oversampled(k)), *map(of_view, of_sections)]
    near, *others = ([*map(read, answer or ())] for answer in answers)
    whole = _is_whole(near, others, oversampled(k))
    found = {view: _only(near, view) for view in views}
    for view, more in zip(of_sections, others, strict=True):
        found[view] += _only(more, view)
    third_party = [section for section in near if section.view is None]
    if "raw" in views and not whole and len(found["raw"]) + len(third_party) < k:
        [answer] = yield [of_view("raw")]
        found["raw"] += _only(map(read, answer or ()), "raw")
    place = _places(near)
    rankings: Rankings = {view: _joined(place, found[view]) for view in views}
    return _with_third_party(rankings, third_party, place, views, k), near


def of_hits(sections: Iterable[StoredSection], views: Sequence[View] = VIEWS) -> Rankings:
    """The rankings of a single one by view; other splitters' chunks are in each of them."""
    listed = list(sections)
    there = dict.fromkeys(section.view for section in listed if section.view in views)
    rankings = {str(view): [section for section in listed if section.view == view] for view in there}
    return _with_third_party(rankings, [section for section in listed if section.view is None], _places(listed), views)


def texts_of(
    sections: Sequence[StoredSection], texts: Iterable[str], views: Sequence[View] = VIEWS
) -> tuple[list[ViewText], list[int]]:
    """What an index in memory is made of, and for each of it the number of its section.

    Args:
        sections: As they were given.
        texts: What is to be indexed of each.
        views: Those that are searched.
    """
    there = {"raw", views[0], *(section.view for section in sections)}
    made: list[ViewText] = []
    owners: list[int] = []
    for number, (section, text) in enumerate(zip(sections, texts, strict=True)):
        for view in [view for view in VIEWS if view in there] if section.view is None else [section.view]:
            made.append(ViewText(section.section_id, view, text))  # type: ignore[arg-type]  # one of the views
            owners.append(number)
    return made, owners


def _with_third_party(
    rankings: Rankings,
    third_party: Sequence[StoredSection],
    place: Mapping[_Identity, int],
    views: Sequence[View],
    k: int | None = None,
) -> Rankings:
    """Rankings of views with other splitters' chunks, which have no views: each stands in all by its own text.

    In one alone they would be behind every section that two views found, near or not.

    Args:
        rankings: Of each view.
        third_party: The chunks, best first.
        place: Of what was found together, the chunks among it: where.
        views: Those that are ranked.
        k: Records of each view.
    """
    if third_party:
        rankings = {views[0]: rankings.get(views[0], []), **{view: found for view, found in rankings.items() if found}}
    return {view: _joined(place, third_party, found)[:k] for view, found in rankings.items()}


def _only(sections: Iterable[StoredSection], view: str) -> list[StoredSection]:
    """Those of a view: a user may have its name under the key, and a store may heed no filter."""
    return [section for section in sections if section.view == view]


def _is_whole(near: Sequence[StoredSection], others: Iterable[Iterable[StoredSection]], searched: int) -> bool:
    """Whether the search without a view brought all that there is; approximate indexes may bring less."""
    there = _places(near)
    return len(near) < searched and all(_identity(section) in there for found in others for section in found)


def _identity(section: StoredSection) -> _Identity:
    return section.section_id, section.view


def _places(sections: Sequence[StoredSection]) -> dict[_Identity, int]:
    return {_identity(section): number for number, section in enumerate(_each_once(sections))}


def _each_once(sections: Iterable[StoredSection]) -> list[StoredSection]:
    first: dict[_Identity, StoredSection] = {}
    for section in sections:
        first.setdefault(_identity(section), section)
    return list(first.values())


def _joined(place: Mapping[_Identity, int], *rankings: Sequence[StoredSection]) -> list[StoredSection]:
    """One ranking of several: what was found together by its place, and the rest, which is behind, in turns."""
    seen = [section for ranking in rankings for section in ranking if _identity(section) in place]
    seen.sort(key=lambda section: place[_identity(section)])
    behind = [[section for section in ranking if _identity(section) not in place] for ranking in rankings]
    in_turns = [section for row in zip_longest(*behind) for section in row if section is not None]
    return _each_once(seen + in_turns)


Merged = tuple[StoredSection, MergedSection, str | None]
"""A section, how it was found, and for one that was not found the id of the section that it stands around."""


Searched = Literal["store", "memory"] | list[View] | None
"""What is searched: a store by metadata, for each view; an index in memory; the views that have a retriever each; or
None for a single retriever, whose results are ranked by their view."""


def check_searched(component: object, documents: Sequence[object] | None, source: object) -> None:
    """Refuse a component that has nothing to search.

    Raises:
        InvalidInput: says what to give.
    """
    if source is None and not documents:
        raise InvalidInput(f"{type(component).__name__} has nothing to search: give it documents, or a source.")


class ViewRetrieval:
    """What a retriever over views holds between questions, and looks up for each.

    Args:
        sections: What was given to it.
        texts: What is indexed of each, where an index in memory is searched.
        searched: See above.
        read: Reads a host's record, or hit.
        maker: What cuts sections, in this host.
        filtered: Whether the component has a filter of its own.
        retriever: As for `MultiViewIndex`.
        weights: As for `MultiViewIndex`.
        language: As for `MultiViewIndex`.
        embed: As for `MultiViewIndex`.
        merge: As for `MultiViewIndex`.
        views: As for `MultiViewIndex`.
        expand: What comes after each section found: `"neighbours"`, `"parent"` or nothing.
        explains: Whether each result is explained.

    Raises:
        InvalidInput: a setting cannot be used, `embed` is given where no index in memory is searched, or nothing hides
            sections in memory, and two are one with different texts.
    """

    def __init__(
        self,
        sections: Sequence[StoredSection],
        texts: Callable[[], Sequence[str]],
        searched: Searched,
        read: Callable[[Any], StoredSection],
        *,
        maker: str,
        filtered: bool,
        retriever: RetrieverName = "bm25",
        weights: Mapping[str, float] | None = None,
        language: str = "english",
        embed: Embed | None = None,
        merge: Merge = "fusion",
        views: Sequence[View] = VIEWS,
        expand: Expansion | None = None,
        explains: bool = False,
    ) -> None:
        check_one_of(RetrieverName, retriever=retriever)
        check_switch(explain=explains)
        check_weights(weights)
        check_language(language)
        check_one_of(Merge, merge=merge)
        check_views(views)
        if embed is not None and searched != "memory":
            raise InvalidInput("embed ranks what is indexed in memory; a source searches with its own embedding.")
        if expand is not None:
            check_one_of(Expansion, expand=expand)
        self._weights, self._merge, self._expand, self._explains = weights, merge, expand, explains
        self._views, self._sections, self._read, self._maker = views, sections, read, maker
        self._searched = [view for view in searched if view in views] if isinstance(searched, list) else searched
        self._warned = WarnOnce()
        self._indexes = Indexes([section.record for section in sections], self._index)
        if searched == "memory":
            self._warn_third_party(sections)
            indexed, owners = texts_of(sections, texts(), views)
            missing = {one.section_id for one in indexed} - {one.section_id for one in indexed if one.view == "raw"}
            if missing:
                raise InvalidInput(f"{len(missing)} sections have no raw view, for example {min(missing)!r:.200}.")
            self._embed = embed
            self._settings = {"retriever": retriever, "weights": weights, "language": language, "merge": merge}
            self._indexed = list(zip(indexed, owners, strict=True))
            if not filtered:
                self._indexes.of(tuple(range(len(sections))))

    def _index(self, seen: tuple[int, ...]) -> tuple[dict[str, StoredSection], Shared[MultiViewIndex]]:
        """The raw sections that may be seen, and an index of their views."""
        raw, there = raw_sections([self._sections[number] for number in seen]), set(seen)
        shown = [one for one, owner in self._indexed if owner in there and one.section_id in raw]
        settings: dict[str, Any] = {**self._settings, "views": self._views}
        model = self._embed.model if isinstance(self._embed, HostEmbedding) else self._embed
        made_of = {"texts": shown, "embed": model, **settings}
        return raw, shared("views", made_of, lambda: MultiViewIndex(shown, embed=self._embed, **settings))

    def retrieve(
        self, query: str, store: Store, guard: AccessFilter[Any], top_n: int
    ) -> Requests[list[tuple[Merged, Explanation | None]]]:
        """The sections found, best first, each once, and after each those around it; each with its explanation.

        There is none where nobody asked for it, nor of what was not found itself.

        Args:
            query: The question.
            store: Answers look-ups.
            guard: What may be seen.
            top_n: Sections wanted.
        """
        if self._searched == "memory":
            raw, index = self._indexes.of((yield from self._indexes.seen(guard)))
            sections = index.made.search(query, top_n)
            if not sections and guard.restricts:
                _warn("nothing was found: the index holds nothing, or nothing that the filter shows")
            found = _with_those_around(sections, raw, self._around(sections, raw))
        else:
            found = yield from answered(self._looked_up(top_n, guard), store.handlers)
        ranks = count(1)
        explained = explains(self._explains)
        return [(merged, self._why(*merged, ranks, top_n) if explained else None) for merged in found]

    def _why(
        self, section: StoredSection, merged: MergedSection, origin: str | None, ranks: Iterator[int], top_n: int
    ) -> Explanation | None:
        if origin is not None:
            return None
        name = str(result_metadata(section.record.metadata).get("section_path") or section.section_id)
        return explain_views(merged, next(ranks), name, top_n, self._weights, self._merge)

    def _looked_up(self, top_n: int, guard: AccessFilter[Any]) -> Requests[list[Merged]]:
        """Sections out of a store or retrievers, their raw records and those around them looked up."""
        hits, near = yield from self._hits(top_n)
        found = [section for of_view in hits.values() for section in of_view]
        self._warn_third_party(found)
        ids = {section.section_id for section in found}
        known = at_hand(section for section in (*found, *near) if section.section_id in ids)
        asked = True
        if wanted := [section.section_id for section in found if section.section_id not in known]:
            fetched, asked = yield from raw_records(wanted, self._read)
            known |= fetched if asked else self._given(wanted, guard, found)
        missing = [id_ for id_ in dict.fromkeys(wanted) if id_ not in known]
        if not (asked and guard.restricts):  # perhaps they are hidden: nothing is said of them
            where = "is no longer in the store" if asked else "cannot be looked up: pass documents, too"
            warn_missing("MultiViewRetriever", self._warned.new("raw", missing), where)
        rankings = {
            view: [section.section_id for section in of_view if section.section_id in known]
            for view, of_view in hits.items()
        }
        sections = merge_views(rankings, top_n, self._weights, self._merge)
        if not sections and (guard.restricts or (not found and self._searched == "store")):
            hidden = ", or nothing that the filter shows" if guard.restricts else ""
            _warn(f"nothing was found: the source holds nothing{hidden}")
        around = self._around(sections, known)
        if wanted := [id_ for ids in around.values() for id_ in ids if id_ not in known]:
            fetched, asked = yield from raw_records(wanted, self._read)
            known |= fetched if asked else self._given(wanted, guard, found)
            left = (
                {}
                if guard.restricts
                else {
                    id_: known[section_id].document or section_id
                    for section_id, ids in around.items()
                    for id_ in ids
                    if id_ not in known
                }
            )
            documents = self._warned.new("around", left.values())
            if nowhere := [id_ for id_, document in left.items() if document in documents]:
                _warn(
                    f"{len(nowhere)} sections around those found are not at hand, for example {nowhere[0]!r:.200}. "
                    "They are left out"
                )
        return _with_those_around(sections, known, around)

    def _hits(self, top_n: int) -> Requests[tuple[Rankings, list[StoredSection]]]:
        """The rankings, and what else was found."""
        if self._searched == "store":
            return (yield from of_store(top_n, self._read, self._views))
        if self._searched is None:
            [answer] = yield [Retrieve(THE_QUESTION, top_n)]
            return of_hits(map(self._read, answer or ()), self._views), []
        views: Any = self._searched
        answers = yield [Retrieve(THE_QUESTION, top_n, view) for view in views]
        return {view: [*map(self._read, answer or ())] for view, answer in zip(views, answers, strict=True)}, []

    def _given(
        self, ids: Iterable[str], guard: AccessFilter[Any], found: Iterable[StoredSection]
    ) -> dict[str, StoredSection]:
        """Raw sections that were given beside a source, where no store can be asked; none of another version."""
        seen = set(map(id, guard.filter_fetched(section.record for section in self._sections)))
        given = {(one.section_id, one.view): one for one in self._sections if id(one.record) in seen}
        outdated = {
            section.document
            for section in found
            if (own := given.get((section.section_id, section.view)) or given.get((section.section_id, "raw")))
            and _differ(own, section)
        }
        stand_ins = [given[id_, "raw"] for id_ in ids if (id_, "raw") in given]
        return {section.section_id: section for section in stand_ins if section.document not in outdated}

    def _around(self, found: Iterable[MergedSection], known: Mapping[str, StoredSection]) -> dict[str, list[str]]:
        around = ((one.section_id, known[one.section_id].around) for one in found)
        return {id_: [links[name] for name in AROUND[self._expand] if name in links] for id_, links in around}

    def _warn_third_party(self, sections: Iterable[StoredSection]) -> None:
        if any(section.view is None for section in sections) and self._warned.new("foreign", [self._maker]):
            _warn(
                f"there are chunks that {self._maker} did not make: they are ranked as they are, each by its text "
                f"alone, without keywords and summaries. Cut the documents with {self._maker} to have these"
            )


def _differ(given: StoredSection, found: StoredSection) -> bool:
    """Whether two records of a section are of different versions: hosts add metadata, but do not change them."""
    held = found.record.metadata
    return (given.view == found.view and given.text != found.text) or any(
        isinstance(value, str | int) and given.view == found.view and held.get(key, value) != value
        for key, value in given.record.metadata.items()
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


def _warn(what: str) -> None:
    warn(f"MultiViewRetriever: {what}.")
