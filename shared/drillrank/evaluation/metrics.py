"""Measures of retrieval quality."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence


def recall_all(ranking: Sequence[Hashable], gold: Collection[Hashable], k: int) -> float:
    """R@k as PromptRank defines it (section 3): 1.0 if *all* gold passages are in the top k, else 0.0.

    >>> recall_all(["a", "b", "c"], {"a", "c"}, k=2), recall_all(["a", "b", "c"], {"a", "c"}, k=3)
    (0.0, 1.0)
    """
    return float(set(gold) <= set(ranking[:k]))


def hit(ranking: Sequence[Hashable], gold: Collection[Hashable], k: int) -> float:
    """1.0 if any gold passage is in the top k, else 0.0.

    >>> hit(["a", "b"], {"b"}, k=1), hit(["a", "b"], {"b"}, k=2)
    (0.0, 1.0)
    """
    return float(any(item in set(gold) for item in ranking[:k]))


def evidence_f1(predicted: Collection[Hashable], annotations: Sequence[Collection[Hashable]]) -> float:
    """QASPER's evidence F1: F1 of paragraph sets, maximum over annotators; two empty sets agree fully.

    >>> evidence_f1({1, 2}, [{2, 3}, {1}])
    0.6666666666666666
    >>> evidence_f1(set(), [set()])
    1.0
    """
    return max(_f1(set(predicted), set(gold)) for gold in annotations)


def _f1(predicted: set[Hashable], gold: set[Hashable]) -> float:
    if not predicted and not gold:
        return 1.0
    common = len(predicted & gold)
    return 2 * common / (len(predicted) + len(gold))
