"""Keywords come from the text, fold inflections, and set a section apart from the others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, TfidfVectorizer

from drillrank.data import read_words
from drillrank.errors import InvalidInput
from drillrank.text import terms
from drillrank.views import keywords

WORDS = [
    "Neural",
    "network",
    "networks",
    "the",
    "of",
    "model's",
    "don't",
    "2024",
    "x",
    "GPT-2",
    "state",
    "-",
    ",",
    ".\n\n",
]
WORDS += [
    "snake_case",
    "_emphasis_",
    "`code`",
    "<b>bold</b>",
    "https://example.org/page",
    "\\cite{key}",
    "wörter",
    "\n",
]
prose = st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join)
sections = st.lists(st.one_of(prose, st.text()), max_size=5)


@given(sections, st.integers(1, 8))
def test_keywords_are_content_words_of_their_section(texts, n):
    found = keywords(texts, n)
    assert len(found) == len(texts)
    for text, words in zip(texts, found, strict=True):
        one_line = " ".join(text.split())
        assert len(words) <= n
        assert len({tuple(terms(word)) for word in words}) == len(words)
        for word in words:
            assert word in one_line
            assert any(character.isalpha() for character in word)
            assert not any(part.lower() in ENGLISH_STOP_WORDS for part in word.split())


def test_the_stop_words_are_scikit_learn_s():
    assert set(read_words("english_stop_words.txt")) == ENGLISH_STOP_WORDS


@given(sections, st.randoms(use_true_random=False))
def test_the_order_of_the_sections_does_not_matter(texts, random):
    order = random.sample(range(len(texts)), len(texts))
    found = keywords(texts)
    assert keywords([texts[i] for i in order]) == [found[i] for i in order]


def test_a_word_of_every_section_comes_after_one_of_this_section_only():
    found = keywords(["method apple", "method banana", "method cherry"])
    assert found == [["apple", "method"], ["banana", "method"], ["cherry", "method"]]


@pytest.mark.parametrize(("sections", "first"), [(4, "common"), (5, "rare")])
def test_rarity_outweighs_frequency_from_five_sections_on(sections, first):
    """Twice in every section weighs 2; once in a single one of n weighs 1 + ln((1 + n) / 2)."""
    found = keywords(["common, rare, common", *["common"] * (sections - 1)])
    assert found[0][0] == first


@given(
    st.lists(
        st.lists(st.sampled_from(["apple", "river", "stone", "tower"]), min_size=1, max_size=9), min_size=1, max_size=7
    )
)
def test_single_words_are_weighted_as_scikit_learn_does_it(sections):
    texts = [", ".join(section) for section in sections]
    vectorizer = TfidfVectorizer(norm=None, smooth_idf=True)
    weights = vectorizer.fit_transform(texts).toarray()
    for found, row in zip(keywords(texts), weights, strict=True):
        weight = dict(zip(vectorizer.get_feature_names_out(), row.tolist(), strict=True))
        listed = [weight.pop(word) for word in found]
        assert listed == pytest.approx(sorted(listed, reverse=True))
        assert not any(weight.values())


def test_one_section_is_ranked_by_frequency():
    assert keywords(["rare, common, common, usual, usual, common."]) == [["common", "usual", "rare"]]


def test_inflections_count_as_one_and_show_their_most_frequent_form():
    assert keywords(["A model; models, models! Bird."]) == [["models", "Bird"]]


@pytest.mark.parametrize(("alone", "best"), [(3, ["Random forests", "grow"]), (4, ["forests", "Random forests"])])
def test_a_repeated_phrase_replaces_the_words_that_occur_mostly_inside_it(alone, best):
    text = "Random forests grow, random\nforest. Random forests." + " forests." * alone
    assert keywords([text], n=2) == [best]


def test_a_phrase_may_hold_a_line_break_or_a_hyphen_but_not_one_word_twice():
    assert keywords(["hard\nwrapped, hard\nwrapped; semi-automatic, semi-automatic; cold cold, cold cold"]) == [
        ["cold", "hard wrapped", "semi-automatic"]
    ]


@pytest.mark.parametrize("text", ["deep. learning. deep. learning.", "deep and learning, deep of learning"])
def test_no_phrase_reaches_over_punctuation_or_stop_words(text):
    assert sorted(keywords([text])[0]) == ["deep", "learning"]


def test_markup_addresses_and_contractions_are_passed_over():
    text = "I don't <a href='http://a.org/b'>agree</a>, see [this](https://c.org/d): \\textbf{nets} of the author's"
    assert keywords([text]) == [["agree", "nets", "author"]]


def test_encoded_data_is_no_keyword():
    assert keywords(["key " + "QmFzZTY0" * 20]) == [["key"]]


@pytest.mark.parametrize("n", [0, -1])
def test_at_least_one_keyword_must_be_asked_for(n):
    with pytest.raises(InvalidInput, match="at least 1"):
        keywords(["text"], n)
