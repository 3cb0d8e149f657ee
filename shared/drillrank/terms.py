"""Words of a text, lower-cased and stemmed: the tokens of the lexical models."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import Stemmer

from drillrank.data import read_table

WORD = re.compile(r"\w+")

_REMEMBERED = 100_000  # words; a large report has some ten thousand
_LONG = 50  # letters of a word that is hardly met again

_per_thread = threading.local()  # a Snowball stemmer keeps its working buffer, so threads must not share one


class _Stems(dict[str, str]):
    """The stem of each word, as it is written, that was met before."""

    def __init__(self) -> None:
        self._stemmer = Stemmer.Stemmer("english")

    def __missing__(self, word: str) -> str:
        lowered = word.lower()
        stem: str = _pinned().get(lowered) or self._stemmer.stemWord(lowered)
        if len(self) >= _REMEMBERED:
            self.clear()
        if len(word) <= _LONG:
            self[word] = stem
        return stem


def terms(text: str) -> list[str]:
    r"""Lower-cased `\w+` words, stemmed with the English Snowball (Porter 2) algorithm.

    Words of other languages pass through nearly unchanged; a script without spaces is one long word per run. English
    words that releases of PyStemmer stem differently have one stem with all of them.

    >>> terms("Which rivers were crossed?")
    ['which', 'river', 'were', 'cross']
    """
    stems = getattr(_per_thread, "stems", None)
    if stems is None:
        stems = _per_thread.stems = _Stems()
    return list(map(stems.__getitem__, WORD.findall(text)))


@lru_cache(maxsize=1)
def _pinned() -> dict[str, str]:
    return read_table("pinned_stems.tsv")


class Analyzer(NamedTuple):
    """Makes words of a text.

    Attributes:
        version: Raised with every change of the words, so that an index of others is known to be outdated.
        words: From a text to its words.
    """

    version: str
    words: Callable[[str], list[str]]


ENGLISH = Analyzer("english 1", terms)
