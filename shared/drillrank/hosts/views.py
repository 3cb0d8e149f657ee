"""Retrieval over views, as both hosts do it: rankings of a store's views, merged, and sections in memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
    Given,
    StoredSection,
    at_hand,
    by_view,
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
        warn_third_party((section for of_view in hits.values() for section in of_view), self.maker, self.told)
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
        warn_missing("MultiViewRetriever", self.told.new("raw", left), where)

    def _tell_missing_around(self, missing: Mapping[str, Hashable]) -> None:
        """Warn of sections that are not there, by the document that they are missing of."""
        documents = self.told.new("around", missing.values())
        ids = [id_ for id_, document in missing.items() if document in documents]
        if ids:
            _warn(
                f"{len(ids)} sections around those found are not at hand, for example {ids[0]!r:.200}. "
                "They are left out"
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
    return _with_those_around(sections, raw, around)


def warn_third_party(sections: Iterable[StoredSection], maker: str, told: WarnOnce) -> None:
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
        retriever: As for `MultiViewIndex`.
        weights: As for `MultiViewIndex`.
        language: As for `MultiViewIndex`.
        embed: As for `MultiViewIndex`.
        merge: As for `MultiViewIndex`.
        views: As for `MultiViewIndex`.
        expand: What comes after each section found: `"neighbours"`, `"parent"` or nothing.
        explains: Whether each result is explained.
        sections: What was given to it.
        texts: What is indexed of each, where an index in memory is searched.
        searched: See above.
        read: Reads a host's record, or hit.
        name: Of the parameter that sections were given as.
        maker: What cuts sections, in this host.
        filtered: Whether the component has a filter of its own.

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
        name: str,
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
        self._views = views
        self._sections = sections
        self._searched = [view for view in searched if view in views] if isinstance(searched, list) else searched
        self._read = read
        self._name = name
        self._maker = maker
        self._warned = WarnOnce()
        if searched == "memory":
            warn_third_party(sections, maker, self._warned)
            indexed, owners = texts_of(sections, texts(), views)
            missing = {one.section_id for one in indexed} - {one.section_id for one in indexed if one.view == "raw"}
            if missing:
                raise InvalidInput(f"{len(missing)} sections have no raw view, for example {min(missing)!r:.200}.")
            self._embed = embed
            self._settings = {"retriever": retriever, "weights": weights, "language": language, "merge": merge}
            self._indexed = list(zip(indexed, owners, strict=True))
            self._indexes = Indexes([section.record for section in sections], self._index)
            if not filtered:
                self._indexes.of(tuple(range(len(sections))))

    def _index(self, seen: tuple[int, ...]) -> tuple[dict[str, StoredSection], Shared[MultiViewIndex]]:
        """The raw sections that may be seen, and an index of their views."""
        raw, there = raw_sections([self._sections[number] for number in seen], self._name), set(seen)
        shown = [one for one, owner in self._indexed if owner in there and one.section_id in raw]
        settings: dict[str, Any] = {**self._settings, "views": self._views}
        model = self._embed.model if isinstance(self._embed, HostEmbedding) else self._embed
        index = shared(
            "views",
            {"texts": shown, "embed": model, **settings},
            lambda: MultiViewIndex(shown, embed=self._embed, **settings),
        )
        return raw, index

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
        found: list[Merged] = yield from answered(self._requests(query, top_n, guard), store.handlers)
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

    def _requests(self, query: str, top_n: int, guard: AccessFilter[Any]) -> Requests[list[Merged]]:
        searched = self._searched
        if searched == "memory":
            return (yield from self._in_memory(query, top_n, guard))
        views = MergedViews(
            top_n=top_n,
            weights=self._weights,
            expand=self._expand,
            source=searched,
            read=self._read,
            given=Given(by_view(self._sections, guard.filter_fetched), self._name, guard.filter_fetched, self._warned),
            restricted="the filter" if guard.restricts else "",
            maker=self._maker,
            told=self._warned,
            merge=self._merge,
            views=self._views,
        )
        return (yield from views.lookups())

    def _in_memory(self, query: str, top_n: int, guard: AccessFilter[Any]) -> Requests[list[Merged]]:
        seen = yield from self._indexes.seen(guard)
        raw, index = self._indexes.of(seen)
        return merged_in_memory(index.made.search(query, top_n), raw, self._expand, guard.restricts)
