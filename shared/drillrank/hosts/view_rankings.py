"""The rankings of a store's views, whoever wrote its records: we, or another splitter.

One of a question's three searches asks for no view. What is near the question shows in it, of whatever kind it is, so
that nothing has to be known of the store beforehand, nor remembered: it may be filled with anything at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from drillrank.hosts.keys import prefixed
from drillrank.hosts.lookups import THE_QUESTION
from drillrank.hosts.stored_sections import StoredSection
from drillrank.llm import Requests, Retrieve
from drillrank.views import VIEWS, View, ViewText

Rankings = dict[str, list[StoredSection]]
"""By view the records of it, best first."""

_Identity = tuple[str, "str | None"]

_OF_SECTIONS = VIEWS[1:]  # what only sections have; anything else stands by its own text


def in_sight(k: int) -> int:
    """How many records are searched for without a view, so that `k` are seldom not among them that are none.

    Twice the views of `k` sections, and room for chance where `k` is small.

    >>> in_sight(5)
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

    answers = yield [Retrieve(THE_QUESTION, in_sight(k)), *map(of_view, of_sections)]
    near, *others = ([*map(read, answer or ())] for answer in answers)
    whole = _is_whole(near, others, in_sight(k))
    found = {view: _only(near, view) for view in views}
    for view, more in zip(of_sections, others, strict=True):
        found[view] += _only(more, view)
    foreign = [section for section in near if section.view is None]
    if "raw" in views and not whole and len(found["raw"]) + len(foreign) < k:
        [answer] = yield [of_view("raw")]
        found["raw"] += _only(map(read, answer or ()), "raw")
    place = _places(near)
    rankings: Rankings = {view: _joined(place, found[view]) for view in views}
    return _with_foreign(rankings, foreign, place, views, k), near


def of_hits(sections: Iterable[StoredSection], views: Sequence[View] = VIEWS) -> Rankings:
    """The rankings of a single one by view; other splitters' chunks are in each of them."""
    listed = list(sections)
    there = dict.fromkeys(section.view for section in listed if section.view in views)
    rankings = {str(view): [section for section in listed if section.view == view] for view in there}
    return _with_foreign(rankings, [section for section in listed if section.view is None], _places(listed), views)


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


def _with_foreign(
    rankings: Rankings,
    foreign: Sequence[StoredSection],
    place: Mapping[_Identity, int],
    views: Sequence[View],
    k: int | None = None,
) -> Rankings:
    """Rankings of views with other splitters' chunks, which have no views: each stands in all by its own text.

    In one alone they would be behind every section that two views found, near or not.

    Args:
        rankings: Of each view.
        foreign: The chunks, best first.
        place: Of what was found together, the chunks among it: where.
        views: Those that are ranked.
        k: Records of each view.
    """
    if foreign:
        rankings = {views[0]: rankings.get(views[0], []), **{view: found for view, found in rankings.items() if found}}
    return {view: _joined(place, foreign, found)[:k] for view, found in rankings.items()}


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
