"""A collection in an SQLite file: passages, links, titles and counts of words stay on disk."""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cached_property
from hashlib import blake2b
from itertools import islice
from pathlib import Path

from drillrank.collection_statistics import CollectionStatistics
from drillrank.errors import InvalidInput
from drillrank.multihop.title_mentions import counted_title
from drillrank.passages import Passage, as_passages
from drillrank.text import check_surrogates, terms, without_surrogates
from drillrank.whole_files import whole_path

_BATCH = 5_000  # passages that are in memory while a file is written
_SCHEMA = """
    PRAGMA journal_mode = OFF;
    PRAGMA synchronous = OFF;
    CREATE TABLE passages (place INTEGER PRIMARY KEY, id TEXT UNIQUE, title TEXT, text TEXT, links TEXT, metadata TEXT);
    CREATE TABLE titles (name TEXT, id TEXT);
    CREATE TABLE words (word TEXT, holding INTEGER, occurrences INTEGER);
    CREATE TABLE sizes (texts INTEGER);
    CREATE TEMP TABLE seen (digest BLOB PRIMARY KEY) WITHOUT ROWID;
    CREATE VIRTUAL TABLE bm25 USING fts5(words, content='', tokenize="ascii tokenchars '.'");
"""


class StoredCorpus:
    """A `Corpus` in a file that `write` wrote; the first stage is SQLite's BM25 (FTS5) over stemmed words.

    In memory are the counts of the vocabulary, and what a question brings. A word that more than half of the texts hold
    says nothing, and is not searched beside others. May be used from many threads and after a fork, and sent to other
    processes that see the file: it is opened for each look-up. A collection that is written anew belongs to another
    name, or to a `StoredCorpus` that is made afterwards: this one would mix two.

    Args:
        file: Where it is.

    Raises:
        InvalidInput: no such collection is there; in any look-up: it is no longer there, or damaged.

    >>> from tempfile import TemporaryDirectory
    >>> fox = Passage("A red fox lives in Basel.", id="fox", links=("basel",))
    >>> basel = Passage("It lies on the Rhine.", id="basel", title="Basel")
    >>> with TemporaryDirectory() as folder:
    ...     corpus = StoredCorpus.write(f"{folder}/corpus.db", [fox, basel, Passage("A whale sings.")])
    ...     [passage.id for passage in corpus.retrieve("Which foxes?", 5)], corpus.fetch(["basel"])[0].title
    (['fox'], 'Basel')
    """

    def __init__(self, file: str | os.PathLike[str]) -> None:
        self._file = Path(file).expanduser().absolute()
        self._version: int | None = None
        with self._reading() as database:
            [self._version] = database.execute("PRAGMA user_version").fetchone()
            [self._texts] = database.execute("SELECT texts FROM sizes").fetchone()

    def __reduce__(self) -> tuple[type[StoredCorpus], tuple[str]]:
        return StoredCorpus, (str(self._file),)

    @classmethod
    def write(cls, file: str | os.PathLike[str], passages: Iterable[Passage]) -> StoredCorpus:
        """Write a collection, in place of one that is there; the file appears once it is whole.

        Args:
            file: Where to.
            passages: Read once, a few thousand at a time, so that they need not fit into memory. Metadata have to be
                such as JSON knows. Halves of characters (lone surrogates) become U+FFFD.

        Raises:
            InvalidInput: two passages share an id, one is no passage, metadata are nothing for JSON, or the file cannot
                be written.
        """
        path = Path(file).expanduser().absolute()
        try:
            with whole_path(path) as unfinished, closing(sqlite3.connect(unfinished)) as database:
                _fill(database, passages)
        except (OSError, sqlite3.Error) as cause:
            raise InvalidInput(f"The collection cannot be written to {str(path)!r}: {cause}.") from cause
        return cls(path)

    @cached_property
    def statistics(self) -> CollectionStatistics:
        """Of all titled texts; read once."""
        with self._reading() as database:
            rows = database.execute("SELECT word, holding, occurrences FROM words").fetchall()
        return CollectionStatistics(
            self._texts, {word: holding for word, holding, _ in rows}, {word: times for word, _, times in rows}
        )

    def retrieve(self, query: str, n: int, /) -> list[Passage]:
        """At most `n` passages that hold a word of the query, by BM25, best first."""
        holding = self.statistics.holding
        known = [word for word in dict.fromkeys(terms(query)) if word in holding]
        if not known:
            return []
        asked = [word for word in known if 2 * holding[word] <= self._texts] or known
        match = " OR ".join(f'"{word}"' for word in asked)
        with self._reading() as database:
            found = database.execute(
                "SELECT rowid FROM bm25 WHERE bm25 MATCH ? ORDER BY rank, rowid LIMIT ?", (match, n)
            )
            return _passages(database, "SELECT * FROM passages WHERE place = ?", [place for (place,) in found])

    def fetch(self, ids: Sequence[str], /) -> list[Passage]:
        """The passages with these ids that exist."""
        whole = [name for name in dict.fromkeys(ids) if without_surrogates(name) == name]
        with self._reading() as database:
            return _passages(database, "SELECT * FROM passages WHERE id = ?", whole)

    def mentions(self, tokens: Sequence[str], /) -> list[tuple[int, int, Sequence[str]]]:
        """Where titles begin and end among the tokens; of one start the longest first."""
        folded = [token.casefold() for token in tokens]
        found: list[tuple[int, int, Sequence[str]]] = []
        with self._reading() as database:
            for start in range(len(folded)):
                of_start: list[tuple[int, int, Sequence[str]]] = []
                for end in range(start + 1, len(folded) + 1):
                    name = " ".join(folded[start:end])
                    [next_name] = database.execute("SELECT min(name) FROM titles WHERE name >= ?", (name,)).fetchone()
                    if next_name == name:
                        ids = database.execute("SELECT id FROM titles WHERE name = ? ORDER BY rowid", (name,))
                        of_start.append((start, end, [id_ for (id_,) in ids]))
                    elif next_name is None or not next_name.startswith(f"{name} "):
                        break  # no title goes on like this
                found += reversed(of_start)
        return found

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(f"{self._file.as_uri()}?mode=ro", uri=True)) as database:
                [version] = database.execute("PRAGMA user_version").fetchone()
                if self._version not in (None, version):
                    raise InvalidInput(
                        f"The collection {str(self._file)!r} was written anew since it was opened: make a new "
                        "StoredCorpus of it, and of that a new search."
                    )
                yield database
        except sqlite3.Error as cause:
            raise InvalidInput(
                f"{str(self._file)!r} holds no collection: {cause}. StoredCorpus.write(file, passages) writes one."
            ) from cause


def _passages(database: sqlite3.Connection, query: str, keys: Iterable[object]) -> list[Passage]:
    """Those that the query finds by each key, in the order of the keys."""
    rows = [row for key in keys for row in database.execute(query, (key,))]
    return [
        Passage(text, id=id_, title=title, links=tuple(json.loads(links)), metadata=json.loads(metadata))
        for _, id_, title, text, links, metadata in rows
    ]


def _fill(database: sqlite3.Connection, passages: Iterable[Passage]) -> None:
    database.executescript(_SCHEMA)
    holding, occurrences = Counter[str](), Counter[str]()
    texts = 0
    for place, passage in enumerate(_each(passages)):
        texts += 1
        words = terms(passage.titled_text)
        counted = Counter(words)
        holding.update(counted.keys())
        if _is_new(database, passage.titled_text):
            occurrences.update(counted)
        try:
            database.execute("INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?)", (place, *_columns(passage)))
        except sqlite3.IntegrityError as cause:
            raise InvalidInput(f"Two passages share the id {passage.id!r:.200}.") from cause
        database.execute("INSERT INTO bm25 (rowid, words) VALUES (?, ?)", (place, " ".join(words)))
        if name := counted_title(passage):
            database.execute("INSERT INTO titles VALUES (?, ?)", (" ".join(map(without_surrogates, name)), passage.id))
        if texts % _BATCH == 0:
            database.commit()
    rows = ((word, count, occurrences[word]) for word, count in holding.items())
    database.executemany("INSERT INTO words VALUES (?, ?, ?)", rows)
    database.execute("INSERT INTO sizes VALUES (?)", (texts,))
    database.execute("CREATE INDEX by_name ON titles (name)")
    database.execute(f"PRAGMA user_version = {secrets.randbelow(2**31)}")
    database.commit()


def _each(passages: Iterable[Passage]) -> Iterator[Passage]:
    if isinstance(passages, str | Passage):
        as_passages(passages)  # says what was wrong
    waiting = iter(passages)
    while batch := list(islice(waiting, _BATCH)):
        yield from as_passages(batch)


def _is_new(database: sqlite3.Connection, text: str) -> bool:
    """Whether no equal text came before: p(w|C) counts each once."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return database.execute("INSERT OR IGNORE INTO seen VALUES (?)", (digest,)).rowcount == 1


def _columns(passage: Passage) -> tuple[str, str, str, str, str]:
    check_surrogates(passage.id, f"The id {passage.id!r:.200}")
    try:
        metadata = json.dumps(dict(passage.metadata))
    except (TypeError, ValueError, RecursionError) as cause:
        raise InvalidInput(
            f"The metadata of passage {passage.id!r:.200} cannot be written as JSON: {cause}."
        ) from cause
    title, text = without_surrogates(passage.title), without_surrogates(passage.text)
    return passage.id, title, text, json.dumps(passage.links), metadata
