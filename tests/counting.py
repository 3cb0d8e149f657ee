"""Statistics of words, counted as they are defined."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from drillrank.passages import Passage
from drillrank.text import terms
from drillrank.vectors import CollectionStatistics


def statistics_of(passages: Iterable[Passage]) -> CollectionStatistics:
    """Of the titled texts of these passages: each holds its words, each distinct one counts for p(w|C)."""
    texts = [passage.titled_text for passage in passages]
    holding = Counter(word for text in texts for word in set(terms(text)))
    occurrences = Counter(word for text in set(texts) for word in terms(text))
    return CollectionStatistics(len(texts), dict(holding), dict(occurrences))
