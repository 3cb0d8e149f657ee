"""The embedded language model: unigram query likelihood with Dirichlet smoothing.

    p(w|d) = (tf(w, d) + μ p(w|C)) / (|d| + μ)          Zhai & Lafferty (2001); query likelihood: Ponte & Croft (1998)
    p(w|c) = mean over the documents d of a path c of p(w|d)
    p(w|C) = (cf(w) + κ p(w|English)) / (|C| + κ)

Only the documents of a prompt count. Instructions, prefixes and demonstrations have no effect. A temperature acts on
each document's distribution, p(w|d)^(1/T) / Σ_v p(v|d)^(1/T), before the mean.

General English, or another language, counts as κ words of the collection: it dominates a small collection, and fades in
a large one. The candidates of one question are a poor collection, because retrieval chose them by the question's words,
so these words look common. The counts are part of the package, so that scores do not depend on other packages: the
frequencies of pyspellchecker 0.9.1 (MIT licence), which `tools/stems.py` added up over words with the same stem. For
other languages, only common stems are listed.
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


UNSAVED = "<fitted and not saved>"  # in place of a directory
FILE = "unigram.json"
FORMAT, VERSION = "drillrank unigram", 1
LISTED = {"english", "dutch", "french", "german", "italian", "portuguese", "russian", "spanish"}
UNLISTED = 1e-7  # probability of a word that the list lacks, such as most names; rarer listed ones count as such
KAPPA = 100_000.0  # κ; from 10,000 on it matters little on the tuning questions of HotpotQA, MuSiQue and QASPER
_NOTHING = TruncatableText("")  # the document of a prompt without documents: only the collection speaks


class UnigramModel(LanguageModel):
    """Dirichlet-smoothed unigram model: exact, instant, no download. It ignores synonyms and word order.

    Scores are natural log-probabilities of the target's stemmed words. p(w|C) comes from general English and, after
    `fit`, from the fitted texts. Without `fit`, it comes from the documents for the same target in the same call.

    Args:
        mu: μ, the weight of the collection in words. A larger μ makes the length of a passage matter less. Zhai &
            Lafferty find 500 to 10,000 for long documents; passages of about 100 words need less.
        language: Language of the Snowball stemmer, or `"none"`: one of `drillrank.text.LANGUAGES`. Chinese, Japanese
            and other scripts without spaces are recognized by their characters with every language.

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
        self.collection: CollectionModel | None = None  # p(w|C), once fitted
        self._directory: str | None = None  # where this collection is saved

    @classmethod
    def load(cls, directory: str, mu: float | None = None, language: str | None = None) -> UnigramModel:
        """Return the model that `save` wrote; `"unigram:<directory>"` names it for `load_language_model`.

        A file that has not changed is read once. `mu` replaces the saved μ.

        Raises:
            InvalidInput: Nothing is saved there, the file cannot be used or is of another language than `language`, or
                `mu` is not positive.
        """
        folder = Path(directory).expanduser().absolute()
        try:
            state = (folder / FILE).stat()
        except (OSError, ValueError) as cause:
            raise InvalidInput(
                f"No unigram model is saved in {directory!r:.200}: {cause!s:.200}. "
                "Save one with UnigramModel().fit(texts).save(directory)."
            ) from cause
        saved_mu, collection = _read(folder / FILE, state.st_mtime_ns, state.st_size)
        if language not in (None, collection.language):
            raise InvalidInput(
                f"The unigram model in {directory!r:.200} was fitted on {collection.language}, got language="
                f"{language!r:.200}. Remove language."
            )
        model = cls(saved_mu if mu is None else mu, collection.language)
        model.collection, model.wants_fit, model._directory = collection, False, str(folder)
        return model

    def save(self, directory: str | os.PathLike[str]) -> str:
        """Write μ and the collection's word counts, not its texts, as JSON, and return the model's specification.

        Raises:
            InvalidInput: The model was not fitted, or the directory cannot be written.

        >>> from tempfile import TemporaryDirectory
        >>> from drillrank import load_language_model
        >>> with TemporaryDirectory() as directory:
        ...     spec = UnigramModel().fit(["The Rhine is a river."]).save(directory)
        ...     load_language_model(spec).spec == spec == f"unigram:{directory}"
        True
        """
        if self.collection is None:
            raise InvalidInput('The model was not fitted, so it cannot be saved. Call fit(texts), or use "unigram".')
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
        """`"unigram"`, or `"unigram:<directory>"` once fitted and saved; in between a name that cannot be loaded."""
        return "unigram" if self.collection is None else f"unigram:{self._directory or UNSAVED}"

    @property
    def options(self) -> dict[str, Any]:
        """Option `mu`, and `language` if it is not English."""
        return {"mu": self.mu} | ({} if self.language == "english" else {"language": self.language})

    def fit(self, texts: Iterable[str] | CollectionStatistics) -> Self:
        """Take p(w|C) from these texts, each distinct one once, and index them; or from their statistics alone.

        Scoring an indexed text needs no tokenization. A new `fit` replaces the statistics.

        Raises:
            InvalidInput: An item is not a string, or the statistics are of another language.
        """
        if not isinstance(texts, CollectionStatistics):
            self.collection = CollectionModel.of(check_texts(texts), self.language)
        elif texts.language == self.language:
            self.collection = CollectionModel(texts.occurrences, self.language)
        else:
            raise InvalidInput(
                f"The model's language is {self.language}, but the words were counted as {texts.language}. Use one."
            )
        self.wants_fit, self._directory = False, None
        return self

    def first_tokens(self, text: str, count: int) -> str:
        """Return the text up to the end of its word number `count`. Punctuation does not count.

        >>> UnigramModel().first_tokens("Who, me? Yes, you!", 3)
        'Who, me? Yes'
        """
        return _first_words(text, count)

    def document_log_probs(self, target: str, texts: Sequence[str], /) -> Floats:
        """Return log p(w|d) of the target's words under each text alone, shape (texts, words).

        >>> model = UnigramModel().fit(["The Rhine is a river.", "Basel is a town."])
        >>> model.document_log_probs("a river", ["Basel is a town.", "The Rhine is a river."]).argmax(axis=0).tolist()
        [0, 1]
        """
        return self._document_log_probs(terms(target, self.language), texts, 1.0)[0]

    def log_likelihood_batch(
        self, requests: Sequence[Request], temperature: float, include_eos: bool
    ) -> list[Likelihood]:
        """Compute the log-probabilities of the targets' words. Requests with one target are a collection."""
        if include_eos:
            raise InvalidInput("The unigram model has no end-of-sequence token. Remove include_eos=True.")
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
            likelihoods = map(Likelihood, repeat(of_target), log_probs, totals, cut, matched.tolist())
            results.update(zip(positions, likelihoods, strict=True))
        return [results[position] for position in range(len(requests))]

    def _document_log_probs(
        self, of_target: list[str], texts: Sequence[str], temperature: float
    ) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Return log p(w|d), shape (texts, words), and True for texts with one of the words, shape (texts,)."""
        language, collection = self.language, self.collection
        distinct = dict.fromkeys(texts)
        new = [text for text in distinct if text not in collection.rows] if collection else list(distinct)
        tokens = [terms(text, language) for text in new]
        counted = list(map(Counter, tokens))
        tf = np.array([[count[word] for word in of_target] for count in counted], dtype=np.float64)
        tf = tf.reshape(len(new), len(of_target))
        lengths = np.array(list(map(len, tokens)), dtype=np.float64)
        if collection is None:
            collection = CollectionModel(Counter(chain.from_iterable(tokens)), language)
        else:  # each word that only the document has gets the share of an unseen word, so that the sum stays 1
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


class CollectionModel:
    """Language model of the collection, p(w|C).

    A word that is neither in the collection nor in the language's list has the probability `unseen`. p(w|C) adds up to
    1 over the words of both and one unseen word.

    Attributes:
        frequencies: cf(w), the number of occurrences of each word.
        language: Language of the list of words.
        rows: Row of each indexed text.
        unseen: Probability of an unseen word.
    """

    _columns: Mapping[str, int]  # of the indexed texts, as the next two
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
    def of(cls, texts: Iterable[str], language: str) -> CollectionModel:
        """Count each distinct text once, and index the counts by text and word."""
        rows = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        counts, columns = word_counts(terms(text, language) for text in rows)
        collection = cls(dict(zip(columns, map(int, counts.column_sums().tolist()), strict=True)), language)
        collection.rows = rows
        collection._columns, collection._by_word, collection._lengths = columns, counts.transposed(), counts.row_sums()
        return collection

    def counts_of(self, indexed: Sequence[str], of_target: Sequence[str]) -> tuple[Floats, Floats]:
        """Return the counts of words in indexed texts, shape (texts, words), and their lengths, shape (texts,)."""
        rows = np.array([self.rows[text] for text in indexed])
        table_row = np.full(len(self.rows), -1)  # of each indexed text; -1 if it is not in the table
        table_row[rows] = np.arange(len(rows))
        table = np.zeros((len(rows), len(of_target)))
        for column, word in enumerate(of_target):
            if (term := self._columns.get(word)) is not None:
                start, end = self._by_word.bounds[term], self._by_word.bounds[term + 1]
                table_rows = table_row[self._by_word.columns[start:end]]
                is_in_table = table_rows >= 0
                table[table_rows[is_in_table], column] = self._by_word.data[start:end][is_in_table]
        return table, self._lengths[rows]

    def probability(self, of_words: Iterable[str]) -> Floats:
        """Return p(w|C), shape (words,)."""
        cf, general = self.frequencies, self._general
        return self._scale * np.array([cf.get(word, 0) / KAPPA + general.get(word, UNLISTED) for word in of_words])

    def knows(self, word: str) -> bool:
        """Return True unless the word is unseen."""
        return word in self.frequencies or word in self._general

    def log_power_sums(self, counts: Iterable[Mapping[str, int]], mu: float, power: float) -> Floats:
        """Return log Σ (tf(w, d) + μ p(w|C))^power of each document, over seen words, its own words, and one unseen."""
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
        seen_words = [*self._general, *sorted(self.frequencies.keys() - self._general.keys())]  # sums never vary
        logs: Floats = np.log(np.append(self.probability(seen_words), self.unseen))
        return logs


@lru_cache(maxsize=4)
def background(language: str = "english") -> Mapping[str, float]:
    """Return p(w|English), or that of another language: the probability of each listed stem. The sum is 1.

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
def _read(path: Path, _modified: int, _size: int) -> tuple[float, CollectionModel]:
    """Read μ and the collection from a file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as cause:
        raise InvalidInput(f"{str(path)!r:.200} is not a saved unigram model: {cause!s:.200}. Save one.") from cause
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InvalidInput(f"{str(path)!r:.200} is not a saved unigram model. Save one with UnigramModel.save.")
    for name, expected in (("version", VERSION), ("analyzer", ANALYZER)):
        if content.get(name) != expected:
            raise InvalidInput(
                f"{str(path)!r:.200} has {name} {content.get(name)!r:.200}, but this drillrank reads {expected}. Fit "
                "and save the model again."
            )
    mu: Any = content.get("mu")
    counts: Any = content.get("counts")
    language = content.get("language")
    are_counts = isinstance(counts, dict) and all(type(count) is int and 0 < count < 2**53 for count in counts.values())
    if type(mu) not in (int, float) or language not in LANGUAGES or not are_counts:
        raise InvalidInput(
            f"{str(path)!r:.200} is damaged: mu must be a number, language a known one, and counts positive whole "
            "numbers by word. Fit and save the model again."
        )
    return float(mu), CollectionModel(counts, str(language))


def documents_of(requests: Sequence[Request]) -> tuple[list[str], list[int], list[int]]:
    """Return the documents of all prompts, truncated to their budgets. A prompt without any gets an empty one.

    Returns:
        Texts of the documents, number of documents of each prompt, and number of words truncated from each prompt.
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
