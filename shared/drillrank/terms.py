"""Words of a text, lower-cased and stemmed: the tokens of the lexical models."""

from __future__ import annotations

import re
import threading

import Stemmer

WORD = re.compile(r"\w+")

_per_thread = threading.local()  # a Snowball stemmer keeps its working buffer, so threads must not share one


def terms(text: str) -> list[str]:
    r"""Lower-cased `\w+` words, stemmed with the English Snowball (Porter 2) algorithm.

    Words of other languages pass through nearly unchanged; a script without spaces is one long word per run.

    >>> terms("Which rivers were crossed?")
    ['which', 'river', 'were', 'cross']
    """
    stemmer = getattr(_per_thread, "stemmer", None)
    if stemmer is None:
        stemmer = _per_thread.stemmer = Stemmer.Stemmer("english")
    stemmed: list[str] = stemmer.stemWords([word.lower() for word in WORD.findall(text)])
    return stemmed
