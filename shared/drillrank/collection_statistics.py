"""What the lexical formulas must know of a whole collection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class CollectionStatistics:
    """Counts of the words of some texts; the room taken grows with the vocabulary, not with the texts.

    Attributes:
        texts: Number of texts, n; the length of this object.
        holding: n_w, how many texts hold each word (stemmed), for BM25.
        occurrences: cf(w), how often each word occurs in the distinct texts, for a lexical language model.
        language: Whose stemmer the words went through.

    >>> len(CollectionStatistics(2, {"fox": 2, "red": 1}, {"fox": 3, "red": 1}))
    2
    """

    texts: int = 0
    holding: Mapping[str, int] = field(default_factory=dict)
    occurrences: Mapping[str, int] = field(default_factory=dict)
    language: str = "english"

    def __len__(self) -> int:
        return self.texts
