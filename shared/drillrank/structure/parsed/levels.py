"""Levels of headings that a tool has put on one level."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from drillrank.structure.numbering import named_rank

_NUMBER = re.compile(r"(?P<number>\d{1,3}(?:\.\d{1,3})*)\.?[ \t]+\S|(?P<named>.)")


def rebuilt_levels(headings: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
    """Levels by numbering, or by titles that recur below others; as they are where they differ already.

    The first heading may stand alone above all others, as a title does. A heading without a number is below the
    numbered one before it, but for those before the first and after the last number. Where nothing is numbered, a
    title that comes several times, such as "Revenue" below each segment, is below one that comes once.

    Args:
        headings: Level and title of each.

    >>> rebuilt_levels([(2, "Abstract"), (2, "1 Data"), (2, "1.1 Units"), (2, "Kilograms"), (2, "2 Use")])
    [(2, 'Abstract'), (2, '1 Data'), (3, '1.1 Units'), (4, 'Kilograms'), (2, '2 Use')]
    >>> rebuilt_levels([(1, "Asia"), (1, "Revenue"), (1, "Europe"), (1, "Revenue")])
    [(1, 'Asia'), (2, 'Revenue'), (1, 'Europe'), (2, 'Revenue')]
    """
    title = list(headings[:1])
    rest = list(headings[1:])
    if not rest or len({level for level, _ in rest}) > 1:
        return list(headings)
    base = rest[0][0]
    if title[0][0] >= base:
        title, rest = [], list(headings)
        if len({level for level, _ in rest}) > 1:
            return rest
    depths = _numbered([name for _, name in rest]) or _recurring([name for _, name in rest])
    return title + [(base + depth, name) for depth, (_, name) in zip(depths, rest, strict=True)]


def _numbered(titles: Sequence[str]) -> list[int] | None:
    """Depths by numbers; None where fewer than two are numbered, or all on one level."""
    own = [_depth(title) for title in titles]
    places = [at for at, depth in enumerate(own) if depth is not None]
    if len(places) < 2:
        return None
    ranks = sorted({depth for depth in own if depth is not None})
    if len(ranks) == 1 and len(places) == len(titles):
        return [0] * len(titles)
    depths, last = [], 0
    for at, depth in enumerate(own):
        if depth is not None:
            last = ranks.index(depth)
            depths.append(last)
        else:
            depths.append(last + 1 if places[0] < at < places[-1] else 0)
    return depths


def _depth(title: str) -> float | None:
    """How deep a number says that a heading is: parts and items are above "1", which is above "1.1"."""
    rank = named_rank(title)
    if rank is not None:
        return rank - 10.0
    found = _NUMBER.match(title)
    return float(found["number"].count(".")) if found and found["number"] else None


def _recurring(titles: Sequence[str]) -> list[int]:
    counts = Counter(title.casefold() for title in titles)
    below = [counts[title.casefold()] > 1 for title in titles]
    if all(below) or below[0]:
        return [0] * len(titles)
    return [int(recurs) for recurs in below]
