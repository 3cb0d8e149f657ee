"""Retrieval exact match: does one of the first k texts hold an answer? (Rajpurkar et al. 2016; BRMGR, section III)."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Sequence
from functools import lru_cache

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(a|an|the)\b")


def exact_match(texts: Sequence[str], answers: Iterable[str], k: int) -> float:
    """1.0 if an answer occurs in one of the first `k` texts, as whole words of the normalised text, else 0.0.

    >>> exact_match(["Emma.", "It was Jane Austen's hand."], ["jane austen"], k=2)
    0.0
    >>> exact_match(["Emma.", "It was by Jane Austen!"], ["Ann Radcliffe", "the Jane Austen"], k=2)
    1.0
    """
    wanted = [f" {answer} " for answer in map(normalised, answers) if answer]
    return float(any(answer in f" {normalised(text)} " for text in texts[:k] for answer in wanted))


@lru_cache(maxsize=10_000)  # the same passages are looked through for many questions and methods
def normalised(text: str) -> str:
    """SQuAD's normalisation: lower case, no punctuation, no articles, words separated by single blanks.

    >>> normalised("The  Old-Town, of a Basel")
    'oldtown of basel'
    """
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_PUNCTUATION)).split())
