"""Plain text: paragraphs between blank lines or recognized by their lines, and headings that are guessed.

Underlined, numbered and named lines are headings. A numbered list must not become a row of sections. Therefore a
numbered line is a heading only if it is a paragraph of its own, reads like a title, continues the numbers before it,
and has text or a deeper heading below it. Lines in capitals or bold and short lines above prose are less certain.
`confidence` orders the reasons and is not a probability. `python -m benchmarks flat_headings` prints how often
each reason was right.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Sequence
from itertools import pairwise, takewhile, zip_longest
from typing import Literal, NamedTuple

from drillrank.structure.cutting import LINE_END, find_paragraph_spans, line_starts, trimmed_end
from drillrank.structure.document import Block
from drillrank.structure.scan import Heading, Scan

_SELF_NAMED = re.compile(
    r"(?P<name>part|book|chapter|article|item|section|appendix|annex|schedule|exhibit|§)\s*"
    r"(?P<number>\d{1,3}[A-Z]?|[IVXLC]+|[A-Z])\b",
    re.IGNORECASE,
)
_TOP_RANKS = {"book": 0, "part": 1}
_UNDERLINED = re.compile(
    r"(?:([=~^-])\1{2,}[ \t]*(?:\r\n?|\n))?(?P<title>[^\r\n]*)(?:\r\n?|\n)(?P<under>([=~^-])\4{2,})[ \t]*(?=[\r\n]|$)"
)
_NUMBERED = re.compile(r"(?P<number>\d{1,2}(?:\.\d{1,2}){0,5})(?P<dot>\.?)[ \t]+(?P<title>\S.*)")
_NAMED = re.compile(
    r"(?:(?P<name>part|book|chapter|appendix|annex|schedule|section|article|clause|item)[ \t]+|(?P<sign>§)[ \t]*)"
    r"(?P<number>\d{1,3}[A-Z]?|[IVXLC]+|[A-Z])(?:[.:]|(?:[ \t]*[.:–—-])?[ \t]+(?P<title>\S.*))?$",
    re.IGNORECASE,
)
_LEADER = re.compile(r"\.{4}|(?: \.){4}")  # dots in a table of contents
_COLUMNS = re.compile(r"\S(?:\t| {3})\s*\S")  # as in the head of a table
_MAX_TITLE = 80
_UNDERLINE_TOLERANCE = 3  # characters by which an underline may be shorter than its title
_MAX_STEP = 2  # largest step from one number to the next; one heading may be missing
_RANKS = {"book": 0, "part": 1, "§": 3, "section": 3, "clause": 3, "=": 3, "-": 4, "~": 5, "^": 6}
_RANKS |= dict.fromkeys(("chapter", "appendix", "annex", "schedule", "article", "item"), 2)
_NUMBER_RANK = 3  # rank of "1"; "1.1" has one more
_REST_OF_LINE = re.compile(r"[ \t]*(?:\r\n?|\n)")
_INDENT = re.compile(r"[ ]{0,3}(?=\S)")
_BOLD = re.compile(r"(?P<mark>\*\*|__)(?P<title>[^\s*_](?:[^\r\n*]*[^\s*])?)(?P=mark):?")
_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_NOT_IN_TITLES = re.compile(r"[|=<>{}@\\]|\.\.|https?:|[;,]$|\t| {3}")
_MAX_SHORT_WORDS = 10
_MIN_PROSE = 120  # characters of the paragraph below a short line
_RUNNING_LINE_COUNT = 5  # a line that occurs this often is a running head of the pages
_MIN_SHORT_LINES = 2  # a single short line may be anything
_UNNUMBERED_RANKS = {"capitals": 3, "bold": 7, "short": 8}
_CONFIDENCE = {"short": 0.8, "bold": 0.7, "capitals": 0.6}  # capitals may be formulas or a warning
_MIN_MARGIN = 50  # characters; narrower lines are verse, an address or a table
_SHORT_LINE = 0.75  # longest title, as a share of the margin
_FULL_LINE = 0.95  # share of the margin; letters are not equally wide
_UNBROKEN_LINE = 200  # characters; a longer line is not broken at a margin
_SENTENCE_END = re.compile(r"[.!?][\"'”’)\]]*$")
_TITLE = re.compile(r"(?=.*[^\W\d_]{2}).*[^\s.,;:!?]")
_BULLET = re.compile(r"[•·▪◦‣●○■]")
_PAGE_NUMBER = re.compile(  # in the languages of most reports
    r"[-–—\[(]*(?:page|pages|p\.|pg\.|seite|s\.|página|pág\.|pagina|pag\.|strona|str\.|sida|side|sivu|страница|стр\.|第)?\s{0,3}"
    r"\d{1,5}(?:\s{0,3}(?:of|/|von|de|di|du|sur|van|av|af|z|из|页共|頁共|\|)\s{0,3}\d{1,5})?\s{0,3}(?:页|頁|ページ)?[-–—\])]*",
    re.IGNORECASE,
)
_RULED_LINE = re.compile(r"[ \t]*[|+].*[|+][ \t]*")  # of a table that is drawn with signs
_COLUMN_RULES = re.compile(r"[ \t]*[-=]{2,}(?:[ \t]+[-=]{2,})+[ \t]*")  # below the head of a table
_OPENING_MARKS = "\"'“‘([ \t"


def named_rank(title: str) -> int | None:
    """Return the rank of a heading that calls itself a part, chapter, article or item; None for other headings.

    Headings of a smaller rank contain those of a larger one.

    >>> named_rank("PART II"), named_rank("Item 7. Discussion"), named_rank("Discussion"), named_rank("Parting words")
    (1, 2, None, None)
    """
    match = _SELF_NAMED.match(title)
    return None if match is None else _TOP_RANKS.get(match["name"].lower(), 2)


class _HeadingCandidate(NamedTuple):
    """Paragraph that may be a heading.

    Attributes:
        span_index: Index of the paragraph.
        title: Readable text.
        rank: Rank of the heading; those of a smaller rank contain those of a larger one.
        style: Reason why the paragraph may be a heading; `dotted` is "1." without a dot inside, as in a list.
        number: Parts of its number, such as (2, 1) for "2.1"; empty if it has none.
        confidence: Certainty from 0 to 1.
        end: End of an underlined heading, because its paragraph may go on; None for the end of the paragraph.
    """

    span_index: int
    title: str
    rank: int
    style: Literal["underlined", "named", "plain", "dotted", "flat"]
    number: tuple[int, ...] = ()
    confidence: float = 0.95
    end: int | None = None


_Candidates = dict[int, _HeadingCandidate]  # by the index of the paragraph


def scan_plain(text: str) -> Scan:
    """Find the paragraphs of a plain text and the lines that are headings."""
    blank_line_spans = find_paragraph_spans(text)
    tables = {span for span in blank_line_spans if _is_table(text, *span)}
    spans = [
        part for span in blank_line_spans for part in ([span] if span in tables else _split_run_of_lines(text, *span))
    ]
    underlined = _find_underlined_headings(text, spans)
    numbered = _find_numbered_headings(text, spans, underlined)
    unnumbered = _find_unnumbered_headings(text, spans, {*underlined, *numbered})
    # A short or capitalized line inside a run of lines is mostly the head of a table.
    separate_spans = {*blank_line_spans} - tables
    unnumbered = {index: candidate for index, candidate in unnumbered.items() if spans[index] in separate_spans}
    return _build_scan(text, spans, underlined | numbered | unnumbered, tables)


def _is_table(text: str, start: int, end: int) -> bool:
    """Return True if lines are a table that is drawn with signs or has rules below the heads of its columns."""
    lines = LINE_END.split(text[start:end])
    is_ruled = len(lines) > 1 and all(map(_RULED_LINE.fullmatch, lines))
    return is_ruled or (len(lines) > 2 and any(map(_COLUMN_RULES.fullmatch, lines[:4])))


def _build_scan(
    text: str, spans: Sequence[tuple[int, int]], candidate_by_index: _Candidates, tables: Container[tuple[int, int]]
) -> Scan:
    """Return the paragraphs and tables as blocks. Ranks of headings become levels, starting at 1."""
    ranks = sorted({candidate.rank for candidate in candidate_by_index.values()})
    level_by_rank = {rank: level for level, rank in enumerate(ranks, start=1)}
    blocks: list[Block] = []
    headings: dict[int, Heading] = {}
    for index, (start, end) in enumerate(spans):
        if candidate := candidate_by_index.get(index):
            headings[start] = Heading(level_by_rank[candidate.rank], candidate.title, candidate.confidence)
            heading_end = candidate.end or end
            blocks.append(Block("heading", start, heading_end))
            rest_of_line = _REST_OF_LINE.match(text, heading_end, end)
            start = rest_of_line.end() if rest_of_line else end
        if start < end:
            blocks.append(Block("table" if (start, end) in tables else "paragraph", start, end))
    return Scan(blocks, headings)


def _find_underlined_headings(text: str, spans: Sequence[tuple[int, int]]) -> _Candidates:
    """Return the paragraphs that begin with a title and a line of signs below it that is about as long."""
    candidates: _Candidates = {}
    for index, (start, end) in enumerate(spans):
        match = _UNDERLINED.match(text, start, end)
        if not match:
            continue
        title, n_signs = match["title"].strip(), len(match["under"])
        # A Chinese character is as wide as two signs.
        fits = len(title) - _UNDERLINE_TOLERANCE <= n_signs <= 2 * len(title) + _UNDERLINE_TOLERANCE
        is_title = len(title) <= _MAX_TITLE and any(map(str.isalpha, title)) and not _COLUMNS.search(title)
        if fits and is_title:
            rank = _RANKS[match["under"][0]]
            candidates[index] = _HeadingCandidate(
                index, title, rank, "underlined", confidence=1.0, end=match.end("under")
            )
    return candidates


def _find_numbered_headings(text: str, spans: Sequence[tuple[int, int]], other_indices: Container[int]) -> _Candidates:
    """Return the headings with a number or a name such as "Chapter", except for paragraphs in `other_indices`."""
    matches = (
        _match_numbered_title(index, text, *span) for index, span in enumerate(spans) if index not in other_indices
    )
    candidates = _keep_plausible([candidate for candidate in matches if candidate])
    return {candidate.span_index: candidate for candidate in candidates}


def _match_numbered_title(span_index: int, text: str, start: int, end: int) -> _HeadingCandidate | None:
    """Return the numbered or named heading that a paragraph may be; None if it cannot be one."""
    indent = _INDENT.match(text, start, end)
    if not indent or end - indent.end() > _MAX_TITLE + len("appendix 100: "):
        return None
    line = text[indent.end() : end]
    match = _NAMED.fullmatch(line) or _NUMBERED.fullmatch(line)
    if not match or not _reads_like_a_title(match["title"]):
        return None
    number: tuple[int, ...]
    if match.re is _NAMED:
        number = (int(match["number"]),) if match["number"].isdecimal() else ()
        return _HeadingCandidate(span_index, line, _RANKS[(match["name"] or match["sign"]).lower()], "named", number)
    number = tuple(map(int, match["number"].split(".")))
    is_dotted = match["dot"] and len(number) == 1
    rank = _NUMBER_RANK + len(number) - 1
    return _HeadingCandidate(span_index, line, rank, "dotted" if is_dotted else "plain", number)


def _reads_like_a_title(title: str | None) -> bool:
    """Return True if a line begins and ends like a title and is not a line of a table of contents."""
    return title is None or (
        title[0].isalpha()
        and not title[0].islower()
        and title[-1] not in ".,;:"
        and len(title) <= _MAX_TITLE
        and not _LEADER.search(title)
    )


def _keep_plausible(candidates: list[_HeadingCandidate]) -> list[_HeadingCandidate]:
    """Return the candidates that have text or a deeper heading below and continue the numbers before them."""
    candidates = [
        candidate
        for candidate, below in zip_longest(candidates, candidates[1:])
        if below is None or below.span_index > candidate.span_index + 1 or below.rank > candidate.rank
    ]
    # "1." is a section's number and not a list's if there is a "1.1".
    list_numbers = {candidate.number[0] for candidate in candidates if candidate.style == "dotted"}
    accepts_dotted = any(
        candidate.style == "plain" and candidate.number[:-1] and candidate.number[0] in list_numbers
        for candidate in candidates
    )
    headings: list[_HeadingCandidate] = []
    last_number: tuple[int, ...] = ()
    for candidate in candidates:
        counts = candidate.style != "dotted" or accepts_dotted
        if candidate.style == "named" or (counts and _can_follow(last_number, candidate.number)):
            last_number = candidate.number
            headings.append(candidate)
    return headings


def _can_follow(last_number: tuple[int, ...], number: tuple[int, ...]) -> bool:
    """Return True if a number may come next: 2 or 1.1 after 1, but not 1 or 7."""
    if not last_number and number[0] > 1:  # the first number of the text
        return False
    n_equal = len([*takewhile(lambda pair: pair[0] == pair[1], zip(last_number, number, strict=False))])
    if n_equal == len(number):
        return False
    before, min_step = (last_number[n_equal], 1) if n_equal < len(last_number) else (0, 0)
    step = number[n_equal] - before
    return min_step <= step <= _MAX_STEP and all(part <= _MAX_STEP for part in number[n_equal + 1 :])


def _find_unnumbered_headings(
    text: str, spans: Sequence[tuple[int, int]], other_indices: Container[int]
) -> _Candidates:
    """Return bold lines, lines in capitals and short lines above prose, except for paragraphs in `other_indices`."""
    candidates: _Candidates = {}
    for index, (start, end) in enumerate(spans):
        line = text[start:end].strip()
        below = text[slice(*spans[index + 1])] if index + 1 < len(spans) else ""
        if index in other_indices or not below or len(line) > _MAX_TITLE + 4 or "\n" in line or "\r" in line:
            continue
        reason, title = _match_unnumbered_title(line, below)
        if reason:
            rank, confidence = _UNNUMBERED_RANKS[reason], _CONFIDENCE[reason]
            candidates[index] = _HeadingCandidate(index, title, rank, "flat", confidence=confidence)
    n_occurrences = Counter(_fold(candidate.title) for candidate in candidates.values())
    candidates = {
        index: candidate
        for index, candidate in candidates.items()
        if n_occurrences[_fold(candidate.title)] < _RUNNING_LINE_COUNT
    }
    short_rank = _UNNUMBERED_RANKS["short"]
    if sum(candidate.rank == short_rank for candidate in candidates.values()) < _MIN_SHORT_LINES:
        candidates = {index: candidate for index, candidate in candidates.items() if candidate.rank != short_rank}
    return candidates


def _match_unnumbered_title(line: str, below: str) -> tuple[str, str]:
    """Return the reason why a line may be a heading, a key of `_CONFIDENCE`, and its title; empty strings if none."""
    if bold := _BOLD.fullmatch(line):
        title = bold["title"].strip()
        return ("bold", title) if _WORD.search(title) and not _SENTENCE_END.search(title) else ("", "")
    if _PAGE_NUMBER.fullmatch(line):
        return "", ""
    words = _WORD.findall(line)
    n_letters = sum(map(len, words))
    if not words or n_letters < 4 or n_letters < 0.6 * len(line):
        return "", ""
    if _NOT_IN_TITLES.search(line) or line[-1] in ".!?:":
        return "", ""
    if line.isupper():
        return ("", "") if below.isupper() else ("capitals", line)
    begins_like_a_title = line[0].isupper() or line[0].isdigit()
    is_above_prose = len(below) >= _MIN_PROSE and _SENTENCE_END.search(below.rstrip()) is not None
    return ("short", line) if begins_like_a_title and is_above_prose and len(words) <= _MAX_SHORT_WORDS else ("", "")


def _fold(title: str) -> str:
    """Return a title in lower case with single spaces."""
    return " ".join(title.casefold().split())


def _split_run_of_lines(text: str, start: int, end: int) -> list[tuple[int, int]]:
    r"""Return the spans of the paragraphs in lines that no blank line separates.

    >>> wide = "The fox hunts mice in the meadow behind the mill, and it hears them\n"
    >>> text = f"1 Foxes\n{wide}under the snow.\n{wide}from far away."
    >>> [text[a:b][:13] for a, b in _split_run_of_lines(text, 0, len(text))]
    ['1 Foxes', 'The fox hunts', 'The fox hunts']
    """
    starts = [start + offset for offset in line_starts(text[start:end])]
    lines = [text[a:b].strip() for a, b in pairwise(starts)]
    margin = sorted(map(len, lines))[4 * len(lines) // 5]
    if len(lines) == 1 or margin < _MIN_MARGIN:
        return [(start, end)]
    first_lines = _find_first_lines(lines, margin)
    begins = [offset for offset, is_first in zip(starts, first_lines, strict=False) if is_first]
    return [(a, trimmed_end(text, a, b)) for a, b in pairwise([*begins, end])]


def _find_first_lines(lines: Sequence[str], margin: int) -> list[bool]:
    """Return True for each line that begins a paragraph."""
    titles = _find_title_lines(lines, _SHORT_LINE * margin)
    is_first = [True]
    for index, (line, below) in enumerate(pairwise(lines)):
        next_word_fits = len(f"{line} {below.split()[0]}") <= _FULL_LINE * margin
        ends_paragraph = _SENTENCE_END.search(line) is not None and (
            next_word_fits or len(line) >= _UNBROKEN_LINE or titles[index + 1]
        )
        is_first.append(
            (ends_paragraph and _can_begin(below))
            or (is_first[index] and titles[index])
            or _BULLET.match(below) is not None
        )
    return is_first


def _find_title_lines(lines: Sequence[str], max_length: float) -> list[bool]:
    """Return True for each short line above a full line or above another title."""
    is_title = [False] * len(lines)
    for index in range(len(lines) - 2, -1, -1):
        line, below = lines[index : index + 2]
        is_above_text = is_title[index + 1] or (len(below) >= max_length and _can_begin(below))
        is_short = len(line) < min(max_length, _MAX_TITLE)
        is_title[index] = is_above_text and is_short and _can_begin(line) and _TITLE.fullmatch(line) is not None
    return is_title


def _can_begin(line: str) -> bool:
    """Return True if a sentence or a title may begin with this line."""
    first = line.lstrip(_OPENING_MARKS)[:1]
    return first.isalnum() and not first.islower()
