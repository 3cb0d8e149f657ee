"""Measures of retrieval quality."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Sequence

from drillrank.errors import InvalidInput, check_positive
from drillrank.evaluation._checks import check_collections
from drillrank.evaluation.exact_match import normalised


def recall_all(ranking: Sequence[Hashable], gold: Collection[Hashable], k: int) -> float:
    """R@k as PromptRank defines it (section 3): 1.0 if *all* gold passages are in the top k, else 0.0.

    Raises:
        InvalidInput: `ranking` or `gold` is a single string or no collection, or `k` is below 1.

    >>> recall_all(["a", "b", "c"], {"a", "c"}, k=2), recall_all(["a", "b", "c"], {"a", "c"}, k=3)
    (0.0, 1.0)
    """
    check_collections(ranking=ranking, gold=gold)
    check_positive(k=k)
    return float(set(gold) <= set(ranking[:k]))


def recall(ranking: Sequence[Hashable], gold: Collection[Hashable], k: int) -> float:
    """The share of the gold passages that is in the top k.

    Raises:
        InvalidInput: `ranking` or `gold` is a single string or no collection, `gold` is empty, or `k` is below 1.

    >>> recall(["a", "b", "c"], {"a", "c"}, k=2)
    0.5
    """
    check_collections(ranking=ranking, gold=gold)
    check_positive(k=k)
    wanted = set(gold)
    if not wanted:
        raise InvalidInput("gold holds one passage at least: a share of none has no value.")
    return len(wanted.intersection(ranking[:k])) / len(wanted)


def hit(ranking: Sequence[Hashable], gold: Collection[Hashable], k: int) -> float:
    """1.0 if any gold passage is in the top k, else 0.0.

    Raises:
        InvalidInput: `ranking` or `gold` is a single string or no collection, or `k` is below 1.

    >>> hit(["a", "b"], {"b"}, k=1), hit(["a", "b"], {"b"}, k=2)
    (0.0, 1.0)
    """
    check_collections(ranking=ranking, gold=gold)
    check_positive(k=k)
    return float(any(item in set(gold) for item in ranking[:k]))


def evidence_f1(predicted: Collection[Hashable], annotations: Sequence[Collection[Hashable]]) -> float:
    """QASPER's evidence F1: F1 of paragraph sets, maximum over annotators; two empty sets agree fully.

    Raises:
        InvalidInput: there is no annotation, or one of the sets is a single string or no collection.

    >>> evidence_f1({1, 2}, [{2, 3}, {1}])
    0.6666666666666666
    >>> evidence_f1(set(), [set()])
    1.0
    """
    check_collections(predicted=predicted, annotations=annotations)
    for number, gold in enumerate(annotations):
        check_collections(**{f"annotations[{number}]": gold})
    if not annotations:
        raise InvalidInput("annotations holds the evidence of one annotator at least; an empty set if there is none.")
    return max(_f1(set(predicted), set(gold)) for gold in annotations)


def answer_f1(answer: str, answers: Collection[str]) -> float:
    """F1 of the words of an answer, maximum over the right ones (Rajpurkar et al. 2016; QASPER's answer F1).

    Case, punctuation and articles do not count. For a question that nothing answers, QASPER has "Unanswerable" on
    either side.

    Raises:
        InvalidInput: there is no right answer, or `answers` is a single string or no collection.

    >>> answer_f1("The Rhine, of course", ["Rhine", "the Danube"])
    0.5
    """
    check_collections(answers=answers)
    if not answers:
        raise InvalidInput("answers holds one answer at least.")
    said = Counter(normalised(answer).split())
    wanted = [Counter(normalised(right).split()) for right in answers]
    return max(2 * (said & right).total() / max(said.total() + right.total(), 1) for right in wanted)


def _f1(predicted: set[Hashable], gold: set[Hashable]) -> float:
    if not predicted and not gold:
        return 1.0
    common = len(predicted & gold)
    return 2 * common / (len(predicted) + len(gold))
