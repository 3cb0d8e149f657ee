"""Postings and term statistics on disk, and BM25 from them.

Passages are numbered, and stand in blocks of 16,384 numbers. A row for each term of a block lists which of its passages
hold the term, and how often. What is added extends the rows of the last block, so that adding costs the same however
many there are; numbers that were given back cost nothing. SQLite's FTS5 has such lists, too, but shows them row by row
and ranks by its own formula, for which it took ten times as long where questions hold common words.
"""

from __future__ import annotations

import math
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from struct import Struct
from typing import Any

import numpy as np
import numpy.typing as npt

from drillrank.vectors import CollectionStatistics, added_up

Numbers = npt.NDArray[np.integer[Any]]
Floats = npt.NDArray[np.float64]
Unit = tuple[int, Sequence[str], bool]
"""A passage to count: its number, its words, and whether it counts for p(w|C), as the only one with its text."""

_BITS = 14
_SIZE = 1 << _BITS
_ENTRY = np.dtype([("place", "<u2"), ("count", "u1")])
_PACK = Struct("<HB").pack
_MOST = 255  # a larger count has several entries
_LENGTH = np.dtype("<u4")  # one more than the words of a passage; 0 where there is none
_EXTEND = """INSERT INTO postings VALUES (0, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
    holding = holding + excluded.holding, occurrences = occurrences + excluded.occurrences,
    entries = CAST(entries || excluded.entries AS BLOB)"""
_OF_TERM = "WHERE level = 0 AND block = ? AND term = ?"


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """How often passages of one block hold the words of a query.

    Attributes:
        numbers: Of the passages, rising, shape (passages,).
        lengths: How many words each has, shape (passages,).
        words: Of the query, in order, repeated ones too.
        collection: Statistics of the whole corpus, for these words alone.
        mean_length: Words of a passage, over the whole corpus.
    """

    numbers: Numbers
    lengths: Numbers
    words: Sequence[str]
    collection: CollectionStatistics
    mean_length: float
    _entries: dict[str, npt.NDArray[np.void]]

    def tf(self, word: str) -> Floats:
        """How often each passage holds a word of the query, shape (passages,)."""
        entries = self._entries[word]
        return added_up(entries["place"], entries["count"], _SIZE).take(self.numbers & (_SIZE - 1))


@dataclass(frozen=True, slots=True, eq=False)
class DocumentCounts:
    """How often the passages of some documents hold the words of a query.

    Attributes:
        ids: Of the documents, in the order of the corpus.
        words: Of the query, in order, repeated ones too.
        entries: Of each word, which passages hold it, by their places, and how often.
        lengths: Words of each passage, shape (passages,).
        section_of: The page or section of each passage.
        document_of: The document of each page or section.
        paged: Whether a document has pages, shape (documents,).
        beginnings: The first characters of each document.
        language: Whose stemmer words went through.
    """

    ids: Sequence[str]
    words: Sequence[str]
    entries: Sequence[tuple[Numbers, Floats]]
    lengths: Floats
    section_of: Numbers
    document_of: Numbers
    paged: npt.NDArray[np.bool_]
    beginnings: Sequence[str]
    language: str


Scored = Iterator[tuple[Numbers, Floats]]
Scorer = Callable[[Iterable[Counts]], Scored]
"""From the passages of a search, block by block, to their numbers and scores, block by block; higher is better."""


def bm25(blocks: Iterable[Counts]) -> Scored:
    """BM25 with Lucene's inverse document frequency: to the last digit that of `BM25Index` over the same passages."""
    for counts in blocks:
        scores = np.zeros(len(counts.numbers), dtype=np.float32)
        norm = 1.5 * (0.25 + 0.75 * counts.lengths / counts.mean_length)  # k1 = 1.5, b = 0.75
        for word in counts.words:
            if holding := counts.collection.holding.get(word):
                idf = np.float32(math.log(1 + (len(counts.collection) - holding + 0.5) / (holding + 0.5)))
                tf = counts.tf(word)
                scores += (float(idf) * (tf / (norm + tf))).astype(np.float32)
        yield counts.numbers, scores.astype(np.float64)


def counts_of(database: sqlite3.Connection, words: Sequence[str], among: Numbers | None = None) -> Iterator[Counts]:
    """Counts of the passages that hold a word, or of those with these numbers."""
    collection = statistics(database, words)
    [length] = database.execute("SELECT total(words) FROM blocks WHERE level = 0").fetchone()
    mean_length = max(length, 1) / max(len(collection), 1)
    for block, stored in database.execute("SELECT block, lengths FROM blocks WHERE level = 0 ORDER BY block"):
        entries = {word: _entries(database, block, word) for word in words}
        wanted = np.zeros(_SIZE, dtype=bool)
        if among is None:
            for some in entries.values():
                wanted[some["place"]] = True
        else:
            wanted[among[among >> _BITS == block] & (_SIZE - 1)] = True
        [places] = wanted.nonzero()
        if len(places):
            lengths = np.frombuffer(stored, _LENGTH)[places] - 1
            yield Counts((block << _BITS) + places, lengths, words, collection, mean_length, entries)


def statistics(database: sqlite3.Connection, words: Sequence[str] | None = None) -> CollectionStatistics:
    """Of all passages; of these words alone, if they are given."""
    [texts] = database.execute("SELECT total(units) FROM blocks WHERE level = 0").fetchone()
    query = """SELECT term, sum(holding) AS held, sum(occurrences) FROM postings
        WHERE level = 0 {} GROUP BY term HAVING held > 0"""
    of_word = "" if words is None else "AND block IN (SELECT block FROM blocks) AND term = ?"
    keys = [()] if words is None else [(word,) for word in dict.fromkeys(words)]
    rows = [row for key in keys for row in database.execute(query.format(of_word), key)]
    holding, occurrences = {term: held for term, held, _ in rows}, {term: times for term, _, times in rows}
    return CollectionStatistics(int(texts), holding, occurrences)


def add(database: sqlite3.Connection, units: Iterable[Unit]) -> None:
    """Count passages whose numbers rise and are new."""
    for block, lengths, terms in _counted(units):
        _change_lengths(database, block, lengths)
        database.executemany(_EXTEND, ((block, term, *terms[term]) for term in sorted(terms)))


def discard(database: sqlite3.Connection, units: Iterable[Unit]) -> None:
    """Take passages out again; their numbers rise."""
    change = "UPDATE postings SET holding = holding - ?, occurrences = occurrences - ?, entries = ?"
    for block, lengths, terms in _counted(units):
        _change_lengths(database, block, dict.fromkeys(lengths, 0))
        gone = np.bincount(list(lengths), minlength=_SIZE) > 0
        for term, (holding, occurrences, _) in terms.items():
            entries = _entries(database, block, term)
            kept = entries[~gone[entries["place"]]].tobytes()
            database.execute(f"{change} {_OF_TERM}", (holding, occurrences, kept, block, term))
            database.execute(f"DELETE FROM postings {_OF_TERM} AND holding = 0 AND occurrences = 0", (block, term))


def _entries(database: sqlite3.Connection, block: int, term: str) -> npt.NDArray[np.void]:
    row = database.execute(f"SELECT entries FROM postings {_OF_TERM}", (block, term)).fetchone()
    return np.frombuffer(row[0] if row else b"", _ENTRY)


def _counted(units: Iterable[Unit]) -> Iterator[tuple[int, dict[int, int], dict[str, list[Any]]]]:
    """Of each block, what stands for these passages among its lengths, and what its row of each term gains."""
    for block, of_block in groupby(units, lambda unit: unit[0] >> _BITS):
        lengths, terms = dict[int, int](), dict[str, list[Any]]()
        for number, words, distinct in of_block:
            place = number & (_SIZE - 1)
            lengths[place] = len(words) + 1
            for term, count in Counter(words).items():
                row = terms.setdefault(term, [0, 0, b""])
                row[0] += 1
                row[1] += count * distinct
                row[2] += _PACK(place, _MOST) * (count // _MOST) + _PACK(place, count % _MOST)
        yield block, lengths, terms


def _change_lengths(database: sqlite3.Connection, block: int, changed: dict[int, int]) -> None:
    row = database.execute("SELECT lengths FROM blocks WHERE level = 0 AND block = ?", (block,)).fetchone()
    lengths = np.frombuffer(row[0], _LENGTH).copy() if row else np.zeros(_SIZE, _LENGTH)
    lengths[list(changed)] = list(changed.values())
    units = int(np.count_nonzero(lengths))
    values = (block, units, int(lengths.sum()) - units, lengths.tobytes())
    database.execute("INSERT OR REPLACE INTO blocks VALUES (0, ?, ?, ?, ?)", values)
