"""Plain text: paragraphs between blank lines, or told by their lines, under headings that are guessed.

Underlined, numbered and named lines are headings; a numbered list must not become a row of sections, so a line counts
as a numbered heading only if it stands alone, reads like a title, continues the numbers before it, and has text or a
deeper heading below it. Lines in capitals or bold, and short lines over prose are less certain: `confidence` orders the
reasons, and is no probability. How often each was right is printed by `python -m tests.benchmarks flat_headings`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Sequence
from itertools import pairwise, takewhile, zip_longest
from typing import Literal, NamedTuple

from drillrank.structure.cutting import line_starts, paragraphs, trimmed_end
from drillrank.structure.document import Block
from drillrank.structure.scan import Heading, Scan

_NAMES_ITSELF = re.compile(
    r"(?P<name>part|book|chapter|article|item|section|appendix|annex|schedule|exhibit|§)\s*"
    r"(?P<number>\d{1,3}[A-Z]?|[IVXLC]+|[A-Z])\b",
    re.IGNORECASE,
)
_HIGH = {"book": 0, "part": 1}
_UNDERLINED = re.compile(
    r"(?:([=~^-])\1{2,}[ \t]*(?:\r\n?|\n))?(?P<title>[^\r\n]*)(?:\r\n?|\n)(?P<under>([=~^-])\4{2,})[ \t]*(?=[\r\n]|$)"
)
_NUMBERED = re.compile(r"(?P<number>\d{1,2}(?:\.\d{1,2}){0,5})(?P<dot>\.?)[ \t]+(?P<title>\S.*)")
_NAMED = re.compile(
    r"(?:(?P<name>part|book|chapter|appendix|annex|schedule|section|article|clause|item)[ \t]+|(?P<sign>§)[ \t]*)"
    r"(?P<number>\d{1,3}[A-Z]?|[IVXLC]+|[A-Z])(?:[.:]|(?:[ \t]*[.:–—-])?[ \t]+(?P<title>\S.*))?$",
    re.IGNORECASE,
)
_LEADER = re.compile(r"\.{4}|(?: \.){4}")  # of a table of contents
_COLUMNS = re.compile(r"\S(?:\t| {3})\s*\S")  # the head of a table
_LONGEST_TITLE = 80
_UNEVEN = 3  # characters by which an underline may be shorter than its title
_GAP = 2  # largest step from one number to the next: one heading may have been missed
_RANKS = {"book": 0, "part": 1, "§": 3, "section": 3, "clause": 3, "=": 3, "-": 4, "~": 5, "^": 6}
_RANKS |= dict.fromkeys(("chapter", "appendix", "annex", "schedule", "article", "item"), 2)
_NUMBER_RANK = 3  # of "1"; that of "1.1" is one more
_REST_OF_LINE = re.compile(r"[ \t]*(?:\r\n?|\n)")
_INDENT = re.compile(r"[ ]{0,3}(?=\S)")
_BOLD = re.compile(r"(?P<mark>\*\*|__)(?P<title>[^\s*_](?:[^\r\n*]*[^\s*])?)(?P=mark):?")
_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_SIGNS = re.compile(r"[|=<>{}@\\]|\.\.|https?:|[;,]$|\t| {3}")
_MOST_WORDS = 10  # of a short line
_PROSE = 120  # characters below a short line
_RUNNING = 5  # times that a line stands in a text before it is taken for a page's own
_LEAST_SHORT = 2  # short lines: one alone may be anything
_RANK = {"capitals": 3, "bold": 7, "short": 8}
_CONFIDENCE = {"short": 0.8, "bold": 0.7, "capitals": 0.6}  # capitals may be formulas or a warning
_NARROWEST = 50  # characters: what is narrower is verse, an address, a table
_SHORT = 0.75  # of the margin, for a title
_FULL = 0.95  # of the margin: letters are not equally wide
_WHOLE = 200  # characters: not broken at a margin, but a paragraph
_SENTENCE_END = re.compile(r"[.!?][\"'”’)\]]*$")
_TITLE = re.compile(r"(?=.*[^\W\d_]{2}).*[^\s.,;:!?]")
_ITEM = re.compile(r"[•·▪◦‣●○■]")
_QUOTES = "\"'“‘([ \t"


def named_rank(title: str) -> int | None:
    """How high a heading stands that calls itself a part, chapter, article or item; None if it does not.

    >>> named_rank("PART II"), named_rank("Item 7. Discussion"), named_rank("Discussion"), named_rank("Parting words")
    (1, 2, None, None)
    """
    found = _NAMES_ITSELF.match(title)
    return None if found is None else _HIGH.get(found["name"].lower(), 2)


class _Heading(NamedTuple):
    """A paragraph that may be a heading; the smaller its rank, the higher it stands."""

    at: int
    title: str
    rank: int
    style: Literal["underlined", "named", "plain", "dotted", "flat"]  # `dotted` is "1." alone, as in a list
    number: tuple[int, ...] = ()
    confidence: float = 0.95
    end: int | None = None  # of what is underlined: more may follow in its paragraph


def scan_plain(text: str) -> Scan:
    """Find the paragraphs of a plain text, and the lines that are certainly headings."""
    apart = paragraphs(text)
    spans = [part for span in apart for part in _run_on_paragraphs(text, *span)]
    underlined = {at: found for at, span in enumerate(spans) if (found := _underlined(at, text, *span))}
    candidates = (_candidate(at, text, *span) for at, span in enumerate(spans) if at not in underlined)
    numbered = {heading.at: heading for heading in _plausible([heading for heading in candidates if heading])}
    flat = _flat_headings(text, spans, {*underlined, *numbered})
    alone = {*apart}  # in a run of lines, what is short or in capitals is mostly the head of a table
    flat = {at: heading for at, heading in flat.items() if spans[at] in alone}
    chosen = underlined | numbered | flat
    levels = {rank: level for level, rank in enumerate(sorted({heading.rank for heading in chosen.values()}), 1)}
    blocks: list[Block] = []
    headings: dict[int, Heading] = {}
    for at, (start, end) in enumerate(spans):
        if heading := chosen.get(at):
            headings[start] = Heading(levels[heading.rank], heading.title, heading.confidence)
            stop = heading.end or end
            blocks.append(Block("heading", start, stop))
            rest = _REST_OF_LINE.match(text, stop, end)
            start = rest.end() if rest else end
        if start < end:
            blocks.append(Block("paragraph", start, end))
    return Scan(blocks, headings)


def _underlined(at: int, text: str, start: int, end: int) -> _Heading | None:
    """A title and the line below it, about as long, at the beginning of a paragraph."""
    found = _UNDERLINED.match(text, start, end)
    if not found:
        return None
    title, under = found["title"].strip(), len(found["under"])
    fits = len(title) - _UNEVEN <= under <= 2 * len(title) + _UNEVEN  # Chinese characters are twice as wide
    plain = len(title) <= _LONGEST_TITLE and any(map(str.isalpha, title)) and not _COLUMNS.search(title)
    rank = _RANKS[found["under"][0]]
    return _Heading(at, title, rank, "underlined", confidence=1.0, end=found.end("under")) if fits and plain else None


def _candidate(at: int, text: str, start: int, end: int) -> _Heading | None:
    """The heading that a paragraph may be."""
    indent = _INDENT.match(text, start, end)
    if not indent or end - indent.end() > _LONGEST_TITLE + len("appendix 100: "):
        return None
    line = text[indent.end() : end]
    found = _NAMED.fullmatch(line) or _NUMBERED.fullmatch(line)
    if not found or not _reads_like_a_title(found["title"]):
        return None
    number: tuple[int, ...]
    if found.re is _NAMED:
        number = (int(found["number"]),) if found["number"].isdecimal() else ()
        return _Heading(at, line, _RANKS[(found["name"] or found["sign"]).lower()], "named", number)
    number = tuple(map(int, found["number"].split(".")))
    is_dotted = found["dot"] and len(number) == 1
    return _Heading(at, line, _NUMBER_RANK + len(number) - 1, "dotted" if is_dotted else "plain", number)


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
    candidates = [
        heading
        for heading, below in zip_longest(candidates, candidates[1:])
        if below is None or below.at > heading.at + 1 or below.rank > heading.rank
    ]
    chosen: list[_Heading] = []
    last: tuple[int, ...] = ()
    # a "1." is a section's number, and not a list's, where there is a "1.1"
    lists = {heading.number[0] for heading in candidates if heading.style == "dotted"}
    dotted = any(
        heading.style == "plain" and heading.number[:-1] and heading.number[0] in lists for heading in candidates
    )
    for heading in candidates:
        counts = heading.style != "dotted" or dotted
        if heading.style == "named" or (counts and _continues(last, heading.number)):
            last = heading.number
            chosen.append(heading)
    return chosen


def _continues(last: tuple[int, ...], number: tuple[int, ...]) -> bool:
    """Whether a number may come next: 2 or 1.1 after 1, but not 1 or 7."""
    if not last and number[0] > 1:  # the first of all
        return False
    same = len([*takewhile(lambda pair: pair[0] == pair[1], zip(last, number, strict=False))])
    if same == len(number):
        return False
    before, least = (last[same], 1) if same < len(last) else (0, 0)
    return least <= number[same] - before <= _GAP and all(part <= _GAP for part in number[same + 1 :])


def _flat_headings(text: str, spans: Sequence[tuple[int, int]], known: Container[int] = ()) -> dict[int, _Heading]:
    """The paragraphs that are headings, by their place.

    Args:
        text: Of the document.
        spans: Its paragraphs.
        known: Places of those that are headings for better reasons.
    """
    found: dict[int, _Heading] = {}
    for at, (start, end) in enumerate(spans):
        line = text[start:end].strip()
        below = text[slice(*spans[at + 1])] if at + 1 < len(spans) else ""
        if at in known or not below or len(line) > _LONGEST_TITLE + 4 or "\n" in line or "\r" in line:
            continue
        kind, title = _kind(line, below)
        if kind:
            found[at] = _Heading(at, title, _RANK[kind], "flat", confidence=_CONFIDENCE[kind])
    times = Counter(_key(heading.title) for heading in found.values())  # a title on page after page is the page's own
    found = {at: heading for at, heading in found.items() if times[_key(heading.title)] < _RUNNING}
    if sum(heading.rank == _RANK["short"] for heading in found.values()) < _LEAST_SHORT:
        found = {at: heading for at, heading in found.items() if heading.rank != _RANK["short"]}
    return found


def _kind(line: str, below: str) -> tuple[str, str]:
    if bold := _BOLD.fullmatch(line):
        title = bold["title"].strip()
        return ("bold", title) if _WORD.search(title) and not _SENTENCE_END.search(title) else ("", "")
    words = _WORD.findall(line)
    letters = sum(map(len, words))
    if not words or letters < 4 or _SIGNS.search(line) or line[-1] in ".!?:" or letters < 0.6 * len(line):
        return "", ""
    if line.isupper():
        return ("", "") if below.isupper() else ("capitals", line)
    starts = line[0].isupper() or line[0].isdigit()
    over_prose = len(below) >= _PROSE and _SENTENCE_END.search(below.rstrip()) is not None
    return ("short", line) if starts and over_prose and len(words) <= _MOST_WORDS else ("", "")


def _key(title: str) -> str:
    return " ".join(title.casefold().split())


def _run_on_paragraphs(text: str, start: int, end: int) -> list[tuple[int, int]]:
    r"""Spans of the paragraphs in a run of lines.

    >>> wide = "The fox hunts mice in the meadow behind the mill, and it hears them\n"
    >>> text = f"1 Foxes\n{wide}under the snow.\n{wide}from far away."
    >>> [text[a:b][:13] for a, b in _run_on_paragraphs(text, 0, len(text))]
    ['1 Foxes', 'The fox hunts', 'The fox hunts']
    """
    places = [start + location for location in line_starts(text[start:end])]
    lines = [text[a:b].strip() for a, b in pairwise(places)]
    margin = sorted(map(len, lines))[4 * len(lines) // 5]
    if len(lines) == 1 or margin < _NARROWEST:
        return [(start, end)]
    begins = [location for location, first in zip(places, _firsts(lines, margin), strict=False) if first]
    return [(a, trimmed_end(text, a, b)) for a, b in pairwise([*begins, end])]


def _firsts(lines: Sequence[str], margin: int) -> list[bool]:
    """Of each line, whether a paragraph begins with it."""
    titles = _may_be_titles(lines, _SHORT * margin)
    firsts = [True]
    for at, (line, below) in enumerate(pairwise(lines)):
        fits = len(f"{line} {below.split()[0]}") <= _FULL * margin
        ends = _SENTENCE_END.search(line) is not None and (fits or len(line) >= _WHOLE or titles[at + 1])
        firsts.append((ends and _begins(below)) or (firsts[at] and titles[at]) or _ITEM.match(below) is not None)
    return firsts


def _may_be_titles(lines: Sequence[str], short: float) -> list[bool]:
    """Of each line, whether it is short and stands over a full one or over another title."""
    found = [False] * len(lines)
    for at in range(len(lines) - 2, -1, -1):
        line, below = lines[at : at + 2]
        over = found[at + 1] or (len(below) >= short and _begins(below))
        found[at] = (
            over and len(line) < min(short, _LONGEST_TITLE) and _begins(line) and _TITLE.fullmatch(line) is not None
        )
    return found


def _begins(line: str) -> bool:
    """Whether a sentence or a title may begin here."""
    first = line.lstrip(_QUOTES)[:1]
    return first.isalnum() and not first.islower()
