"""SQLite schema of a corpus, and connections to corpus files."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from pathlib import Path

from drillrank.errors import InvalidInput

WRITE_TIMEOUT = 60.0  # seconds to wait for another process that writes

# Passages have numbers that rise and are not used again. The passages of a document have consecutive numbers, starting
# at `first`. `context` has a `DocumentContext` as JSON, the other columns are those of `DocumentRecord`. `unit` is the
# unit of the passages. `outdated` lists documents that still have passages of another unit, in order.
# `blocks` and `postings` contain term statistics of units. A unit has the number of a passage. Level 0 counts passages
# with their titles, level 1 headings of sections, level 2 the headings that level 1 leaves out, and level 3 beginnings
# of documents. `annotations` contain the names of passages by kind. `vectors` are described in `vectors.py`. `files`
# has the key of a file's content, with the size and times of the file when the key was computed.
_SCHEMA = """
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS state (analyzer TEXT, indexed INTEGER, unit TEXT);
CREATE TABLE IF NOT EXISTS documents (
    id TEXT PRIMARY KEY, key BLOB, used REAL, first INTEGER, size INTEGER, parse BLOB,
    context TEXT, paged INTEGER, pages BLOB, sections BLOB, headings BLOB, digests BLOB);
CREATE TABLE IF NOT EXISTS outdated (number INTEGER PRIMARY KEY, id TEXT);
CREATE TABLE IF NOT EXISTS passages (
    number INTEGER PRIMARY KEY, id TEXT UNIQUE, digest INTEGER,
    title TEXT, text TEXT, links TEXT, metadata TEXT);
CREATE INDEX IF NOT EXISTS by_digest ON passages (digest);
CREATE TABLE IF NOT EXISTS blocks (
    level INTEGER, block INTEGER, units INTEGER, words INTEGER, lengths BLOB, PRIMARY KEY (level, block)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS postings (
    level INTEGER, block INTEGER, term TEXT, holding INTEGER, occurrences INTEGER, entries BLOB,
    PRIMARY KEY (level, block, term)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS annotations (
    kind TEXT, value TEXT, passage INTEGER REFERENCES passages ON DELETE CASCADE, weight REAL,
    PRIMARY KEY (kind, value, passage)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS of_passage ON annotations (passage);
CREATE TABLE IF NOT EXISTS vectors (
    document TEXT REFERENCES documents ON DELETE CASCADE, encoder TEXT, part INTEGER, vectors BLOB,
    PRIMARY KEY (document, encoder, part));
CREATE INDEX IF NOT EXISTS of_encoder ON vectors (encoder);
CREATE TABLE IF NOT EXISTS files (path TEXT PRIMARY KEY, stamp TEXT, key BLOB) WITHOUT ROWID;
INSERT INTO state SELECT '', 0, '' WHERE NOT EXISTS (SELECT 1 FROM state);
COMMIT;
"""
_SETTINGS = "PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; PRAGMA foreign_keys=ON; PRAGMA synchronous=NORMAL"


class CorpusError(InvalidInput):
    """A corpus cannot be read or written: it is damaged, locked, of another program, or the disk is full.

    The cause of the error says which.
    """


@contextmanager
def connect(file: Path | None, *, create: bool = False) -> Iterator[sqlite3.Connection]:
    """Open the database of a corpus.

    Args:
        file: Path of the file. None opens a database in memory.
        create: True to create the file if it does not exist.

    Raises:
        OSError, sqlite3.Error: The file cannot be opened or has other content.
    """
    if file and (file.is_symlink() or (file.exists() and not file.is_file())):
        raise OSError("the path is a link, folder, pipe or device; give the path of a regular file")
    uri = f"{file.as_uri()}?mode={'rwc' if create else 'rw'}" if file else ":memory:"
    connection = sqlite3.connect(uri, WRITE_TIMEOUT, isolation_level=None, check_same_thread=False, uri=True)
    with closing(connection) as database:
        database.executescript(_SETTINGS)
        if create and not _read_schema(database):
            with suppress(sqlite3.OperationalError):  # another process creates it
                database.execute("PRAGMA journal_mode = WAL")
            database.executescript(_SCHEMA)
        # A trigger or view that another program added would run with our statements.
        if _read_schema(database) != _expected_schema():
            raise sqlite3.DatabaseError(
                "it has other tables than this version of drillrank makes; delete the file or give another path"
            )
        yield database


def _read_schema(database: sqlite3.Connection) -> list[tuple[str, str | None]]:
    return database.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()


@lru_cache(maxsize=1)
def _expected_schema() -> list[tuple[str, str | None]]:
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(_SCHEMA)
        return _read_schema(database)
