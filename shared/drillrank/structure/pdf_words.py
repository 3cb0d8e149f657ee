"""Words of a PDF that its layout has split: by the spacing of letters, or by hyphens at the ends of lines."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from drillrank.structure.pdf_text import LayoutRow

WORDS = re.compile(r"[^\W\d_]+")
_LINE_END_HYPHEN = re.compile(r"(\w*[^\W\d_])[-\u00ad]$")
_LONGEST_WORD = 100
_SHORT_PART = 3  # letters of every part but one
_RARER = 10  # a joined word is at least this many times as frequent as its rarest part
_SPELLED = 4  # letters that are printed apart: the word that they spell need not be frequent
_LEAST_LETTERS, _MOST_LETTERS = 3, 60  # of a word
_AROUND = "([{\"'“‘.,;:!?)]}”’"


def join_row_words(row: LayoutRow, word_counts: Mapping[str, int]) -> LayoutRow:
    """Return a row with its split words joined.

    Args:
        row: Row of the file.
        word_counts: Number of occurrences of each lower-case word in the file.
    """
    texts = [join_split_words(run.text, word_counts) for run in row.runs]
    if texts == [run.text for run in row.runs]:
        return row
    return replace(row, runs=tuple(replace(run, text=text) for run, text in zip(row.runs, texts, strict=True)))


def join_split_words(text: str, word_counts: Mapping[str, int]) -> str:
    """Return a text with its split words joined.

    >>> join_split_words("Net Incom e (loss) of an e-mail", {"income": 50, "incom": 2, "e": 5, "net": 40})
    'Net Income (loss) of an e-mail'
    >>> join_split_words("R e v e n u e grew", {"revenue": 1})
    'Revenue grew'
    """
    parts = text.split(" ")
    joined_words: list[str] = []
    start = 0
    while start < len(parts):
        end = _word_end(parts, start, word_counts)
        joined_words.append("".join(parts[start:end]))
        start = end
    return " ".join(joined_words)


def _word_end(parts: Sequence[str], start: int, word_counts: Mapping[str, int]) -> int:
    """Return the end of the longest split word that begins at `start`, or the next index if no word is split."""
    best_end, word, rarest, n_long = start + 1, "", math.inf, 0
    for end in range(start + 1, len(parts) + 1):
        raw_part = parts[end - 1]
        part = raw_part.rstrip(_AROUND) if word else raw_part.lstrip(_AROUND)
        n_long += len(part) > _SHORT_PART
        if not part.isalpha() or n_long > 1 or len(word) > _MOST_LETTERS:
            break
        word += part.casefold()
        rarest = min(rarest, word_counts.get(part.casefold(), 0))
        count = word_counts.get(word, 0) if len(word) >= _LEAST_LETTERS else 0
        is_spelled = end - start >= _SPELLED and end - start == len(word)
        if end > start + 1 and count and (is_spelled or count >= _RARER * rarest):
            best_end = end
        if end > start + 1 and part != raw_part:  # another word begins after a comma
            break
    return best_end


def append_line(lines: list[str], line: str, words: Collection[str]) -> None:
    """Append a line to the lines of a paragraph; a hyphenated word of the file is joined.

    Args:
        lines: Lines so far, each with the space before it.
        line: Next line.
        words: Lower-case words of the file.
    """
    hyphen = _LINE_END_HYPHEN.search(lines[-1][-_LONGEST_WORD:]) if lines else None
    rest = WORDS.match(line)
    if hyphen and rest and (hyphen[1] + rest[0]).casefold() in words:
        lines[-1] = lines[-1][:-1]
    lines.append(line if hyphen or not lines else f" {line}")
