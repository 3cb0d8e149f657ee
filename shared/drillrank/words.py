"""How long a text is in words, and where these begin; text without spaces has a length, too."""

from __future__ import annotations

import re
from itertools import islice

_RUN = re.compile(r"\S+")
_WORD = re.compile(r"\S{1,20}")  # a longer run counts as several words: scripts without spaces have a length, too


def word_starts(text: str) -> list[int]:
    """Offsets at which words begin, without that of the first one.

    >>> word_starts(" The Rhine flows")
    [5, 11]
    """
    return [word.start() for word in _RUN.finditer(text)][1:]


def word_count(text: str) -> int:
    """How many words a text has; a run of more than 20 characters counts as several.

    >>> word_count("The Rhine flows"), word_count("x" * 50)
    (3, 3)
    """
    return sum(1 for _ in _WORD.finditer(text))


def first_words(text: str, count: int) -> str:
    """The text up to the end of its `count`-th word, or of its last one.

    >>> first_words("The Rhine flows through Basel. ", 3), first_words("The Rhine. ", 3), first_words(" ", 3)
    ('The Rhine flows', 'The Rhine.', '')
    """
    end = 0
    for word in islice(_WORD.finditer(text), count):
        end = word.end()
    return text[:end]
