"""The SQLite file of a corpus: its tables, and how it is opened."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from pathlib import Path

PATIENCE = 60.0  # seconds to wait for another process that writes

# Numbers of passages rise and are not used again; those of a document follow one another from `first` on. `above`,
# `pages`, `sections` and `digests` are those of `drillrank.corpus.documents.Prepared`. `blocks` and `postings` hold
# statistics of units, which have the number of a passage: level 0 has passages with their titles, level 1 headings of
# sections, level 2 what these leave out, and level 3 beginnings of documents. Others fill `annotations` (names, dates,
# mentions, links: each kind by its name), and `vectors` (little-endian float16 or float32). `files` has the key of a
# file's content, and the size and times that it had then.
_SCHEMA = """
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS state (analyzer TEXT, indexed INTEGER);
CREATE TABLE IF NOT EXISTS documents (
    id TEXT PRIMARY KEY, key BLOB, used REAL, first INTEGER, size INTEGER, parse BLOB,
    above TEXT, pages BLOB, sections BLOB, digests BLOB);
CREATE TABLE IF NOT EXISTS passages (
    number INTEGER PRIMARY KEY, id TEXT UNIQUE, digest INTEGER, name TEXT,
    title TEXT, text TEXT, links TEXT, metadata TEXT);
CREATE INDEX IF NOT EXISTS by_digest ON passages (digest);
CREATE INDEX IF NOT EXISTS by_name ON passages (name) WHERE name IS NOT NULL;
CREATE TABLE IF NOT EXISTS blocks (
    level INTEGER, block INTEGER, units INTEGER, words INTEGER, lengths BLOB, PRIMARY KEY (level, block)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS postings (
    level INTEGER, block INTEGER, term TEXT, holding INTEGER, occurrences INTEGER, entries BLOB,
    PRIMARY KEY (level, block, term)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS annotations (
    kind TEXT, value TEXT, passage INTEGER REFERENCES passages ON DELETE CASCADE, start INTEGER, "end" INTEGER,
    weight REAL, PRIMARY KEY (kind, value, passage, start)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS of_passage ON annotations (passage);
CREATE TABLE IF NOT EXISTS vectors (
    passage INTEGER REFERENCES passages ON DELETE CASCADE, model TEXT, dimensions INTEGER,
    vector BLOB CHECK (typeof(vector) = 'blob' AND length(vector) IN (2 * dimensions, 4 * dimensions)),
    PRIMARY KEY (passage, model)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS files (path TEXT PRIMARY KEY, stamp TEXT, key BLOB) WITHOUT ROWID;
INSERT INTO state SELECT '', 0 WHERE NOT EXISTS (SELECT 1 FROM state);
COMMIT;
"""
_SETTINGS = "PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; PRAGMA foreign_keys=ON; PRAGMA synchronous=NORMAL"


@contextmanager
def connected(file: Path | None, *, create: bool = False) -> Iterator[sqlite3.Connection]:
    """The corpus in a file, which `create` makes where there is none; None for one in memory.

    Raises:
        OSError, sqlite3.Error: it cannot be opened, or something else is there.
    """
    if file and (file.is_symlink() or (file.exists() and not file.is_file())):
        raise OSError("a link, folder, pipe or device is there, and no file")
    name = f"{file.as_uri()}?mode={'rwc' if create else 'rw'}" if file else ":memory:"
    with closing(sqlite3.connect(name, PATIENCE, isolation_level=None, check_same_thread=False, uri=True)) as database:
        database.executescript(_SETTINGS)
        if create and not _schema_of(database):
            with suppress(sqlite3.OperationalError):  # another process is making it
                database.execute("PRAGMA journal_mode = WAL")
            database.executescript(_SCHEMA)
        if _schema_of(database) != _schema():  # a trigger or a view of somebody else's would run as ours
            raise sqlite3.DatabaseError("it holds other tables")
        yield database


def _schema_of(database: sqlite3.Connection) -> list[tuple[str, str | None]]:
    return database.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()


@lru_cache(maxsize=1)
def _schema() -> list[tuple[str, str | None]]:
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(_SCHEMA)
        return _schema_of(database)
