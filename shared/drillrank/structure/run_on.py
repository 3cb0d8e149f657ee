"""Paragraphs that no blank line parts, as in the text of a PDF's page: they are told by where lines end.

In prose that was broken at a margin, a line that ends a sentence ends a paragraph, too, if the next word would have
fitted in; and a short line over a full one, where a paragraph may begin, is a title.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from drillrank.structure.lines import line_starts, trimmed_end

_NARROWEST = 50  # characters: what is narrower is verse, an address, a table
_SHORT = 0.75  # of the margin, for a title
_FULL = 0.95  # of the margin: letters are not equally wide
_WHOLE = 200  # characters: not broken at a margin, but a paragraph
_LONGEST_TITLE = 80
_SENTENCE_END = re.compile(r"[.!?][\"'”’)\]]*$")
_TITLE = re.compile(r"(?=.*[^\W\d_]{2}).*[^\s.,;:!?]")
_ITEM = re.compile(r"[•·▪◦‣●○■]")
_QUOTES = "\"'“‘([ \t"


def run_on_paragraphs(text: str, start: int, end: int) -> list[tuple[int, int]]:
    r"""Spans of the paragraphs in a run of lines.

    >>> wide = "The fox hunts mice in the meadow behind the mill, and it hears them\n"
    >>> text = f"1 Foxes\n{wide}under the snow.\n{wide}from far away."
    >>> [text[a:b][:13] for a, b in run_on_paragraphs(text, 0, len(text))]
    ['1 Foxes', 'The fox hunts', 'The fox hunts']
    """
    places = [start + place for place in line_starts(text[start:end])]
    lines = [text[a:b].strip() for a, b in pairwise(places)]
    margin = sorted(map(len, lines))[4 * len(lines) // 5]
    if len(lines) == 1 or margin < _NARROWEST:
        return [(start, end)]
    begins = [place for place, first in zip(places, _firsts(lines, margin), strict=False) if first]
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
