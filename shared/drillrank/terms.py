"""Words of a text, lower-cased and stemmed: the tokens of the lexical models."""

from __future__ import annotations

import re
import threading
from functools import lru_cache

import Stemmer

from drillrank.data import read_table

WORD = re.compile(r"\w+")

_per_thread = threading.local()  # a Snowball stemmer keeps its working buffer, so threads must not share one


def terms(text: str) -> list[str]:
    r"""Lower-cased `\w+` words, stemmed with the English Snowball (Porter 2) algorithm.

    Words of other languages pass through nearly unchanged; a script without spaces is one long word per run. English
    words that releases of PyStemmer stem differently have one stem with all of them.

    >>> terms("Which rivers were crossed?")
    ['which', 'river', 'were', 'cross']
    """
    stemmer = getattr(_per_thread, "stemmer", None)
    if stemmer is None:
        stemmer = _per_thread.stemmer = Stemmer.Stemmer("english")
    words = [word.lower() for word in WORD.findall(text)]
    stemmed: list[str] = stemmer.stemWords(words)
    pinned = _pinned()
    if pinned.keys().isdisjoint(words):
        return stemmed
    return [pinned.get(word, stem) for word, stem in zip(words, stemmed, strict=True)]


@lru_cache(maxsize=1)
def _pinned() -> dict[str, str]:
    return read_table("pinned_stems.tsv")
