"""Headings that say by their first word or number where they stand."""

from __future__ import annotations

import re

_NAMED = re.compile(
    r"(?P<name>part|book|chapter|article|item|section|appendix|annex|schedule|exhibit|§)\s*"
    r"(?P<number>\d{1,3}[A-Z]?|[IVXLC]+|[A-Z])\b",
    re.IGNORECASE,
)
_RANKS = {"book": 0, "part": 1}
_OTHER = 2


def named_rank(title: str) -> int | None:
    """How high a heading stands that calls itself a part, chapter, article or item; None if it does not.

    >>> named_rank("PART II"), named_rank("Item 7. Discussion"), named_rank("Discussion"), named_rank("Parting words")
    (1, 2, None, None)
    """
    found = _NAMED.match(title)
    return None if found is None else _RANKS.get(found["name"].lower(), _OTHER)
