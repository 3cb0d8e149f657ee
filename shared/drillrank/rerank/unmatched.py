"""Candidates that hold no word of the question, for models that count words.

All that the likelihood then tells of a candidate is its length, which is no evidence: such candidates count alike, as
the least likely candidate does, and keep their input order. Where that is so for all, the ranking says that nothing
matched.
"""

from __future__ import annotations

from collections.abc import Sequence

from drillrank.rerank.base import Scored


def levelled(scored: Sequence[Scored], matched: Sequence[bool]) -> list[Scored]:
    """The scores, the lowest of all where nothing matched; the details say under `nothing_matched` if that is all.

    >>> levelled([(-2.0, {}), (-1.0, {}), (-3.0, {})], [False, True, False])[0]
    (-3.0, {'nothing_matched': False})
    """
    lowest = min((score for score, _ in scored), default=0.0)
    nothing = not any(matched)
    return [
        (score if own else lowest, {**details, "nothing_matched": nothing})
        for (score, details), own in zip(scored, matched, strict=True)
    ]
