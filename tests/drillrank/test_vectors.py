from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from drillrank.vectors import SparseMatrix, Tfidf, word_counts

texts = st.lists(
    st.lists(st.sampled_from(["red", "fox", "river", "Zürich", "東京", "42", "a"]), max_size=9), max_size=9
)
texts_with_words = texts.filter(any)


def dense(matrix):
    return sparse.csr_matrix((matrix.data, matrix.columns, matrix.bounds), shape=matrix.shape).toarray()


def as_given(words):
    return words


@given(texts_with_words)
def test_counts_are_scikit_learn_s(collection):
    reference = CountVectorizer(analyzer=as_given, dtype=np.float64)
    expected = reference.fit_transform(collection)
    counts, columns = word_counts(collection)
    assert list(columns) == sorted(columns)
    assert columns == reference.vocabulary_
    assert (dense(counts) == expected.toarray()).all()
    assert counts.data.dtype == expected.dtype


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


@pytest.mark.parametrize("width", [1, 255, 256, 257, 65_535, 65_536, 65_537])
def test_a_matrix_of_any_width_is_transposed(width):
    random = np.random.default_rng(width)
    theirs = sparse.random(40, width, 0.2, "csr", random_state=random)
    vectors = SparseMatrix(theirs.data, theirs.indices, theirs.indptr, width)
    assert entries(vectors.transposed()) == entries_of_scipy_s(theirs.tocsc())


@pytest.mark.parametrize("collection", [[], [[]], [[], []]])
def test_texts_without_words_are_rows_without_columns(collection):
    weights = Tfidf(collection)
    assert weights.vectors.shape == (len(collection), 0)
    assert weights.transform([["fox"], []]).shape == (2, 0)
    assert weights.transform([]).shape == (0, 0)


def test_texts_may_come_from_a_generator_once():
    counts, columns = word_counts(words.split() for words in ("b a b", "c"))
    assert columns == {"a": 0, "b": 1, "c": 2}
    assert dense(counts).tolist() == [[1, 2, 0], [0, 0, 1]]
