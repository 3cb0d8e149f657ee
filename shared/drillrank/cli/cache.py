"""Documents that were parsed and counted before, by the hash of their content, in one SQLite file.

Its transactions make it safe against other processes and interruptions. What cannot be read is made anew.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import sys
import time
import warnings
import zlib
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

import numpy as np
import numpy.typing as npt

from drillrank.drilldown.outline import outline
from drillrank.errors import DrillrankWarning, InvalidInput
from drillrank.likelihood.collection import TermCounts
from drillrank.structure import Document, read_document
from drillrank.structure.saved import document_from_json, document_to_json
from drillrank.text import ANALYZER

_SCHEMA = """
CREATE TABLE IF NOT EXISTS documents (
    id INTEGER PRIMARY KEY, hash BLOB UNIQUE, used REAL, content BLOB, lengths BLOB);
CREATE TABLE IF NOT EXISTS postings (
    document INTEGER REFERENCES documents ON DELETE CASCADE, term TEXT, paragraphs BLOB, counts BLOB,
    PRIMARY KEY (document, term)) WITHOUT ROWID;
CREATE TEMP TABLE wanted (document INTEGER PRIMARY KEY);
"""
_FORMAT = 2  # raised whenever parsing, or what is stored here, changes
_DAY = 24 * 3600.0  # seconds
_KEPT = 30 * _DAY  # since a document was asked about
_PATIENCE = 10.0  # seconds to wait for another process
_CHUNK = 1 << 20

Counts = npt.NDArray[np.uint32]


def cache_folder() -> Path | None:
    """Where the system keeps what programs can make anew; None, with a warning, where the user has no home."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME", "")
        base = base if Path(base).is_absolute() else "~/.cache"
    try:
        return Path(base).expanduser() / "drillrank"
    except RuntimeError as cause:
        warnings.warn(f"Nothing is cached: {cause}", DrillrankWarning, stacklevel=2)
        return None


class DocumentCache:
    """Parsed documents, and how often each paragraph of theirs holds each word.

    Args:
        folder: Where the file is; None keeps everything in memory, for one run.
        language: Whose stemmer words go through; each has a file.
    """

    def __init__(self, folder: Path | None, language: str = "english") -> None:
        self._language = language
        name = f"documents-{version('drillrank')}-{_FORMAT}-{ANALYZER}-{language}.sqlite"
        self._file = None if folder is None else folder / name
        try:
            self._connection = self._opened()
        except (sqlite3.Error, OSError) as cause:
            warnings.warn(f"Nothing is cached in {folder}: {cause}.", DrillrankWarning, stacklevel=2)
            self._file = None
            self._connection = self._opened()

    def _opened(self) -> sqlite3.Connection:
        if self._file is None:
            return _connected(":memory:")
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            connection = _connected(self._file)
        except sqlite3.OperationalError:  # locked, or not to be opened: it may still be good
            raise
        except sqlite3.DatabaseError:
            self._file.unlink(missing_ok=True)
            connection = _connected(self._file)
        self._file.chmod(0o600)
        with connection:
            connection.execute("DELETE FROM documents WHERE used < ?", (time.time() - _KEPT,))
        return connection

    def close(self) -> None:
        """Give the file back."""
        self._connection.close()

    def id_of(self, path: Path) -> int:
        """The id of a file's content, which is parsed and counted if it is new.

        Raises:
            DrillrankError: as `read_document`.
        """
        hashed = _hash(path)
        known = self._connection.execute("SELECT id, used FROM documents WHERE hash = ?", (hashed,)).fetchone()
        if known is not None:
            id_, used = known
            if time.time() - used > _DAY:
                with self._connection as connection:
                    connection.execute("UPDATE documents SET used = ? WHERE id = ?", (time.time(), id_))
            return int(id_)
        document = read_document(path)
        if _hash(path) != hashed:
            raise InvalidInput(f"{path} was changed while it was read: try again.")
        return self._added(hashed, document)

    def _added(self, hashed: bytes, document: Document) -> int:
        paragraphs = [paragraph.titled_text for section in outline([document]) for paragraph in section.readable]
        counts = TermCounts(paragraphs, self._language)
        bounds = counts.by_term.bounds
        content = zlib.compress(document_to_json(document).encode("utf-8"), 1)
        with self._connection as connection:
            added = connection.execute(
                "INSERT OR IGNORE INTO documents (hash, used, content, lengths) VALUES (?, ?, ?, ?)",
                (hashed, time.time(), content, _packed(counts.lengths)),
            )
            [id_] = connection.execute("SELECT id FROM documents WHERE hash = ?", (hashed,)).fetchone()
            if not added.rowcount:  # another process was faster, and may be using its own
                return int(id_)
            connection.executemany(
                "INSERT INTO postings VALUES (?, ?, ?, ?)",
                (
                    (id_, term, _packed(counts.by_term.columns[start:end]), _packed(counts.by_term.data[start:end]))
                    for term, start, end in zip(counts.words(), bounds[:-1], bounds[1:], strict=True)
                ),
            )
        return int(id_)

    def document(self, id_: int) -> Document:
        """A document.

        Raises:
            sqlite3.DatabaseError: what is stored cannot be read.
        """
        row = self._connection.execute("SELECT content FROM documents WHERE id = ?", (id_,)).fetchone()
        try:
            return document_from_json(zlib.decompress(row[0]).decode("utf-8"))
        except (InvalidInput, zlib.error, TypeError, UnicodeDecodeError) as cause:
            raise sqlite3.DatabaseError("a cached document is damaged") from cause

    def discard(self) -> None:
        """Remove the file, which cannot be read; nothing else can be asked afterwards."""
        self.close()
        if self._file is not None:
            with suppress(OSError):  # Windows keeps what another process has open
                self._file.unlink()

    def lengths(self, ids: Sequence[int]) -> list[Counts]:
        """Words of each paragraph, document by document.

        Raises:
            sqlite3.DatabaseError: what is stored cannot be read.
        """
        self._want(ids)
        rows = self._connection.execute("SELECT id, lengths FROM documents JOIN wanted ON id = document")
        found = {int(id_): _unpacked(lengths) for id_, lengths in rows}
        try:
            return [found[id_] for id_ in ids]
        except KeyError as cause:
            raise sqlite3.DatabaseError("a cached document is missing") from cause

    def postings(self, ids: Sequence[int], term: str) -> list[tuple[int, Counts, Counts]]:
        """Of each document with a word: its id, the paragraphs that hold it, and how often."""
        self._want(ids)
        rows = self._connection.execute(
            "SELECT document, paragraphs, counts FROM wanted JOIN postings USING (document) WHERE term = ?", (term,)
        )
        return [(int(id_), _unpacked(paragraphs), _unpacked(counts)) for id_, paragraphs, counts in rows]

    def _want(self, ids: Sequence[int]) -> None:
        """Name the documents of the next query."""
        with self._connection as connection:
            connection.execute("DELETE FROM wanted")
            connection.executemany("INSERT OR IGNORE INTO wanted VALUES (?)", ((id_,) for id_ in ids))


def _connected(file: Path | str) -> sqlite3.Connection:
    connection = sqlite3.connect(file, timeout=_PATIENCE)
    try:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.executescript(_SCHEMA)
    except BaseException:
        connection.close()
        raise
    return connection


def _hash(path: Path) -> bytes:
    """Of a file's content, and of the ending of its name, which tells its format.

    Raises:
        InvalidInput: it cannot be read.
    """
    hashed = hashlib.blake2b(path.suffix.lower().encode("utf-8", "surrogateescape") + b"\0", digest_size=20)
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                hashed.update(chunk)
    except OSError as cause:
        raise InvalidInput(f"{path} cannot be read: {cause.strerror}.") from cause
    return hashed.digest()


def _packed(numbers: npt.NDArray[np.floating] | npt.NDArray[np.integer]) -> bytes:
    return numbers.astype("<u4").tobytes()


def _unpacked(numbers: bytes) -> Counts:
    try:
        return np.frombuffer(numbers, "<u4")
    except (ValueError, TypeError) as cause:
        raise sqlite3.DatabaseError("cached counts are damaged") from cause
