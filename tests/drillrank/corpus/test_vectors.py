"""Vectors of a corpus: computed once, in parts that are kept, and again where they are damaged."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest

from drillrank import Corpus, Passage, parse_document
from drillrank.cli.corpus import FileCorpus
from drillrank.cli.sources import list_input_files
from drillrank.corpus import CorpusError, vectors
from drillrank.drilldown.d3 import D3
from drillrank.errors import InvalidInput
from drillrank.likelihood.encoders import Encoder


@pytest.fixture(autouse=True, scope="module")
def small_parts():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vectors, "PART", 4)
        yield


class Embedder:
    """Counts what it embeds; vectors of lengths and vowels."""

    def __init__(self, fails_at: int | None = None) -> None:
        self.texts: list[str] = []
        self.fails_at = fails_at

    def __call__(self, texts):
        if self.fails_at is not None and len(self.texts) >= self.fails_at:
            raise KeyboardInterrupt
        self.texts += texts
        return [[len(text), text.count("a") + 1, text.count("e") + 1] for text in texts]


def document(n, n_sections=10):
    """A document with as many passages as sections."""
    return parse_document("\n\n".join(f"# Part {n}.{i}\n\n{'Water and tea. ' * 70}{i}" for i in range(n_sections)))


@pytest.fixture(scope="module")
def contents(tmp_path_factory, small_parts):
    """Return the file of a corpus without vectors, and the same with vectors."""
    file = tmp_path_factory.mktemp("corpus") / "corpus.db"
    corpus = Corpus(file, unit="passage")
    corpus.add((f"d{n}", document(n)) for n in range(3))
    without_vectors = file.read_bytes()
    corpus.embed("lengths", Embedder())
    return without_vectors, file.read_bytes()


@pytest.fixture
def file(tmp_path, contents):
    (tmp_path / "corpus.db").write_bytes(contents[0])
    return tmp_path / "corpus.db"


@pytest.fixture
def embedded_file(tmp_path, contents):
    (tmp_path / "embedded.db").write_bytes(contents[1])
    return tmp_path / "embedded.db"


@pytest.fixture
def corpus(file):
    return Corpus(file, unit="passage")


def matrix(corpus, ids=None):
    return corpus.vectors("lengths", corpus.layout(corpus.ids() if ids is None else ids))


def test_vectors_are_those_of_the_encoder_in_the_order_of_the_layout(corpus):
    embed = Embedder()
    corpus.embed("lengths", embed)
    texts = [f"{passage.title}\n{passage.text}" for passage in corpus]
    assert embed.texts == texts
    expected = np.array(Embedder()(texts), dtype=float)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    found = matrix(corpus)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_array_equal(matrix(corpus, ["d2", "d1"]), found[10:])
    assert np.isnan(corpus.vectors("other", corpus.layout(corpus.ids()))).all()


def test_names_of_documents_are_embedded_with_their_passages(corpus):
    embed = Embedder()
    corpus.embed("lengths", embed, names={"d1": "tea manual"})
    assert [text.splitlines()[0] for text in embed.texts] == [f"tea manual Part 1.{i}" for i in range(10)]
    assert np.isfinite(matrix(corpus)).all(axis=1).tolist() == [False] * 10 + [True] * 10 + [False] * 10


def test_documents_in_memory_are_embedded_as_those_of_a_corpus(corpus):
    in_memory, stored = Embedder(), Embedder()
    names = {id_: f"manuals/{id_}_of-tea.v2.md" for id_ in corpus.ids()}
    D3(embed=in_memory).prepare([document(n) for n in range(3)], list(names.values()))
    corpus.embed("lengths", stored, names=names)
    assert in_memory.texts == stored.texts
    assert stored.texts[0].startswith("d0 of tea.v2 Part 0.0\n")


def test_paragraphs_are_embedded_without_headings():
    corpus, embed = Corpus(unit="paragraph"), Embedder()
    corpus.add([("a", parse_document("# Tea\n\nIt is hot."))])
    corpus.embed("lengths", embed, names={"a": "manual"})
    assert embed.texts == ["It is hot."]


def test_only_what_is_new_or_changed_is_embedded(file, corpus):
    corpus.embed("lengths", Embedder())
    before = matrix(corpus)
    again = Embedder()
    corpus.embed("lengths", again)
    assert not again.texts
    corpus.add([("d1", document(7, 2)), Passage("Coffee.", id="one")])
    corpus.remove(["d2"])
    with closing(sqlite3.connect(file)) as database:  # vectors of removed passages are gone
        assert database.execute("SELECT DISTINCT document FROM vectors").fetchall() == [("d0",)]
    corpus.embed("lengths", again)
    assert again.texts == [f"{passage.title}\n{passage.text}" for passage in corpus.passages("d1")] + ["Coffee."]
    np.testing.assert_array_equal(matrix(corpus, ["d0"]), before[:10])
    assert np.isfinite(matrix(corpus)).all()


def test_an_interrupted_call_continues_where_it_stopped(corpus):
    with pytest.raises(KeyboardInterrupt):
        corpus.embed("lengths", Embedder(fails_at=12))
    stored = matrix(corpus)
    n_stored = int(np.isfinite(stored).all(axis=1).sum())
    assert n_stored >= 12
    rest, progress = Embedder(), []
    corpus.embed("lengths", rest, on_progress=lambda *counts: progress.append(counts))
    assert len(rest.texts) == 30 - n_stored
    assert progress[-1] == (30 - n_stored, 30 - n_stored)
    assert len(progress) > 2
    fresh = Corpus(unit="passage")
    fresh.add((f"d{n}", document(n)) for n in range(3))
    fresh.embed("lengths", Embedder())
    np.testing.assert_array_equal(matrix(corpus), matrix(fresh))


@pytest.mark.parametrize(
    "damage", ["X''", "NULL", "'text'", "X'0000C07F'", "substr(vectors, 5)", "-1", "X'0000C07F' || substr(vectors, 5)"]
)
def test_damaged_vectors_are_computed_again(embedded_file, damage):
    corpus = Corpus(embedded_file, unit="passage")
    expected = matrix(corpus)
    assert np.isfinite(expected).all()
    with closing(sqlite3.connect(embedded_file)) as database, database:
        database.execute(f"UPDATE vectors SET vectors = CAST({damage} AS BLOB) WHERE document = 'd1' AND part = 1")
    assert np.isnan(matrix(corpus)[14:18]).all()
    again = Embedder()
    corpus.embed("lengths", again)
    assert len(again.texts) == 4
    np.testing.assert_array_equal(matrix(corpus), expected)


@pytest.mark.parametrize("column", ["document", "encoder", "part", "vectors"])
@pytest.mark.parametrize("value", ["NULL", "X'FF'", "-1", "9e99", "'x'", "99999999999"])
def test_altered_rows_give_vectors_or_a_clear_error(embedded_file, column, value):
    corpus = Corpus(embedded_file, unit="passage")
    with closing(sqlite3.connect(embedded_file)) as database, database:
        database.execute(f"UPDATE OR IGNORE vectors SET {column} = {value}")
    for call in (lambda: matrix(corpus), lambda: corpus.embed("lengths", Embedder())):
        with suppress(CorpusError):
            call()


def test_an_encoder_with_bad_vectors_is_refused_and_nothing_is_stored(corpus):
    for bad in ([[np.nan]], [[1.0]] * 7, 3):
        with pytest.raises(InvalidInput, match="embed"):
            corpus.embed("lengths", lambda _, bad=bad: bad)
    assert matrix(corpus).size == 0


def test_a_document_that_is_replaced_while_it_is_embedded_gets_no_vectors_of_the_old_one(corpus):
    def embed(texts):
        if any("Part 1.0" in text for text in texts):
            corpus.add([("d1", document(8, 3))])
        return Embedder()(texts)

    corpus.embed("lengths", embed)
    assert np.isfinite(matrix(corpus, ["d0", "d2"])).all()
    assert np.isnan(matrix(corpus, ["d1"])).all()
    corpus.embed("lengths", Embedder())
    assert np.isfinite(matrix(corpus, ["d1"])).all()


def test_several_may_embed_at_once(file, corpus):
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: Corpus(file, unit="passage").embed("lengths", Embedder()), range(4)))
    fresh = Corpus(unit="passage")
    fresh.add((f"d{n}", document(n)) for n in range(3))
    fresh.embed("lengths", Embedder())
    np.testing.assert_array_equal(matrix(corpus), matrix(fresh))


class FileEncoder(Encoder):
    """Encoder of a file that says what its vectors are."""

    kind = "lengths"
    library = extra = "numpy"

    def __init__(self, file) -> None:
        super().__init__(str(file))
        self.embedder = Embedder()

    def _files(self):
        return [Path(self.name)]

    def __call__(self, texts):
        return self.embedder(texts)


def test_files_are_embedded_with_their_names_and_again_if_the_model_changes(tmp_path):
    model, folder = tmp_path / "model", tmp_path / "files"
    model.write_text("one")
    folder.mkdir()
    (folder / "tea_manual-2.md").write_text("# Tea\n\nIt is hot.\n")
    sources, _ = list_input_files([str(folder)])

    def ask():
        encoder = FileEncoder(model)
        d3 = D3(embed=encoder, settings={"unit": "passage"})
        files = FileCorpus(sources, tmp_path / "cache", "english", unit="passage")
        result = files.ask(d3, lambda prepared: d3.retrieve("Is tea hot?", prepared))
        assert [item.passage.text for item in result] == ["# Tea\n\nIt is hot."]
        return [text for text in encoder.embedder.texts if "It is hot." in text]

    assert ask() == ["tea manual 2 Tea\n# Tea\n\nIt is hot."]
    assert ask() == []
    model.write_text("another")
    assert len(ask()) == 1


def test_vectors_of_another_length_in_a_later_batch_are_refused():
    corpus, sizes = Corpus(), iter([3, 5])
    corpus.add((str(n), parse_document(f"# House {n}\n\nThe rent is {n} euros.")) for n in range(300))
    with pytest.raises(InvalidInput, match="got 5 dimensions after 3"):
        corpus.embed("changing", lambda texts: np.ones((len(texts), next(sizes))))
