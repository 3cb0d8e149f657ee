"""Plain text: paragraphs between blank lines, or told by their lines, under underlined, numbered or named headings.

Other lines that look like headings are found by `drillrank.structure.flat`.

A numbered list must not become a row of sections. So a line counts as a numbered heading only if it stands alone,
reads like a title, continues the numbers before it, and has text or a deeper heading below it.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Literal, NamedTuple

from drillrank.structure.document import Block
from drillrank.structure.flat import flat_headings
from drillrank.structure.lines import paragraphs
from drillrank.structure.run_on import run_on_paragraphs
from drillrank.structure.scan import Scan

_UNDERLINED = re.compile(
    r"(?:([=~^-])\1{2,}[ \t]*(?:\r\n?|\n))?(?P<title>[^\r\n]*)(?:\r\n?|\n)(?P<under>([=~^-])\4{2,})[ \t]*(?=[\r\n]|$)"
)
_NUMBERED = re.compile(r"(?P<number>\d{1,2}(?:\.\d{1,2}){0,5})(?P<dot>\.?)[ \t]+(?P<title>\S.*)")
_ROMAN = re.compile(r"(?P<number>[IVX]{1,5})(?P<dot>\.)[ \t]+(?P<title>\S.*)")
_NAMED = re.compile(
    r"(?:(?P<name>part|book|chapter|appendix|annex|schedule|section|article|clause|item)[ \t]+|(?P<sign>§)[ \t]*)"
    r"(?P<number>\d{1,3}[A-Z]?|[IVXLC]+|[A-Z])(?:[.:]|(?:[ \t]*[.:–—-])?[ \t]+(?P<title>\S.*))?$",
    re.IGNORECASE,
)
_LEADER = re.compile(r"\.{4}|(?: \.){4}")  # of a table of contents
_COLUMNS = re.compile(r"\S(?:\t| {3})\s*\S")  # the head of a table
_LONGEST_TITLE = 80
_UNEVEN = 3  # characters by which an underline may be shorter than its title
_CERTAIN = 0.9  # confidence of numbers, names, and lines of a table of contents
_GAP = 2  # largest step from one number to the next: one heading may have been missed
_RANKS = {
    "book": 0,
    "part": 1,
    "chapter": 2,
    "appendix": 2,
    "annex": 2,
    "schedule": 2,
    "article": 2,
    "item": 2,
    "§": 3,
    "section": 3,
    "clause": 3,
    "=": 3,
    "-": 4,
    "~": 5,
    "^": 6,
}
_NUMBER_RANK = 3  # of "1"; that of "1.1" is one more
_ROMANS = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII", "XIII", "XIV", "XV", "XVI"]
_REST_OF_LINE = re.compile(r"[ \t]*(?:\r\n?|\n)")
_INDENT = re.compile(r"[ ]{0,3}(?=\S)")


class _Heading(NamedTuple):
    """A paragraph that may be a heading."""

    at: int
    title: str
    rank: int
    style: Literal["named", "plain", "dotted", "roman"]  # `dotted` is "1." without a second number, as in a list
    number: tuple[int, ...]
    confidence: float = 0.95


def scan_plain(text: str) -> Scan:
    """Find the paragraphs of a plain text, and the lines that are certainly headings."""
    apart = paragraphs(text)
    spans = [part for span in apart for part in run_on_paragraphs(text, *span)]
    underlined = {at: found for at, span in enumerate(spans) if (found := _underlined(text, *span))}
    candidates = (_candidate(at, text, *span) for at, span in enumerate(spans) if at not in underlined)
    numbered = {heading.at: heading for heading in _plausible([found for found in candidates if found])}
    flat = flat_headings(text, spans, {*underlined, *numbered})
    alone = {*apart}  # in a run of lines, what is short or in capitals is mostly the head of a table
    flat = {at: found for at, found in flat.items() if spans[at] in alone or found.confidence >= _CERTAIN}
    used = {heading.rank for found in (numbered, flat) for heading in found.values()} | {
        _RANKS[found["under"][0]] for found in underlined.values()
    }
    levels = {rank: level for level, rank in enumerate(sorted(used), 1)}
    blocks: list[Block] = []
    headings: list[tuple[int, str]] = []
    confidences: list[float] = []
    for at, (start, end) in enumerate(spans):
        if at in underlined:
            found = underlined[at]
            headings.append((levels[_RANKS[found["under"][0]]], found["title"].strip()))
            confidences.append(1.0)
            blocks.append(Block("heading", start, found.end("under")))
            rest = _REST_OF_LINE.match(text, found.end("under"), end)
            start = rest.end() if rest else end
        elif at in numbered or at in flat:
            heading = numbered[at] if at in numbered else flat[at]
            headings.append((levels[heading.rank], heading.title))
            confidences.append(heading.confidence)
            blocks.append(Block("heading", start, end))
            start = end
        if start < end:
            blocks.append(Block("paragraph", start, end))
    return Scan(blocks, headings, confidences=confidences)


def _underlined(text: str, start: int, end: int) -> re.Match[str] | None:
    """A title and the line below it, about as long, at the beginning of a paragraph."""
    found = _UNDERLINED.match(text, start, end)
    if not found:
        return None
    title, under = found["title"].strip(), len(found["under"])
    fits = len(title) - _UNEVEN <= under <= 2 * len(title) + _UNEVEN  # Chinese characters are twice as wide
    plain = len(title) <= _LONGEST_TITLE and any(map(str.isalpha, title)) and not _COLUMNS.search(title)
    return found if fits and plain else None


def _candidate(at: int, text: str, start: int, end: int) -> _Heading | None:
    """The heading that a paragraph may be."""
    indent = _INDENT.match(text, start, end)
    if not indent or end - indent.end() > _LONGEST_TITLE + len("appendix 100: "):
        return None
    line = text[indent.end() : end]
    found = _NAMED.fullmatch(line) or _NUMBERED.fullmatch(line) or _ROMAN.fullmatch(line)
    if not found or not _reads_like_a_title(found["title"]):
        return None
    number: tuple[int, ...] = ()
    if found.re is _NAMED:
        number = (int(found["number"]),) if found["number"].isdecimal() else ()
        return _Heading(at, line, _RANKS[(found["name"] or found["sign"]).lower()], "named", number)
    if found.re is _ROMAN:
        roman = found["number"]
        return _Heading(at, line, _NUMBER_RANK, "roman", (_ROMANS.index(roman) + 1,)) if roman in _ROMANS else None
    number = tuple(map(int, found["number"].split(".")))
    style: Literal["plain", "dotted"] = "dotted" if found["dot"] and len(number) == 1 else "plain"
    return _Heading(at, line, _NUMBER_RANK + len(number) - 1, style, number)


def _reads_like_a_title(title: str | None) -> bool:
    """Whether it begins like a title, ends like one, and is no line of a table of contents."""
    return title is None or (
        title[0].isalpha()
        and not title[0].islower()
        and title[-1] not in ".,;:"
        and len(title) <= _LONGEST_TITLE
        and not _LEADER.search(title)
    )


def _plausible(candidates: list[_Heading]) -> list[_Heading]:
    """The candidates that have something below them and continue the numbers before them."""
    bare = {
        heading.at
        for heading, below in pairwise(candidates)
        if below.at == heading.at + 1 and below.rank <= heading.rank
    }
    candidates = [heading for heading in candidates if heading.at not in bare]
    chosen: list[_Heading] = []
    last: dict[str, tuple[int, ...]] = {}
    dotted = _has_numbered_children(candidates)
    for heading in candidates:
        if heading.style == "named":
            last["arabic"] = heading.number
            chosen.append(heading)
        elif heading.style != "dotted" or dotted:
            series = "roman" if heading.style == "roman" else "arabic"
            if _continues(last.get(series, ()), heading.number):
                last[series] = heading.number
                chosen.append(heading)
    single = sum(heading.style == "roman" for heading in chosen) == 1  # more likely an initial
    return [heading for heading in chosen if not (single and heading.style == "roman")]


def _has_numbered_children(candidates: list[_Heading]) -> bool:
    """Whether a "1." has a "1.1" after it, so that it is a section's number and not a list's."""
    dotted: set[int] = set()
    for heading in candidates:
        if heading.style == "dotted":
            dotted.add(heading.number[0])
        elif heading.style == "plain" and len(heading.number) > 1 and heading.number[0] in dotted:
            return True
    return False


def _continues(last: tuple[int, ...], number: tuple[int, ...]) -> bool:
    """Whether a number may come next: 2 or 1.1 after 1, but not 1 or 7."""
    if not last and number[0] > 1:  # the first of all
        return False
    same = 0
    while same < min(len(last), len(number)) and last[same] == number[same]:
        same += 1
    if same == len(number):
        return False
    before, least = (last[same], 1) if same < len(last) else (0, 0)
    return least <= number[same] - before <= _GAP and all(part <= _GAP for part in number[same + 1 :])
