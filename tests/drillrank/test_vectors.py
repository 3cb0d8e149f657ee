from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics.pairwise import cosine_similarity

from drillrank.text import terms
from drillrank.vectors import BM25Index, CollectionStatistics, Tfidf, TfidfIndex, TfidfQuery, top

bags = st.lists(st.lists(st.sampled_from(["red", "fox", "river", "Zürich", "東京", "42", "a"]), max_size=9), max_size=9)
texts_with_words = bags.filter(any)


def dense(matrix):
    return sparse.csr_matrix((matrix.data, matrix.columns, matrix.bounds), shape=matrix.shape).toarray()


def as_given(words):
    return words


@given(texts_with_words, bags)
def test_weights_are_scikit_learn_s_to_the_last_bit(collection, others):
    reference = TfidfVectorizer(analyzer=as_given)
    expected = reference.fit_transform(collection)
    weights = Tfidf(collection)
    assert (dense(weights.vectors) == expected.toarray()).all()
    # sums of products run in the order in which a row holds its words
    centroid = np.asarray(expected.sum(axis=0)).ravel()
    assert (weights.vectors.multiply(centroid) == expected @ centroid).all()
    if others:
        assert (dense(weights.transform(others)) == reference.transform(others).toarray()).all()


def entries(matrix):
    return matrix.data.tolist(), matrix.columns.tolist(), matrix.bounds.tolist()


def entries_of_scipy_s(matrix):
    return matrix.data.tolist(), matrix.indices.tolist(), matrix.indptr.tolist()


@given(texts_with_words, st.data())
def test_what_a_matrix_gives_is_scipy_s_to_the_last_bit(collection, data):
    vectors = Tfidf(collection).vectors
    theirs = sparse.csr_matrix((vectors.data, vectors.columns, vectors.bounds), shape=vectors.shape)
    assert vectors.shape == theirs.shape
    assert entries(vectors.transposed()) == entries_of_scipy_s(theirs.tocsc())
    assert (vectors.rows == theirs.tocoo().row).all()
    assert (vectors.row_sums() == theirs @ np.ones(vectors.width)).all()
    assert (vectors.column_sums() == np.asarray(theirs.sum(axis=0)).ravel()).all()
    first, end = sorted(data.draw(st.tuples(*[st.integers(0, len(collection))] * 2)))
    assert entries(vectors.slice_rows(first, end)) == entries_of_scipy_s(theirs[first:end])
    some = data.draw(st.lists(st.integers(0, len(collection) - 1), max_size=5))
    assert entries(vectors.select_rows(np.array(some, dtype=int))) == entries_of_scipy_s(theirs[some])


@pytest.mark.parametrize("collection", [[], [[]], [[], []]])
def test_texts_without_words_are_rows_without_columns(collection):
    weights = Tfidf(collection)
    assert weights.vectors.shape == (len(collection), 0)
    assert weights.transform([["fox"], []]).shape == (2, 0)
    assert weights.transform([]).shape == (0, 0)


# test_retrieval

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


@given(texts_with_words, st.lists(st.sampled_from(["red", "fox", "town"]), max_size=4))
def test_a_query_by_statistics_scores_the_collection_as_its_index_does(collection, query):
    """Up to one factor for all texts: the index drops words of the query that no text contains."""
    texts, query = list(map(" ".join, collection)), " ".join(query)
    by_index = TfidfIndex(texts).scores(query)
    by_statistics = TfidfQuery(query, CollectionStatistics.count(texts)).scores(texts)
    assert np.allclose(by_statistics * by_index.max(), by_index * by_statistics.max())
    assert (by_statistics > 0).tolist() == (by_index > 0).tolist()


def test_a_query_by_statistics_scores_texts_of_other_collections():
    statistics = CollectionStatistics.count(["a fox", "a fox", "a whale"])
    rare, frequent, unknown = TfidfQuery("fox whale zebra", statistics).scores(["a whale", "a fox", "a zebra"])
    assert 0 < frequent < rare < unknown < 1
    assert TfidfQuery("", statistics).scores(["a fox", ""]).tolist() == [0.0, 0.0]


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
