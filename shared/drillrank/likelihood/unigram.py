"""The embedded language model: unigram query likelihood with Dirichlet smoothing.

    p(w|d) = (tf(w, d) + μ p(w|C)) / (|d| + μ)          Zhai & Lafferty (2001); query likelihood: Ponte & Croft (1998)
    p(w|c) = mean over the documents d of a path c of p(w|d)
    p(w|C) = (cf(w) + κ p(w|English)) / (|C| + κ)

Only the documents of a prompt are evidence: instructions, prefixes and demonstrations say nothing about w. A
temperature acts on each document's distribution, p(w|d)^(1/T) / Σ_v p(v|d)^(1/T), before the mean.

General English, or another language, stands in for κ words of the collection: it decides where the collection is small,
and fades where it is large. The candidates of one question are a poor collection: retrieval chose them because they
hold the question's words, so those look common. The counts come with the package, so that scores do not depend on what
else is installed: the frequencies of pyspellchecker 0.9.1 (MIT licence), which `tools/stems.py` added up over words
with the same stem. Of other languages, the common stems are listed.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import chain, islice, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from drillrank.data import read_table
from drillrank.errors import InvalidInput, check_number
from drillrank.files import replace_file
from drillrank.likelihood.base import LanguageModel, Likelihood, Request, check_texts
from drillrank.likelihood.tokenizer import allot
from drillrank.prompts import TruncatableText
from drillrank.text import ANALYZER, LANGUAGES, check_language, find_words, terms, words
from drillrank.vectors import CollectionStatistics, Floats, SparseMatrix, word_counts

if TYPE_CHECKING:
    from typing_extensions import Self


UNSAVED = "<fitted and not saved>"  # in the place of a directory
FILE = "unigram.json"
FORMAT, VERSION = "drillrank unigram", 1
LISTED = {"english", "dutch", "french", "german", "italian", "portuguese", "russian", "spanish"}
UNLISTED = 1e-7  # probability of a word that the list lacks, such as most names; rarer listed ones count as such
KAPPA = 100_000.0  # κ; from 10,000 on it matters little on the tuning questions of HotpotQA, MuSiQue and QASPER
_NOTHING = TruncatableText("")  # the document of a prompt without documents: only the collection speaks


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

    reads_instructions = False  # they say nothing about a word's probability
    wants_fit = True  # until `fit` has been called

    def __init__(self, mu: float = 300.0, language: str = "english") -> None:
        check_number(1e-7, mu=mu)
        self.mu = float(mu)
        self.language = check_language(language)
        self.collection: Collection | None = None  # p(w|C), once fitted
        self._directory: str | None = None  # where this collection is saved

    @classmethod
    def load(cls, directory: str, mu: float | None = None, language: str | None = None) -> UnigramModel:
        """The model that `save` wrote; `"unigram:<directory>"` names it for `load_language_model`.

        A file that has not changed is read once. `mu` takes the place of the saved μ.

        Raises:
            InvalidInput: nothing is saved there, the file cannot be used or is of another language than the one that is
                asked for, or `mu` is not positive.
        """
        folder = Path(directory).expanduser().absolute()
        try:
            state = (folder / FILE).stat()
        except (OSError, ValueError) as cause:
            raise InvalidInput(
                f"No unigram model is saved in {directory!r:.200}: {cause!s:.200}. "
                "UnigramModel().fit(texts).save(directory) saves one."
            ) from cause
        saved_mu, collection = _read(folder / FILE, state.st_mtime_ns, state.st_size)
        if language not in (None, collection.language):
            raise InvalidInput(
                f"The unigram model in {directory!r:.200} was fitted on {collection.language}: not {language!r:.200}."
            )
        model = cls(saved_mu if mu is None else mu, collection.language)
        model.collection, model.wants_fit, model._directory = collection, False, str(folder)
        return model

    def save(self, directory: str | os.PathLike[str]) -> str:
        """Write μ and the collection's word counts, not its texts, as JSON; the specification that loads them again.

        Raises:
            InvalidInput: the model has not been fitted, or the directory cannot be written.

        >>> from tempfile import TemporaryDirectory
        >>> from drillrank import load_language_model
        >>> with TemporaryDirectory() as directory:
        ...     spec = UnigramModel().fit(["The Rhine is a river."]).save(directory)
        ...     load_language_model(spec).spec == spec == f"unigram:{directory}"
        True
        """
        if self.collection is None:
            raise InvalidInput('There is nothing to save before fit(texts): "unigram" names an unfitted model.')
        folder = Path(directory).expanduser().absolute()
        content = {"format": FORMAT, "version": VERSION, "analyzer": ANALYZER, "language": self.language}
        content |= {"mu": self.mu, "counts": dict(self.collection.frequencies)}
        try:
            with replace_file(folder / FILE) as file:
                file.write(json.dumps(content).encode())
        except OSError as cause:
            raise InvalidInput(f"The unigram model cannot be saved in {str(folder)!r:.200}: {cause!s:.200}") from cause
        self._directory = str(folder)
        return self.spec

    @property
    def spec(self) -> str:
        """`"unigram"`; once fitted and saved `"unigram:<directory>"`; in between a name that cannot be loaded."""
        return "unigram" if self.collection is None else f"unigram:{self._directory or UNSAVED}"

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
        if not isinstance(texts, CollectionStatistics):
            self.collection = Collection.of(check_texts(texts), self.language)
        elif texts.language == self.language:
            self.collection = Collection(texts.occurrences, self.language)
        else:
            raise InvalidInput(f"The model is {self.language}, and the words were counted as {texts.language}.")
        self.wants_fit, self._directory = False, None
        return self

    def first_tokens(self, text: str, count: int) -> str:
        """The text up to the end of its word number `count`; punctuation is no word.

        >>> UnigramModel().first_tokens("Who, me? Yes, you!", 3)
        'Who, me? Yes'
        """
        return _first_words(text, count)

    def document_log_probs(self, target: str, texts: Sequence[str], /) -> Floats:
        """Log p(w|d) of the target's words under each text alone, shape (texts, words).

        >>> model = UnigramModel().fit(["The Rhine is a river.", "Basel is a town."])
        >>> model.document_log_probs("a river", ["Basel is a town.", "The Rhine is a river."]).argmax(axis=0).tolist()
        [0, 1]
        """
        return self._document_log_probs(terms(target, self.language), texts, 1.0)[0]

    def _log_likelihood(self, requests: Sequence[Request], temperature: float, include_eos: bool) -> list[Likelihood]:
        if include_eos:
            raise InvalidInput("The unigram model has no end-of-sequence token: leave include_eos out.")
        by_target: dict[str, list[int]] = {}
        for position, request in enumerate(requests):
            by_target.setdefault(request.target, []).append(position)
        results: dict[int, Likelihood] = {}
        for target, positions in by_target.items():
            of_target = terms(target, self.language)
            texts, sizes, cut = documents_of([requests[position] for position in positions])
            log_probs, matched = self._document_log_probs(of_target, texts, temperature)
            if len(log_probs) > len(positions):
                starts = np.cumsum([0, *sizes[:-1]])
                log_probs = np.logaddexp.reduceat(log_probs, starts) - np.log(sizes)[:, None]
                matched = np.logical_or.reduceat(matched, starts)
            totals = log_probs.sum(axis=1).tolist()
            found = map(Likelihood, repeat(of_target), log_probs, totals, cut, matched.tolist())
            results.update(zip(positions, found, strict=True))
        return [results[position] for position in range(len(requests))]

    def _document_log_probs(
        self, of_target: list[str], texts: Sequence[str], temperature: float
    ) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Log p(w|d), shape (texts, words), and whether a text holds one of the words, shape (texts,)."""
        language, collection = self.language, self.collection
        distinct = dict.fromkeys(texts)
        new = [text for text in distinct if text not in collection.rows] if collection else list(distinct)
        tokens = [terms(text, language) for text in new]
        counted = list(map(Counter, tokens))
        tf = np.array([[count[word] for word in of_target] for count in counted], dtype=np.float64)
        tf = tf.reshape(len(new), len(of_target))
        lengths = np.array(list(map(len, tokens)), dtype=np.float64)
        if collection is None:
            collection = Collection(Counter(chain.from_iterable(tokens)), language)
        else:  # each word that only the document has takes the unseen class's share: the sum over all words stays 1
            unknown = [sum(not collection.knows(word) for word in count) for count in counted]
            lengths += self.mu * collection.unseen * np.array(unknown, dtype=np.float64)
        indexed = [text for text in distinct if text in collection.rows] if len(new) < len(distinct) else []
        if indexed:
            known_tf, known_lengths = collection.counts_of(indexed, of_target)
            tf, lengths = np.concatenate([known_tf, tf]), np.concatenate([known_lengths, lengths])
        mass = lengths + self.mu
        log_probs = np.log((tf + self.mu * collection.probability(of_target)) / mass[:, None]) / temperature
        if temperature != 1:
            counted = [Counter(terms(text, language)) for text in indexed] + counted
            power = 1 / temperature
            log_probs -= (collection.log_power_sums(counted, self.mu, power) - power * np.log(mass))[:, None]
        if len(texts) > len(distinct) or (indexed and new):
            row = {text: number for number, text in enumerate([*indexed, *new])}
            rows = [row[text] for text in texts]
            log_probs, tf = log_probs[rows], tf[rows]
        return log_probs, tf.max(axis=1, initial=0.0) > 0


class Collection:
    """The collection language model p(w|C).

    A word that neither the collection nor the language's list knows has the probability `unseen`; p(w|C) adds up to 1
    over the words of both and one unseen word.

    Attributes:
        frequencies: cf(w), how often each word occurs.
        language: Whose list of words stands behind them.
        rows: The number of each text that is indexed.
        unseen: Probability of a word that is not known.
    """

    _columns: Mapping[str, int]  # of what is indexed, as are these two
    _by_word: SparseMatrix
    _lengths: Floats

    def __init__(self, frequencies: Mapping[str, int], language: str) -> None:
        self.frequencies, self.language = frequencies, language
        self.rows: dict[str, int] = {}
        self._general = background(language)
        unlisted = sum(word not in self._general for word in frequencies)
        self._scale = KAPPA / (sum(frequencies.values()) + KAPPA * (1 + UNLISTED * (unlisted + 1)))
        self.unseen = UNLISTED * self._scale

    @classmethod
    def of(cls, texts: Iterable[str], language: str) -> Collection:
        """Of texts, each distinct one once, with an index: how often a text holds a word needs no look into it."""
        rows = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        counts, columns = word_counts(terms(text, language) for text in rows)
        collection = cls(dict(zip(columns, map(int, counts.column_sums().tolist()), strict=True)), language)
        collection.rows = rows
        collection._columns, collection._by_word, collection._lengths = columns, counts.transposed(), counts.row_sums()
        return collection

    def counts_of(self, indexed: Sequence[str], of_target: Sequence[str]) -> tuple[Floats, Floats]:
        """How often each indexed text holds each word, shape (texts, words), and its words, shape (texts,)."""
        rows = np.array([self.rows[text] for text in indexed])
        location = np.full(len(self.rows), -1)
        location[rows] = np.arange(len(rows))
        table = np.zeros((len(rows), len(of_target)))
        for column, word in enumerate(of_target):
            if (term := self._columns.get(word)) is not None:
                start, end = self._by_word.bounds[term], self._by_word.bounds[term + 1]
                places = location[self._by_word.columns[start:end]]
                wanted = places >= 0
                table[places[wanted], column] = self._by_word.data[start:end][wanted]
        return table, self._lengths[rows]

    def probability(self, of_words: Iterable[str]) -> Floats:
        """p(w|C), shape (words,)."""
        cf, general = self.frequencies, self._general
        return self._scale * np.array([cf.get(word, 0) / KAPPA + general.get(word, UNLISTED) for word in of_words])

    def knows(self, word: str) -> bool:
        """Whether p(w|C) counts the word among its own, and not as unseen."""
        return word in self.frequencies or word in self._general

    def log_power_sums(self, counts: Iterable[Mapping[str, int]], mu: float, power: float) -> Floats:
        """Of each document, log of Σ (tf(w, d) + μ p(w|C))^power over the words known here, its own, and one unseen."""
        everywhere = float(np.logaddexp.reduce(power * self._logs)) + power * math.log(mu)  # of an empty document
        sums = []
        for count in counts:
            smoothed = mu * self.probability(count)
            of_document = power * np.log(np.array(list(count.values())) + smoothed)
            of_collection = power * np.log(smoothed[np.array([self.knows(word) for word in count], dtype=bool)])
            top = max(everywhere, of_document.max(initial=everywhere))  # keeps small temperatures from underflowing
            change = np.exp(of_document - top).sum() - np.exp(of_collection - top).sum()
            sums.append(top + np.log(change + np.exp(everywhere - top)))
        return np.array(sums)

    @cached_property
    def _logs(self) -> Floats:
        known = [*self._general, *sorted(self.frequencies.keys() - self._general.keys())]  # sums never vary
        logs: Floats = np.log(np.append(self.probability(known), self.unseen))
        return logs


@lru_cache(maxsize=4)
def background(language: str = "english") -> Mapping[str, float]:
    """p(w|English), or of another language: the probability of each listed stem; they add up to 1.

    A language without a list has the English one.

    >>> background()["the"] > background()["river"] > background()["cathedr"] > UNLISTED
    True
    >>> background("german")["der"] > background("german")["flucht"]
    True
    """
    if language not in LISTED:
        return background("english")
    counts = {stem: int(count) for stem, count in read_table(f"{language}_stems.tsv.gz").items()}
    total = sum(counts.values())
    return {stem: count / total for stem, count in counts.items()}


@lru_cache(maxsize=8)
def _read(path: Path, _modified: int, _size: int) -> tuple[float, Collection]:
    """μ and the collection that were saved."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as cause:
        raise InvalidInput(f"{str(path)!r:.200} is no saved unigram model: {cause!s:.200}.") from cause
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InvalidInput(f"{str(path)!r:.200} is no saved unigram model: save one with UnigramModel.save.")
    for name, known in (("version", VERSION), ("analyzer", ANALYZER)):
        if content.get(name) != known:
            raise InvalidInput(
                f"{str(path)!r:.200} has {name} {content.get(name)!r:.200}, and this drillrank reads {known}: fit and "
                "save the model again."
            )
    mu: Any = content.get("mu")
    counts: Any = content.get("counts")
    language = content.get("language")
    are_counts = isinstance(counts, dict) and all(type(count) is int and 0 < count < 2**53 for count in counts.values())
    if type(mu) not in (int, float) or language not in LANGUAGES or not are_counts:
        raise InvalidInput(
            f"{str(path)!r:.200} is damaged: mu is a number, language one that there is, counts whole numbers from 1 "
            "on by word."
        )
    return float(mu), Collection(counts, str(language))


def documents_of(requests: Sequence[Request]) -> tuple[list[str], list[int], list[int]]:
    """The documents of all prompts in one flat list, shortened to their budgets, an empty one where there is none.

    Returns:
        Their texts; how many each prompt has; and how many words of each prompt's were left out.
    """
    texts: list[str] = []
    sizes, cut = [], []
    for request in requests:
        parts = [part for part in request.prompt if isinstance(part, TruncatableText)] or [_NOTHING]
        sizes.append(len(parts))
        room, limits = request.max_tokens, [part.max_tokens for part in parts]
        if room is None and set(limits) == {None}:
            texts += [part.text for part in parts]
            cut.append(0)
            continue
        lengths = [_count_words(part.text) for part in parts]
        if room is not None:
            room -= sum(_count_words(part) for part in request.prompt if isinstance(part, str))
        fits = room is None or sum(lengths) <= room
        if fits and all(limit is None or n_words <= limit for n_words, limit in zip(lengths, limits, strict=True)):
            texts += [part.text for part in parts]
            cut.append(0)
            continue
        budgets = allot(lengths, limits, room)
        texts += [_first_words(part.text, keep) for part, keep in zip(parts, budgets, strict=True)]
        cut.append(sum(lengths) - sum(budgets))
    return texts, sizes, cut


@lru_cache(maxsize=10_000)  # a search puts the same documents and instructions into many prompts
def _count_words(text: str) -> int:
    return len(words(text))


def _first_words(text: str, count: int) -> str:
    if _count_words(text) <= count:
        return text
    *_, last = islice(find_words(text), count)
    return text[: last.end()]
