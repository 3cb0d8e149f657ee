"""A collection in an SQLite file: passages, links, titles and counts of words stay on disk."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing
from functools import cached_property
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

from drillrank.collection_statistics import CollectionStatistics
from drillrank.errors import InvalidInput
from drillrank.multihop.title_mentions import counted_title
from drillrank.passages import Passage
from drillrank.terms import terms

_BATCH = 5_000  # passages that are in memory while a file is written
_SCHEMA = """
    PRAGMA journal_mode = OFF;
    PRAGMA synchronous = OFF;
    CREATE TABLE passages (place INTEGER PRIMARY KEY, id TEXT UNIQUE, title TEXT, text TEXT, links TEXT, metadata TEXT);
    CREATE TABLE titles (name TEXT, id TEXT);
    CREATE TABLE words (word TEXT, holding INTEGER, occurrences INTEGER);
    CREATE TABLE sizes (texts INTEGER, longest_title INTEGER);
    CREATE TABLE seen (digest BLOB PRIMARY KEY) WITHOUT ROWID;
    CREATE VIRTUAL TABLE bm25 USING fts5(words, content='', tokenize="unicode61 remove_diacritics 0 tokenchars '_'");
"""


class StoredCorpus:
    """A `Corpus` in a file that `write` wrote; the first stage is SQLite's BM25 (FTS5) over stemmed words.

    In memory are the counts of the vocabulary, and what a question brings. A word that more than half of the texts hold
    says nothing, and is not searched. May be used from many threads, and sent to other processes that see the file.

    Args:
        file: Where it is.

    Raises:
        InvalidInput: no such collection is there.

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
        self._per_thread = threading.local()
        try:
            [(self._texts, self._longest)] = self._rows("SELECT texts, longest_title FROM sizes")
        except (sqlite3.Error, ValueError) as cause:
            raise InvalidInput(
                f"{str(file)!r} holds no collection: {cause}. StoredCorpus.write(file, passages) writes one."
            ) from cause

    def __reduce__(self) -> tuple[type[StoredCorpus], tuple[str]]:
        return StoredCorpus, (str(self._file),)

    @classmethod
    def write(cls, file: str | os.PathLike[str], passages: Iterable[Passage]) -> StoredCorpus:
        """Write a collection, in place of one that is there; the file appears once it is whole.

        Args:
            file: Where to.
            passages: Read once, a few thousand at a time, so that they need not fit into memory. Metadata have to be
                such as JSON knows.

        Raises:
            InvalidInput: two passages share an id, metadata are nothing for JSON, or the file cannot be written.
        """
        path = Path(file).expanduser().absolute()
        unfinished = path.with_name(f"{path.name}.{os.getpid()}")
        unfinished.unlink(missing_ok=True)
        try:
            with closing(sqlite3.connect(unfinished)) as database:
                _fill(database, passages)
            unfinished.replace(path)
        except sqlite3.IntegrityError as cause:
            raise InvalidInput(f"Two passages share an id: {cause}.") from cause
        except (OSError, sqlite3.Error, TypeError) as cause:
            raise InvalidInput(f"The collection cannot be written to {str(path)!r}: {cause}.") from cause
        finally:
            unfinished.unlink(missing_ok=True)
        return cls(path)

    @cached_property
    def statistics(self) -> CollectionStatistics:
        """Of all titled texts; read once."""
        rows = self._rows("SELECT word, holding, occurrences FROM words")
        return CollectionStatistics(
            self._texts, {word: holding for word, holding, _ in rows}, {word: times for word, _, times in rows}
        )

    def retrieve(self, query: str, n: int, /) -> list[Passage]:
        """At most `n` passages that hold a word of the query, by BM25, best first."""
        holding = self.statistics.holding
        asked = [word for word in dict.fromkeys(terms(query)) if 0 < 2 * holding.get(word, 0) <= self._texts]
        if not asked:
            return []
        match = " OR ".join(f'"{word}"' for word in asked)
        found = self._rows("SELECT rowid FROM bm25 WHERE bm25 MATCH ? ORDER BY rank, rowid LIMIT ?", match, n)
        places = [place for (place,) in found]
        here = dict(zip(sorted(places), self._passages("place", places), strict=True))
        return [here[place] for place in places]

    def fetch(self, ids: Sequence[str], /) -> list[Passage]:
        """The passages with these ids that exist."""
        return self._passages("id", ids)

    def mentions(self, tokens: Sequence[str], /) -> list[tuple[int, int, Sequence[str]]]:
        """Where titles begin and end among the tokens; of one start the longest first."""
        folded = [token.casefold() for token in tokens]
        spans: dict[str, list[tuple[int, int]]] = {}
        for start in range(len(folded)):
            for end in range(start + 1, min(start + self._longest, len(folded)) + 1):
                spans.setdefault(" ".join(folded[start:end]), []).append((start, end))
        called: dict[str, list[str]] = {}
        for name, id_ in self._rows(
            "SELECT name, id FROM titles WHERE name IN (SELECT value FROM json_each(?)) ORDER BY rowid",
            json.dumps(list(spans)),
        ):
            called.setdefault(name, []).append(id_)
        found = [(start, end, ids) for name, ids in called.items() for start, end in spans[name]]
        return sorted(found, key=lambda mention: (mention[0], -mention[1]))

    def _passages(self, column: str, keys: Sequence[object]) -> list[Passage]:
        rows = self._rows(
            f"SELECT id, title, text, links, metadata FROM passages "
            f"WHERE {column} IN (SELECT value FROM json_each(?)) ORDER BY place",
            json.dumps(keys),
        )
        return [
            Passage(text, id=id_, title=title, links=tuple(json.loads(links)), metadata=json.loads(metadata))
            for id_, title, text, links, metadata in rows
        ]

    def _rows(self, query: str, *values: object) -> list[Any]:
        database = getattr(self._per_thread, "database", None)
        if database is None:
            database = self._per_thread.database = sqlite3.connect(f"{self._file.as_uri()}?mode=ro", uri=True)
        rows: list[Any] = database.execute(query, values).fetchall()
        return rows


def _fill(database: sqlite3.Connection, passages: Iterable[Passage]) -> None:
    database.executescript(_SCHEMA)
    holding, occurrences = Counter[str](), Counter[str]()
    texts = longest = 0
    waiting = iter(passages)
    while batch := list(islice(waiting, _BATCH)):
        for place, passage in enumerate(batch, texts):
            words = terms(passage.titled_text)
            counted = Counter(words)
            holding.update(counted.keys())
            if _is_new(database, passage.titled_text):
                occurrences.update(counted)
            database.execute("INSERT INTO bm25 (rowid, words) VALUES (?, ?)", (place, " ".join(words)))
            database.execute("INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?)", (place, *_columns(passage)))
            if name := counted_title(passage):
                longest = max(longest, len(name))
                database.execute("INSERT INTO titles VALUES (?, ?)", (" ".join(name), passage.id))
        texts += len(batch)
        database.commit()
    rows = ((word, count, occurrences[word]) for word, count in holding.items())
    database.executemany("INSERT INTO words VALUES (?, ?, ?)", rows)
    database.execute("INSERT INTO sizes VALUES (?, ?)", (texts, longest))
    database.execute("CREATE INDEX by_name ON titles (name)")
    database.execute("DROP TABLE seen")
    database.commit()


def _is_new(database: sqlite3.Connection, text: str) -> bool:
    """Whether no equal text came before: p(w|C) counts each once."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return database.execute("INSERT OR IGNORE INTO seen VALUES (?)", (digest,)).rowcount == 1


def _columns(passage: Passage) -> tuple[str, str, str, str, str]:
    return passage.id, passage.title, passage.text, json.dumps(passage.links), json.dumps(dict(passage.metadata))
