"""Sentences as exact spans."""

from __future__ import annotations

import re

from sentencex import get_sentence_boundaries

from drillrank.structure.lines import paragraphs
from drillrank.text import without_surrogates

# The library takes quadratic time on unbalanced quotation marks, so it never sees more than this at once.
_WINDOW = 5000
# It panics over "A" and a full stop with one of these between them.
_WIDE_SPACE = re.compile(r"[^\S\x00-\x7f]")


def sentences(text: str) -> list[tuple[int, int]]:
    r"""Split a text into sentences; blank lines end one too.

    Args:
        text: Any text.

    Returns:
        Start and end offsets of the sentences, in order and disjoint, without white space around them. All other
        characters lie in one of them.

    >>> text = "Dr. Smith agreed. He left!\n\nThe end"
    >>> [text[start:end] for start, end in sentences(text)]
    ['Dr. Smith agreed.', 'He left!', 'The end']
    """
    spans: list[tuple[int, int]] = []
    for start, end in paragraphs(text):
        paragraph = text[start:end]
        begin = 0
        for stop in _sentence_ends(paragraph):
            sentence = paragraph[begin:stop]
            inner = sentence.strip()
            if inner:
                first = start + begin + len(sentence) - len(sentence.lstrip())
                spans.append((first, first + len(inner)))
            begin = stop
    return spans


def _sentence_ends(paragraph: str) -> list[int]:
    """Rising offsets at which to cut the paragraph; the last is its length."""
    ends: list[int] = []
    at = 0
    while len(paragraph) - at > _WINDOW:
        # The window may cut its last sentence short: that one starts the next window.
        whole = _boundaries(paragraph[at : at + _WINDOW])[:-1]
        ends += [at + end for end in whole]
        at = ends[-1] if whole else at + _WINDOW
    return ends + [at + end for end in _boundaries(paragraph[at:])]


def _boundaries(window: str) -> list[int]:
    """Ends of the sentences of a short text, as the library sees them; what stands in for characters is as long."""
    found = get_sentence_boundaries("en", _WIDE_SPACE.sub(" ", without_surrogates(window)))
    return [boundary["end_index"] for boundary in found]
