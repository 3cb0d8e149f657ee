"""Retrieval exact match: does one of the first k texts hold an answer? (Rajpurkar et al. 2016; BRMGR, section III)."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Sequence
from functools import lru_cache

from drillrank.errors import check_positive
from drillrank.evaluation._checks import check_all_strings, check_collections

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(a|an|the)\b")


def exact_match(texts: Sequence[str], answers: Iterable[str], k: int) -> float:
    """1.0 if an answer occurs in one of the first `k` texts, as whole words of the normalised text, else 0.0.

    Raises:
        InvalidInput: `texts` or `answers` is not a collection of strings, or `k` is below 1.

    >>> exact_match(["Emma.", "It was Jane Austen's hand."], ["jane austen"], k=2)
    0.0
    >>> exact_match(["Emma.", "It was by Jane Austen!"], ["Ann Radcliffe", "the Jane Austen"], k=2)
    1.0
    """
    check_collections(answers=answers)
    answers = list(answers)  # may be an iterator
    check_all_strings(texts=texts, answers=answers)
    check_positive(k=k)
    wanted = [f" {answer} " for answer in map(normalised, answers) if answer]
    return float(any(answer in f" {normalised(text)} " for text in texts[:k] for answer in wanted))


@lru_cache(maxsize=10_000)  # the same passages are looked through for many questions and methods
def normalised(text: str) -> str:
    """SQuAD's normalisation: lower case, no punctuation, no articles, words separated by single blanks.

    >>> normalised("The  Old-Town, of a Basel")
    'oldtown of basel'
    """
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_PUNCTUATION)).split())
