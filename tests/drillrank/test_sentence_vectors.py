"""Vectors that are made once and kept, and the concentration that suits them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank.errors import DrillrankWarning, InvalidInput
from drillrank.likelihood.concentration import fitted_concentration
from drillrank.likelihood.sentence_vectors import SentenceVectors


def lengths(texts):
    return [[len(text), 1.0, sum(map(ord, text)) % 7] for text in texts]


@given(st.lists(st.text(max_size=5), min_size=1, max_size=20))
def test_one_unit_vector_a_text_in_order(texts):
    vectors = SentenceVectors(lengths)
    vectors.index(texts[::2])
    found = vectors.of(texts)
    for text, vector in zip(texts, found, strict=True):
        wanted = np.array(lengths([text])[0]) if text.strip() else np.zeros(3)
        np.testing.assert_allclose(vector, wanted / max(np.linalg.norm(wanted), 1e-9), atol=1e-6)


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


def test_a_write_that_fails_leaves_nothing(tmp_path, monkeypatch):
    def full(*args, **kwargs):
        raise OSError("No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="No space"):
        SentenceVectors(lengths, tmp_path).index(["one"])
    assert not list(tmp_path.iterdir())


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
