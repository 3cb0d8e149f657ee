from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from drillrank.vectors import Tfidf, word_counts

texts = st.lists(
    st.lists(st.sampled_from(["red", "fox", "river", "Zürich", "東京", "42", "a"]), max_size=9), max_size=9
)
texts_with_words = texts.filter(any)


def as_given(words):
    return words


@given(texts_with_words)
def test_counts_are_scikit_learn_s(collection):
    reference = CountVectorizer(analyzer=as_given, dtype=np.float64)
    expected = reference.fit_transform(collection)
    counts, columns = word_counts(collection)
    assert list(columns) == sorted(columns)
    assert columns == reference.vocabulary_
    assert (counts.toarray() == expected.toarray()).all()
    assert counts.dtype == expected.dtype


@given(texts_with_words, texts)
def test_weights_are_scikit_learn_s_to_the_last_bit(collection, others):
    reference = TfidfVectorizer(analyzer=as_given)
    expected = reference.fit_transform(collection)
    weights = Tfidf(collection)
    assert (weights.vectors.toarray() == expected.toarray()).all()
    # sums of products run in the order in which a row holds its words
    centroid = np.asarray(expected.sum(axis=0)).ravel()
    assert (weights.vectors @ centroid == expected @ centroid).all()
    if others:
        assert (weights.transform(others).toarray() == reference.transform(others).toarray()).all()


@given(texts_with_words)
def test_slices_of_unsorted_rows_are_right(collection):
    vectors = Tfidf(collection).vectors
    dense = vectors.toarray()
    assert (vectors[:, [0]].toarray() == dense[:, [0]]).all()
    assert (vectors[-1].toarray() == dense[-1:]).all()
    assert (vectors.tocsc().toarray() == dense).all()


@pytest.mark.parametrize("collection", [[], [[]], [[], []]])
def test_texts_without_words_are_rows_without_columns(collection):
    weights = Tfidf(collection)
    assert weights.vectors.shape == (len(collection), 0)
    assert weights.transform([["fox"], []]).shape == (2, 0)
    assert weights.transform([]).shape == (0, 0)


def test_texts_may_come_from_a_generator_once():
    counts, columns = word_counts(words.split() for words in ("b a b", "c"))
    assert columns == {"a": 0, "b": 1, "c": 2}
    assert counts.toarray().tolist() == [[1, 2, 0], [0, 0, 1]]
