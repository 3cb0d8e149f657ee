"""What the lexical formulas must know of a whole collection, counted part by part where it is spread over machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from drillrank.text import terms


@dataclass(frozen=True, slots=True)
class CollectionStatistics:
    """Counts of the words of some texts; those of parts add up to those of the whole.

    Equal texts belong in one part, since p(w|C) takes each distinct text once (`multihop.shards.divided` sees to it).
    The room taken grows with the vocabulary, not with the texts.

    Attributes:
        texts: Number of texts, n; the length of this object.
        holding: n_w, how many texts hold each word (stemmed), for TF-IDF.
        occurrences: cf(w), how often each word occurs in the distinct texts, for a lexical language model.
        language: Whose stemmer the words went through.

    >>> left, right = CollectionStatistics.of(["a red fox", "a fox"]), CollectionStatistics.of(["fox and fox"])
    >>> whole = left + right
    >>> len(whole), whole.holding["fox"], whole.occurrences["fox"]
    (3, 3, 4)
    >>> whole == CollectionStatistics.of(["a red fox", "a fox", "fox and fox"]) == right + left
    True
    """

    texts: int = 0
    holding: Mapping[str, int] = field(default_factory=dict)
    occurrences: Mapping[str, int] = field(default_factory=dict)
    language: str = "english"

    @classmethod
    def of(cls, texts: Iterable[str], language: str = "english") -> CollectionStatistics:
        """Count the words of all these texts."""
        times = Counter(texts)
        holding, occurrences = Counter[str](), Counter[str]()
        for text, copies in times.items():
            words = Counter(terms(text, language))
            occurrences.update(words)
            holding.update(dict.fromkeys(words, copies))
        return cls(times.total(), dict(holding), dict(occurrences), language)

    def __len__(self) -> int:
        return self.texts

    def __add__(self, other: CollectionStatistics) -> CollectionStatistics:
        return CollectionStatistics(
            self.texts + other.texts,
            dict(Counter(self.holding) + Counter(other.holding)),
            dict(Counter(self.occurrences) + Counter(other.occurrences)),
            other.language if not self.texts else self.language,
        )
