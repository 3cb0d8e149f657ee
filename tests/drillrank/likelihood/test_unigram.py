from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from drillrank.likelihood import Request, UnigramModel, load_language_model, unigram
from drillrank.prompts import TruncatableText
from drillrank.text import find_words, terms

WORDS = [
    "red",
    "fox",
    "Foxes",
    "Häuser",
    "river",
    "Rhine",
    "running",
    "Zürich",
    "東京",
    "x_1",
    "42",
]  # two share a stem
worded = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from([" ", ", ", "\n", " -- "])), max_size=7).map(
    lambda parts: "".join(map("".join, parts))
)
texts = worded | st.text(max_size=8)
targets = texts.filter(str.strip)
temperatures = st.sampled_from([1.0, 0.05, 0.5, 1.4, 2.0, 4.0])
mus = st.sampled_from([0.5, 10.0, 300.0, 5000.0])


KAPPA, UNLISTED = 100_000, 1e-7  # as documented, not as imported
ENGLISH = {"the": 0.5, "red": 0.3, "river": 0.1999, "whale": 0.0001}  # stems
LISTS = {"english": ENGLISH, "german": {"der": 0.6, "haus": 0.3, "river": 0.1}}


@pytest.fixture(scope="module", autouse=True)
def small_lists():
    """Backgrounds of a few words: the naive computation goes through all of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unigram, "background", LISTS.__getitem__)
        yield


@st.composite
def batches(draw):
    """A pool of texts, how many of them are fitted (None: not fitted), and requests over 0 to 3 of its texts each."""
    pool = draw(st.lists(texts, min_size=1, max_size=6))
    fitted = draw(st.none() | st.integers(0, len(pool)))
    asked = st.lists(targets, min_size=1, max_size=2).flatmap(st.sampled_from)
    documents = st.lists(st.sampled_from(pool), max_size=3)
    requests = draw(st.lists(st.tuples(documents, asked), min_size=1, max_size=6))
    return None if fitted is None else pool[:fitted], requests


def prompt_of(documents, wording="Document: "):
    return (wording, *(part for document in documents for part in (TruncatableText(document), wording)))


def as_requests(pairs):
    return [Request(prompt_of(documents), target) for documents, target in pairs]


def naive_log_probs(documents, target, collection_texts, mu, temperature, language):
    """Dirichlet smoothing, temperature and mean over the documents, one word and one class at a time."""
    collection = Counter(word for text in set(collection_texts) for word in terms(text, language))
    listed = LISTS[language]
    unlisted = sum(word not in listed for word in collection) + 1
    tokens = collection.total() + KAPPA * (1 + UNLISTED * unlisted)

    def probability(word, counts):
        def smoothed(word):
            return counts[word] + mu * (collection[word] + KAPPA * listed.get(word, UNLISTED)) / tokens

        an_unseen_word = None
        classes = {*listed, *collection, *counts, an_unseen_word}
        return smoothed(word) ** (1 / temperature) / math.fsum(
            smoothed(other) ** (1 / temperature) for other in classes
        )

    counted = [Counter(terms(document, language)) for document in documents or [""]]
    return [
        math.log(math.fsum(probability(word, counts) for counts in counted) / len(counted))
        for word in terms(target, language)
    ]


@given(batches(), mus, temperatures, st.sampled_from([*LISTS]))
@example((["a red fox"], [(["Rhine 42", "a fox"], "fox 42 Rhine"), (["Zürich"], "fox 42 Rhine")]), 5e3, 1.0, "english")
@example((["Häuser", "a red"], [(["Häuser", "der"], "Häuser der river")]), 300.0, 1.0, "german")
@example((None, [(["Häuser"], "Häuser river"), (["Rhine"], "Häuser river")]), 300.0, 2.0, "german")
def test_agrees_with_the_naive_computation(batch, mu, temperature, language):
    fitted, pairs = batch
    model = UnigramModel(mu, language)
    model = model if fitted is None else model.fit(fitted)
    results = model.log_likelihood(as_requests(pairs), temperature=temperature)
    assert len(results) == len(pairs)
    for (documents, target), result in zip(pairs, results, strict=True):
        offered = [text for others, same in pairs if same == target for text in others or [""]]
        collection = offered if fitted is None else fitted
        expected = naive_log_probs(documents, target, collection, mu, temperature, language)
        np.testing.assert_allclose(result.log_probs, expected, rtol=1e-9, atol=1e-9)
        assert result.total == pytest.approx(math.fsum(expected), rel=1e-9, abs=1e-9)
        assert result.mean == pytest.approx(math.fsum(expected) / max(len(expected), 1), rel=1e-9, abs=1e-9)
        assert result.cut_tokens == 0
        assert list(result.tokens) == terms(target, language)
        assert result.log_probs.dtype == np.float64
        assert result.log_probs.shape == (len(expected),)
        assert type(result.total) is type(result.mean) is float
        assert np.isfinite(result.log_probs).all()
        assert result.total <= 1e-9


@given(st.lists(worded, min_size=1, max_size=5), st.integers(1, 3), mus, temperatures | st.sampled_from([1e-4, 1e6]))
def test_the_probabilities_of_all_classes_add_up_to_one(collection, documents, mu, temperature):
    collection = [text.replace("東京", "Tokyo") for text in collection]  # two characters have three terms
    model = UnigramModel(mu).fit(collection)
    stems = {stem for text in collection for stem in terms(text)}
    everything = " ".join(sorted({*stems, *ENGLISH, "unheardof"}))
    assert len(terms(everything)) == len(stems | ENGLISH.keys()) + 1
    [result] = model.log_likelihood([Request(prompt_of(collection[:documents]), everything)], temperature=temperature)
    assert math.fsum(np.exp(result.log_probs)) == pytest.approx(1, abs=1e-9)


# budgets


@given(worded, st.integers(1, 8))
def test_the_first_tokens_are_words_with_what_stands_before_them(text, count):
    ends = [match.end() for match in find_words(text)]
    assert UnigramModel().first_tokens(text, count) == (text[: ends[count - 1]] if len(ends) > count else text)


@given(worded, st.integers(1, 8), temperatures)
def test_a_cut_document_scores_as_the_shorter_text_does(text, limit, temperature):
    ends = [match.end() for match in find_words(text)]
    shorter = text[: ends[limit - 1]] if len(ends) > limit else text
    model = UnigramModel().fit(["some red fox", text])
    cut, short = model.log_likelihood(
        [
            Request((TruncatableText(text, limit),), "red Rhine 42"),
            Request((TruncatableText(shorter),), "red Rhine 42"),
        ],
        temperature=temperature,
    )
    np.testing.assert_allclose(cut.log_probs, short.log_probs, rtol=1e-12)
    assert cut.cut_tokens == max(0, len(ends) - limit)


# edges


@given(st.lists(st.lists(worded, max_size=3), min_size=1, max_size=4), worded.filter(str.strip))
def test_a_request_is_matched_if_a_document_holds_a_word_of_the_target(lists, target):
    words = set(terms(target))
    requests = [Request(tuple(map(TruncatableText, documents)), target) for documents in lists]
    found = UnigramModel().log_likelihood(requests)
    expected = [any(words & set(terms(document)) for document in documents) for documents in lists]
    assert [item.matched for item in found] == expected


# fitting, sharing, loading


@pytest.mark.parametrize("fitted", [(), ("a red fox", "whales of the red river")])
@given(texts=st.lists(texts, min_size=1, max_size=4), target=targets)
def test_the_words_of_a_target_under_each_document_alone(fitted, texts, target):
    model = UnigramModel().fit(fitted) if fitted else UnigramModel()
    alone = model.log_likelihood([Request((TruncatableText(text),), target) for text in texts])
    expected = [result.log_probs.tolist() for result in alone]
    assert model.document_log_probs(target, texts).tolist() == expected


def test_loading():
    model = UnigramModel()
    assert load_language_model(model) is model
    assert load_language_model().options == model.options


def test_no_end_of_sequence_is_the_default():
    model = UnigramModel()
    assert model.log_likelihood([("a", "b")], include_eos=False)[0].total == model.log_likelihood([("a", "b")])[0].total
