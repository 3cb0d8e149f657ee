"""Files that hold no corpus, or hold one that is damaged or made to do harm."""

from __future__ import annotations

import os
import sqlite3
import zlib
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank import D3, Corpus, Passage, limits
from drillrank.corpus import CorpusError
from drillrank.errors import InvalidInput
from drillrank.structure import parse_document
from tests.examples import some
from tests.linked_passages import linked_passages

PARSED = parse_document("# Sea\n\nA fox swims.")


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    file = tmp_path_factory.mktemp("corpus") / "corpus.db"
    corpus = Corpus(file, unit="paragraph")
    corpus.add([("doc", PARSED), *(Passage(f"fox {number} {'z' * 600}", id=f"{number}") for number in range(60))])
    return file.read_bytes()


@pytest.fixture
def file(tmp_path, content):
    file = tmp_path / "corpus.db"
    file.write_bytes(content)
    return file


def asks(corpus):
    """All that reads what is stored, and what writes."""
    # fmt: off
    return [
        lambda: corpus.search("fox 9", 3), lambda: corpus.fetch(["9"]),
        lambda: corpus.names("a", lambda _: []).look_up("a"),
        lambda: corpus.statistics(), lambda: corpus.document("doc"), lambda: list(corpus.file_keys([Path(__file__)])),
        lambda: list(corpus), lambda: len(corpus),
        lambda: D3(settings={"unit": "paragraph"}).retrieve("fox", corpus, 3),
        lambda: corpus.vectors("none", corpus.layout(corpus.ids())), lambda: corpus.passages("doc"),
        lambda: corpus.add([Passage("a fox", id="9")]), lambda: corpus.remove(["8"]),
    ]
    # fmt: on


def changed(file, *statements):
    with closing(sqlite3.connect(file)) as database, database:
        for statement in statements:
            database.execute(statement)


@pytest.mark.parametrize(
    "content", [b"no database, but long enough to be one" * 20, b"SQLite format 3\0" + b"\xff" * 4096]
)
def test_a_file_of_something_else_is_refused_and_stays(tmp_path, content):
    file = tmp_path / "notes"
    file.write_bytes(content)
    with pytest.raises(CorpusError, match="notes' cannot be used"):
        Corpus(file)
    assert file.read_bytes() == content


ENDLESS = "WITH RECURSIVE one(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM one) SELECT n FROM one"


@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE TABLE accounts (name TEXT)"],
        ["CREATE TRIGGER more AFTER INSERT ON passages BEGIN DELETE FROM documents; END"],
        ["CREATE VIEW one AS SELECT 1"],
        ["ALTER TABLE documents ADD COLUMN more"],
        ["DROP TABLE postings"],
        ["DROP INDEX by_digest"],
        ["DROP TABLE state", f"CREATE VIEW state AS {ENDLESS}"],  # which is not run
    ],
)
def test_a_database_with_other_tables_is_refused_and_stays(file, statements):
    changed(file, *statements)
    before = file.read_bytes()
    with pytest.raises(CorpusError, match="has other tables"):
        Corpus(file)
    assert file.read_bytes() == before


def test_only_plain_files_are_opened(tmp_path, file):
    (tmp_path / "link").symlink_to(file)
    (tmp_path / "nowhere").symlink_to(tmp_path / "missing")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "nowhere", "pipe", "."):
        with pytest.raises(CorpusError, match="a link, folder, pipe or device"):
            Corpus(tmp_path / name)
    assert not (tmp_path / "missing").exists()
    with pytest.raises(CorpusError, match="unable to open"):
        Corpus(tmp_path / "no folder" / "corpus.db")


@pytest.mark.parametrize("damage", ["cut", "gone", "overwritten"])
def test_a_file_that_is_damaged_while_it_is_used_is_told(file, damage):
    corpus = Corpus(file, unit="paragraph")
    if damage == "cut":
        file.write_bytes(file.read_bytes()[:8_192])
    elif damage == "gone":
        file.unlink()
    else:
        content = file.read_bytes()
        file.write_bytes(content[:4_096] + bytes(len(content) - 4_096))
    for ask in asks(corpus):
        with pytest.raises(CorpusError, match="cannot be used"):
            ask()


BLOBS = {
    "documents": ["parse", "context", "paged", "pages", "sections", "headings", "digests", "first", "size"],
    "passages": ["text", "links", "metadata", "title", "digest"],
    "blocks": ["lengths", "units", "words"],
    "postings": ["entries", "holding", "occurrences"],
    "state": ["analyzer", "indexed", "unit"],
    "files": ["stamp", "key"],
    "outdated": ["id"],
}
VALUES = ["X''", "X'FF'", "X'FFFFFFFFFFFF'", "NULL", "-1", "9e99", "'x'", "'[[[['", "'{}'", "zeroblob(100000)"]


ALTERED = [(table, column, value) for table, columns in BLOBS.items() for column in columns for value in VALUES]


@pytest.mark.parametrize(("table", "column", "value"), some(ALTERED, 3))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_altered_values_give_an_answer_or_a_clear_error(file, table, column, value):
    corpus = Corpus(file, unit="paragraph")
    changed(file, f"UPDATE {table} SET {column} = {value}")
    is_no_document = InvalidInput if (column, value) == ("parse", "NULL") else CorpusError
    for ask in asks(corpus):
        with suppress(is_no_document):
            ask()


def test_deep_json_and_bombs_are_damage(file, monkeypatch):
    monkeypatch.setattr(limits, "STORED_BYTES", 1_000_000)
    corpus = Corpus(file, unit="paragraph")
    bomb, deep = zlib.compress(b"[" + b" " * 50_000_000), zlib.compress(b"[" * 200_000)
    for parse in (bomb, deep, zlib.compress(b'{"text": "a"}')):
        with closing(sqlite3.connect(file)) as database, database:
            database.execute("UPDATE documents SET parse = ? WHERE id = 'doc'", (parse,))
        with pytest.raises(CorpusError):
            corpus.document("doc")
    changed(file, f"UPDATE passages SET metadata = '{'[' * 200_000}'")
    with pytest.raises(CorpusError):
        corpus.search("fox")


@given(st.data())
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_flipped_bytes_give_an_answer_or_a_clear_error(tmp_path_factory, data):
    file = tmp_path_factory.mktemp("flipped") / "corpus.db"
    Corpus(file, unit="paragraph").add([("doc", PARSED), *linked_passages(20)])
    content = bytearray(file.read_bytes())
    for _ in range(data.draw(st.integers(1, 20))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    file.write_bytes(content)
    with suppress(CorpusError):
        corpus = Corpus(file, unit="paragraph")
        for ask in asks(corpus):
            with suppress(CorpusError):
                ask()


def test_a_locked_file_is_told_after_a_while(file, monkeypatch):
    monkeypatch.setattr("drillrank.corpus.schema.WRITE_TIMEOUT", 0.05)
    corpus = Corpus(file, unit="paragraph")
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert corpus.search("fox", 1)  # who reads does not wait
        with pytest.raises(CorpusError, match="locked") as raised:
            corpus.add([Passage("a fox")])
        other.rollback()
    assert isinstance(raised.value.__cause__, sqlite3.OperationalError)
    corpus.add([Passage("a fox")])
