"""Layout of documents in a corpus, and counts of a question's terms by level."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from drillrank.corpus.index import BLOCK_BITS, LENGTH_TYPE, LEVELS, read_entries
from drillrank.vectors import Floats, Integers, sum_by_index


class StoredLayout(NamedTuple):
    """Row of a document; see `DocumentRecord`."""

    id: str
    first: int
    size: int
    paged: int
    pages: bytes
    sections: bytes
    headings: bytes


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Positions of passages, sections and documents. A position counts all passages of the layout, starting at 0.

    Attributes:
        ids: Ids of the documents in the order of the corpus.
        firsts: Number of each document's first passage, shape (documents,).
        starts: Position of each document's first passage and, last, the number of passages, shape (documents + 1,).
        section_of: Index of each passage's page or section, shape (passages,).
        document_of: Index of the document of each page or section.
        first_of: Position of the first passage in the section of each passage, shape (passages,).
        headings_of: Position of the passage at which the headings of each passage are counted, shape (passages,).
        paged: True for documents that have pages, shape (documents,).
        lengths: Number of terms of each unit, by level, at the position of its passage, shape (passages,).
        language: Language of the stemmer.
    """

    ids: Sequence[str]
    firsts: Integers
    starts: Integers
    section_of: Integers
    document_of: Integers
    first_of: Integers
    headings_of: Integers
    paged: npt.NDArray[np.bool_]
    lengths: Mapping[int, Floats]
    language: str

    def numbers(self, positions: Integers) -> Integers:
        """Return the numbers of the passages at some positions."""
        document = np.searchsorted(self.starts, positions, side="right") - 1
        numbers: Integers = self.firsts[document] + positions - self.starts[document]
        return numbers

    def places(self, numbers: Integers) -> tuple[Integers, npt.NDArray[np.bool_]]:
        """Return the positions of the passages with these numbers, and a mask of the numbers that are in the layout."""
        if not len(self.firsts):
            return numbers[:0], np.zeros(len(numbers), dtype=bool)
        document = np.searchsorted(self.firsts, numbers, side="right") - 1
        offsets = numbers - self.firsts[document]
        is_inside = (document >= 0) & (offsets < np.diff(self.starts)[document])
        return (offsets + self.starts[document])[is_inside], is_inside


@dataclass(frozen=True, slots=True, eq=False)
class DocumentCounts:
    """Counts of a question's terms in passages, headings and beginnings of documents.

    Attributes:
        words: Terms of the question in order, with repetitions.
        entries: For each level and term, the positions of the units that contain the term, and the counts.
    """

    words: Sequence[str]
    entries: Mapping[int, Sequence[tuple[Integers, Floats]]]


def read_layout(database: sqlite3.Connection, documents: Sequence[StoredLayout], language: str) -> Layout:
    """Return the layout of documents, given their rows in order."""
    firsts = np.array([row.first for row in documents], dtype=np.int64)
    starts = np.cumsum([0, *(row.size for row in documents)])
    sections = [_read_indices(row.size, row.pages) for row in documents]
    n_sections = [int(section_of.max(initial=-1)) + 1 for section_of in sections]
    lengths = {level: np.zeros(int(starts[-1])) for level in LEVELS}
    layout = Layout(
        ids=[row.id for row in documents],
        firsts=firsts,
        starts=starts,
        section_of=_concatenate_from(sections, np.cumsum([0, *n_sections])),
        document_of=np.repeat(np.arange(len(documents)), n_sections),
        first_of=_concatenate_from([_read_indices(row.size, row.sections) for row in documents], starts),
        headings_of=_concatenate_from([_read_indices(row.size, row.headings) for row in documents], starts),
        paged=np.array([row.paged for row in documents], dtype=bool),
        lengths=lengths,
        language=language,
    )
    for level, level_lengths in lengths.items():
        for block, stored in database.execute("SELECT block, lengths FROM blocks WHERE level = ?", (level,)):
            block_lengths = np.frombuffer(stored, LENGTH_TYPE)
            [offsets] = block_lengths.nonzero()
            positions, is_inside = layout.places((block << BLOCK_BITS) + offsets)
            level_lengths[positions] = block_lengths[offsets[is_inside]] - 1.0
    return layout


def _concatenate_from(parts: Sequence[Integers], starts: Integers) -> Integers:
    """Concatenate indices of documents, each counted from the start of its document."""
    shifted = [part + start for part, start in zip(parts, starts, strict=False)]
    indices: Integers = np.concatenate([np.zeros(0, np.int64), *shifted])
    return indices


def _read_indices(size: int, stored: bytes) -> Integers:
    """Return `size` indices, each below `size`.

    Raises:
        ValueError: The bytes contain something else.
    """
    indices = np.frombuffer(stored, "<u4").astype(np.int64)
    if len(indices) != size or indices.max(initial=0) >= size:
        raise ValueError("the pages or sections of its passages are damaged")
    return indices


def count_in_layout(database: sqlite3.Connection, words: Sequence[str], layout: Layout) -> DocumentCounts:
    """Count terms in the passages of a layout, their headings and the beginnings of the documents."""
    blocks = [block for (block,) in database.execute("SELECT DISTINCT block FROM blocks ORDER BY block")]

    def count(level: int, word: str) -> tuple[Integers, Floats]:
        entries_by_block = [(block << BLOCK_BITS, read_entries(database, level, block, word)) for block in blocks]
        numbers = [start + entries["place"].astype(np.int64) for start, entries in entries_by_block]
        counts = [entries["count"] for _, entries in entries_by_block]
        positions, is_inside = layout.places(np.concatenate(numbers or [layout.firsts]))
        unit_positions, unit_of = np.unique(positions, return_inverse=True)  # a large count has several entries
        inside_counts = np.concatenate(counts or [np.zeros(0)])[is_inside].astype(np.float64)
        return unit_positions, sum_by_index(unit_of, inside_counts, len(unit_positions))

    counts = {(level, word): count(level, word) for word in dict.fromkeys(words) for level in LEVELS}
    return DocumentCounts(words, {level: [counts[level, word] for word in words] for level in LEVELS})
