"""Lines of a text, counted the way CommonMark counts them."""

from __future__ import annotations

import re
from itertools import accumulate, pairwise

# CommonMark 2.1. `str.splitlines` would also break at form feeds, U+2028 and others.
LINE_END = re.compile(r"\r\n?|\n")


def line_starts(text: str) -> list[int]:
    r"""Offset of every line's first character, with the text's length as a last entry.

    >>> line_starts("a\r\nb\n")
    [0, 3, 5, 5]
    """
    if "\r" in text:
        return [0, *(match.end() for match in LINE_END.finditer(text)), len(text)]
    return [0, *accumulate(len(line) + 1 for line in text.split("\n")[:-1]), len(text)]  # three times as fast


def trimmed_end(text: str, start: int, end: int) -> int:
    """The offset after the last character of `text[start:end]` that is not white space; `start` if there is none."""
    return start + len(text[start:end].rstrip())


def paragraphs(text: str) -> list[tuple[int, int]]:
    r"""Spans of the runs of lines between blank lines, without the white space at their end.

    >>> paragraphs("One,\nstill one.\n \nTwo.\n")
    [(0, 15), (18, 22)]
    """
    spans: list[tuple[int, int]] = []
    begin = -1
    starts = line_starts(text)
    for start, end in pairwise(starts):
        if text[start:end].strip():
            if begin < 0:
                begin = start
        elif begin >= 0:
            spans.append((begin, trimmed_end(text, begin, start)))
            begin = -1
    if begin >= 0:
        spans.append((begin, trimmed_end(text, begin, len(text))))
    return spans
