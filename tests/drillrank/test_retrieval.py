from __future__ import annotations

import re

import numpy as np
import pytest
import Stemmer
from hypothesis import given
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics.pairwise import cosine_similarity

from drillrank.retrieval import BM25Index, TfidfIndex, top

vocabulary = st.sampled_from(["red", "fox", "Foxes", "rivers", "river", "Zürich", "東京", "42", "?", "..."])
texts = st.lists(vocabulary, max_size=6).map(" ".join)
collections = st.lists(texts, max_size=6)


def stems(text):
    return Stemmer.Stemmer("english").stemWords(re.findall(r"\w+", text.lower()))


@given(collections, texts)
def test_tfidf_is_the_cosine_of_scikit_learns_vectors(collection, query):
    scores = TfidfIndex(collection).scores(query)
    assert scores.shape == (len(collection),)
    if not any(map(stems, collection)):
        assert not scores.any()
        return
    vectorizer = TfidfVectorizer(analyzer=stems)
    matrix = vectorizer.fit_transform(collection)
    np.testing.assert_allclose(scores, cosine_similarity(matrix, vectorizer.transform([query]))[:, 0], atol=1e-12)


@given(collections, texts)
def test_bm25_is_that_of_rank_bm25(collection, query):
    scores = BM25Index(collection).scores(query)
    assert scores.shape == (len(collection),)
    if not any(map(stems, collection)):
        assert not scores.any()
        return
    np.testing.assert_array_equal(scores, BM25Okapi(list(map(stems, collection))).get_scores(stems(query)))


@given(collections)
def test_a_text_is_most_similar_to_itself(collection):
    index = TfidfIndex(collection)
    for position, text in enumerate(collection):
        if stems(text):
            scores = index.scores(text)
            assert scores[position] == pytest.approx(1)
            assert scores.max() <= 1 + 1e-12
            assert scores.min() >= 0


@pytest.mark.parametrize("index", [TfidfIndex, BM25Index])
@pytest.mark.parametrize("collection", [[], [""], ["?", " "], ["fox", "", "?!"]])
@pytest.mark.parametrize("query", ["", "?", "whale", "fox"])
def test_texts_and_queries_without_words(index, collection, query):
    scores = index(collection).scores(query)
    assert scores.dtype == np.float64
    assert scores.shape == (len(collection),)
    assert np.isfinite(scores).all()
    assert not scores[1:].any()


@pytest.mark.parametrize("index", [TfidfIndex, BM25Index])
def test_word_forms_meet(index):
    built = index(["The fox crossed a river.", "A whale swims.", "Nothing here."])
    assert built.scores("rivers crossing").argmax() == 0


@given(st.lists(st.sampled_from([-1.0, 0.0, 0.5, 2.0]), max_size=8), st.integers(0, 10))
def test_top_is_best_first_and_stable(scores, n):
    best = top(np.array(scores), n)
    assert best == sorted(range(len(scores)), key=lambda i: (-scores[i], i))[:n]
    assert all(type(position) is int for position in best)
