from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics.pairwise import cosine_similarity

from drillrank.text import terms
from drillrank.vectors import BM25Index, TfidfIndex, top

vocabulary = st.sampled_from(["red", "fox", "Foxes", "rivers", "river", "Zürich", "東京", "42", "?", "..."])
texts = st.lists(vocabulary, max_size=6).map(" ".join)
collections = st.lists(texts, max_size=6)


@given(collections, texts)
def test_tfidf_is_the_cosine_of_scikit_learns_vectors(collection, query):
    scores = TfidfIndex(collection).scores(query)
    assert scores.shape == (len(collection),)
    if not any(map(terms, collection)):
        assert not scores.any()
        return
    vectorizer = TfidfVectorizer(analyzer=terms)
    matrix = vectorizer.fit_transform(collection)
    np.testing.assert_allclose(scores, cosine_similarity(matrix, vectorizer.transform([query]))[:, 0], atol=1e-12)


@given(collections, texts)
def test_bm25_is_the_textbook_s_with_lucene_s_idf(collection, query):
    scores = BM25Index(collection).scores(query)
    assert scores.shape == (len(collection),)
    if not any(map(terms, collection)):
        assert not scores.any()
        return
    documents = [Counter(terms(text)) for text in collection]
    mean_length = sum(document.total() for document in documents) / len(documents)
    for document, score in zip(documents, scores, strict=True):
        expected = 0.0
        for word in terms(query):
            holding = sum(word in other for other in documents)
            idf = math.log(1 + (len(documents) - holding + 0.5) / (holding + 0.5))
            norm = 1.5 * (1 - 0.75 + 0.75 * document.total() / mean_length)
            expected += idf * document[word] / (document[word] + norm)
        assert score == pytest.approx(expected, rel=1e-5, abs=1e-6)


@given(st.lists(st.sampled_from([-1.0, 0.0, 0.5, 2.0]), max_size=8), st.integers(0, 10))
def test_top_is_best_first_and_stable(scores, n):
    best = top(np.array(scores), n)
    assert best == sorted(range(len(scores)), key=lambda i: (-scores[i], i))[:n]
    assert all(type(position) is int for position in best)
