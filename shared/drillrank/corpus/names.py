"""Names of passages, stored in a corpus: what links look passages up by."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate, islice

from drillrank.corpus import store as store_module
from drillrank.corpus.rows import read_next_passages
from drillrank.corpus.store import CorpusStore
from drillrank.passages import Passage
from drillrank.text import without_surrogates

NameRow = tuple[str, float]
"""A name of a passage, and its weight."""

_PASSAGES_BY_NAME = """SELECT passages.id, weight FROM annotations CROSS JOIN passages ON number = passage
    WHERE kind = ? AND value = ? ORDER BY passage"""
_NEWEST = "SELECT passage FROM annotations WHERE kind = ? ORDER BY passage DESC LIMIT 1"


class StoredNames:
    """Names of one kind of all passages of a corpus. Names of new passages are added before any answer.

    Args:
        store: Database of the corpus.
        kind: Identifies these names and the rule by which they are made.
        rows: Function from a passage to its names with weights. Of equal names, the first counts.
    """

    def __init__(self, store: CorpusStore, kind: str, rows: Callable[[Passage], Iterable[NameRow]]) -> None:
        self._store, self._kind, self._rows = store, kind, rows

    def look_up(self, names: Iterable[str], /) -> dict[str, dict[str, float]]:
        """Return the ids and weights of the passages with each name. Unknown names are left out."""
        with self._up_to_date() as database:
            return self._read(database, names)

    def find_mentions(self, tokens: Sequence[str], /) -> list[tuple[int, int, Mapping[str, float]]]:
        """Return start, end and passages of each name among the tokens. At one start, the longest name is first."""
        query = "SELECT min(value) FROM annotations WHERE kind = ? AND value >= ?"
        tokens = list(map(without_surrogates, tokens))
        spans: list[tuple[int, int, str]] = []
        with self._up_to_date() as database:
            for start in range(len(tokens)):
                for end, name in enumerate(accumulate(islice(tokens, start, None), "{} {}".format), start + 1):
                    [next_name] = database.execute(query, (self._kind, name)).fetchone()
                    if next_name == name:
                        spans.append((start, end, name))
                    if not (next_name or "").startswith(name):
                        break  # no name continues like this
            passages_by_name = self._read(database, {name for _, _, name in spans})
        mentions = [(start, end, passages_by_name[name]) for start, end, name in spans]
        return sorted(mentions, key=lambda mention: (mention[0], -mention[1]))

    def update(self) -> None:
        """Add the names of passages that are new."""
        with self._up_to_date():
            pass

    def _read(self, database: sqlite3.Connection, names: Iterable[str]) -> dict[str, dict[str, float]]:
        weights_by_name = {}
        for name in names:
            if weights := dict(database.execute(_PASSAGES_BY_NAME, (self._kind, without_surrogates(name)))):
                weights_by_name[name] = weights
        return weights_by_name

    @contextmanager
    def _up_to_date(self) -> Iterator[sqlite3.Connection]:
        """Open a transaction in which all passages have their names."""
        while True:
            with self._store.transaction() as database:
                [last] = database.execute("SELECT coalesce(max(number), 0) FROM passages").fetchone()
                newest = database.execute(_NEWEST, (self._kind,)).fetchone()
                if not last or (newest is not None and newest[0] >= last):
                    yield database
                    return
            with self._store.transaction("IMMEDIATE") as database:
                [newest] = database.execute(_NEWEST, (self._kind,)).fetchone() or (0,)
                rows = {}
                for number, passage in read_next_passages(database, newest, store_module.BATCH):
                    rows[self._kind, "", number] = 0.0  # marks the passage as done
                    for name, weight in self._rows(passage):
                        rows.setdefault((self._kind, without_surrogates(name), number), weight)
                sorted_rows = ((*key, rows[key]) for key in sorted(rows))  # rows of one name are close in the file
                database.executemany("INSERT INTO annotations VALUES (?, ?, ?, ?)", sorted_rows)
