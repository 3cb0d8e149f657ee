"""Term counts of texts, and the collection language model p(w|C)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from drillrank.likelihood.background import UNLISTED, background, log_power_sum
from drillrank.text import terms
from drillrank.vectors import added_up, word_counts

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

KAPPA = 100_000.0  # κ; from 10,000 on it matters little on the tuning questions of HotpotQA, MuSiQue and QASPER


class TermCounts:
    """tf(w, d) for a list of distinct texts, as a sparse matrix of shape (texts, vocabulary)."""

    def __init__(self, texts: Iterable[str], language: str = "english") -> None:
        self.language = language
        self.rows: dict[str, int] = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        self.counts, self.vocabulary = word_counts(terms(text, language) for text in self.rows)
        self.by_term = self.counts.transposed()
        self.lengths: Floats = self.counts.row_sums()

    def tf(self, rows: Integers, words: Sequence[str]) -> Floats:
        """Counts of the given words in the given rows, shape (rows, words)."""
        place = np.full(len(self.rows), -1)
        place[rows] = np.arange(len(rows))
        table = np.zeros((len(rows), len(words)))
        for column, word in enumerate(words):
            term = self.vocabulary.get(word)
            if term is not None:
                start, end = self.by_term.bounds[term], self.by_term.bounds[term + 1]
                places = place[self.by_term.columns[start:end]]
                wanted = places >= 0
                table[places[wanted], column] = self.by_term.data[start:end][wanted]
        return table

    def words(self) -> list[str]:
        """The vocabulary, in the order of the matrix's columns."""
        return list(self.vocabulary)

    def count_words_unknown_to(self, collection: Collection) -> Floats:
        """How many different words of each text a collection does not know, shape (texts,)."""
        foreign = np.array([not collection.knows(word) for word in self.words()])
        return added_up(self.counts.rows, foreign[self.counts.columns], len(self.rows))


class Collection(TermCounts):
    """Term counts with the collection language model.

        p(w|C) = (cf(w) + κ p(w|English)) / (|C| + κ)

    General English, or another language, stands in for κ words of text: it decides where the collection is small, and
    fades where it is large. A word that neither knows has the probability `unseen`; p(w|C) adds up to 1 over the words
    of both and one unseen word.
    """

    def __init__(
        self, texts: Iterable[str] = (), saved: Mapping[str, int] | None = None, language: str = "english"
    ) -> None:
        """Count the texts; or take cf(w) of texts that are not at hand."""
        super().__init__(texts, language)
        if saved is None:
            self._frequencies: Floats = self.counts.column_sums()
        else:
            self.vocabulary = {word: column for column, word in enumerate(saved)}
            self.counts = replace(self.counts, width=len(saved))
            self.by_term = self.counts.transposed()
            self._frequencies = np.array(list(saved.values()), dtype=np.float64)
        frequencies, general = self._frequencies, background(language)
        listed = np.array([general.get(word, 0.0) for word in self.words()])
        is_listed = listed > 0
        unlisted_words = len(listed) - int(is_listed.sum())
        self._scale = KAPPA / (frequencies.sum() + KAPPA * (1 + UNLISTED * (unlisted_words + 1)))
        self.probabilities: Floats = (frequencies / KAPPA + np.where(is_listed, listed, UNLISTED)) * self._scale
        self.unseen = float(UNLISTED * self._scale)
        self._listed_here: Floats = listed[is_listed] * self._scale

    def frequencies(self) -> dict[str, int]:
        """cf(w) of every word, in the order of the vocabulary."""
        return dict(zip(self.words(), map(int, self._frequencies.tolist()), strict=True))

    def probability(self, words: Sequence[str]) -> Floats:
        """p(w|C), shape (words,)."""
        general = background(self.language)
        known = [self.vocabulary.get(word) for word in words]
        return np.array(
            [
                general.get(word, UNLISTED) * self._scale if term is None else self.probabilities[term]
                for word, term in zip(words, known, strict=True)
            ]
        )

    def knows(self, word: str) -> bool:
        """Whether p(w|C) counts the word among its own, and not as unseen."""
        return word in self.vocabulary or word in background(self.language)

    def log_power_sum(self, power: float) -> float:
        """Log of Σ p(w|C)^power over all words that the model knows and one unseen word."""
        own = np.logaddexp.reduce(power * np.log(np.append(self.probabilities, self.unseen)))
        everywhere = log_power_sum(power, self.language) + power * np.log(self._scale)
        top = max(own, everywhere)
        elsewhere = np.exp(everywhere - top) - np.sum(np.exp(power * np.log(self._listed_here) - top))
        return float(top + np.log(np.exp(own - top) + max(elsewhere, 0.0)))
