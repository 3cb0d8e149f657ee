from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

from drillrank.vectors import Tfidf

texts = st.lists(
    st.lists(st.sampled_from(["red", "fox", "river", "Zürich", "東京", "42", "a"]), max_size=9), max_size=9
)
texts_with_words = texts.filter(any)


def dense(matrix):
    return sparse.csr_matrix((matrix.data, matrix.columns, matrix.bounds), shape=matrix.shape).toarray()


def as_given(words):
    return words


@given(texts_with_words, texts)
def test_weights_are_scikit_learn_s_to_the_last_bit(collection, others):
    reference = TfidfVectorizer(analyzer=as_given)
    expected = reference.fit_transform(collection)
    weights = Tfidf(collection)
    assert (dense(weights.vectors) == expected.toarray()).all()
    # sums of products run in the order in which a row holds its words
    centroid = np.asarray(expected.sum(axis=0)).ravel()
    assert (weights.vectors.times(centroid) == expected @ centroid).all()
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
    assert entries(vectors.between(first, end)) == entries_of_scipy_s(theirs[first:end])
    some = data.draw(st.lists(st.integers(0, len(collection) - 1), max_size=5))
    assert entries(vectors.of_rows(np.array(some, dtype=int))) == entries_of_scipy_s(theirs[some])


@pytest.mark.parametrize("collection", [[], [[]], [[], []]])
def test_texts_without_words_are_rows_without_columns(collection):
    weights = Tfidf(collection)
    assert weights.vectors.shape == (len(collection), 0)
    assert weights.transform([["fox"], []]).shape == (2, 0)
    assert weights.transform([]).shape == (0, 0)
