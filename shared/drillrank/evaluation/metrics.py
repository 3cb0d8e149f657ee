"""Measures for one question: of a ranking, of evidence and of an answer."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Sequence
from functools import lru_cache

from drillrank.errors import InvalidInput, check_positive

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(a|an|the)\b")


def recall_all(ranking: Sequence[Hashable], gold: Collection[Hashable], k: int) -> float:
    """Return R@k as PromptRank defines it (section 3): 1.0 if *all* gold passages are in the top k, else 0.0.

    >>> recall_all(["a", "b", "c"], {"a", "c"}, k=2), recall_all(["a", "b", "c"], {"a", "c"}, k=3)
    (0.0, 1.0)
    """
    return float(recall(ranking, gold, k) == 1)


def recall(ranking: Sequence[Hashable], gold: Collection[Hashable], k: int) -> float:
    """Return the share of the gold passages in the top k.

    Raises:
        InvalidInput: `gold` is empty or a string, `ranking` is a string, or `k` is below 1. This applies to all
            measures at k.

    >>> recall(["a", "b", "c"], {"a", "c"}, k=2)
    0.5
    """
    _check(ranking=ranking, gold=gold)
    check_positive(k=k)
    if not gold:
        raise InvalidInput("gold must contain at least one passage id, got none. Leave out questions without gold.")
    return len(set(gold).intersection(ranking[:k])) / len(set(gold))


def hit(ranking: Sequence[Hashable], gold: Collection[Hashable], k: int) -> float:
    """Return 1.0 if any gold passage is in the top k, else 0.0.

    >>> hit(["a", "b"], {"b"}, k=1), hit(["a", "b"], {"b"}, k=2)
    (0.0, 1.0)
    """
    return float(recall(ranking, gold, k) > 0)


def exact_match(texts: Sequence[str], answers: Iterable[str], k: int) -> float:
    """Return 1.0 if an answer occurs in one of the first `k` texts, as whole words of the normalized text, else 0.0.

    This is retrieval exact match (Rajpurkar et al. 2016; BRMGR, section III).

    >>> exact_match(["Emma.", "It was Jane Austen's hand."], ["jane austen"], k=2)
    0.0
    >>> exact_match(["Emma.", "It was by Jane Austen!"], ["Ann Radcliffe", "the Jane Austen"], k=2)
    1.0
    """
    _check(texts=texts, answers=answers)
    check_positive(k=k)
    padded_answers = [f" {answer} " for answer in map(normalised, answers) if answer]
    return float(any(answer in f" {normalised(text)} " for text in texts[:k] for answer in padded_answers))


def evidence_f1(predicted: Collection[Hashable], annotations: Sequence[Collection[Hashable]]) -> float:
    """Return QASPER's evidence F1: the F1 of two sets of paragraphs, maximum over annotators. Two empty sets have F1 1.

    Raises:
        InvalidInput: There are no annotations, or a set is a string.

    >>> evidence_f1({1, 2}, [{2, 3}, {1}]), evidence_f1(set(), [set()])
    (0.6666666666666666, 1.0)
    """
    _check(predicted=predicted, **{f"annotations[{number}]": gold for number, gold in enumerate(annotations)})
    if not annotations:
        raise InvalidInput(
            "annotations must contain the evidence of at least one annotator, got none. Pass [set()] for no evidence."
        )
    chosen = set(predicted)
    return max(
        2 * len(chosen & {*gold}) / (len(chosen) + len({*gold})) if chosen or gold else 1.0 for gold in annotations
    )


def answer_f1(answer: str, answers: Collection[str]) -> float:
    """Return the F1 of the words of an answer, maximum over the right ones (Rajpurkar et al. 2016; QASPER's answer F1).

    Case, punctuation and articles do not count. QASPER writes "Unanswerable" for a question without an answer, and for
    an answer that says so.

    Raises:
        InvalidInput: `answers` is empty or a string. This applies to `answer_match`, too.

    >>> answer_f1("The Rhine, of course", ["Rhine", "the Danube"])
    0.5
    """
    answer_words = Counter(normalised(answer).split())
    right_words = [Counter(right.split()) for right in _normalised(answers)]
    return max(
        2 * (answer_words & right).total() / max(answer_words.total() + right.total(), 1) for right in right_words
    )


def answer_match(answer: str, answers: Collection[str]) -> float:
    """Return 1.0 if an answer equals a right one up to case, punctuation and articles (Rajpurkar et al. 2016).

    >>> answer_match("The Rhine.", ["Danube", "rhine"]), answer_match("The Rhine, of course", ["Rhine"])
    (1.0, 0.0)
    """
    return float(normalised(answer) in _normalised(answers))


def _normalised(answers: Collection[str]) -> list[str]:
    _check(answers=answers)
    if not answers:
        raise InvalidInput("answers must contain at least one answer, got none. Leave out questions without answers.")
    return list(map(normalised, answers))


@lru_cache(maxsize=10_000)  # the same passages are looked through for many questions and methods
def normalised(text: str) -> str:
    """Normalize a text as SQuAD does: lower case, no punctuation, no articles, single blanks between words.

    >>> normalised("The  Old-Town, of a Basel")
    'oldtown of basel'
    """
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def _check(**collections: object) -> None:
    """Refuse a string instead of a collection: its letters would count as items."""
    for name, value in collections.items():
        if isinstance(value, str):
            raise InvalidInput(
                f"{name} must be a collection, such as a list, got {value!r:.80}. Pass [item] for one item."
            )
