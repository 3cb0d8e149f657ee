"""Headings that nothing marks: what a table of contents lists, lines in capitals or bold, and short lines over prose.

They are less certain than marks and numbers: `confidence` orders the reasons, and is no probability. How often each was
right is printed by `python -m tests.benchmarks flat_headings`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Sequence
from typing import NamedTuple

_CONTENTS_LINE = re.compile(
    r"(?P<title>[^\W_].*?[^\s.])[ \t]*(?:\.{3,}|(?:[ \t]\.){3,}|[ \t]{3,}|\t)[ \t]*(?:\d{1,4}|[ivxl]{1,6})"
)
_BOLD = re.compile(r"(?P<mark>\*\*|__)(?P<title>[^\s*_](?:[^\r\n*]*[^\s*])?)(?P=mark):?")
_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_SIGNS = re.compile(r"[|=<>{}@\\]|\.\.|https?:|[;,]$|\t| {3}")
_END_OF_SENTENCE = re.compile(r"[.!?][\"'”’)\]]*$")
_LONGEST = 80  # characters of a heading
_MOST_WORDS = 10  # of a short line
_PROSE = 120  # characters below a short line
_LEAST_LISTED = 3  # lines of a table of contents
_RUNNING = 5  # times that a line stands in a text before it is taken for a page's own
_LEAST_SHORT = 2  # short lines: one alone may be anything
_RANK = {"listed": 3, "capitals": 3, "bold": 7, "short": 8}
_CONFIDENCE = {"listed": 0.95, "short": 0.8, "bold": 0.7, "capitals": 0.6}  # capitals may be formulas or a warning


class FlatHeading(NamedTuple):
    """A paragraph that is taken for a heading.

    Attributes:
        title: As a reader sees it.
        rank: The smaller, the higher in the tree; as those of `drillrank.structure.plain`.
        confidence: Above 0 and below 1.
    """

    title: str
    rank: int
    confidence: float


def flat_headings(text: str, spans: Sequence[tuple[int, int]], known: Container[int] = ()) -> dict[int, FlatHeading]:
    """The paragraphs that are headings, by their place.

    Args:
        text: Of the document.
        spans: Its paragraphs.
        known: Places of those that are headings for better reasons.
    """
    listed = _listed(text, spans)
    found: dict[int, FlatHeading] = {}
    for at, (start, end) in enumerate(spans):
        line = text[start:end].strip()
        below = text[slice(*spans[at + 1])] if at + 1 < len(spans) else ""
        if at in known or not below or len(line) > _LONGEST + 4 or "\n" in line or "\r" in line:
            continue
        kind, title = _kind(line, below, listed)
        if kind:
            found[at] = FlatHeading(title, _RANK[kind], _CONFIDENCE[kind])
    found = _without_running(found)
    short = [at for at, heading in found.items() if heading.rank == _RANK["short"]]
    if len(short) < _LEAST_SHORT:
        found = {at: heading for at, heading in found.items() if at not in short}
    return _with_text_below(found, len(spans), known)


def _without_running(found: dict[int, FlatHeading]) -> dict[int, FlatHeading]:
    """Without titles that stand on page after page."""
    times = Counter(_key(heading.title) for heading in found.values())
    return {at: heading for at, heading in found.items() if times[_key(heading.title)] < _RUNNING}


def _kind(line: str, below: str, listed: Container[str]) -> tuple[str, str]:
    if bold := _BOLD.fullmatch(line):
        title = bold["title"].strip()
        return ("bold", title) if _WORD.search(title) and not _END_OF_SENTENCE.search(title) else ("", "")
    if _key(line) in listed:
        return "listed", line
    words = _WORD.findall(line)
    letters = sum(map(len, words))
    if not words or letters < 4 or _SIGNS.search(line) or line[-1] in ".!?:" or letters < 0.6 * len(line):
        return "", ""
    if line.isupper():
        return ("", "") if below.isupper() else ("capitals", line)
    starts = line[0].isupper() or line[0].isdigit()
    over_prose = len(below) >= _PROSE and _END_OF_SENTENCE.search(below.rstrip()) is not None
    return ("short", line) if starts and over_prose and len(words) <= _MOST_WORDS else ("", "")


def _listed(text: str, spans: Sequence[tuple[int, int]]) -> set[str]:
    """The titles of a table of contents."""
    titles: set[str] = set()
    for start, end in spans:
        lines = text[start:end].splitlines()
        titles.update(_key(found["title"]) for line in lines if (found := _CONTENTS_LINE.fullmatch(line.strip())))
    return titles if len(titles) >= _LEAST_LISTED else set()


def _key(title: str) -> str:
    return " ".join(title.casefold().split())


def _with_text_below(found: dict[int, FlatHeading], count: int, known: Container[int]) -> dict[int, FlatHeading]:
    """Without rows of headings that nothing stands below: lists, addresses, title pages."""

    def leads(at: int) -> bool:
        """Whether text, or a deeper heading that has text, comes next."""
        below = at + 1
        if below >= count:
            return False
        if below in found:
            return found[below].rank > found[at].rank and leads(below)
        return below not in known or found[at].rank <= _RANK["capitals"]

    return {at: heading for at, heading in found.items() if leads(at)}
