"""Vectors that are made once and kept, and the concentration that suits them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank.errors import DrillrankWarning, InvalidInput
from drillrank.likelihood import encoder
from drillrank.likelihood.encoder import SentenceVectors, fitted_concentration


def lengths(texts):
    return [[len(text), 1.0, sum(map(ord, text)) % 7] for text in texts]


class Asked:
    """`lengths`, and what it was asked since it was looked at."""

    def __init__(self):
        self.texts = []

    def __call__(self, texts):
        self.texts += texts
        return lengths(texts)

    def taken(self):
        taken, self.texts = self.texts, []
        return taken


@given(st.lists(st.text(max_size=5), min_size=1, max_size=20))
def test_one_unit_vector_a_text_in_order(texts):
    vectors = SentenceVectors(lengths)
    vectors.index(texts[::2])
    found = vectors.of(texts)
    for text, vector in zip(texts, found, strict=True):
        wanted = np.array(lengths([text])[0]) if text.strip() else np.zeros(3)
        np.testing.assert_allclose(vector, wanted / max(np.linalg.norm(wanted), 1e-9), atol=1e-6)


def test_each_text_is_encoded_once_indexed_or_not():
    asked = Asked()
    vectors = SentenceVectors(asked)
    for look_up, texts, new in (
        (vectors.of, ["one", "two"], ["one", "two"]),
        (vectors.of, ["three"], ["three"]),
        (vectors.index, ["one", "four"], ["four"]),
        (vectors.index, ["five"], ["five"]),
        (vectors.of, ["one", "two", "three", "four", "five", "\ud83e"], ["\ud83e"]),
        (vectors.index, ["\ud83e", "five"], []),
        (vectors.of, ["\ud83e", "one", "two"], []),
    ):
        look_up(texts)
        assert asked.taken() == new


def test_of_texts_that_are_not_indexed_the_latest_are_remembered(monkeypatch):
    monkeypatch.setattr(encoder, "_REMEMBERED", 2)
    asked = Asked()
    vectors = SentenceVectors(asked)
    vectors.index(["for", "good"])
    asked.taken()
    for text, new in (("one", True), ("two", True), ("one", False), ("six", True), ("one", False), ("two", True)):
        vectors.of([text])
        assert asked.taken() == [text] * new
    vectors.of(["for", "good", "two", "one"])
    assert asked.taken() == []


def test_a_directory_keeps_what_each_call_has_indexed(tmp_path):
    asked = Asked()
    place = tmp_path / "of" / "its" / "own"
    vectors = SentenceVectors(asked, place)
    texts = ["one", "two", "three"]
    vectors.index(texts[:2])
    vectors.index(texts)
    assert asked.taken() == texts
    assert len(list(place.iterdir())) == 2
    again = SentenceVectors(asked, place)
    for found in (vectors.of(texts), again.of(texts), again.of(["four"])):
        assert found.dtype == np.float32
    assert again.of(texts).tolist() == vectors.of(texts).tolist()
    assert asked.taken() == ["four"]


def test_vectors_of_any_length_become_unit_vectors_but_those_of_none():
    vectors = SentenceVectors(lambda texts: [[float(text), 0.0] for text in texts])
    assert vectors.of(["0.25", "0", "1", "9"]).tolist() == [[1, 0], [0, 0], [1, 0], [1, 0]]


def test_an_encoder_that_changes_its_mind_about_the_size_is_refused():
    vectors = SentenceVectors(lambda texts: [[1.0] * len(texts[0])] * len(texts))
    vectors.of(["four"])
    with pytest.raises(InvalidInput, match="have 3 numbers, those at hand 4"):
        vectors.of(["six"])


def test_a_file_with_objects_in_it_is_not_unpickled(tmp_path):
    keys = np.empty(1, dtype=object)
    keys[0] = np.zeros(16, dtype=np.uint8)
    np.savez(tmp_path / "from-elsewhere.vectors.npz", keys=keys, vectors=np.ones((1, 3), dtype=np.float32))
    with pytest.raises(InvalidInput, match="from-elsewhere"):
        SentenceVectors(lengths, tmp_path)


def test_vectors_of_another_encoder_are_refused(tmp_path):
    SentenceVectors(lengths, tmp_path).index(["one"])
    with pytest.raises(InvalidInput, match="directory of its own"):
        SentenceVectors(lambda texts: [[1.0, 2.0]] * len(texts), tmp_path).index(["two"])


def test_a_broken_file_is_named(tmp_path):
    SentenceVectors(lengths, tmp_path).index(["one"])
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:40])
    with pytest.raises(InvalidInput, match=file.name):
        SentenceVectors(lengths, tmp_path)


def test_an_interruption_right_behind_a_write_is_told_as_such(tmp_path, monkeypatch):
    replace = Path.replace

    def interrupted(*paths):
        replace(*paths)
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        SentenceVectors(lengths, tmp_path).index(["one"])
    assert SentenceVectors(None, tmp_path).of(["one"]).tolist() == SentenceVectors(lengths).of(["one"]).tolist()


@pytest.mark.parametrize("given_", [[[1.0]], [1.0, 2.0], [[float("nan")], [1.0]]])
def test_an_encoder_that_gives_no_vectors(given_):
    with pytest.raises(InvalidInput, match="one vector"):
        SentenceVectors(lambda _: given_).of(["one", "two"])


def test_a_known_concentration_is_found_again():
    """Questions drawn by exp(κ cos) around their documents, as the model says."""
    rng = np.random.default_rng(5)
    documents = rng.normal(size=(400, 12))
    documents /= np.linalg.norm(documents, axis=1, keepdims=True)
    drawn = rng.normal(size=(4000, 12))
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    posterior = np.exp(9.0 * drawn @ documents.T)
    posterior /= posterior.sum(axis=1, keepdims=True)
    owner = (posterior.cumsum(axis=1) < rng.random((4000, 1))).sum(axis=1).clip(max=399)
    first = {int(own): number for number, own in reversed(list(enumerate(owner)))}
    kept = sorted(first)
    texts = [f"Sentence {own}. Rest {own}." for own in kept]
    found = fitted_concentration(
        texts,
        lambda asked: drawn[[first[_number(text)] for text in asked]].astype(np.float32),
        lambda rests: documents[[_number(text) for text in rests]].astype(np.float32),
        otherwise=20.0,
    )
    assert found == pytest.approx(9.0, rel=0.2)


def _number(text):
    return int("".join(filter(str.isdigit, text)))


def test_too_few_texts_keep_the_usual_one():
    with pytest.warns(DrillrankWarning, match="30 are needed"):
        assert fitted_concentration(["One. Two."] * 40, None, None, otherwise=20.0) == 20.0
