"""Transactions on a corpus file. Each transaction sees one state of the corpus, with complete term statistics."""

from __future__ import annotations

import json
import os
import sqlite3
import time
import uuid
import weakref
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from threading import RLock

from drillrank import limits
from drillrank import text as text_module
from drillrank.corpus import index
from drillrank.corpus.documents import CUT_VERSION, DocumentContext, DocumentRecord, Unit, prepare_document
from drillrank.corpus.index import CONTEXT_LEVELS, LEVELS, IndexedUnit
from drillrank.corpus.rows import PASSAGES_OF_DOCUMENT, TITLED_TEXT
from drillrank.corpus.schema import CorpusError, connect
from drillrank.structure import Document
from drillrank.structure.document import document_from_json
from drillrank.text import terms

BATCH = 5_000  # passages of a transaction
_CUT_BATCH = 20  # documents of a transaction that cuts documents again
MARK_USED = "UPDATE documents SET used = ? WHERE id = ? AND key = ?"
# Exceptions that Python raises for damaged values.
_DAMAGE = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError, zlib.error)


class CorpusStore:
    """Database of a corpus, in a file or in memory.

    A file is opened for each transaction, so a store can be used after a fork and sent to another process.

    Args:
        file: Path of the file. None keeps everything in memory.
        language: Language of the stemmer.
        unit: Unit into which documents are cut.
    """

    def __init__(self, file: Path | None, language: str, unit: Unit) -> None:
        self.file = file
        self.language = language
        self.unit = unit
        self._memory: tuple[RLock, sqlite3.Connection] | None = None
        if file is None:
            context = connect(None, create=True)
            self._memory = RLock(), context.__enter__()
            weakref.finalize(self, context.__exit__, None, None, None)
        with self.transaction(create=True):
            pass

    @contextmanager
    def transaction(self, kind: str = "DEFERRED", *, create: bool = False) -> Iterator[sqlite3.Connection]:
        """Open a transaction; `kind` is "IMMEDIATE" for one that writes.

        Raises:
            CorpusError: The database cannot be read or written.
        """
        lock, in_memory = self._memory or (nullcontext(), None)
        try:
            with lock, nullcontext(in_memory) if in_memory else connect(self.file, create=create) as database:
                while not (self._is_indexed(database) and self._is_cut(database)):
                    with database:
                        database.execute("BEGIN IMMEDIATE")
                        self._update_next(database)
                with database:
                    database.execute(f"BEGIN {kind}")
                    yield database
        except (sqlite3.Error, OSError, *_DAMAGE) as cause:
            raise CorpusError(
                f"The corpus {str(self.file or 'in memory')!r:.200} cannot be used: {cause!s:.200}"
            ) from cause

    def write(self, batch: Iterable[DocumentRecord]) -> None:
        """Write documents that are new or changed. Mark the others as used."""
        with self.transaction("IMMEDIATE") as database:
            changed = [one for one in batch if not database.execute(MARK_USED, (time.time(), one.id, one.key)).rowcount]
            self.discard(database, [one.id for one in changed])
            for one in changed:
                if one.rows is not None:  # else another process removed it after it was found here
                    _insert(database, one, time.time())
            while not self._is_indexed(database):
                self._index_next(database)

    def discard(self, database: sqlite3.Connection, ids: Iterable[str]) -> None:
        """Remove documents and their counts in a transaction that writes."""
        units: dict[int, list[IndexedUnit]] = {level: [] for level in LEVELS}
        for id_ in ids:
            rows = database.execute(f"SELECT number, {TITLED_TEXT}, digest {PASSAGES_OF_DOCUMENT}", (id_,)).fetchall()
            for number, text, digest in rows:
                database.execute("DELETE FROM passages WHERE number = ?", (number,))
                same = database.execute("SELECT 1 FROM passages WHERE digest = ?", (digest,)).fetchone()
                units[0].append((number, terms(text, self.language), same is None))
            document = database.execute("SELECT first, context FROM documents WHERE id = ? AND size > 0", (id_,))
            for first, context in document.fetchall():
                for level in CONTEXT_LEVELS:
                    units[level] += self._list_context_units(level, first, context)
            database.execute("DELETE FROM documents WHERE id = ?", (id_,))
        for level, level_units in units.items():
            index.discard_units(database, level, sorted(level_units))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a copy of the database to a file.

        Raises:
            CorpusError: The file cannot be written.
        """
        target = Path(path).expanduser().absolute()
        if target == self.file:
            return
        temporary = target.with_name(f"{target.name}.{uuid.uuid4().hex}")
        lock, in_memory = self._memory or (nullcontext(), None)
        try:
            with lock, nullcontext(in_memory) if in_memory else connect(self.file) as database:
                database.execute("VACUUM INTO ?", (str(temporary),))
            os.replace(temporary, target)
        except (sqlite3.Error, OSError) as cause:
            temporary.unlink(missing_ok=True)
            raise CorpusError(f"The corpus cannot be written to {str(path)!r:.200}: {cause!s:.200}") from cause

    @property
    def _analyzer(self) -> str:
        """Name of the rules by which texts become terms."""
        return f"{self.language} {text_module.ANALYZER}"

    @property
    def _unit_version(self) -> str:
        """Name of the rules by which documents are cut."""
        return f"{self.unit} {CUT_VERSION}"

    def _is_cut(self, database: sqlite3.Connection) -> bool:
        query = "SELECT unit = ? AND NOT EXISTS (SELECT 1 FROM outdated) FROM state"
        return bool(int(database.execute(query, (self._unit_version,)).fetchone()[0]))

    def _update_next(self, database: sqlite3.Connection) -> None:
        """Count the next passages or, if all are counted, cut the next documents that have another unit."""
        if not self._is_indexed(database):
            self._index_next(database)
        elif database.execute("SELECT unit FROM state").fetchone() != (self._unit_version,):
            database.execute("DELETE FROM outdated")
            query = "INSERT INTO outdated (id) SELECT id FROM documents WHERE parse IS NOT NULL ORDER BY first"
            database.execute(query)
            database.execute("UPDATE state SET unit = ?", (self._unit_version,))
        else:
            self._cut_next(database)

    def _cut_next(self, database: sqlite3.Connection) -> None:
        """Cut the next documents again, from their stored parses."""
        query = "SELECT number, id FROM outdated ORDER BY number LIMIT ?"
        for number, id_ in database.execute(query, (_CUT_BATCH,)).fetchall():
            stored = database.execute("SELECT key, used, parse FROM documents WHERE id = ?", (id_,)).fetchall()
            for key, used, parse in stored:
                try:
                    record = prepare_document(read_parse(parse), id_, self.unit)._replace(key=key)
                except _DAMAGE as cause:
                    raise ValueError(
                        f"the stored parse of {id_!r:.50} is damaged, so it cannot be cut into {self.unit}s; "
                        "delete the file and add the documents again"
                    ) from cause
                self.discard(database, [id_])
                _insert(database, record, used)
            database.execute("DELETE FROM outdated WHERE number = ?", (number,))

    def _is_indexed(self, database: sqlite3.Connection) -> bool:
        query = "SELECT analyzer = ? AND indexed >= (SELECT coalesce(max(number), 0) FROM passages) FROM state"
        return bool(int(database.execute(query, (self._analyzer,)).fetchone()[0]))

    def _index_next(self, database: sqlite3.Connection) -> None:
        """Count the next passages. Start again with the first ones if another version of the analyzer counted them."""
        if database.execute("SELECT analyzer FROM state").fetchone() != (self._analyzer,):
            database.execute("DELETE FROM postings")
            database.execute("DELETE FROM blocks")
            database.execute("UPDATE state SET analyzer = ?, indexed = 0", (self._analyzer,))
        query = f"""SELECT number, {TITLED_TEXT}, number = (SELECT min(number) FROM passages WHERE digest = one.digest)
            FROM passages AS one WHERE number > (SELECT indexed FROM state) ORDER BY number LIMIT ?"""
        rows = database.execute(query, (BATCH,)).fetchall()
        units = [(number, terms(text, self.language), is_first) for number, text, is_first in rows]
        index.add_units(database, 0, units)
        query = "SELECT first, context FROM documents WHERE first BETWEEN ? AND ? AND size > 0 ORDER BY first"
        documents = database.execute(query, (rows[0][0], rows[-1][0])).fetchall() if rows else []
        for level in CONTEXT_LEVELS:
            context_units = (self._list_context_units(level, first, context) for first, context in documents)
            index.add_units(database, level, (unit for document_units in context_units for unit in document_units))
        database.executemany("UPDATE state SET indexed = ?", [(number,) for number, *_ in rows[-1:]])

    def _list_context_units(self, level: int, first: int, stored: str) -> Iterator[IndexedUnit]:
        """Yield the texts above the passages of a document, as one level counts them."""
        headings, document_beginning, *_ = DocumentContext(*json.loads(stored))
        texts = [(0, document_beginning)] if level == 3 else [(offset, texts[level - 1]) for offset, *texts in headings]
        for offset, text in texts:
            yield first + offset, terms(text, self.language), True


def read_parse(stored: bytes) -> Document:
    """Return a stored document."""
    return document_from_json(zlib.decompressobj().decompress(stored, limits.STORED_BYTES).decode())


def _insert(database: sqlite3.Connection, record: DocumentRecord, used: float) -> None:
    """Insert a document and its passages, which get consecutive numbers."""
    query = "SELECT 1 + max(indexed, (SELECT coalesce(max(number), 0) FROM passages)) FROM state"
    [first] = database.execute(query).fetchone()
    rows = record.rows or ()
    document = (record.id, record.key, used, first, len(rows), record.parse, json.dumps(record.context))
    values = (*document, record.has_pages, *record.indices, record.digests)
    database.execute(f"INSERT INTO documents VALUES ({', '.join('?' * len(values))})", values)
    numbered_rows = ((number, *row) for number, row in enumerate(rows, first))
    try:
        database.executemany("INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?, ?)", numbered_rows)
    except sqlite3.IntegrityError as cause:
        raise ValueError(f"the document {record.id!r:.200} has a passage with the id of another's") from cause
