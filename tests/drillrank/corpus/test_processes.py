"""A corpus that is written by processes that are killed, and by several at once."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from drillrank import Corpus, Passage
from drillrank.corpus import store, vectors
from drillrank.structure import parse_document
from tests.counting import statistics_of
from tests.examples import size
from tests.linked_passages import linked_passages, questions

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="the processes are forked, so that they start at once"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),  # the time limit's thread waits only
]
CONTEXT = get_context("fork") if hasattr(os, "fork") else None
N_PASSAGES, N_PARTS = 3 * size(300), 2 * size(75)
DOCUMENTS = [
    *linked_passages(N_PASSAGES),
    *((f"d{number}", parse_document(f"# Part {number}\n\nFox {number}.\n\nThe fox.\n")) for number in range(N_PARTS)),
]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(store, "BATCH", size(40))


def started(work: Callable[..., object], *given: Any) -> Any:
    process = CONTEXT.Process(target=work, args=given)
    process.start()
    return process


def add(file: Path, documents: list[Any]) -> None:
    Corpus(file, unit="paragraph").add(documents)


def rows(file: Path) -> dict[str, list[tuple]]:
    """All that is in the file, but for when it was used."""
    with closing(sqlite3.connect(file)) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        found = {table: database.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall() for table in tables}
    found["documents"] = [(id_, key, *rest) for id_, key, _, *rest in found["documents"]]
    return found


def killed(times: int, work: Callable[[Path], object], file: Path, seconds: float, whole: Callable[[], object]) -> None:
    """Start the work again and again, and kill it at moments of its first part; once it is done, from the beginning.

    Args:
        times: How often it is to be killed.
        work: Goes on with the file.
        file: What it is at the beginning is what it is now.
        seconds: How long the work takes.
        whole: Called after each kill.
    """
    before = file.read_bytes() if file.exists() else None
    drawn = random.Random(0)
    while times:
        process = started(work, file)
        process.join(drawn.uniform(0, seconds / 6))
        process.kill()
        process.join()
        whole()
        if process.exitcode == -signal.SIGKILL:
            times -= 1
        elif before is None:
            file.unlink()
        else:
            file.write_bytes(before)


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def test_killed_at_random_moments_it_goes_on_and_ends_as_if_nothing_had_been(tmp_path):
    whole, broken = tmp_path / "whole.db", tmp_path / "broken.db"
    seconds = timed(lambda: add(whole, DOCUMENTS))

    def counts_agree() -> None:
        corpus = Corpus(broken, unit="paragraph")
        assert corpus.statistics() == statistics_of(corpus)

    killed(size(20), lambda file: add(file, DOCUMENTS), broken, seconds, counts_agree)
    add(broken, DOCUMENTS)
    assert rows(broken) == rows(whole)


def test_killed_while_it_changes_and_removes(tmp_path):
    file, other = tmp_path / "corpus.db", tmp_path / "other.db"
    add(file, DOCUMENTS)
    other.write_bytes(file.read_bytes())
    changed = [(f"d{number}", parse_document(f"# Part {number}\n\nAn owl.\n")) for number in range(0, N_PARTS, 2)]
    gone = [f"p{number}" for number in range(0, N_PASSAGES, 3)]

    def change(file: Path) -> None:
        corpus = Corpus(file, unit="paragraph")
        corpus.remove(gone)
        corpus.add(changed)

    seconds = timed(lambda: change(other))
    corpus = Corpus(file, unit="paragraph")
    killed(size(12), change, file, seconds, lambda: len(corpus))
    change(file)
    fresh = Corpus()
    fresh.add(corpus)
    assert len(corpus) == N_PASSAGES * 2 // 3 + N_PARTS + N_PARTS // 2
    assert corpus.statistics() == fresh.statistics() == Corpus(other, unit="paragraph").statistics()
    for question in [*questions(list(linked_passages(N_PASSAGES)), 3), "the owl and the fox"]:
        assert [(one.passage.id, one.score) for one in corpus.search(question)] == [
            (one.passage.id, one.score) for one in fresh.search(question)
        ]


def test_killed_while_it_embeds_it_goes_on_with_what_has_no_vector(tmp_path, monkeypatch):
    monkeypatch.setattr(vectors, "PART", 20)
    file, whole = tmp_path / "corpus.db", tmp_path / "whole.db"
    add(file, DOCUMENTS)
    whole.write_bytes(file.read_bytes())

    def embed(texts: list[str]) -> list[list[int]]:
        time.sleep(0.001)
        return [[len(text), 1] for text in texts]

    def embed_all(file: Path) -> None:
        Corpus(file, unit="paragraph").embed("lengths", embed)

    def matrix(file: Path) -> np.ndarray:
        corpus = Corpus(file, unit="paragraph")
        return corpus.vectors("lengths", corpus.layout(corpus.ids()))

    seconds = timed(lambda: embed_all(whole))
    expected = matrix(whole)

    def check() -> None:
        stored = matrix(file)
        has_vector = np.isfinite(stored).all(axis=1)
        np.testing.assert_array_equal(stored[has_vector], expected[has_vector][:, : stored.shape[1]])

    killed(size(20), embed_all, file, seconds, check)
    embed_all(file)
    np.testing.assert_array_equal(matrix(file), expected)


def test_four_write_and_two_read_at_once(tmp_path):
    file = tmp_path / "corpus.db"
    passages = [document for document in DOCUMENTS if isinstance(document, Passage)]
    half = N_PASSAGES // 3
    own = [
        [Passage(f"fox {writer} {number}", id=f"{writer}/{number}") for number in range(half)] for writer in range(4)
    ]

    def write(writer: int) -> None:
        mixed = [one for pair in zip(own[writer], passages, strict=False) for one in pair]  # the second half is shared
        Corpus(file, unit="paragraph").add(mixed)

    def read() -> None:
        corpus = Corpus(file, unit="paragraph")
        while len(corpus) < 5 * half:
            held = [item.passage.id for item in corpus.search("fox")]
            assert len(held) == len(set(held))
            assert corpus.search("fox 1", 3) or len(held) < 3

    at_work = [*(started(write, writer) for writer in range(4)), *(started(read) for _ in range(2))]
    for process in at_work:
        process.join(100)
    assert [process.exitcode for process in at_work] == [0] * 6
    corpus = Corpus(file, unit="paragraph")
    held = [passage.id for passage in corpus]
    assert sorted(held) == sorted([*(one.id for some in own for one in some), *(one.id for one in passages[:half])])
    assert corpus.statistics() == statistics_of(corpus)


def test_a_corpus_is_used_after_a_fork(tmp_path):
    corpus = Corpus(tmp_path / "corpus.db")
    corpus.add([Passage("a fox", id="a")])

    def work() -> None:
        assert [item.passage.id for item in corpus.search("fox")] == ["a"]
        corpus.add([Passage("a red fox", id="b")])

    process = started(work)
    process.join()
    assert process.exitcode == 0
    assert {item.passage.id for item in corpus.search("fox")} == {"a", "b"}
