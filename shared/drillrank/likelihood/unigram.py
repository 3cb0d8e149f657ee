"""The embedded language model: unigram query likelihood with Dirichlet smoothing.

    p(w|d) = (tf(w, d) + μ p(w|C)) / (|d| + μ)          Zhai & Lafferty (2001); query likelihood: Ponte & Croft (1998)
    p(w|c) = mean over the documents d of a path c of p(w|d)

Only the documents of a prompt are evidence: instructions, prefixes and demonstrations say nothing about w. Because
both lines are linear in the counts, a prompt is a vector of (fractional) counts and a smoothing weight:

    p(w|prompt) = e(w) + λ p(w|C),   e(w) = mean_d tf(w, d) / (|d| + μ),   λ = mean_d μ / (|d| + μ)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer
from typing_extensions import Self

from drillrank.errors import InvalidInput
from drillrank.likelihood.base import LanguageModel, Likelihood, Request, RequestLike
from drillrank.likelihood.budget import allot
from drillrank.prompts import Evidence
from drillrank.terms import WORD, terms

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_NOTHING = Evidence("")  # the document of a prompt without documents: only the collection speaks


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


class UnigramModel(LanguageModel):
    """Dirichlet-smoothed unigram model: exact, instant, no download; knows no synonyms and no word order.

    Scores are natural log-probabilities of the target's stemmed words. After `fit`, p(w|C) comes from the fitted
    texts; without it, from the documents offered for the same target in the same call.

    Args:
        mu: μ, the weight of the collection in words: larger trusts long passages more evenly. Zhai & Lafferty find
            500 to 10,000 for long documents; passages of about 100 words want less.

    Raises:
        InvalidInput: `mu` is not positive.

    >>> model = UnigramModel()
    >>> river, town = model.log_likelihood([("The Rhine is a river.", "a river"), ("Basel is a town.", "a river")])
    >>> river.tokens
    ['a', 'river']
    >>> river.total > town.total
    True
    """

    def __init__(self, mu: float = 300.0) -> None:
        if not mu > 0:
            raise InvalidInput(f"mu must be a positive number of words, not {mu!r}.")
        self.mu = float(mu)
        self._collection: Collection | None = None

    @property
    def spec(self) -> str:
        """The specification `"unigram"`."""
        return "unigram"

    @property
    def options(self) -> dict[str, Any]:
        """The option `mu`."""
        return {"mu": self.mu}

    def fit(self, texts: Iterable[str]) -> Self:
        """Take p(w|C) from these texts, and index them: scoring one of them later needs no tokenisation."""
        self._collection = Collection(texts)
        return self

    @property
    def wants_fit(self) -> bool:
        """True until `fit` has been called."""
        return self._collection is None

    def log_likelihood_lists(
        self, request_lists: Sequence[Sequence[RequestLike]], *, temperature: float = 1.0
    ) -> list[list[Likelihood]]:
        """List by list, because without `fit` each list is a collection of its own."""
        return [self.log_likelihood(requests, temperature=temperature) for requests in request_lists]

    def _log_likelihood(self, requests: Sequence[Request], temperature: float, include_eos: bool) -> list[Likelihood]:
        if include_eos:
            raise InvalidInput("The unigram model has no end-of-sequence token: leave include_eos out.")
        by_target: dict[str, list[int]] = {target: [] for target in map(attrgetter("target"), requests)}
        if len(by_target) == 1:
            return self._one_target(requests[0].target, requests, temperature)
        for position, request in enumerate(requests):
            by_target[request.target].append(position)
        results: list[Likelihood] = [None] * len(requests)  # type: ignore[list-item]  # every place is filled below
        for target, positions in by_target.items():
            likelihoods = self._one_target(target, [requests[i] for i in positions], temperature)
            for position, likelihood in zip(positions, likelihoods, strict=True):
                results[position] = likelihood
        return results

    def _one_target(self, target: str, requests: Sequence[Request], temperature: float) -> list[Likelihood]:
        words = terms(target)
        documents = _Documents.of(requests)
        collection = self._collection or Collection(documents.texts)
        evidence = _EvidenceCounts(collection, documents, self.mu)
        log_probs = np.log(evidence.of_words(words) + np.outer(evidence.background, collection.probability(words)))
        if temperature != 1:
            log_probs = log_probs / temperature - evidence.log_normalizers(temperature)[:, None]
        totals = log_probs.sum(axis=1).tolist()
        return list(map(Likelihood, repeat(words), log_probs, totals, documents.cut))


class _EvidenceCounts:
    """e(w) and λ (`background`) of each request, as in the module's docstring."""

    def __init__(self, collection: Collection, documents: _Documents, mu: float) -> None:
        distinct = dict.fromkeys(documents.texts)
        known = [text for text in distinct if text in collection.rows]
        unknown = [text for text in distinct if text not in collection.rows]
        self._collection = collection
        self._counted: list[tuple[TermCounts, Integers]] = [
            (collection, np.array([collection.rows[text] for text in known], dtype=np.int64))
        ]
        if unknown:
            self._counted.append((TermCounts(unknown), np.arange(len(unknown))))
        self._place = {text: i for i, text in enumerate(known + unknown)}
        lengths = np.concatenate([counts.lengths[rows] for counts, rows in self._counted])
        sizes = np.array(documents.sizes)
        columns = np.array([self._place[text] for text in documents.texts])
        weights = np.repeat(1 / sizes, sizes) / (lengths[columns] + mu)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        self._mixture = sparse.csr_matrix((weights, columns, starts), shape=(len(sizes), len(distinct)))
        self.background: Floats = mu * np.asarray(self._mixture.sum(axis=1), dtype=np.float64).ravel()

    def of_words(self, words: Sequence[str]) -> Floats:
        """e(w) for the given words, shape (requests, words)."""
        counted = np.concatenate([counts.tf(rows, words) for counts, rows in self._counted])
        weighted: Floats = self._mixture @ counted
        return weighted

    def log_normalizers(self, temperature: float) -> Floats:
        """Log of Σ p(w|prompt)^(1/T) over the collection's words, the unseen class and the prompt's own words."""
        power = 1 / temperature
        own = TermCounts(self._place)
        words = sorted(own.vocabulary, key=own.vocabulary.__getitem__)
        everywhere = self._collection.probability(words)
        listed = np.array([word in self._collection.vocabulary for word in words], dtype=bool)
        evidence = (self._mixture @ own.counts).tocoo()
        background = self.background[evidence.row] * everywhere[evidence.col]
        change = (evidence.data + background) ** power - np.where(listed[evidence.col], background**power, 0)
        total = np.sum(self._collection.probabilities**power) + self._collection.unseen**power
        normalizers: Floats = self.background**power * total
        normalizers += np.bincount(evidence.row, weights=change, minlength=len(normalizers))
        return np.log(normalizers)


class _Documents(NamedTuple):
    """The documents of all requests in one flat list, shortened to their budgets; at least one each."""

    texts: list[str]
    sizes: list[int]
    cut: list[int]

    @classmethod
    def of(cls, requests: Sequence[Request]) -> _Documents:
        parts = [[part for part in request.prompt if part.__class__ is Evidence] or [_NOTHING] for request in requests]
        flat = [part for evidence in parts for part in evidence]
        sizes = list(map(len, parts))
        limits = {*map(attrgetter("max_tokens"), requests), *map(attrgetter("max_tokens"), flat)}
        if limits == {None}:
            return cls(list(map(attrgetter("text"), flat)), sizes, [0] * len(requests))
        shortened = [_shortened(request, evidence) for request, evidence in zip(requests, parts, strict=True)]
        return cls([text for texts, _ in shortened for text in texts], sizes, [cut for _, cut in shortened])


def _shortened(request: Request, parts: Sequence[Evidence]) -> tuple[list[str], int]:
    ends = [[match.end() for match in WORD.finditer(part.text)] for part in parts]
    lengths = [len(words) for words in ends]
    room = request.max_tokens
    if room is not None:
        room -= sum(len(WORD.findall(part)) for part in request.prompt if isinstance(part, str))
    kept = allot(lengths, [part.max_tokens for part in parts], room)
    texts = [
        part.text if keep == len(words) else part.text[: words[keep - 1]]
        for part, words, keep in zip(parts, ends, kept, strict=True)
    ]
    return texts, sum(lengths) - sum(kept)
