"""Vectors of passages, stored in a corpus: each is computed once for each encoder.

A row has the vectors of at most 256 consecutive passages of one document, as little-endian float32 of unit length. Rows
are written as soon as they are computed and are removed with their document.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from drillrank.corpus.documents import Unit
from drillrank.corpus.layout import Layout
from drillrank.corpus.rows import read_passages
from drillrank.corpus.store import CorpusStore
from drillrank.errors import InvalidInput
from drillrank.passages import Passage
from drillrank.progress import OnProgress
from drillrank.vectors import Embed, embedded, of_unit_length

PART = 256  # passages of a row, and of a call of the encoder
_TYPE = np.dtype("<f4")
_FILE_ENDING = re.compile(r"(?<=.)\.[A-Za-z][A-Za-z0-9]{0,8}$")


class _Part(NamedTuple):
    """Consecutive passages of a document whose vectors are in one row."""

    document: str
    first_of_document: int
    number: int
    size: int

    @property
    def numbers(self) -> range:
        start = self.first_of_document + self.number * PART
        return range(start, start + self.size)


def embedding_text(passage: Passage, unit: Unit, document_name: str = "") -> str:
    r"""Return the text that an encoder gets for a passage.

    Passages have their document's name, as words, and their headings on the first line. Paragraphs have neither.

    >>> embedding_text(Passage("It lasts nine hours.", title="Battery"), "passage", "manuals/kettle-manual.md")
    'kettle manual Battery\nIt lasts nine hours.'
    """
    head = headline(passage, document_name)
    return f"{head}\n{passage.text}" if head and unit == "passage" else passage.text


def headline(passage: Passage, document_name: str) -> str:
    """Return the name of a passage's document, as words, and its headings.

    >>> headline(Passage("It lasts nine hours.", title="Battery"), "manuals/kettle-manual.md")
    'kettle manual Battery'
    """
    return " ".join(filter(None, (_name_words(document_name), passage.title)))


def _name_words(document_name: str) -> str:
    """Return the words of a document's name: of a path, its last part without the file's ending."""
    last_part = re.split(r"[/\\]", document_name.rstrip("/\\"))[-1]
    return " ".join(re.sub(r"[-_]", " ", _FILE_ENDING.sub("", last_part)).split())


def embed_missing(
    store: CorpusStore, encoder: str, embed: Embed, name_by_id: Mapping[str, str], on_progress: OnProgress | None
) -> None:
    """Compute and store the vectors of the passages that have none; see `Corpus.embed`."""
    with store.transaction() as database:
        missing = list(_list_missing(database, encoder, name_by_id))
    n_total, n_done = sum(part.size for part in missing), 0
    remaining, n_dimensions = iter(missing), 0
    while batch := _next_batch(remaining):
        with store.transaction() as database:
            passages = {part: read_passages(database, "number", part.numbers) for part in batch}
        # Passages that were removed or replaced since the parts were listed need no vectors.
        passages = {part: some for part, some in passages.items() if len(some) == part.size}
        texts = [
            embedding_text(passage, store.unit, name_by_id[part.document])
            for part, some in passages.items()
            for passage in some
        ]
        if texts:
            vectors = of_unit_length(embedded(embed, texts)).astype(_TYPE)
            n_dimensions = n_dimensions or vectors.shape[1]
            if vectors.shape[1] != n_dimensions:
                raise InvalidInput(
                    f"embed must return vectors of one length, got {vectors.shape[1]} dimensions after {n_dimensions}."
                )
            _write(store, encoder, list(passages), vectors)
        n_done += sum(part.size for part in batch)
        if on_progress is not None:
            on_progress(n_done, n_total)


def _list_missing(database: sqlite3.Connection, encoder: str, ids: Iterable[str]) -> Iterator[_Part]:
    """Yield the parts of documents that have no vectors, or damaged ones."""
    n_dimensions = _count_dimensions(database, encoder)
    for document in ids:
        for first, size in database.execute("SELECT first, size FROM documents WHERE id = ?", (document,)).fetchall():
            rows = database.execute(
                "SELECT part, vectors FROM vectors WHERE document = ? AND encoder = ?", (document, encoder)
            )
            stored = dict(rows.fetchall())
            for index in range(-(-size // PART)):
                part = _Part(document, first, index, min(PART, size - index * PART))
                if _read_part(stored.get(index), part.size, n_dimensions) is None:
                    yield part


def _next_batch(parts: Iterator[_Part]) -> list[_Part]:
    """Return the next parts with at least `PART` passages together, or all that remain."""
    batch: list[_Part] = []
    while sum(part.size for part in batch) < PART and (some := list(islice(parts, 1))):
        batch += some
    return batch


def _write(store: CorpusStore, encoder: str, parts: Iterable[_Part], vectors: npt.NDArray[np.float32]) -> None:
    """Store the vectors of parts. Documents that were changed meanwhile have another first passage and are skipped."""
    query = """INSERT OR REPLACE INTO vectors SELECT id, ?, ?, ? FROM documents WHERE id = ? AND first = ?"""
    with store.transaction("IMMEDIATE") as database:
        start = 0
        for part in parts:
            content = vectors[start : start + part.size].tobytes()
            start += part.size
            database.execute(query, (encoder, part.number, content, part.document, part.first_of_document))


def read_vectors(database: sqlite3.Connection, encoder: str, layout: Layout) -> npt.NDArray[np.float32]:
    """Return the vectors of a layout's passages, shape (passages, dimensions); see `Corpus.vectors`."""
    n_dimensions = _count_dimensions(database, encoder)
    vectors = np.full((int(layout.starts[-1]), n_dimensions), np.nan, dtype=np.float32)
    query = """SELECT part, vectors FROM vectors JOIN documents ON id = document
        WHERE document = ? AND encoder = ? AND first = ?"""
    for document, first, start, end in zip(
        layout.ids, layout.firsts.tolist(), layout.starts.tolist(), layout.starts[1:].tolist(), strict=False
    ):
        for index, content in database.execute(query, (document, encoder, first)):
            part_start = start + int(index) * PART
            size = min(PART, end - part_start)
            if index >= 0 and size > 0 and (part := _read_part(content, size, n_dimensions)) is not None:
                vectors[part_start : part_start + size] = part
    return vectors


def _count_dimensions(database: sqlite3.Connection, encoder: str) -> int:
    """Return the number of dimensions that most vectors of an encoder have. A damaged row may have another length."""
    query = """SELECT length(vectors), min(?, size - part * ?) FROM vectors JOIN documents ON id = document
        WHERE encoder = ? LIMIT 1000"""
    lengths = Counter(
        length // (size * _TYPE.itemsize)
        for length, size in database.execute(query, (PART, PART, encoder))
        if isinstance(length, int) and size > 0
    )
    return lengths.most_common(1)[0][0] if lengths else 0


def _read_part(content: object, size: int, n_dimensions: int) -> npt.NDArray[np.float32] | None:
    """Return the vectors of a row, shape (size, dimensions). None if there are none or they are damaged."""
    if not isinstance(content, bytes) or not n_dimensions or len(content) != size * n_dimensions * _TYPE.itemsize:
        return None
    vectors: npt.NDArray[np.float32] = np.frombuffer(content, _TYPE).reshape(size, n_dimensions)
    return vectors if np.isfinite(vectors).all() else None
