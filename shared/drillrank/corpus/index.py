"""Postings and term statistics on disk, and BM25 scores from them.

Passages have numbers. A block covers 16,384 consecutive numbers. A row for each term of a block lists which passages
contain the term, and how often. New passages extend the rows of the last block, so adding a passage costs the same
in a large corpus. Numbers of removed passages cost nothing.
"""

# SQLite's FTS5 has such lists too, but returns them row by row and ranks by its own formula. For questions with
# frequent words it took ten times as long.

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

from drillrank.vectors import CollectionStatistics, Floats, Integers, sum_by_index

IndexedUnit = tuple[int, Sequence[str], bool]
"""A text to count: the number of its passage, its terms, and True if no other passage has the same text. Only such
passages count for p(w|C)."""

BLOCK_BITS = 14
_BLOCK_SIZE = 1 << BLOCK_BITS
_ENTRY = np.dtype([("place", "<u2"), ("count", "u1")])
_PACK_ENTRY = Struct("<HB").pack
_MAX_COUNT = 255  # a larger count has several entries
LENGTH_TYPE = np.dtype("<u4")  # one more than the number of terms of a unit; 0 if there is no unit
_EXTEND = """INSERT INTO postings VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
    holding = holding + excluded.holding, occurrences = occurrences + excluded.occurrences,
    entries = CAST(entries || excluded.entries AS BLOB)"""
_OF_TERM = "WHERE level = ? AND block = ? AND term = ?"
CONTEXT_LEVELS = (1, 2, 3)  # headings, document titles, beginnings of documents
LEVELS = (0, *CONTEXT_LEVELS)


@dataclass(frozen=True, slots=True, eq=False)
class BlockTermCounts:
    """Counts of the query's terms in the passages of one block.

    Attributes:
        numbers: Rising numbers of the passages that contain a term of the query, shape (passages,).
        lengths: Number of terms of each passage, shape (passages,).
        words: Terms of the query in order, with repetitions.
        collection: Statistics of the whole corpus, for these terms only.
        mean_length: Mean number of terms of a passage, over the whole corpus.
    """

    numbers: Integers
    lengths: Integers
    words: Sequence[str]
    collection: CollectionStatistics
    mean_length: float
    _entries: dict[str, npt.NDArray[np.void]]

    def tf(self, word: str) -> Floats:
        """Return the count of a term of the query in each passage, shape (passages,)."""
        entries = self._entries[word]
        return sum_by_index(entries["place"], entries["count"], _BLOCK_SIZE).take(self.numbers & (_BLOCK_SIZE - 1))


ScoredBlock = tuple[Integers, Floats]
"""Numbers of passages, and their scores; higher is better."""
Scorer = Callable[[Iterable[BlockTermCounts]], Iterable[ScoredBlock]]
"""Function from counts to scores, block by block."""


def bm25(blocks: Iterable[BlockTermCounts]) -> Iterator[ScoredBlock]:
    """Score passages with BM25 and Lucene's inverse document frequency.

    The scores equal those of `BM25Index` over the same passages, to the last digit.
    """
    for counts in blocks:
        scores = np.zeros(len(counts.numbers), dtype=np.float32)
        norm = 1.5 * (0.25 + 0.75 * counts.lengths / counts.mean_length)  # k1 = 1.5, b = 0.75
        for word in counts.words:
            if n_passages := counts.collection.document_frequencies.get(word):
                idf = np.float32(math.log(1 + (len(counts.collection) - n_passages + 0.5) / (n_passages + 0.5)))
                tf = counts.tf(word)
                scores += (float(idf) * (tf / (norm + tf))).astype(np.float32)
        yield counts.numbers, scores.astype(np.float64)


def count_by_block(database: sqlite3.Connection, words: Sequence[str]) -> Iterator[BlockTermCounts]:
    """Yield the counts of the passages that contain one of the terms, block by block."""
    collection = read_statistics(database, words)
    [n_words] = database.execute("SELECT total(words) FROM blocks WHERE level = 0").fetchone()
    mean_length = max(n_words, 1) / max(len(collection), 1)
    for block, stored in database.execute("SELECT block, lengths FROM blocks WHERE level = 0 ORDER BY block"):
        entries = {word: read_entries(database, 0, block, word) for word in words}
        contains_word = np.zeros(_BLOCK_SIZE, dtype=bool)
        for word_entries in entries.values():
            contains_word[word_entries["place"]] = True
        [offsets] = contains_word.nonzero()
        if len(offsets):
            lengths = np.frombuffer(stored, LENGTH_TYPE)[offsets] - 1
            numbers = (block << BLOCK_BITS) + offsets
            yield BlockTermCounts(numbers, lengths, words, collection, mean_length, entries)


def read_statistics(database: sqlite3.Connection, words: Sequence[str] | None = None) -> CollectionStatistics:
    """Return statistics of all passages, for all terms or for these only."""
    [n_texts] = database.execute("SELECT total(units) FROM blocks WHERE level = 0").fetchone()
    query = """SELECT term, sum(holding) AS held, sum(occurrences) FROM postings
        WHERE level = 0 {} GROUP BY term HAVING held > 0"""
    condition = "" if words is None else "AND block IN (SELECT block FROM blocks) AND term = ?"
    keys = [()] if words is None else [(word,) for word in dict.fromkeys(words)]
    rows = [row for key in keys for row in database.execute(query.format(condition), key)]
    n_passages, occurrences = {term: number for term, number, _ in rows}, {term: times for term, _, times in rows}
    return CollectionStatistics(int(n_texts), n_passages, occurrences)


def read_entries(database: sqlite3.Connection, level: int, block: int, term: str) -> npt.NDArray[np.void]:
    """Return the entries of a term in a block: `place`, the offset of a unit in the block, and `count`."""
    row = database.execute(f"SELECT entries FROM postings {_OF_TERM}", (level, block, term)).fetchone()
    return np.frombuffer(row[0] if row else b"", _ENTRY)


def add_units(database: sqlite3.Connection, level: int, units: Iterable[IndexedUnit]) -> None:
    """Count units. Their numbers rise and are new."""
    for block, lengths, terms in _count_units(units):
        _change_lengths(database, level, block, lengths)
        database.executemany(_EXTEND, ((level, block, term, *terms[term]) for term in sorted(terms)))


def discard_units(database: sqlite3.Connection, level: int, units: Iterable[IndexedUnit]) -> None:
    """Remove units. Their numbers rise."""
    change = "UPDATE postings SET holding = holding - ?, occurrences = occurrences - ?, entries = ?"
    for block, lengths, terms in _count_units(units):
        _change_lengths(database, level, block, dict.fromkeys(lengths, 0))
        is_discarded = np.bincount(list(lengths), minlength=_BLOCK_SIZE) > 0
        for term, (n_units, occurrences, _) in terms.items():
            entries = read_entries(database, level, block, term)
            remaining = entries[~is_discarded[entries["place"]]].tobytes()
            database.execute(f"{change} {_OF_TERM}", (n_units, occurrences, remaining, level, block, term))
            database.execute(
                f"DELETE FROM postings {_OF_TERM} AND holding = 0 AND occurrences = 0", (level, block, term)
            )


def _count_units(units: Iterable[IndexedUnit]) -> Iterator[tuple[int, dict[int, int], dict[str, list[Any]]]]:
    """Yield each block with the stored length of every unit, by offset, and what each term's row gains."""
    for block, block_units in groupby(units, lambda unit: unit[0] >> BLOCK_BITS):
        lengths, terms = dict[int, int](), dict[str, list[Any]]()
        for number, words, is_distinct in block_units:
            offset = number & (_BLOCK_SIZE - 1)
            lengths[offset] = len(words) + 1
            for term, count in Counter(words).items():
                row = terms.setdefault(term, [0, 0, b""])
                row[0] += 1
                row[1] += count * is_distinct
                row[2] += _PACK_ENTRY(offset, _MAX_COUNT) * (count // _MAX_COUNT)
                row[2] += _PACK_ENTRY(offset, count % _MAX_COUNT)
        yield block, lengths, terms


def _change_lengths(database: sqlite3.Connection, level: int, block: int, new_lengths: dict[int, int]) -> None:
    row = database.execute("SELECT lengths FROM blocks WHERE level = ? AND block = ?", (level, block)).fetchone()
    lengths = np.frombuffer(row[0], LENGTH_TYPE).copy() if row else np.zeros(_BLOCK_SIZE, LENGTH_TYPE)
    lengths[list(new_lengths)] = list(new_lengths.values())
    n_units = int(np.count_nonzero(lengths))
    values = (level, block, n_units, int(lengths.sum()) - n_units, lengths.tobytes())
    database.execute("INSERT OR REPLACE INTO blocks VALUES (?, ?, ?, ?, ?)", values)
