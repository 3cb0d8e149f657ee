"""Measures of a ranking, of evidence and of answers, each of one question."""

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
    """R@k as PromptRank defines it (section 3): 1.0 if *all* gold passages are in the top k, else 0.0.

    >>> recall_all(["a", "b", "c"], {"a", "c"}, k=2), recall_all(["a", "b", "c"], {"a", "c"}, k=3)
    (0.0, 1.0)
    """
    return float(recall(ranking, gold, k) == 1)


def recall(ranking: Sequence[Hashable], gold: Collection[Hashable], k: int) -> float:
    """The share of the gold passages that is in the top k.

    Raises:
        InvalidInput: `gold` is empty or a string, `ranking` is a string, or `k` is below 1; as for all measures at k.

    >>> recall(["a", "b", "c"], {"a", "c"}, k=2)
    0.5
    """
    _check(ranking=ranking, gold=gold)
    check_positive(k=k)
    if not gold:
        raise InvalidInput("gold holds one passage at least: a share of none has no value.")
    return len(set(gold).intersection(ranking[:k])) / len(set(gold))


def hit(ranking: Sequence[Hashable], gold: Collection[Hashable], k: int) -> float:
    """1.0 if any gold passage is in the top k, else 0.0.

    >>> hit(["a", "b"], {"b"}, k=1), hit(["a", "b"], {"b"}, k=2)
    (0.0, 1.0)
    """
    return float(recall(ranking, gold, k) > 0)


def exact_match(texts: Sequence[str], answers: Iterable[str], k: int) -> float:
    """1.0 if an answer occurs in one of the first `k` texts, as whole words of the normalised text, else 0.0.

    Retrieval exact match (Rajpurkar et al. 2016; BRMGR, section III).

    >>> exact_match(["Emma.", "It was Jane Austen's hand."], ["jane austen"], k=2)
    0.0
    >>> exact_match(["Emma.", "It was by Jane Austen!"], ["Ann Radcliffe", "the Jane Austen"], k=2)
    1.0
    """
    _check(texts=texts, answers=answers)
    check_positive(k=k)
    wanted = [f" {answer} " for answer in map(normalised, answers) if answer]
    return float(any(answer in f" {normalised(text)} " for text in texts[:k] for answer in wanted))


def evidence_f1(predicted: Collection[Hashable], annotations: Sequence[Collection[Hashable]]) -> float:
    """QASPER's evidence F1: F1 of paragraph sets, maximum over annotators; two empty sets agree fully.

    Raises:
        InvalidInput: there is no annotation, or a set is a string.

    >>> evidence_f1({1, 2}, [{2, 3}, {1}]), evidence_f1(set(), [set()])
    (0.6666666666666666, 1.0)
    """
    _check(predicted=predicted, **{f"annotations[{number}]": gold for number, gold in enumerate(annotations)})
    if not annotations:
        raise InvalidInput("annotations holds the evidence of one annotator at least; an empty set if there is none.")
    found = set(predicted)
    return max(2 * len(found & {*gold}) / (len(found) + len({*gold})) if found or gold else 1.0 for gold in annotations)


def answer_f1(answer: str, answers: Collection[str]) -> float:
    """F1 of the words of an answer, maximum over the right ones (Rajpurkar et al. 2016; QASPER's answer F1).

    Case, punctuation and articles do not count. For a question that nothing answers, QASPER has "Unanswerable" on
    either side.

    Raises:
        InvalidInput: there is no right answer, or `answers` is a string; as for `answer_match`.

    >>> answer_f1("The Rhine, of course", ["Rhine", "the Danube"])
    0.5
    """
    answer_words = Counter(normalised(answer).split())
    wanted = [Counter(right.split()) for right in _normalised(answers)]
    return max(2 * (answer_words & right).total() / max(answer_words.total() + right.total(), 1) for right in wanted)


def answer_match(answer: str, answers: Collection[str]) -> float:
    """1.0 if an answer is one of the right ones, but for case, punctuation and articles (Rajpurkar et al. 2016).

    >>> answer_match("The Rhine.", ["Danube", "rhine"]), answer_match("The Rhine, of course", ["Rhine"])
    (1.0, 0.0)
    """
    return float(normalised(answer) in _normalised(answers))


def _normalised(answers: Collection[str]) -> list[str]:
    _check(answers=answers)
    if not answers:
        raise InvalidInput("answers holds one answer at least.")
    return list(map(normalised, answers))


@lru_cache(maxsize=10_000)  # the same passages are looked through for many questions and methods
def normalised(text: str) -> str:
    """SQuAD's normalisation: lower case, no punctuation, no articles, words separated by single blanks.

    >>> normalised("The  Old-Town, of a Basel")
    'oldtown of basel'
    """
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def _check(**collections: object) -> None:
    """A single string would be taken for its letters."""
    for name, given in collections.items():
        if isinstance(given, str):
            raise InvalidInput(f"{name} is a collection, such as a list; not {given!r:.80}. One item: [item].")
