"""Term counts of texts, and the collection language model p(w|C)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from drillrank.terms import WORD, terms

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class TermCounts:
    """tf(w, d) for a list of distinct texts, as a sparse matrix of shape (texts, vocabulary)."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.rows: dict[str, int] = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        self.counts: sparse.csr_matrix
        self.vocabulary: dict[str, int]
        self.counts, self.vocabulary = sparse.csr_matrix((len(self.rows), 0)), {}
        if any(WORD.search(text) for text in self.rows):
            vectorizer = CountVectorizer(analyzer=terms, dtype=np.float64)
            self.counts, self.vocabulary = vectorizer.fit_transform(self.rows), vectorizer.vocabulary_
        self.by_term = self.counts.tocsc()
        self.lengths: Floats = np.asarray(self.counts.sum(axis=1), dtype=np.float64).ravel()

    def tf(self, rows: Integers, words: Sequence[str]) -> Floats:
        """Counts of the given words in the given rows, shape (rows, words)."""
        place = np.full(len(self.rows), -1)
        place[rows] = np.arange(len(rows))
        table = np.zeros((len(rows), len(words)))
        for column, word in enumerate(words):
            term = self.vocabulary.get(word)
            if term is not None:
                start, end = self.by_term.indptr[term], self.by_term.indptr[term + 1]
                places = place[self.by_term.indices[start:end]]
                wanted = places >= 0
                table[places[wanted], column] = self.by_term.data[start:end][wanted]
        return table

    def words(self) -> list[str]:
        """The vocabulary, in the order of the matrix's columns."""
        return sorted(self.vocabulary, key=self.vocabulary.__getitem__)

    def count_words_outside(self, vocabulary: Mapping[str, int]) -> Floats:
        """How many different words of each text another vocabulary lacks, shape (texts,)."""
        foreign = np.array([word not in vocabulary for word in self.words()], dtype=np.float64)
        present: sparse.csr_matrix = (self.counts > 0).astype(np.float64)
        counted: Floats = present @ foreign
        return counted


class Collection(TermCounts):
    """Term counts with the collection language model p(w|C).

    p(w|C) is add-one smoothed with one extra class for all unseen words, so every word has a positive probability.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        super().__init__(texts)
        frequencies = np.asarray(self.counts.sum(axis=0)).ravel()
        tokens = frequencies.sum() + len(frequencies) + 1
        self.probabilities: Floats = (frequencies + 1) / tokens
        self.unseen = float(1 / tokens)

    def probability(self, words: Sequence[str]) -> Floats:
        """p(w|C), shape (words,)."""
        known = (self.vocabulary.get(word) for word in words)
        return np.array([self.unseen if term is None else self.probabilities[term] for term in known])
