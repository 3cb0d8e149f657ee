"""The estimate of κ: what it is estimated from, and that nothing is likelier."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_softmax

from drillrank.errors import DrillrankWarning
from drillrank.likelihood.encoder import fitted_concentration


def texts_of(number):
    """Texts of two to four sentences."""
    return [" ".join(f"Text {i} says {j}." for j in range(2 + i % 3)) for i in range(number)]


@pytest.mark.parametrize("number", [30, 499, 500, 501, 740])
def test_it_is_the_likeliest_for_the_middle_sentences_and_the_rests_of_500_texts_at_most(number):
    texts = texts_of(number)
    rng = np.random.default_rng(number)
    asked, rests = [], []

    def questions(sentences):
        asked.extend(sentences)
        return vectors[0][: len(sentences)]

    def documents(parts):
        rests.extend(parts)
        return vectors[1][: len(parts)]

    size = min(number, 500)
    vectors = rng.normal(size=(2, size, 8))
    vectors[0] += vectors[1]
    vectors = (vectors / np.linalg.norm(vectors, axis=2, keepdims=True)).astype(np.float32)
    found = fitted_concentration([*texts, "Only one sentence.", *texts[:3]], questions, documents, otherwise=1.0)
    assert type(found) is float

    numbers = [int(sentence.split()[1]) for sentence in asked]
    assert len(numbers) == len(rests) == size
    assert (numbers[0], numbers[-1]) == (0, number - 1)
    assert set(np.diff(numbers)) <= {1, 2}
    for i, sentence, rest in zip(numbers, asked, rests, strict=True):
        middle = f"Text {i} says {(2 + i % 3) // 2}."
        assert sentence.strip() == middle
        assert rest.split() == texts[i].replace(middle, "").split()

    cosines = vectors[0].astype(np.float64) @ vectors[1].astype(np.float64).T

    def likelihood(kappa):
        return np.mean(np.diag(log_softmax(kappa * cosines, axis=1)))

    assert all(
        likelihood(found) >= likelihood(kappa) for kappa in (*np.arange(1, 200, 0.5), found * 1.01, found / 1.01)
    )


@pytest.mark.parametrize("number", [0, 1, 29])
def test_below_thirty_texts_of_two_sentences_there_is_none(number):
    texts = [*texts_of(number), *(f"One sentence {i}." for i in range(40))]
    with pytest.warns(DrillrankWarning, match=rf"stays 7\.0: only {number} texts .* 30 are needed") as caught:
        assert fitted_concentration(texts, None, None, otherwise=7.0) == 7.0
    assert len(caught) == 1
