"""Texts as vectors: of their words, counted or weighted, with two indexes over them; or by a function of the user's."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from drillrank.errors import InvalidInput
from drillrank.text import terms

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.integer]
Embed = Callable[[list[str]], Any]
"""From texts to an array of shape (texts, dimensions). With a method `questions`, that embeds the questions."""


@dataclass(frozen=True, slots=True, eq=False)
class SparseMatrix:
    """A matrix that stores only entries that are not 0, row by row (compressed sparse rows).

    Sums run over a row's entries in the order in which they are stored.

    Attributes:
        data: The entries.
        columns: The column of each entry.
        bounds: Where the entries of each row begin, and, last, the number of all entries.
        width: Number of columns.

    >>> matrix = SparseMatrix(np.array([1.0, 2.0, 5.0]), np.array([0, 2, 1]), np.array([0, 2, 2, 3]), width=3)
    >>> matrix.times(np.array([1.0, 10.0, 100.0])).tolist(), matrix.column_sums().tolist()
    ([201.0, 0.0, 50.0], [1.0, 5.0, 2.0])
    """

    data: Floats
    columns: Integers
    bounds: Integers
    width: int

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return len(self.bounds) - 1, self.width

    @property
    def rows(self) -> Integers:
        """The row of each entry."""
        return np.repeat(np.arange(self.shape[0], dtype=np.int32), np.diff(self.bounds))

    def times(self, vector: Floats) -> Floats:
        """The product with a vector of shape (columns,), shape (rows,)."""
        return added_up(self.rows, self.data * vector[self.columns], self.shape[0])

    def row_sums(self) -> Floats:
        """The sum of each row, shape (rows,)."""
        return added_up(self.rows, self.data, self.shape[0])

    def column_sums(self) -> Floats:
        """The sum of each column, shape (columns,)."""
        return added_up(self.columns, self.data, self.width)

    def between(self, first: int, end: int) -> SparseMatrix:
        """The rows from `first` up to, not including, `end`."""
        start, stop = self.bounds[first], self.bounds[end]
        return SparseMatrix(
            self.data[start:stop], self.columns[start:stop], self.bounds[first : end + 1] - start, self.width
        )

    def of_rows(self, numbers: Integers) -> SparseMatrix:
        """Some rows, in the order given."""
        starts = self.bounds[numbers]
        lengths = self.bounds[numbers + 1] - starts
        bounds = np.append(0, np.cumsum(lengths))
        places = np.arange(bounds[-1]) + np.repeat(starts - bounds[:-1], lengths)
        return SparseMatrix(self.data[places], self.columns[places], bounds, self.width)

    def transposed(self) -> SparseMatrix:
        """Rows as columns; the entries of a row of the result are in the order of their columns."""
        small = self.columns.astype(np.min_scalar_type(self.width))  # which numpy sorts without comparing
        order = np.argsort(small, kind="stable")
        bounds = np.append(0, np.cumsum(np.bincount(self.columns, minlength=self.width)))
        return SparseMatrix(self.data[order], self.rows[order], bounds, self.shape[0])


@dataclass(frozen=True, slots=True)
class CollectionStatistics:
    """What lexical formulas know of a whole collection: counts of its words.

    The room taken grows with the vocabulary, not with the texts.

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


def added_up(places: Integers, values: Floats, size: int) -> Floats:
    """The sum of the values at each place, one after the other, shape (size,).

    >>> added_up(np.array([0, 2, 0]), np.array([1.0, 5.0, 2.0]), size=3).tolist()
    [3.0, 0.0, 5.0]
    """
    return np.bincount(places, weights=values, minlength=size).astype(np.float64)  # of nothing, numpy gives integers


def word_counts(texts: Iterable[Sequence[str]]) -> tuple[SparseMatrix, dict[str, int]]:
    """How often each text, given as its words, holds each word.

    Returns:
        A matrix of shape (texts, words), and the column of each word; the columns are in alphabetical order.

    >>> counts, columns = word_counts([["fox", "and", "fox"], [], ["and"]])
    >>> counts.data.tolist(), counts.columns.tolist(), columns
    ([2.0, 1.0, 1.0], [1, 0, 0], {'and': 0, 'fox': 1})
    """
    met: defaultdict[str, int] = defaultdict()
    met.default_factory = met.__len__
    counts = _counts(texts, met)
    columns = {word: column for column, word in enumerate(sorted(met))}
    moved = np.fromiter(map(columns.__getitem__, met), dtype=np.int32, count=len(met))
    # A row keeps the order of its words, in which scikit-learn adds up.
    return replace(counts, columns=moved[counts.columns]), columns


class Tfidf:
    """TF-IDF vectors of unit length: tf(w, d) · (ln((1 + n) / (1 + n_w)) + 1), over the vector's Euclidean length.

    n is the number of texts and n_w of those that hold the word.

    >>> weights = Tfidf([["red", "fox"], ["blue", "whale"], []])
    >>> weights.vectors.shape
    (3, 4)
    >>> weights.transform([["blue", "sky"]]).data.tolist()
    [1.0]
    """

    def __init__(self, texts: Iterable[Sequence[str]]) -> None:
        counts, self._columns = word_counts(texts)
        in_texts = np.bincount(counts.columns, minlength=len(self._columns))
        self._idf = np.log((1 + counts.shape[0]) / (1 + in_texts)) + 1
        self.vectors: SparseMatrix = self._weighted(counts)

    def transform(self, texts: Iterable[Sequence[str]]) -> SparseMatrix:
        """Vectors of other texts, shape (texts, words); words that are new have no place in them."""
        known = ([word for word in words if word in self._columns] for words in texts)
        return self._weighted(_counts(known, self._columns))

    def _weighted(self, counts: SparseMatrix) -> SparseMatrix:
        weights = counts.data * self._idf[counts.columns]
        lengths = np.sqrt(replace(counts, data=weights * weights).row_sums())
        return replace(counts, data=weights / lengths[counts.rows])


def _counts(texts: Iterable[Sequence[str]], columns: Mapping[str, int]) -> SparseMatrix:
    """Counts with the words in the columns given, each row in their order; a mapping may grow while it is asked."""
    data, places, bounds = array("d"), array("i"), array("q", [0])
    for words in texts:
        counted = Counter(words)
        data.extend(counted.values())
        places.extend(map(columns.__getitem__, counted))
        bounds.append(len(places))
    counts = SparseMatrix(np.asarray(data), np.asarray(places), np.asarray(bounds), len(columns))
    return counts.transposed().transposed()


class TfidfIndex:
    """Cosine similarity of TF-IDF vectors (scikit-learn's weighting) over stemmed words.

    Args:
        texts: What is searched.
        language: Whose stemmer words go through: see `drillrank.text.terms`.

    >>> TfidfIndex(["a red fox", "a blue whale"]).scores("foxes").argmax().item()
    0
    """

    def __init__(self, texts: Sequence[str], language: str = "english") -> None:
        self._language = language
        self._weights = Tfidf(terms(text, language) for text in texts)
        self._by_word = self._weights.vectors.transposed()

    def scores(self, query: str) -> Floats:
        """Cosine of the query and every text, shape `(texts,)`, between 0 and 1."""
        vector = self._weights.transform([terms(query, self._language)])
        holding = self._by_word.of_rows(vector.columns)
        return added_up(holding.columns, holding.data * vector.data[holding.rows], self._by_word.width)


class BM25Index:
    """BM25 over stemmed words, with Lucene's inverse document frequency, which stays positive in small collections.

    >>> BM25Index(["a red fox", "a blue whale"]).scores("foxes").argmax().item()
    0
    """

    def __init__(self, texts: Sequence[str], language: str = "english") -> None:
        self._language = language
        counts, self._columns = word_counts(terms(text, language) for text in texts)
        holding = np.bincount(counts.columns, minlength=counts.width)
        idf = np.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5)).astype(np.float32).astype(np.float64)
        mean_length = max(counts.data.sum(), 1) / max(len(texts), 1)
        norm = 1.5 * (0.25 + 0.75 * counts.row_sums() / mean_length)  # k1 = 1.5, b = 0.75
        weights = idf[counts.columns] * (counts.data / (norm[counts.rows] + counts.data))
        self._by_word = replace(counts, data=weights).transposed()

    def scores(self, query: str) -> Floats:
        """BM25 score of every text, shape `(texts,)`; 0 where no word matches, not normalised."""
        scores = np.zeros(self._by_word.width, dtype=np.float32)  # in which BM25S adds up, too
        for word in terms(query, self._language):
            if word in self._columns:
                of_word = self._by_word.of_rows(np.array([self._columns[word]]))
                scores[of_word.columns] += of_word.data.astype(np.float32)
        return scores.astype(np.float64)


def top(scores: Floats, n: int) -> list[int]:
    """Positions of the `n` highest scores, best first; ties keep the order.

    >>> top(np.array([1.0, 3.0, 3.0]), 2)
    [1, 2]
    """
    if 0 < n < len(scores):
        least = np.partition(scores, -n)[-n]
        candidates = np.flatnonzero(scores >= least)
    else:
        candidates = np.arange(len(scores))
    best: list[int] = candidates[np.argsort(-scores[candidates], kind="stable")[:n]].tolist()
    return best


def embedded(embed: Embed, texts: Sequence[str]) -> Floats:
    """One vector a text, shape (texts, dimensions).

    Raises:
        InvalidInput: there is not one finite vector a text.

    >>> embedded(lambda texts: [[len(text), 1] for text in texts], ["a", "bcd"]).tolist()
    [[1.0, 1.0], [3.0, 1.0]]
    """
    given = embed(list(texts))
    vectors = np.asarray(list(given) if isinstance(given, Iterator) else given, dtype=np.float64)
    if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
        raise InvalidInput(
            f"embed takes {len(texts)} texts to {len(texts)} vectors of finite numbers; it gave an array of shape "
            f"{vectors.shape}."
        )
    return vectors


def of_unit_length(vectors: Floats) -> Floats:
    """Each row divided by its Euclidean length; a zero vector stays zero.

    >>> of_unit_length(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Floats = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return unit
