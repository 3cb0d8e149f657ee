"""Vectors that are made once and kept, and the concentration that suits them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax

from drillrank import Passage, PathSearch, PromptRank
from drillrank.errors import DrillrankWarning
from drillrank.likelihood import EmbeddingModel, Request, UnigramModel, encoder
from drillrank.likelihood.encoder import SentenceVectors, fitted_concentration
from drillrank.prompts import TruncatableText
from tests.drillrank.helpers import refuses


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
    monkeypatch.setattr(encoder, "_MAX_CACHED", 2)
    asked = Asked()
    vectors = SentenceVectors(asked)
    vectors.index(["for", "good"])
    asked.taken()
    for text, new in (("one", True), ("two", True), ("one", False), ("six", True), ("one", False), ("two", True)):
        vectors.of([text])
        assert asked.taken() == [text] * new
    vectors.of(["for", "good", "two", "one"])
    assert asked.taken() == []
    vectors.branch().index(["three", "four", "five"])
    assert asked.taken() == ["three", "four", "five"]
    vectors.of(["three"])  # which only the branch keeps for good
    assert asked.taken() == ["three"]


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


# The estimate of the concentration


def texts_of(number):
    """Texts of two to four sentences."""
    return [" ".join(f"Text {i} says {j}." for j in range(2 + i % 3)) for i in range(number)]


@pytest.mark.parametrize("number", [30, 500, 501, 740])
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

    assert all(likelihood(found) >= likelihood(kappa) for kappa in (*np.arange(1, 200, 7), found * 1.01, found / 1.01))


@pytest.mark.parametrize("number", [0, 1, 29])
def test_below_thirty_texts_of_two_sentences_there_is_none(number):
    texts = [*texts_of(number), *(f"One sentence {i}." for i in range(40))]
    with pytest.warns(DrillrankWarning, match=rf"stays 7\.0: only {number} texts .* at least 30") as caught:
        assert fitted_concentration(texts, None, None, otherwise=7.0) == 7.0
    assert len(caught) == 1


# Words and meaning by a function that the user brings, and path search with it

TOPICS = (("port", "harbour"), ("whale", "sea"))
QUESTION = "In which port did the director of The Silent Pier grow up?"
FILM = Passage("The Silent Pier was filmed by Ada Holm.", id="film", links=("holm", "aunt"))
HOLM = Passage("Ada Holm knew the harbour of Esbjerg as a child.", id="holm")
AUNT = Passage("Ada Holm did have an aunt of which we know little.", id="aunt")
POOL = [*(Passage(f"Whales sing, verse {i}.", id=str(i)) for i in range(9)), AUNT, HOLM, FILM]


def vectors(texts):
    return [[0.1, *(float(any(word in text.lower() for word in topic)) for topic in TOPICS)] for text in texts]


class Embedding:
    """Keeps what it is asked, questions apart from texts."""

    def __init__(self):
        self.texts, self.asked = [], []

    def __call__(self, texts):
        self.texts += texts
        return vectors(texts)

    def questions(self, texts):
        self.asked += texts
        return vectors(texts)


def test_a_search_goes_on_and_scores_by_meaning():
    embed = Embedding()
    options = {"first_stage": lambda query, n: [FILM], "settings": {"branch": 1, "hops": 2}}
    [best, *_] = PathSearch(PromptRank(), POOL, embed=embed, **options).search_paths(QUESTION)
    assert best.passage.ids == ("film", "holm")
    paths = PathSearch(PromptRank(), POOL, **options).search_paths(QUESTION)
    assert {item.passage.ids for item in paths} == {("film",), ("film", "aunt")}
    fitted = EmbeddingModel(vectors).fit([passage.titled_text for passage in POOL])
    [[likelihood]] = PromptRank(fitted).likelihoods(QUESTION, [best.passage])
    assert best.score == pytest.approx((likelihood.total + best.details["log_prior"]) / len(likelihood.tokens))
    assert (sorted(embed.texts), embed.asked) == (sorted(passage.titled_text for passage in POOL), [QUESTION])


def test_words_that_are_fitted_stay_and_all_passages_are_embedded_at_once():
    embed, words = Embedding(), UnigramModel().fit(["a port", "a film"])
    search = PathSearch(PromptRank(words), POOL, embed=embed)
    assert len(embed.texts) == len(POOL)
    [best, *_] = search.search_paths(QUESTION)
    read = Request(tuple(TruncatableText(passage.titled_text) for passage in best.passage.passages), QUESTION)
    [expected] = words.log_likelihood([read])
    likelihood = best.score * best.details["tokens"] - best.details["log_prior"] - best.details["log_meaning"]
    assert likelihood == pytest.approx(expected.total)


test_what_gives_no_vectors_is_refused = refuses(
    *((lambda wrong=wrong: PathSearch(PromptRank(), POOL, embed=wrong), "embed must turn texts into vectors")
      for wrong in (5, [[1.0]])),
    (lambda: PathSearch(PromptRank(), POOL, embed="model"), "embed='model' is not an encoder"),
    (lambda: PathSearch(PromptRank(), POOL, embed=lambda texts: [[math.nan]] * len(texts)), "one vector of finite"),
    (lambda: PathSearch(PromptRank(EmbeddingModel(vectors)), POOL, embed=vectors), "by itself: leave embed out"),
)  # fmt: skip
