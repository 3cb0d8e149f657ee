"""First-stage retrieval in memory: TF-IDF and BM25 over a fixed list of texts."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from drillrank.errors import mute_logger
from drillrank.text import terms
from drillrank.vectors import Tfidf, added_up

Floats = npt.NDArray[np.float64]


class TextIndex(Protocol):
    """Scores every indexed text for a query; higher is better."""

    def scores(self, query: str) -> Floats:
        """Array of shape `(texts,)`."""
        ...


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
        self._size = len(texts)
        self._language = language
        self._bm25: Any = None
        tokenised = [terms(text, language) for text in texts]
        if any(tokenised):
            self._bm25 = _bm25s().BM25(method="lucene")
            self._bm25.index(tokenised, show_progress=False)

    def scores(self, query: str) -> Floats:
        """BM25 score of every text, shape `(texts,)`; 0 where no word matches, not normalised."""
        words = terms(query, self._language)
        if self._bm25 is None or not words:
            return np.zeros(self._size)
        scores: Floats = self._bm25.get_scores(words).astype(np.float64)
        return scores


@lru_cache(maxsize=1)
def _bm25s() -> Any:
    """The library, which half the users of this package do not need."""
    with mute_logger("bm25s"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="IProgress not found")  # its import of tqdm complains in notebooks
        import bm25s
    return bm25s


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
