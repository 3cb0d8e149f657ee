"""What the lexical formulas must know of a whole collection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from drillrank.terms import terms


@dataclass(frozen=True, slots=True)
class CollectionStatistics:
    """Counts of the words of some texts; the room taken grows with the vocabulary, not with the texts.

    Attributes:
        texts: Number of texts, n; the length of this object.
        holding: n_w, how many texts hold each word (stemmed), for BM25.
        occurrences: cf(w), how often each word occurs in the distinct texts, for a lexical language model.

    >>> whole = CollectionStatistics.of(["a red fox", "a red fox", "fox and fox"])
    >>> len(whole), whole.holding["fox"], whole.occurrences["fox"]
    (3, 3, 3)
    """

    texts: int = 0
    holding: Mapping[str, int] = field(default_factory=dict)
    occurrences: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, texts: Iterable[str]) -> CollectionStatistics:
        """Count the words of all these texts."""
        times = Counter(texts)
        holding, occurrences = Counter[str](), Counter[str]()
        for text, copies in times.items():
            words = Counter(terms(text))
            occurrences.update(words)
            holding.update(dict.fromkeys(words, copies))
        return cls(times.total(), dict(holding), dict(occurrences))

    def __len__(self) -> int:
        return self.texts
