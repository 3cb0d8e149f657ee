"""Vectors of texts: term counts, TF-IDF and BM25 with their indexes, and dense vectors by a function of the user."""

from __future__ import annotations

import math
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
"""Function from texts to an array, shape [n_texts, n_dimensions]. Its method `questions`, if any, embeds questions."""


@dataclass(frozen=True, slots=True, eq=False)
class SparseMatrix:
    """Matrix of the entries that are not 0, row by row (compressed sparse rows).

    Sums add the entries of a row in the order in which they are stored.

    Attributes:
        data: Entries, shape [n_entries].
        columns: Column index of each entry, shape [n_entries].
        bounds: Index of the first entry of each row, followed by the number of entries, shape [n_rows + 1].
        width: Number of columns.

    >>> matrix = SparseMatrix(np.array([1.0, 2.0, 5.0]), np.array([0, 2, 1]), np.array([0, 2, 2, 3]), width=3)
    >>> matrix.multiply(np.array([1.0, 10.0, 100.0])).tolist(), matrix.column_sums().tolist()
    ([201.0, 0.0, 50.0], [1.0, 5.0, 2.0])
    """

    data: Floats
    columns: Integers
    bounds: Integers
    width: int

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and number of columns."""
        return len(self.bounds) - 1, self.width

    @property
    def rows(self) -> Integers:
        """Row index of each entry, shape [n_entries]."""
        return np.repeat(np.arange(self.shape[0], dtype=np.int32), np.diff(self.bounds))

    def multiply(self, vector: Floats) -> Floats:
        """Return the product with a vector of shape [n_columns], shape [n_rows]."""
        return sum_by_index(self.rows, self.data * vector[self.columns], self.shape[0])

    def row_sums(self) -> Floats:
        """Return the sum of each row, shape [n_rows]."""
        return sum_by_index(self.rows, self.data, self.shape[0])

    def column_sums(self) -> Floats:
        """Return the sum of each column, shape [n_columns]."""
        return sum_by_index(self.columns, self.data, self.width)

    def slice_rows(self, first: int, end: int) -> SparseMatrix:
        """Return the rows from `first` to `end`, exclusive."""
        start, stop = self.bounds[first], self.bounds[end]
        return SparseMatrix(
            self.data[start:stop], self.columns[start:stop], self.bounds[first : end + 1] - start, self.width
        )

    def select_rows(self, row_indices: Integers) -> SparseMatrix:
        """Return the rows with these indices, in this order."""
        starts = self.bounds[row_indices]
        lengths = self.bounds[row_indices + 1] - starts
        bounds = np.append(0, np.cumsum(lengths))
        entry_indices = np.arange(bounds[-1]) + np.repeat(starts - bounds[:-1], lengths)
        return SparseMatrix(self.data[entry_indices], self.columns[entry_indices], bounds, self.width)

    def transposed(self) -> SparseMatrix:
        """Return the matrix with rows as columns. The entries of each of its rows are in the order of their columns."""
        small_integers = self.columns.astype(np.min_scalar_type(self.width))  # numpy uses radix sort for these
        order = np.argsort(small_integers, kind="stable")
        bounds = np.append(0, np.cumsum(np.bincount(self.columns, minlength=self.width)))
        return SparseMatrix(self.data[order], self.rows[order], bounds, self.shape[0])


@dataclass(frozen=True, slots=True)
class CollectionStatistics:
    """Counts of the terms of a collection, for lexical formulas. Their size grows with the vocabulary only.

    Attributes:
        n_texts: Number of texts, n, which is the length of this object.
        document_frequencies: Number of texts that contain each term, n_w, for BM25.
        occurrences: Number of occurrences of each term in the distinct texts, cf(w), for lexical language models.
        language: Language of the stemmer.

    >>> len(CollectionStatistics(2, {"fox": 2, "red": 1}, {"fox": 3, "red": 1}))
    2
    """

    n_texts: int = 0
    document_frequencies: Mapping[str, int] = field(default_factory=dict)
    occurrences: Mapping[str, int] = field(default_factory=dict)
    language: str = "english"

    def __len__(self) -> int:
        return self.n_texts

    @classmethod
    def count(cls, texts: Iterable[str], language: str = "english") -> CollectionStatistics:
        """Count the terms of texts.

        >>> CollectionStatistics.count(["a red fox", "foxes"]).document_frequencies["fox"]
        2
        """
        document_frequencies, occurrences = Counter[str](), Counter[str]()
        n_texts_by_text = Counter(texts)
        for text, n_texts in n_texts_by_text.items():
            term_counts = Counter(terms(text, language))
            document_frequencies.update(dict.fromkeys(term_counts, n_texts))
            occurrences.update(term_counts)
        return cls(n_texts_by_text.total(), document_frequencies, occurrences, language)


def sum_by_index(indices: Integers, values: Floats, size: int) -> Floats:
    """Return the sum of the values with each index, added in their order, shape [size].

    >>> sum_by_index(np.array([0, 2, 0]), np.array([1.0, 5.0, 2.0]), size=3).tolist()
    [3.0, 0.0, 5.0]
    """
    return np.bincount(indices, weights=values, minlength=size).astype(
        np.float64
    )  # without values, numpy returns integers


def word_counts(texts: Iterable[Sequence[str]]) -> tuple[SparseMatrix, dict[str, int]]:
    """Count the words of texts.

    Args:
        texts: Words of each text.

    Returns:
        Counts, shape [n_texts, n_words], and the column index of each word. Columns are in alphabetical order.

    >>> counts, columns = word_counts([["fox", "and", "fox"], [], ["and"]])
    >>> counts.data.tolist(), counts.columns.tolist(), columns
    ([2.0, 1.0, 1.0], [1, 0, 0], {'and': 0, 'fox': 1})
    """
    first_columns: defaultdict[str, int] = defaultdict()  # in order of first occurrence
    first_columns.default_factory = first_columns.__len__
    counts = _count_in_columns(texts, first_columns)
    columns = {word: column for column, word in enumerate(sorted(first_columns))}
    new_columns = np.fromiter(map(columns.__getitem__, first_columns), dtype=np.int32, count=len(first_columns))
    # Each row keeps the order of its words, so that sums have the same rounding errors as those of scikit-learn.
    return replace(counts, columns=new_columns[counts.columns]), columns


class Tfidf:
    """TF-IDF vectors of unit length: tf(w, d) · (ln((1 + n) / (1 + n_w)) + 1), over the vector's Euclidean length.

    n is the number of texts, n_w the number of texts that contain the word.

    Args:
        texts: Words of each text.

    Attributes:
        vectors: Vectors of the texts, shape [n_texts, n_words].
        columns: Column index of each word.
        idf: Inverse document frequency of each word, shape [n_words].

    >>> weights = Tfidf([["red", "fox"], ["blue", "whale"], []])
    >>> weights.vectors.shape
    (3, 4)
    >>> weights.transform([["blue", "sky"]]).data.tolist()
    [1.0]
    """

    def __init__(self, texts: Iterable[Sequence[str]]) -> None:
        counts, self.columns = word_counts(texts)
        document_frequencies = np.bincount(counts.columns, minlength=len(self.columns))
        self.idf: Floats = np.log((1 + counts.shape[0]) / (1 + document_frequencies)) + 1
        self.vectors: SparseMatrix = self._weighted(counts)

    def transform(self, texts: Iterable[Sequence[str]]) -> SparseMatrix:
        """Return vectors of other texts, shape [n_texts, n_words]. They ignore words outside the vocabulary."""
        words_in_vocabulary = ([word for word in words if word in self.columns] for words in texts)
        return self._weighted(_count_in_columns(words_in_vocabulary, self.columns))

    def _weighted(self, counts: SparseMatrix) -> SparseMatrix:
        weights = counts.data * self.idf[counts.columns]
        lengths = np.sqrt(replace(counts, data=weights * weights).row_sums())
        return replace(counts, data=weights / lengths[counts.rows])


def _count_in_columns(texts: Iterable[Sequence[str]], columns: Mapping[str, int]) -> SparseMatrix:
    """Count the words of texts. Each row is in the order of its columns.

    Args:
        texts: Words of each text.
        columns: Column index of each word. A `defaultdict` may add columns for new words.
    """
    data, column_indices, bounds = array("d"), array("i"), array("q", [0])
    for words in texts:
        count_by_word = Counter(words)
        data.extend(count_by_word.values())
        column_indices.extend(map(columns.__getitem__, count_by_word))
        bounds.append(len(column_indices))
    counts = SparseMatrix(np.asarray(data), np.asarray(column_indices), np.asarray(bounds), len(columns))
    return counts.transposed().transposed()


class TfidfIndex:
    """Index for the cosine similarity of TF-IDF vectors of terms, weighted as in scikit-learn.

    Args:
        texts: Texts to search.
        language: Language of the stemmer: see `drillrank.text.terms`.

    >>> TfidfIndex(["a red fox", "a blue whale"]).scores("foxes").argmax().item()
    0
    """

    def __init__(self, texts: Sequence[str], language: str = "english") -> None:
        self._language = language
        self._weights = Tfidf(terms(text, language) for text in texts)
        self._by_word = self._weights.vectors.transposed()

    def scores(self, query: str) -> Floats:
        """Return the cosine of the query and each text, between 0 and 1, shape [n_texts]."""
        postings, columns = self._by_word, self._weights.columns
        counts = Counter(term for term in terms(query, self._language) if term in columns)
        term_columns = sorted(map(columns.__getitem__, counts))
        count_by_column = {columns[term]: n_occurrences for term, n_occurrences in counts.items()}
        weights = np.array([count_by_column[column] for column in term_columns]) * self._weights.idf[term_columns]
        scores = np.zeros(postings.width)
        # Sums run in the order of the columns, so that they have the same rounding errors as those of scikit-learn.
        for column, weight in zip(term_columns, weights / np.sqrt(np.cumsum(weights * weights)[-1:]), strict=True):
            start, end = postings.bounds[column], postings.bounds[column + 1]
            scores[postings.columns[start:end]] += postings.data[start:end] * weight
        return scores


class TfidfQuery:
    """TF-IDF vector of a query by the statistics of a collection. It scores any text, also of other collections.

    Texts of the collection are ranked as by `TfidfIndex`. A term that the collection does not contain weighs most.

    Args:
        query: The query.
        statistics: Statistics of the collection, with document frequencies.

    >>> query = TfidfQuery("foxes", CollectionStatistics.count(["a red fox", "a blue whale"]))
    >>> query.scores(["a fox in a town", "a blue whale"]).round(2).tolist()
    [0.37, 0.0]
    """

    def __init__(self, query: str, statistics: CollectionStatistics) -> None:
        self._statistics = statistics
        self._query_weights = self._weigh(query)

    def scores(self, texts: Iterable[str]) -> Floats:
        """Return the cosine of the query and each text, between 0 and 1, shape [n_texts]."""
        cosines = []
        for text in texts:
            weights = self._weigh(text)
            cosines.append(sum(weight * weights.get(term, 0.0) for term, weight in self._query_weights.items()))
        return np.array(cosines, dtype=np.float64)

    def _weigh(self, text: str) -> dict[str, float]:
        """Return the vector of a text, of unit length, as weights by term."""
        statistics = self._statistics
        weights = {}
        for term, n_occurrences in Counter(terms(text, statistics.language)).items():
            n_texts_with_term = statistics.document_frequencies.get(term, 0)
            weights[term] = n_occurrences * (math.log((1 + statistics.n_texts) / (1 + n_texts_with_term)) + 1)
        length = math.hypot(*weights.values()) or 1.0
        return {term: weight / length for term, weight in weights.items()}


class BM25Index:
    """Index for BM25 over terms, with Lucene's inverse document frequency, which stays positive in small collections.

    Args:
        texts: Texts to search.
        language: Language of the stemmer: see `drillrank.text.terms`.

    >>> BM25Index(["a red fox", "a blue whale"]).scores("foxes").argmax().item()
    0
    """

    def __init__(self, texts: Sequence[str], language: str = "english") -> None:
        self._language = language
        counts, self._columns = word_counts(terms(text, language) for text in texts)
        df = np.bincount(counts.columns, minlength=counts.width)  # document frequencies
        idf = np.log(1 + (len(texts) - df + 0.5) / (df + 0.5)).astype(np.float32).astype(np.float64)
        mean_length = max(counts.data.sum(), 1) / max(len(texts), 1)
        norm = 1.5 * (0.25 + 0.75 * counts.row_sums() / mean_length)  # k1 = 1.5, b = 0.75
        weights = idf[counts.columns] * (counts.data / (norm[counts.rows] + counts.data))
        self._by_word = replace(counts, data=weights).transposed()

    def scores(self, query: str) -> Floats:
        """Return the BM25 score of each text, at least 0, shape [n_texts]. Texts without a term of the query get 0."""
        scores = np.zeros(self._by_word.width, dtype=np.float32)  # BM25S adds scores in this type, too
        for word in terms(query, self._language):
            if word in self._columns:
                postings = self._by_word.select_rows(np.array([self._columns[word]]))
                scores[postings.columns] += postings.data.astype(np.float32)
        return scores.astype(np.float64)


def top(scores: Floats, n: int) -> list[int]:
    """Return the indices of the `n` highest scores, best first. Equal scores keep their order.

    >>> top(np.array([1.0, 3.0, 3.0]), 2)
    [1, 2]
    """
    if 0 < n < len(scores):
        lowest = np.partition(scores, -n)[-n]
        candidates = np.flatnonzero(scores >= lowest)
    else:
        candidates = np.arange(len(scores))
    best: list[int] = candidates[np.argsort(-scores[candidates], kind="stable")[:n]].tolist()
    return best


def embedded(embed: Embed, texts: Sequence[str]) -> Floats:
    """Embed texts and check the vectors, shape [n_texts, n_dimensions].

    Raises:
        InvalidInput: `embed` does not return one vector of finite numbers per text.

    >>> embedded(lambda texts: [[len(text), 1] for text in texts], ["a", "bcd"]).tolist()
    [[1.0, 1.0], [3.0, 1.0]]
    """
    returned = embed(list(texts))
    try:
        vectors = np.asarray(list(returned) if isinstance(returned, Iterator) else returned, dtype=np.float64)
    except (TypeError, ValueError) as cause:
        raise InvalidInput(
            f"embed must return one vector of finite numbers per text, got a {type(returned).__name__} that is not "
            "one. Return an array of shape (texts, dimensions)."
        ) from cause
    if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
        raise InvalidInput(
            f"embed must return one vector of finite numbers per text, got an array of shape {vectors.shape} for "
            f"{len(texts)} texts."
        )
    return vectors


def of_unit_length(vectors: Floats) -> Floats:
    """Divide each row by its Euclidean length, shape [n_vectors, n_dimensions]. A zero vector stays zero.

    >>> of_unit_length(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit_vectors: Floats = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return unit_vectors
