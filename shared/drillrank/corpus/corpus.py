"""The corpus: documents and their passages on disk, added, changed, removed and searched."""

from __future__ import annotations

import json
import os
import sqlite3
import time
import uuid
import weakref
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate, islice
from pathlib import Path
from threading import RLock

import numpy as np
import numpy.typing as npt

from drillrank import limits
from drillrank import text as text_module
from drillrank.corpus import index
from drillrank.corpus.documents import Above, Content, Prepared, prepared
from drillrank.corpus.index import LEVELS, DocumentCounts, Layout, Scorer, Unit, bm25
from drillrank.errors import InvalidInput
from drillrank.passages import Passage, Ranked, check_query, check_top_n
from drillrank.structure import PARSER_VERSION, Document, file_key
from drillrank.structure.document import document_from_json
from drillrank.text import check_language, terms, without_surrogates
from drillrank.vectors import CollectionStatistics, top

PATIENCE = 60.0  # seconds to wait for another process that writes

# Numbers of passages rise and are not used again; those of a document follow one another from `first` on. `above`,
# `pages`, `sections` and `digests` are those of `Prepared`. `blocks` and `postings` hold statistics of units, which
# have the number of a passage: level 0 has passages with their titles, level 1 headings of sections, level 2 what these
# leave out, and level 3 beginnings of documents. `annotations` hold what passages are found by, each kind by its name;
# `vectors` are little-endian float32. `files` has the key of a file's content, and the size and times that it had then.
_SCHEMA = """
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS state (analyzer TEXT, indexed INTEGER);
CREATE TABLE IF NOT EXISTS documents (
    id TEXT PRIMARY KEY, key BLOB, used REAL, first INTEGER, size INTEGER, parse BLOB,
    above TEXT, pages BLOB, sections BLOB, digests BLOB);
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
    passage INTEGER REFERENCES passages ON DELETE CASCADE, model TEXT, vector BLOB,
    PRIMARY KEY (passage, model)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS files (path TEXT PRIMARY KEY, stamp TEXT, key BLOB) WITHOUT ROWID;
INSERT INTO state SELECT '', 0 WHERE NOT EXISTS (SELECT 1 FROM state);
COMMIT;
"""
_SETTINGS = "PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; PRAGMA foreign_keys=ON; PRAGMA synchronous=NORMAL"
BATCH = 5_000  # passages of a transaction
_OF_NAME = """SELECT passages.id, weight FROM annotations CROSS JOIN passages ON number = passage
    WHERE kind = ? AND value = ? ORDER BY passage"""
_NEWEST = "SELECT passage FROM annotations WHERE kind = ? ORDER BY passage DESC LIMIT 1"
# What Python raises where stored values are damaged.
_DAMAGE = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError, zlib.error)
Row = tuple[str, float]
"""A name of a passage, and how much it counts there."""
_TITLED = "CASE title WHEN '' THEN text ELSE title || ' ' || text END"
_USED = "UPDATE documents SET used = ? WHERE id = ? AND key = ?"
_OF_DOCUMENT = "FROM documents JOIN passages ON number >= first AND number < first + size WHERE documents.id = ?"


class CorpusError(InvalidInput):
    """A corpus that cannot be read or written: damaged, of another program, locked, or without room; see its cause."""


class Corpus:
    r"""Documents and their passages in an SQLite file, with all that must be known of them to rank passages.

    A passage is a paragraph of a document, with the path of its headings as title; what is added as a `Passage` is a
    document of one. Scores are those of an index in memory over the same passages: they depend on what is there, not on
    what was there before. In memory is what one query needs.

    May be used by many threads and processes at once, after a fork, and be sent to processes that see the file, which
    is opened for each call. Many may read while one writes; others wait for it. What is added is committed some
    thousand passages at a time: after an interruption the same call goes on where it was. A file that another version
    of the analyzer indexed is indexed anew, from the texts that it holds, when it is next used.

    It is a first stage for `PathSearch(first_stage=...)`, which then knows statistics and titles of all passages.

    Args:
        path: A file, which is made if it is not there. None: all is in memory.
        language: Whose stemmer words go through: one of `drillrank.text.LANGUAGES`. A file that was made in another one
            is indexed anew.

    Raises:
        CorpusError: The file cannot be read or written, or holds something else; so does any call.

    >>> from drillrank.structure import parse_document
    >>> corpus = Corpus()
    >>> corpus.add([Passage("A red fox lives in Basel.", id="fox"), Passage("A whale sings.")])
    >>> corpus.add([("rivers", parse_document("# Rhine\n\nIt flows by Basel.\n\nIt is long."))])
    >>> [(item.passage.id, item.passage.title) for item in corpus.search("How long is the Rhine?", 2)]
    [('rivers:29', 'Rhine'), ('rivers:9', 'Rhine')]
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, language: str = "english") -> None:
        self._language = check_language(language)
        self._file = None if path is None else Path(path).expanduser().absolute()
        self._memory: tuple[RLock, sqlite3.Connection] | None = None
        if path is None:
            opened = _connected(None, create=True)
            self._memory = RLock(), opened.__enter__()
            weakref.finalize(self, opened.__exit__, None, None, None)
        with self._transaction(create=True):
            pass

    @property
    def language(self) -> str:
        """Whose stemmer words go through."""
        return self._language

    def add(self, documents: Iterable[Content | tuple[str, Content | Prepared]]) -> None:
        """Add documents, or change those whose id is there with another content; for the same one nothing is done.

        Args:
            documents: Passages, parsed documents or files (`Path`), or pairs of an id and one of these; read once, and
                a few at a time, so that `tqdm(files)` shows the progress. Without an id, a passage keeps its own, a
                file is called by its path, and a parsed document by a hash. Of several with one id the last counts.
                Metadata have to be such as JSON knows. Halves of characters (lone surrogates) become U+FFFD.

        Raises:
            DrillrankError: a document cannot be read or used, or two hold passages of one id. What was read before is
                added; an iterator can go on with the next one.
        """
        batch: dict[str, Prepared] = {}
        pending = 0
        try:
            for given in documents:
                id_, content = given if isinstance(given, tuple) else (None, given)
                one = prepared(content, id_, self.known)
                batch.pop(one.id, None)
                batch[one.id] = one
                pending += 1 + len(one.rows or ())
                if pending > BATCH:
                    self._write(batch.values())
                    batch, pending = {}, 0
        finally:
            self._write(batch.values())

    def remove(self, ids: Iterable[str]) -> None:
        """Remove documents; ids that are not there are passed over."""
        pending = iter(ids)
        while some := list(islice(pending, BATCH)):
            with self._transaction("IMMEDIATE") as database:
                self._discard(database, some)

    def known(self, keys: Iterable[tuple[str, bytes]]) -> set[str]:
        """Ids of files that need not be read, given with their keys (`structure.file_key`); they count as used."""
        with self._transaction("IMMEDIATE") as database:
            return {id_ for id_, key in keys if database.execute(_USED, (time.time(), id_, key)).rowcount}

    def expire(self, seconds: float) -> None:
        """Remove what was not used, as `add` and `known` use it, for so long."""
        with self._transaction() as database:
            old = database.execute("SELECT id FROM documents WHERE used < ?", (time.time() - seconds,)).fetchall()
        self.remove(id_ for (id_,) in old)

    def file_keys(
        self, paths: Iterable[Path], folder_by_path: Mapping[Path, Path] | None = None
    ) -> Iterator[bytes | InvalidInput]:
        """Keys of files (`structure.file_key`), or why one cannot be read.

        A file whose size and times are as before is not read again. A file with a folder must be in that folder.
        """
        folders = folder_by_path or {}
        new: list[tuple[str, str, bytes]] = []
        with self._transaction() as database:
            rows = database.execute("SELECT path, stamp, key FROM files WHERE typeof(key) = 'blob'")
            known = {path: (stamp, key) for path, stamp, key in rows}
        for path in paths:
            try:
                found = path.stat()
                # What has changed in the last seconds may change once more without another time.
                changed = max(found.st_mtime_ns, found.st_ctime_ns)
                times = f"{found.st_mtime_ns} {found.st_ctime_ns}" if time.time_ns() - changed > 2e9 else ""
                stamp = f"{PARSER_VERSION} {found.st_dev} {found.st_ino} {found.st_size} {times}"
                name = os.fsencode(path).hex()
                if times and known.get(name, ("",))[0] == stamp and os.access(path, os.R_OK):
                    yield known[name][1]
                    continue
                key = file_key(path, folders[path]) if path in folders else file_key(path)
                if times:
                    new.append((name, stamp, key))
                yield key
            except OSError as error:
                yield InvalidInput(f"{path} cannot be read: {error.strerror}.")
            except InvalidInput as error:
                yield error
        if new:
            with self._transaction("IMMEDIATE") as database:
                database.execute("DELETE FROM files WHERE key NOT IN (SELECT key FROM documents)")
                database.executemany("INSERT OR REPLACE INTO files VALUES (?, ?, ?)", new)

    def search(self, query: str, top_n: int | None = None, *, scorer: Scorer = bm25) -> list[Ranked[Passage]]:
        """The passages that hold a word of the query, best first; ties keep the order in which they were added.

        Args:
            query: The question.
            top_n: How many passages to return; None returns all.
            scorer: From counts of the query's words to scores.

        Raises:
            InvalidInput: the query is blank, or `top_n` is below 1.
        """
        check_top_n(top_n)
        words = terms(check_query(query), self._language)
        found: list[tuple[int, float]] = []
        with self._transaction() as database:
            for numbers, scores in scorer(index.counts_of(database, words)):
                chosen = top(scores, top_n or len(scores))
                found += zip(numbers[chosen].tolist(), scores[chosen].tolist(), strict=True)
            found = sorted(found, key=lambda item: -item[1])[:top_n]
            passages = _passages(database, "number", [number for number, _ in found])
            if len(passages) < len(found):
                raise LookupError("the index names passages that do not exist")
        return [Ranked(passages[location], score, location + 1) for location, (_, score) in enumerate(found)]

    def retrieve(self, query: str, n: int, /) -> list[Passage]:
        """The passages of `search`."""
        return [item.passage for item in self.search(query, n)]

    def ids(self) -> list[str]:
        """Of the documents, in the order in which they were added."""
        with self._transaction() as database:
            return [id_ for (id_,) in database.execute("SELECT id FROM documents ORDER BY first, used")]

    def layout(self, ids: Iterable[str]) -> Layout:
        """Where the passages of some documents stand.

        Args:
            ids: Of the documents, each once; those that are not there are left out.
        """
        select = "SELECT first, size, pages, sections, above FROM documents WHERE id = ? AND size > 0"
        with self._transaction() as database:
            rows = [(id_, *row) for id_ in ids for row in database.execute(select, (id_,))]
            return index.laid_out(database, sorted(rows, key=lambda row: row[1]), self._language)

    def counts(self, query: str, layout: Layout) -> DocumentCounts:
        """How often passages of some documents, and what stands above them, hold the words of a query."""
        with self._transaction() as database:
            return index.document_counts(database, terms(query, self._language), layout)

    def at(self, numbers: Iterable[int]) -> list[Passage]:
        """The passages with these numbers that exist, in their order."""
        with self._transaction() as database:
            return _passages(database, "number", map(int, numbers))

    def passages(self, id_: str) -> list[Passage]:
        """The passages of a document, in order; none where there is no such document.

        Their metadata hold at least `document`, its id, and `section_path`.
        """
        with self._transaction() as database:
            query = f"SELECT passages.id, title, text, links, metadata {_OF_DOCUMENT} ORDER BY number"
            found = []
            for key, title, text, links, metadata in database.execute(query, (id_,)):
                path = (title,) if title else ()
                location = {"document": id_, "section_path": path, **json.loads(metadata)}
                location |= {name: tuple(location[name]) for name in ("section_path", "pages") if name in location}
                found.append(Passage(text, id=key, title=title, links=json.loads(links), metadata=location))
        return found

    def vectors(self, numbers: Iterable[int], model: str) -> dict[int, npt.NDArray[np.float32]]:
        """Vectors that `keep_vectors` was given, by the numbers of their passages."""
        query = "SELECT vector FROM vectors WHERE passage = ? AND model = ?"
        with self._transaction() as database:
            rows = [(number, row) for number in map(int, numbers) for row in database.execute(query, (number, model))]
            return {number: np.frombuffer(vector, "<f4") for number, (vector,) in rows}

    def keep_vectors(self, vectors: Mapping[int, npt.NDArray[np.float32]], model: str) -> None:
        """Keep vectors of passages as long as these are there, by their numbers, under the name of a model."""
        rows = [(number, model, vector.astype("<f4").tobytes()) for number, vector in vectors.items()]
        with self._transaction("IMMEDIATE") as database:
            query = """INSERT OR REPLACE INTO vectors SELECT ?, ?, ?
                WHERE EXISTS (SELECT 1 FROM passages WHERE number = ?)"""
            database.executemany(query, [(*row, row[0]) for row in rows])

    def above(self, id_: str) -> Above:
        """What stands above the passages of a document.

        Raises:
            InvalidInput: there is none of this id.
        """
        with self._transaction() as database:
            for (above,) in database.execute("SELECT above FROM documents WHERE id = ?", (id_,)):
                return Above(*json.loads(above))
        raise InvalidInput(f"There is no document {id_!r:.200} in the corpus.")

    def digests(self, id_: str) -> frozenset[int]:
        """Return the `text_digests` of a document. Empty if there is no such document."""
        with self._transaction() as database:
            rows = database.execute("SELECT digests FROM documents WHERE id = ?", (id_,)).fetchall()
            return frozenset(np.frombuffer(rows[0][0], "<i8").tolist() if rows else ())

    def fetch(self, ids: Collection[str], /) -> list[Passage]:
        """The passages with these ids that exist."""
        with self._transaction() as database:
            return _passages(database, "id", [id_ for id_ in dict.fromkeys(ids) if without_surrogates(id_) == id_])

    def document(self, id_: str) -> Document:
        """A document that was added as such, or as a file.

        Raises:
            InvalidInput: there is none of this id.
        """
        with self._transaction() as database:
            for (parse,) in database.execute("SELECT parse FROM documents WHERE id = ? AND parse IS NOT NULL", (id_,)):
                return document_from_json(zlib.decompressobj().decompress(parse, limits.STORED_BYTES).decode())
        raise InvalidInput(f"There is no document {id_!r:.200} in the corpus.")

    def names(self, kind: str, rows: Callable[[Passage], Iterable[Row]], /) -> StoredNames:
        """What passages are found by, of one kind: kept on disk, those of new passages added when they are asked for.

        Args:
            kind: Says which names these are, and how they are made.
            rows: The names of a passage, with weights; of equal ones the first counts.
        """
        return StoredNames(self, kind, rows)

    def version(self) -> tuple[int, int]:
        """Another one after each change of the passages."""
        with self._transaction() as database:
            [found] = database.execute("SELECT indexed, (SELECT total(size) FROM documents) FROM state").fetchall()
            return int(found[0]), int(found[1])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the corpus to a file of its own; what is there is replaced, unless it is this corpus.

        Raises:
            CorpusError: it cannot be written.
        """
        file = Path(path).expanduser().absolute()
        if file == self._file:
            return
        temporary = file.with_name(f"{file.name}.{uuid.uuid4().hex}")
        lock, in_memory = self._memory or (nullcontext(), None)
        try:
            with lock, nullcontext(in_memory) if in_memory else _connected(self._file) as database:
                database.execute("VACUUM INTO ?", (str(temporary),))
            os.replace(temporary, file)
        except (sqlite3.Error, OSError) as cause:
            temporary.unlink(missing_ok=True)
            raise CorpusError(f"The corpus cannot be written to {str(path)!r:.200}: {cause!s:.200}") from cause

    def statistics(self) -> CollectionStatistics:
        """Of all titled texts, for `LanguageModel.fit`; its room grows with the vocabulary."""
        with self._transaction() as database:
            return replace(index.statistics(database), language=self._language)

    def __len__(self) -> int:
        with self._transaction() as database:
            # Of damaged sizes, `range` tells here, and not where the caller asks.
            return len(range(int(database.execute("SELECT total(size) FROM documents").fetchone()[0])))

    def __iter__(self) -> Iterator[Passage]:
        """The passages, in the order in which they were added."""
        last = 0
        while True:
            with self._transaction() as database:
                some = _numbered(database, last)
            if not some:
                return
            last = some[-1][0]
            yield from (passage for _, passage in some)

    @contextmanager
    def _transaction(self, kind: str = "DEFERRED", *, create: bool = False) -> Iterator[sqlite3.Connection]:
        """One state of the corpus, wholly indexed; "IMMEDIATE" to change it."""
        lock, in_memory = self._memory or (nullcontext(), None)
        try:
            with lock, nullcontext(in_memory) if in_memory else _connected(self._file, create=create) as database:
                while not self._is_indexed(database):
                    with database:
                        database.execute("BEGIN IMMEDIATE")
                        self._index(database)
                with database:
                    database.execute(f"BEGIN {kind}")
                    yield database
        except (sqlite3.Error, OSError, *_DAMAGE) as cause:
            raise CorpusError(
                f"The corpus {str(self._file or 'in memory')!r:.200} cannot be used: {cause!s:.200}"
            ) from cause

    @property
    def _analyzer(self) -> str:
        """What words are made by."""
        return f"{self._language} {text_module.ANALYZER}"

    def _is_indexed(self, database: sqlite3.Connection) -> bool:
        query = "SELECT analyzer = ? AND indexed >= (SELECT coalesce(max(number), 0) FROM passages) FROM state"
        return bool(int(database.execute(query, (self._analyzer,)).fetchone()[0]))

    def _index(self, database: sqlite3.Connection) -> None:
        """Count the next passages; the first ones, where another version has counted before."""
        if database.execute("SELECT analyzer FROM state").fetchone() != (self._analyzer,):
            database.execute("DELETE FROM postings")
            database.execute("DELETE FROM blocks")
            database.execute("UPDATE state SET analyzer = ?, indexed = 0", (self._analyzer,))
        query = f"""SELECT number, {_TITLED}, number = (SELECT min(number) FROM passages WHERE digest = one.digest)
            FROM passages AS one WHERE number > (SELECT indexed FROM state) ORDER BY number LIMIT ?"""
        rows = database.execute(query, (BATCH,)).fetchall()
        index.add(database, 0, [(number, terms(text, self._language), first) for number, text, first in rows])
        query = "SELECT first, above FROM documents WHERE first BETWEEN ? AND ? AND size > 0 ORDER BY first"
        documents = database.execute(query, (rows[0][0], rows[-1][0])).fetchall() if rows else []
        for level in LEVELS:
            index.add(
                database, level, (unit for first, above in documents for unit in self._units(level, first, above))
            )
        database.executemany("UPDATE state SET indexed = ?", [(number,) for number, *_ in rows[-1:]])

    def _units(self, level: int, first: int, above: str) -> Iterator[Unit]:
        """What stands above the passages of a document, as it is counted at a level."""
        headings, beginning, *_ = Above(*json.loads(above))
        texts = [(0, beginning)] if level == 3 else [(location, texts[level - 1]) for location, *texts in headings]
        for location, text in texts:
            yield first + location, terms(text, self._language), True

    def _write(self, batch: Iterable[Prepared]) -> None:
        """Write what is new or changed; of the rest, that it was added once more."""
        next_number = "SELECT 1 + max(indexed, (SELECT coalesce(max(number), 0) FROM passages)) FROM state"
        with self._transaction("IMMEDIATE") as database:
            changed = [one for one in batch if not database.execute(_USED, (time.time(), one.id, one.key)).rowcount]
            self._discard(database, [one.id for one in changed])
            for one in changed:
                if one.rows is not None:  # else somebody has removed it meanwhile
                    [first] = database.execute(next_number).fetchone()
                    new = (one.id, one.key, time.time(), first, len(one.rows), one.parse, json.dumps(one.above))
                    places = (one.pages, one.sections, one.digests)
                    database.execute("INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (*new, *places))
                    numbered = ((number, *row) for number, row in enumerate(one.rows, first))
                    try:
                        database.executemany("INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?, ?)", numbered)
                    except sqlite3.IntegrityError as cause:
                        raise ValueError(
                            f"the document {one.id!r:.200} has a passage with the id of another's"
                        ) from cause
            while not self._is_indexed(database):
                self._index(database)

    def _discard(self, database: sqlite3.Connection, ids: Iterable[str]) -> None:
        units: dict[int, list[Unit]] = {level: [] for level in (0, *LEVELS)}
        for id_ in ids:
            rows = database.execute(f"SELECT number, {_TITLED}, digest {_OF_DOCUMENT}", (id_,)).fetchall()
            for number, text, digest in rows:
                database.execute("DELETE FROM passages WHERE number = ?", (number,))
                same = database.execute("SELECT 1 FROM passages WHERE digest = ?", (digest,)).fetchone()
                units[0].append((number, terms(text, self._language), same is None))
            document = database.execute("SELECT first, above FROM documents WHERE id = ? AND size > 0", (id_,))
            for first, above in document.fetchall():
                for level in LEVELS:
                    units[level] += self._units(level, first, above)
            database.execute("DELETE FROM documents WHERE id = ?", (id_,))
        for level, of_level in units.items():
            index.discard(database, level, sorted(of_level))


class StoredNames:
    """The names of one kind of all passages of a corpus; those of new passages are added before any answer.

    Args:
        corpus: Where they are kept.
        kind: Says which names these are, and how they are made.
        rows: The names of a passage, with weights; of equal ones the first counts.
    """

    def __init__(self, corpus: Corpus, kind: str, rows: Callable[[Passage], Iterable[Row]]) -> None:
        self._corpus, self._kind, self._rows = corpus, kind, rows

    def of(self, names: Iterable[str], /) -> dict[str, dict[str, float]]:
        """Those of the names that there are, with the ids of their passages."""
        with self._current() as database:
            return self._of(database, names)

    def mentions(self, tokens: Sequence[str], /) -> list[tuple[int, int, Mapping[str, float]]]:
        """Where names begin and end among the tokens; of one start the longest first."""
        query = "SELECT min(value) FROM annotations WHERE kind = ? AND value >= ?"
        tokens = list(map(without_surrogates, tokens))
        places: list[tuple[int, int, str]] = []
        with self._current() as database:
            for start in range(len(tokens)):
                for end, name in enumerate(accumulate(islice(tokens, start, None), "{} {}".format), start + 1):
                    [following] = database.execute(query, (self._kind, name)).fetchone()
                    if following == name:
                        places.append((start, end, name))
                    if not (following or "").startswith(name):
                        break  # no name goes on like this
            known = self._of(database, {name for _, _, name in places})
        found = [(start, end, known[name]) for start, end, name in places]
        return sorted(found, key=lambda mention: (mention[0], -mention[1]))

    def update(self) -> None:
        """Add the names of passages that are new."""
        with self._current():
            pass

    def _of(self, database: sqlite3.Connection, names: Iterable[str]) -> dict[str, dict[str, float]]:
        found = {}
        for name in names:
            if ids := dict(database.execute(_OF_NAME, (self._kind, without_surrogates(name)))):
                found[name] = ids
        return found

    @contextmanager
    def _current(self) -> Iterator[sqlite3.Connection]:
        while True:
            with self._corpus._transaction() as database:
                [last] = database.execute("SELECT coalesce(max(number), 0) FROM passages").fetchone()
                newest = database.execute(_NEWEST, (self._kind,)).fetchone()
                if not last or (newest is not None and newest[0] >= last):
                    yield database
                    return
            with self._corpus._transaction("IMMEDIATE") as database:
                newest = database.execute(_NEWEST, (self._kind,)).fetchone() or (0,)
                rows = {}
                for number, passage in _numbered(database, newest[0]):
                    rows[self._kind, "", number] = 0.0  # so that it is seen to be done
                    for name, weight in self._rows(passage):
                        rows.setdefault((self._kind, without_surrogates(name), number), weight)
                sorted_rows = ((*key, rows[key]) for key in sorted(rows))  # near each other in the file
                database.executemany("INSERT INTO annotations VALUES (?, ?, ?, ?)", sorted_rows)


def _numbered(database: sqlite3.Connection, after: int) -> list[tuple[int, Passage]]:
    """The next passages after a number."""
    query = "SELECT number FROM passages WHERE number > ? ORDER BY number LIMIT ?"
    numbers = [number for (number,) in database.execute(query, (after, BATCH))]
    return list(zip(numbers, _passages(database, "number", numbers), strict=True))


def _passages(database: sqlite3.Connection, column: str, keys: Iterable[object]) -> list[Passage]:
    """Those with these keys that there are, in their order."""
    query = f"SELECT id, title, text, links, metadata FROM passages WHERE {column} = ? ORDER BY number"
    return [_passage(row) for key in keys for row in database.execute(query, (key,))]


def _passage(row: tuple[str, str, str, str, str]) -> Passage:
    id_, title, text, links, metadata = row
    return Passage(text, id=id_, title=title, links=json.loads(links), metadata=json.loads(metadata))


@contextmanager
def _connected(file: Path | None, *, create: bool = False) -> Iterator[sqlite3.Connection]:
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
