"""Words that the spacing of their letters has split, as "Incom e" or "R e v e n u e": the file knows them whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from drillrank.structure.pdf.rows import Row

_SHORT = 3  # letters of every part but one
_RARER = 10  # times, the rarest part beside the whole word
_SPELLED = 4  # letters that stand alone one after the other: what they spell need not be frequent
_LEAST = 3  # letters of a word
_AROUND = "([{\"'“‘.,;:!?)]}”’"


def rejoined(row: Row, counts: Mapping[str, int]) -> Row:
    """A row whose split words are whole.

    Args:
        row: Of the file.
        counts: How often the file has each word, in small letters.
    """
    runs = tuple(replace(run, text=joined(run.text, counts)) if " " in run.text else run for run in row.runs)
    changed = any(after is not run and after.text != run.text for run, after in zip(row.runs, runs, strict=True))
    return replace(row, runs=runs) if changed else row


def joined(text: str, counts: Mapping[str, int]) -> str:
    """A text whose split words are whole.

    >>> joined("Net Incom e (loss) of an e-mail", {"income": 50, "incom": 2, "e": 5, "net": 40})
    'Net Income (loss) of an e-mail'
    >>> joined("R e v e n u e grew", {"revenue": 1})
    'Revenue grew'
    """
    parts = text.split(" ")
    if not any(len(a) <= _SHORT + 1 or len(b) <= _SHORT + 1 for a, b in pairwise(parts)):
        return text
    whole: list[str] = []
    at = 0
    while at < len(parts):
        end = _end(parts, at, counts)
        whole.append("".join(parts[at:end]))
        at = end
    return " ".join(whole)


def _end(parts: Sequence[str], start: int, counts: Mapping[str, int]) -> int:
    """Where the longest word ends that is split from `start` on; the next part, if none is."""
    first = parts[start].lstrip(_AROUND)
    if not first.isalpha():
        return start + 1
    letters = [first.casefold()]
    long = len(first) > _SHORT
    best = start + 1
    for end in range(start + 1, len(parts)):
        part = parts[end].rstrip(_AROUND)
        long_too = len(part) > _SHORT
        if not part.isalpha() or (long and long_too):
            break
        long = long or long_too
        letters.append(part.casefold())
        if _is_split(letters, counts):
            best = end + 1
        if len(part) < len(parts[end]):  # behind a comma, another word begins
            break
    return best


def _is_split(parts: Sequence[str], counts: Mapping[str, int]) -> bool:
    word = "".join(parts)
    known = counts.get(word, 0)
    if len(word) < _LEAST or not known:
        return False
    spelled = len(parts) >= _SPELLED and all(len(part) == 1 for part in parts)
    return spelled or known >= _RARER * min(counts.get(part, 0) for part in parts)
