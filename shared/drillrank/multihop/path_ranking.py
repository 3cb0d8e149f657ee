"""From the scored paths of a search to one ranking of them, and of the passages they hold.

score(d) = max over the paths c that hold d of score(c)          Khalifa et al. (2023), section 2
P(d | q) ∝ Σ over the paths c that hold d of P(q | c) P(c | q)   the order of the passages of one path
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from drillrank.passages import Passage, Path, Ranked, ranked
from drillrank.rerank.base import divisor


def log_posterior(item: Ranked[Path]) -> float:
    """Log P(q | c) P(c | q): the score is this for each token of the question."""
    return item.score * divisor(item.details)


def is_over(frontier: Sequence[Ranked[Path]], shorter: Sequence[Ranked[Path]]) -> bool:
    """Whether the best path of a hop is less likely than the best of the hops before it.

    >>> a, b = Path((Passage("a"),)), Path((Passage("a"), Passage("b")))
    >>> shorter = [Ranked(a, -2.0, 1, {"tokens": 4})]
    >>> [is_over([Ranked(b, score, 1, {"tokens": 4})], shorter) for score in (-1.9, -2.1)]
    [False, True]
    """
    best = max(map(log_posterior, shorter), default=-math.inf)
    return max(map(log_posterior, frontier)) < best


def ranked_paths(found: Sequence[Ranked[Path]], keep_first: bool) -> list[Ranked[Path]]:
    """The paths of all hops as one ranking; where none holds a word of the question, all count alike.

    That is, unless the first stage tells those of the first hop apart (`keep_first`): longer ones come last then.
    """
    nothing = all(item.details["nothing_matched"] for item in found)
    lowest = min((item.score for item in found), default=0.0)
    levels = [
        lowest if nothing and not (keep_first and len(item.passage.passages) == 1) else item.score for item in found
    ]
    details = [item.details | {"nothing_matched": nothing} for item in found]
    ordered = ranked([item.passage for item in found], levels, details)
    for item in ordered:
        del item.details["position"]  # the place among the paths of all hops says nothing
    return ordered


def ranked_passages(paths: Sequence[Ranked[Path]]) -> list[Ranked[Passage]]:
    """Each passage of ranked paths once, with the score and the details of its best path.

    >>> a, b = Passage("a", id="a"), Passage("b", id="b")
    >>> scored = [((a, b), -1.0), ((b,), -1.2), ((a,), -3.0)]
    >>> paths = [Ranked(Path(passages), score, 1, {"tokens": 2}) for passages, score in scored]
    >>> [(item.passage.id, item.score, item.rank) for item in ranked_passages(paths)]
    [('b', -1.0, 1), ('a', -1.0, 2)]
    """
    logs = [log_posterior(item) for item in paths]
    highest = max(logs, default=0.0)
    posterior: defaultdict[str, float] = defaultdict(float)
    best: dict[str, tuple[int, Passage]] = {}
    for place, (item, log) in enumerate(zip(paths, logs, strict=True)):
        for passage in item.passage.passages:
            posterior[passage.id] += math.exp(log - highest)
            best.setdefault(passage.id, (place, passage))
    order = sorted(best, key=lambda name: (best[name][0], -posterior[name]))  # stable: ties keep the path's order
    return [
        Ranked(best[name][1], paths[best[name][0]].score, rank, {**paths[best[name][0]].details})
        for rank, name in enumerate(order, 1)
    ]
