"""The embedded language model: unigram query likelihood with Dirichlet smoothing.

    p(w|d) = (tf(w, d) + μ p(w|C)) / (|d| + μ)          Zhai & Lafferty (2001); query likelihood: Ponte & Croft (1998)
    p(w|c) = mean over the documents d of a path c of p(w|d)

Only the documents of a prompt are evidence: instructions, prefixes and demonstrations say nothing about w. A
temperature acts on each document's distribution, p(w|d)^(1/T) / Σ_v p(v|d)^(1/T), before the mean.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import islice, repeat
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from drillrank.collection_statistics import CollectionStatistics
from drillrank.errors import InvalidInput
from drillrank.likelihood.base import LanguageModel, Likelihood, Request, check_texts
from drillrank.likelihood.budget import allot
from drillrank.likelihood.collection import Collection, Floats, Integers, TermCounts
from drillrank.likelihood.saved import read_collection, write_collection
from drillrank.prompts import Evidence
from drillrank.text import check_language, find_words, terms, words

if TYPE_CHECKING:
    from typing_extensions import Self

UNSAVED = "<fitted and not saved>"  # in the place of a directory
_NOTHING = Evidence("")  # the document of a prompt without documents: only the collection speaks


class UnigramModel(LanguageModel):
    """Dirichlet-smoothed unigram model: exact, instant, no download; knows no synonyms and no word order.

    Scores are natural log-probabilities of the target's stemmed words. p(w|C) comes from general English and, after
    `fit`, from the fitted texts; without it, from the documents offered for the same target in the same call.

    Args:
        mu: μ, the weight of the collection in words: larger trusts long passages more evenly. Zhai & Lafferty find
            500 to 10,000 for long documents; passages of about 100 words want less.
        language: Whose Snowball stemmer words go through, or `"none"`: one of `drillrank.text.LANGUAGES`. Chinese,
            Japanese and other scripts without spaces are told by their characters, whatever it is.

    Raises:
        InvalidInput: `mu` is not positive, or the language is unknown.

    >>> model = UnigramModel()
    >>> river, town = model.log_likelihood([("The Rhine is a river.", "a river"), ("Basel is a town.", "a river")])
    >>> river.tokens
    ['a', 'river']
    >>> river.total > town.total
    True
    """

    def __init__(self, mu: float = 300.0, language: str = "english") -> None:
        if not isinstance(mu, int | float) or not 1e-6 <= mu < math.inf:
            raise InvalidInput(f"mu must be a positive number of words, not {mu!r}.")
        self.mu = float(mu)
        self._language = check_language(language)
        self._collection: Collection | None = None
        self._directory: str | None = None  # where this collection is saved

    @classmethod
    def load(cls, directory: str, mu: float | None = None, language: str | None = None) -> UnigramModel:
        """The model that `save` wrote; `"unigram:<directory>"` names it for `load_language_model`.

        A file that has not changed is read once. `mu` takes the place of the saved μ.

        Raises:
            InvalidInput: nothing is saved there, the file cannot be used or is of another language than the one that is
                asked for, or `mu` is not positive.
        """
        saved_mu, collection = read_collection(directory)
        if language not in (None, collection.language):
            raise InvalidInput(
                f"The unigram model in {directory!r} was fitted on {collection.language}: not {language!r}."
            )
        model = cls(saved_mu if mu is None else mu, collection.language)
        model._collection = collection
        model._directory = str(Path(directory).expanduser().absolute())
        return model

    def save(self, directory: str | os.PathLike[str]) -> str:
        """Write μ and the collection's word counts, not its texts; the specification that loads them again.

        Raises:
            InvalidInput: the model has not been fitted, or the directory cannot be written.

        >>> from tempfile import TemporaryDirectory
        >>> from drillrank import load_language_model
        >>> with TemporaryDirectory() as directory:
        ...     spec = UnigramModel().fit(["The Rhine is a river."]).save(directory)
        ...     load_language_model(spec).spec == spec == f"unigram:{directory}"
        True
        """
        if self._collection is None:
            raise InvalidInput('There is nothing to save before fit(texts): "unigram" names an unfitted model.')
        self._directory = write_collection(directory, self.mu, self._collection)
        return self.spec

    @property
    def language(self) -> str:
        """Whose stemmer words go through."""
        return self._language

    @property
    def reads_instructions(self) -> bool:
        """False: instructions, prefixes and demonstrations say nothing about a word's probability."""
        return False

    @property
    def spec(self) -> str:
        """`"unigram"`; once fitted and saved `"unigram:<directory>"`; in between a name that cannot be loaded."""
        if self._collection is None:
            return "unigram"
        return f"unigram:{UNSAVED if self._directory is None else self._directory}"

    @property
    def options(self) -> dict[str, Any]:
        """The option `mu`, and `language` where it is not English."""
        return {"mu": self.mu} | ({} if self.language == "english" else {"language": self.language})

    def fit(self, texts: Iterable[str] | CollectionStatistics) -> Self:
        """Take p(w|C) from these texts, each distinct one once, and index them; or from their statistics alone.

        Scoring an indexed text needs no tokenisation. A new `fit` replaces the statistics.

        Raises:
            InvalidInput: an item is not a string, or the statistics are of another language.
        """
        if isinstance(texts, CollectionStatistics):
            if texts.language != self.language:
                raise InvalidInput(f"The model is {self.language}, and the words were counted as {texts.language}.")
            self._collection = Collection(saved=texts.occurrences, language=self.language)
        else:
            self._collection = Collection(check_texts(texts), language=self.language)
        self._directory = None
        return self

    @property
    def wants_fit(self) -> bool:
        """True until `fit` has been called."""
        return self._collection is None

    def first_tokens(self, text: str, count: int) -> str:
        """The text up to the end of its word number `count`; punctuation is no word.

        >>> UnigramModel().first_tokens("Who, me? Yes, you!", 3)
        'Who, me? Yes'
        """
        return text if _count_words(text) <= count else _first_words(text, count)

    def document_log_probs(self, target: str, texts: Sequence[str], /) -> Floats:
        """Log p(w|d) of the target's words under each text alone, shape (texts, words).

        >>> model = UnigramModel().fit(["The Rhine is a river.", "Basel is a town."])
        >>> model.document_log_probs("a river", ["Basel is a town.", "The Rhine is a river."]).argmax(axis=0).tolist()
        [0, 1]
        """
        asked = terms(target, self.language)
        collection = self._collection or Collection(texts, language=self.language)
        models = _DocumentModels(collection, texts, self.mu)
        log_probs: Floats = models.log_probs(asked, models.tf(asked))[models.rows]
        return log_probs

    def _log_likelihood(self, requests: Sequence[Request], temperature: float, include_eos: bool) -> list[Likelihood]:
        if include_eos:
            raise InvalidInput("The unigram model has no end-of-sequence token: leave include_eos out.")
        if len(set(map(attrgetter("target"), requests))) == 1:
            return self._one_target(requests[0].target, requests, temperature)
        by_target: dict[str, list[int]] = {}
        for position, request in enumerate(requests):
            by_target.setdefault(request.target, []).append(position)
        results: list[Likelihood] = [None] * len(requests)  # type: ignore[list-item]  # every place is filled below
        for target, positions in by_target.items():
            likelihoods = self._one_target(target, [requests[i] for i in positions], temperature)
            for position, likelihood in zip(positions, likelihoods, strict=True):
                results[position] = likelihood
        return results

    def _one_target(self, target: str, requests: Sequence[Request], temperature: float) -> list[Likelihood]:
        asked = terms(target, self.language)
        documents = Documents.of(requests)
        collection = self._collection or Collection(documents.texts, language=self.language)
        models = _DocumentModels(collection, documents.texts, self.mu)
        tf = models.tf(asked)
        matched = (tf.max(axis=1, initial=0.0) > 0)[models.rows]
        log_probs = models.log_probs(asked, tf) / temperature
        if temperature != 1:
            log_probs -= models.log_normalizers(temperature)[:, None]
        log_probs = log_probs[models.rows]
        if len(log_probs) > len(requests):
            starts = np.cumsum([0, *documents.sizes[:-1]])
            log_probs = np.logaddexp.reduceat(log_probs, starts) - np.log(documents.sizes)[:, None]
            matched = np.logical_or.reduceat(matched, starts)
        totals = log_probs.sum(axis=1).tolist()
        return list(map(Likelihood, repeat(asked), log_probs, totals, documents.cut, matched.tolist()))


class _DocumentModels:
    """p(w|d) of the distinct documents of a call: indexed ones from the collection, the others counted now.

    `rows` holds, for each text given, its row in the arrays of this object.
    """

    def __init__(self, collection: Collection, texts: Sequence[str], mu: float) -> None:
        self._mu = mu
        self._collection = collection
        self._texts = texts
        indexed = [collection.rows.get(text, -1) for text in texts]
        distinct, self.rows = np.unique(indexed, return_inverse=True)
        self._counted: list[tuple[TermCounts, Integers]] = [(collection, distinct)]
        foreign_words: Floats = np.zeros(0)
        if -1 in indexed:
            new = TermCounts((text for text, row in zip(texts, indexed, strict=True) if row < 0), collection.language)
            known = distinct[distinct >= 0]
            self._counted = [(collection, known), (new, np.arange(len(new.rows)))]
            places = {text: len(known) + row for text, row in new.rows.items()}
            self.rows = np.array([places.get(text, row - 1) for text, row in zip(texts, self.rows, strict=True)])
            foreign_words = new.count_words_unknown_to(collection)
        self._mass: Floats = mu + np.concatenate([counts.lengths[rows] for counts, rows in self._counted])
        # Each word that only the document has takes the unseen class's share: the sum over all words stays 1.
        self._mass[len(self._mass) - len(foreign_words) :] += mu * collection.unseen * foreign_words

    def tf(self, words: Sequence[str]) -> Floats:
        """How often each document holds each word, shape (documents, words)."""
        return np.concatenate([counts.tf(rows, words) for counts, rows in self._counted])

    def log_probs(self, words: Sequence[str], tf: Floats) -> Floats:
        """Log p(w|d), shape (documents, words)."""
        log_probs: Floats = np.log((tf + self._mu * self._collection.probability(words)) / self._mass[:, None])
        return log_probs

    def log_normalizers(self, temperature: float) -> Floats:
        """Log of Σ p(w|d)^(1/T) over the collection's words and the document's own, and one unseen word."""
        power = 1 / temperature
        text_of_row = dict(zip(self.rows.tolist(), self._texts, strict=True))
        own = TermCounts((text_of_row[row] for row in range(len(self._mass))), self._collection.language)
        words = own.words()
        listed = np.array([self._collection.knows(word) for word in words])
        everywhere = self._mu * self._collection.probability(words)
        counts = own.counts
        own_words = power * np.log(counts.data + everywhere[counts.columns])
        as_background = power * np.log(everywhere[counts.columns])
        all_background = self._collection.log_power_sum(power) + power * math.log(self._mu)
        scale = np.full(len(self._mass), all_background)  # keeps small temperatures from underflowing
        np.maximum.at(scale, counts.rows, own_words)
        change = np.exp(own_words - scale[counts.rows])
        change -= np.where(listed[counts.columns], np.exp(as_background - scale[counts.rows]), 0)
        sums = np.bincount(counts.rows, weights=change, minlength=len(scale)) + np.exp(all_background - scale)
        log_normalizers: Floats = scale + np.log(sums) - power * np.log(self._mass)
        return log_normalizers


class Documents(NamedTuple):
    """The documents of all requests in one flat list, shortened to their budgets; at least one each."""

    texts: list[str]
    sizes: list[int]
    cut: list[int]

    @classmethod
    def of(cls, requests: Sequence[Request]) -> Documents:
        """The documents of the requests' prompts, in order; an empty one stands for none."""
        flat: list[Evidence] = []
        sizes: list[int] = []
        for request in requests:
            before = len(flat)
            for part in request.prompt:
                if part.__class__ is Evidence:
                    flat.append(part)  # noqa: PERF401  # a plain loop is the fastest for three parts
            if len(flat) == before:
                flat.append(_NOTHING)
            sizes.append(len(flat) - before)
        limits = {*map(attrgetter("max_tokens"), requests), *map(attrgetter("max_tokens"), flat)}
        if limits == {None}:
            return cls(list(map(attrgetter("text"), flat)), sizes, [0] * len(requests))
        waiting = iter(flat)
        shortened = [_shortened(request, list(islice(waiting, n))) for request, n in zip(requests, sizes, strict=True)]
        return cls([text for texts, _ in shortened for text in texts], sizes, [cut for _, cut in shortened])


def _shortened(request: Request, parts: Sequence[Evidence]) -> tuple[list[str], int]:
    lengths = [_count_words(part.text) for part in parts]
    room = request.max_tokens
    if room is not None:
        room -= sum(_count_words(part) for part in request.prompt if isinstance(part, str))
    kept = allot(lengths, [part.max_tokens for part in parts], room)
    texts = [
        part.text if keep == length else _first_words(part.text, keep)
        for part, length, keep in zip(parts, lengths, kept, strict=True)
    ]
    return texts, sum(lengths) - sum(kept)


@lru_cache(maxsize=10_000)  # a search puts the same documents and instructions into many prompts
def _count_words(text: str) -> int:
    return len(words(text))


def _first_words(text: str, count: int) -> str:
    *_, last = islice(find_words(text), count)
    return text[: last.end()]
