"""Postings and term statistics on disk, and BM25 from them.

Passages are numbered, and stand in blocks of 16,384 numbers. A row for each term of a block lists which of its passages
hold the term, and how often. What is added extends the rows of the last block, so that adding costs the same however
many there are; numbers that were given back cost nothing. SQLite's FTS5 has such lists, too, but shows them row by row
and ranks by its own formula, for which it took ten times as long where questions hold common words.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from struct import Struct
from typing import Any

import numpy as np
import numpy.typing as npt

from drillrank.vectors import CollectionStatistics, Floats, sum_by_index

Numbers = npt.NDArray[np.integer[Any]]
Unit = tuple[int, Sequence[str], bool]
"""A passage to count: its number, its words, and whether it counts for p(w|C), as the only one with its text."""

_BITS = 14
_SIZE = 1 << _BITS
_ENTRY = np.dtype([("place", "<u2"), ("count", "u1")])
_PACK = Struct("<HB").pack
_MOST = 255  # a larger count has several entries
_LENGTH = np.dtype("<u4")  # one more than the words of a passage; 0 where there is none
_EXTEND = """INSERT INTO postings VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
    holding = holding + excluded.holding, occurrences = occurrences + excluded.occurrences,
    entries = CAST(entries || excluded.entries AS BLOB)"""
_OF_TERM = "WHERE level = ? AND block = ? AND term = ?"
LEVELS = (1, 2, 3)  # above passages


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
        return sum_by_index(entries["place"], entries["count"], _SIZE).take(self.numbers & (_SIZE - 1))


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Where the passages of some documents stand.

    Attributes:
        ids: Of the documents, in the order of the corpus.
        firsts: The number of each one's first passage; `starts`, its place among the passages of all, and at the end
            how many there are.
        section_of: The page or section of each passage.
        document_of: The document of each page or section.
        first_of: The place of the first passage of the section of each passage.
        paged: Whether a document has pages, shape (documents,).
        lengths: Of each level, the words of each unit, at the place of its passage, shape (passages,).
        language: Whose stemmer words go through.
    """

    ids: Sequence[str]
    firsts: Numbers
    starts: Numbers
    section_of: Numbers
    document_of: Numbers
    first_of: Numbers
    paged: npt.NDArray[np.bool_]
    lengths: Mapping[int, Floats]
    language: str

    def numbers(self, places: Numbers) -> Numbers:
        """Numbers of the passages at some places."""
        document = np.searchsorted(self.starts, places, side="right") - 1
        numbers: Numbers = self.firsts[document] + places - self.starts[document]
        return numbers

    def places(self, numbers: Numbers) -> tuple[Numbers, npt.NDArray[np.bool_]]:
        """Places of passages with these numbers, and which of the numbers are of one of the documents."""
        if not len(self.firsts):
            return numbers[:0], np.zeros(len(numbers), dtype=bool)
        document = np.searchsorted(self.firsts, numbers, side="right") - 1
        at = numbers - self.firsts[document]
        inside = (document >= 0) & (at < np.diff(self.starts)[document])
        return (at + self.starts[document])[inside], inside


@dataclass(frozen=True, slots=True, eq=False)
class DocumentCounts:
    """How often the passages of some documents, and what stands above them, hold the words of a query.

    Attributes:
        words: Of the query, in order, repeated ones too.
        entries: Of each level and word, which units hold it, by the places of their passages, and how often.
    """

    words: Sequence[str]
    entries: Mapping[int, Sequence[tuple[Numbers, Floats]]]


Scored = Iterator[tuple[Numbers, Floats]]
Scorer = Callable[[Iterable[Counts]], Scored]
"""From the passages of a search, block by block, to their numbers and scores, block by block; higher is better."""


def bm25(blocks: Iterable[Counts]) -> Scored:
    """BM25 with Lucene's inverse document frequency: to the last digit that of `BM25Index` over the same passages."""
    for counts in blocks:
        scores = np.zeros(len(counts.numbers), dtype=np.float32)
        norm = 1.5 * (0.25 + 0.75 * counts.lengths / counts.mean_length)  # k1 = 1.5, b = 0.75
        for word in counts.words:
            if holding := counts.collection.document_frequencies.get(word):
                idf = np.float32(math.log(1 + (len(counts.collection) - holding + 0.5) / (holding + 0.5)))
                tf = counts.tf(word)
                scores += (float(idf) * (tf / (norm + tf))).astype(np.float32)
        yield counts.numbers, scores.astype(np.float64)


def counts_of(database: sqlite3.Connection, words: Sequence[str]) -> Iterator[Counts]:
    """Counts of the passages that hold a word."""
    collection = statistics(database, words)
    [length] = database.execute("SELECT total(words) FROM blocks WHERE level = 0").fetchone()
    mean_length = max(length, 1) / max(len(collection), 1)
    for block, stored in database.execute("SELECT block, lengths FROM blocks WHERE level = 0 ORDER BY block"):
        entries = {word: _entries(database, 0, block, word) for word in words}
        wanted = np.zeros(_SIZE, dtype=bool)
        for some in entries.values():
            wanted[some["place"]] = True
        [places] = wanted.nonzero()
        if len(places):
            lengths = np.frombuffer(stored, _LENGTH)[places] - 1
            yield Counts((block << _BITS) + places, lengths, words, collection, mean_length, entries)


def laid_out(
    database: sqlite3.Connection, documents: Sequence[tuple[str, int, int, bytes, bytes, str]], language: str
) -> Layout:
    """Where passages stand, given id, first number, size, pages, sections and what is above of documents, in order."""
    firsts = np.array([first for _, first, *_ in documents], dtype=np.int64)
    starts = np.cumsum([0, *(size for _, _, size, *_ in documents)])
    sections = [_below(size, stored) for _, _, size, stored, *_ in documents]
    sizes = [int(of_document.max(initial=-1)) + 1 for of_document in sections]
    above = np.cumsum([0, *sizes])
    first = [_below(size, stored) for _, _, size, _, stored, _ in documents]
    layout = Layout(
        [id_ for id_, *_ in documents],
        firsts,
        starts,
        np.concatenate([of_document + start for of_document, start in zip(sections, above, strict=False)] or [firsts]),
        np.repeat(np.arange(len(documents)), sizes),
        np.concatenate([of_document + start for of_document, start in zip(first, starts, strict=False)] or [firsts]),
        np.array([json.loads(row[5])[2] for row in documents], dtype=bool),
        lengths := {level: np.zeros(int(starts[-1])) for level in (0, *LEVELS)},
        language,
    )
    for level, of_level in lengths.items():
        for block, stored in database.execute("SELECT block, lengths FROM blocks WHERE level = ?", (level,)):
            counted = np.frombuffer(stored, _LENGTH)
            [present] = counted.nonzero()
            places, inside = layout.places((block << _BITS) + present)
            of_level[places] = counted[present[inside]] - 1.0
    return layout


def _below(size: int, stored: bytes) -> Numbers:
    """So many numbers, all of them smaller."""
    numbers = np.frombuffer(stored, "<u4").astype(np.int64)
    if len(numbers) != size or numbers.max(initial=0) >= size:
        raise ValueError("its passages are not numbered")
    return numbers


def document_counts(database: sqlite3.Connection, words: Sequence[str], layout: Layout) -> DocumentCounts:
    """How often the passages of a layout, and what stands above them, hold words."""
    blocks = [block for (block,) in database.execute("SELECT DISTINCT block FROM blocks ORDER BY block")]

    def entries(level: int, word: str) -> tuple[Numbers, Floats]:
        found = [(block << _BITS, _entries(database, level, block, word)) for block in blocks]
        numbers = np.concatenate([start + some["place"].astype(np.int64) for start, some in found] or [layout.firsts])
        counts = np.concatenate([some["count"] for _, some in found] or [np.zeros(0)]).astype(np.float64)
        places, inside = layout.places(numbers)
        unique_places, first = np.unique(places, return_index=True)  # a large count has several entries
        return unique_places, np.add.reduceat(counts[inside], first) if len(unique_places) else np.zeros(0)

    known = {(level, word): entries(level, word) for word in dict.fromkeys(words) for level in (0, *LEVELS)}
    return DocumentCounts(words, {level: [known[level, word] for word in words] for level in (0, *LEVELS)})


def statistics(database: sqlite3.Connection, words: Sequence[str] | None = None) -> CollectionStatistics:
    """Of all passages; of these words alone, if they are given."""
    [texts] = database.execute("SELECT total(units) FROM blocks WHERE level = 0").fetchone()
    query = """SELECT term, sum(holding) AS held, sum(occurrences) FROM postings
        WHERE level = 0 {} GROUP BY term HAVING held > 0"""
    of_word = "" if words is None else "AND block IN (SELECT block FROM blocks) AND term = ?"
    keys = [()] if words is None else [(word,) for word in dict.fromkeys(words)]
    rows = [row for key in keys for row in database.execute(query.format(of_word), key)]
    holding, occurrences = {term: number for term, number, _ in rows}, {term: times for term, _, times in rows}
    return CollectionStatistics(int(texts), holding, occurrences)


def add(database: sqlite3.Connection, level: int, units: Iterable[Unit]) -> None:
    """Count units whose numbers rise and are new."""
    for block, lengths, terms in _counted(units):
        _change_lengths(database, level, block, lengths)
        database.executemany(_EXTEND, ((level, block, term, *terms[term]) for term in sorted(terms)))


def discard(database: sqlite3.Connection, level: int, units: Iterable[Unit]) -> None:
    """Take units out again; their numbers rise."""
    change = "UPDATE postings SET holding = holding - ?, occurrences = occurrences - ?, entries = ?"
    for block, lengths, terms in _counted(units):
        _change_lengths(database, level, block, dict.fromkeys(lengths, 0))
        gone = np.bincount(list(lengths), minlength=_SIZE) > 0
        for term, (holding, occurrences, _) in terms.items():
            entries = _entries(database, level, block, term)
            remaining = entries[~gone[entries["place"]]].tobytes()
            database.execute(f"{change} {_OF_TERM}", (holding, occurrences, remaining, level, block, term))
            database.execute(
                f"DELETE FROM postings {_OF_TERM} AND holding = 0 AND occurrences = 0", (level, block, term)
            )


def _entries(database: sqlite3.Connection, level: int, block: int, term: str) -> npt.NDArray[np.void]:
    row = database.execute(f"SELECT entries FROM postings {_OF_TERM}", (level, block, term)).fetchone()
    return np.frombuffer(row[0] if row else b"", _ENTRY)


def _counted(units: Iterable[Unit]) -> Iterator[tuple[int, dict[int, int], dict[str, list[Any]]]]:
    """Of each block, what stands for these passages among its lengths, and what its row of each term gains."""
    for block, of_block in groupby(units, lambda unit: unit[0] >> _BITS):
        lengths, terms = dict[int, int](), dict[str, list[Any]]()
        for number, words, distinct in of_block:
            location = number & (_SIZE - 1)
            lengths[location] = len(words) + 1
            for term, count in Counter(words).items():
                row = terms.setdefault(term, [0, 0, b""])
                row[0] += 1
                row[1] += count * distinct
                row[2] += _PACK(location, _MOST) * (count // _MOST) + _PACK(location, count % _MOST)
        yield block, lengths, terms


def _change_lengths(database: sqlite3.Connection, level: int, block: int, changed: dict[int, int]) -> None:
    row = database.execute("SELECT lengths FROM blocks WHERE level = ? AND block = ?", (level, block)).fetchone()
    lengths = np.frombuffer(row[0], _LENGTH).copy() if row else np.zeros(_SIZE, _LENGTH)
    lengths[list(changed)] = list(changed.values())
    units = int(np.count_nonzero(lengths))
    values = (level, block, units, int(lengths.sum()) - units, lengths.tobytes())
    database.execute("INSERT OR REPLACE INTO blocks VALUES (?, ?, ?, ?, ?)", values)
