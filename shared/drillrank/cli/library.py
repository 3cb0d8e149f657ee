"""The files of a command: read once, and the documents among them that a question is about."""

from __future__ import annotations

import sqlite3
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from drillrank.cli.cache import DocumentCache
from drillrank.cli.sources import Skipped, Source, reported
from drillrank.drilldown.evidence import MU
from drillrank.errors import DrillrankError, DrillrankWarning
from drillrank.likelihood.collection import Collection
from drillrank.retrieval import top
from drillrank.structure import Document
from drillrank.text import terms

Track = Callable[[Sequence[Source]], Iterable[Source]]
_REST = "\0"  # stands for all words that are not asked about


class Library:
    """Files as documents, through a cache.

    Args:
        sources: The files. Of several with the same content, the first counts.
        folder: Where documents are cached; None for nowhere.
        track: Goes through the sources and shows how far it is.
        language: Whose stemmer words go through.

    Attributes:
        names: Of the files that were read.
        skipped: Files of folders that were not read, and why.

    Raises:
        DrillrankError: a file that the user named cannot be read.
    """

    def __init__(
        self, sources: Sequence[Source], folder: Path | None, track: Track = iter, language: str = "english"
    ) -> None:
        self._sources = sources
        self._track = track
        self._language = language
        self._cache = DocumentCache(folder, language)
        try:
            self._read()
        except sqlite3.Error as cause:
            self._start_anew(cause)

    def close(self) -> None:
        """Give the cache back."""
        self._cache.close()

    def _read(self) -> None:
        self.skipped: list[Skipped] = []
        names: dict[int, str] = {}
        for source in self._track(self._sources):
            try:
                with reported(source):
                    id_ = self._cache.id_of(source.path)
            except DrillrankError as error:
                if source.named:
                    raise
                reason = str(error) if source.name in str(error) else f"{source.name}: {error}"
                self.skipped.append(Skipped(source.name, reason))
                continue
            if id_ in names:
                self.skipped.append(Skipped(source.name, f"{source.name} has the same content as {names[id_]}."))
            names.setdefault(id_, source.name)
        self._ids, self.names = list(names), list(names.values())

    def _start_anew(self, cause: sqlite3.Error) -> None:
        """Go on without the cache; one that is damaged is removed, so that the next command makes a new one."""
        warnings.warn(f"The cache cannot be used, all is read anew: {cause}.", DrillrankWarning, stacklevel=2)
        if isinstance(cause, sqlite3.OperationalError):  # locked, or the disk is full
            self._cache.close()
        else:
            self._cache.discard()
        self._cache = DocumentCache(None, self._language)
        self._read()

    def documents(self, question: str, limit: int) -> list[tuple[str, Document]]:
        """The names and documents with the best paragraphs by the unigram model, in the order of the files."""
        try:
            return self._documents(question, limit)
        except sqlite3.Error as cause:
            self._start_anew(cause)
            return self._documents(question, limit)

    def _documents(self, question: str, limit: int) -> list[tuple[str, Document]]:
        chosen: Sequence[int] = range(len(self._ids))
        if len(chosen) > limit:
            chosen = sorted(top(self._best_paragraphs(terms(question, self._language)), limit))
        return [(self.names[at], self._cache.document(self._ids[at])) for at in chosen]

    def _best_paragraphs(self, words: Sequence[str]) -> npt.NDArray[np.float64]:
        """Log-likelihood of the question's words under the best paragraph of each document, shape (documents,).

        The sum of `drillrank.likelihood.unigram`, over counts that are stored word by word.
        """
        lengths = self._cache.lengths(self._ids)
        bounds = np.cumsum([0, *map(len, lengths)])
        firsts = dict(zip(self._ids, bounds[:-1].tolist(), strict=True))
        mass = np.concatenate(lengths) + MU
        table = {word: np.zeros(len(mass)) for word in words}
        try:
            for word, tf in table.items():
                for id_, paragraphs, counts in self._cache.postings(self._ids, word):
                    tf[firsts[id_] + paragraphs] = counts
        except (IndexError, ValueError) as cause:
            raise sqlite3.DatabaseError("cached counts are damaged") from cause
        frequencies = {word: int(tf.sum()) for word, tf in table.items() if tf.any()}
        rest = int((mass - MU).sum()) - sum(frequencies.values())
        collection = Collection(saved={**frequencies, _REST: rest}, language=self._language)
        scores = np.zeros(len(mass))
        for word, share in zip(words, collection.probability(words), strict=True):
            scores += np.log((table[word] + MU * share) / mass)
        best = np.full(len(lengths), -np.inf)
        held = bounds[1:] > bounds[:-1]
        if held.any():
            best[held] = np.maximum.reduceat(scores, bounds[:-1][held])
        return best
