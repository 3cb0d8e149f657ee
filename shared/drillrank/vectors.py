"""Texts as sparse vectors of their words: counts, and TF-IDF in scikit-learn's weighting."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from scipy import sparse


def word_counts(texts: Iterable[Sequence[str]]) -> tuple[sparse.csr_matrix, dict[str, int]]:
    """How often each text, given as its words, holds each word.

    Returns:
        A float64 matrix of shape (texts, words), and the column of each word; the columns are in alphabetical order.

    >>> counts, columns = word_counts([["fox", "and", "fox"], [], ["and"]])
    >>> counts.toarray().tolist(), columns
    ([[1.0, 2.0], [0.0, 0.0], [1.0, 0.0]], {'and': 0, 'fox': 1})
    """
    met: defaultdict[str, int] = defaultdict()
    met.default_factory = met.__len__
    counts = _counts(texts, met)
    columns = {word: column for column, word in enumerate(sorted(met))}
    moved = np.fromiter(map(columns.__getitem__, met), dtype=np.int32, count=len(met))
    counts.indices = moved[counts.indices]  # a row keeps the order of its words, in which scikit-learn adds up
    counts.has_sorted_indices = False
    return counts, columns


class Tfidf:
    """TF-IDF vectors of unit length: tf(w, d) · (ln((1 + n) / (1 + n_w)) + 1), over the vector's Euclidean length.

    n is the number of texts and n_w of those that hold the word.

    Args:
        texts: Each as its words.

    >>> weights = Tfidf([["red", "fox"], ["blue", "whale"], []])
    >>> weights.vectors.shape
    (3, 4)
    >>> (weights.vectors @ weights.transform([["blue"], ["green"]]).T).toarray().round(2).tolist()
    [[0.0, 0.0], [0.71, 0.0], [0.0, 0.0]]
    """

    def __init__(self, texts: Iterable[Sequence[str]]) -> None:
        counts, self._columns = word_counts(texts)
        holding = np.bincount(counts.indices, minlength=len(self._columns))
        self._idf = np.log((1 + counts.shape[0]) / (1 + holding)) + 1
        self.vectors: sparse.csr_matrix = self._weighted(counts)

    def transform(self, texts: Iterable[Sequence[str]]) -> sparse.csr_matrix:
        """Vectors of other texts, shape (texts, words); words that are new have no place in them."""
        known = ([word for word in words if word in self._columns] for words in texts)
        return self._weighted(_counts(known, self._columns))

    def _weighted(self, counts: sparse.csr_matrix) -> sparse.csr_matrix:
        weights = counts.data * self._idf[counts.indices]
        rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
        lengths = np.sqrt(np.bincount(rows, weights=weights * weights, minlength=counts.shape[0]))
        counts.data = weights / lengths[rows]
        return counts


def _counts(texts: Iterable[Sequence[str]], columns: Mapping[str, int]) -> sparse.csr_matrix:
    """Counts with the words in the columns given; a mapping may grow while it is asked."""
    from scipy import sparse  # takes longer to load than all of this package

    data, places, bounds = array("d"), array("i"), array("q", [0])
    for words in texts:
        counted = Counter(words)
        data.extend(counted.values())
        places.extend(map(columns.__getitem__, counted))
        bounds.append(len(places))
    shape = (len(bounds) - 1, len(columns))
    counts = sparse.csr_matrix((np.asarray(data), np.asarray(places), np.asarray(bounds)), shape=shape)
    counts.sort_indices()
    return counts
