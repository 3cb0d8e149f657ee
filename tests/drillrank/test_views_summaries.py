"""Summaries are sentences of the section in their order, within a word limit."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank.errors import InvalidInput
from drillrank.structure import sentences
from drillrank.text import count_tokens
from drillrank.views import summaries, summary

words = st.lists(
    st.sampled_from(["Cats", "purr", "and", "dogs", "bark", "at", "night", "Dr.", "(see", "7)"]), min_size=1
)
prose = st.lists(words.map(lambda sentence: " ".join(sentence) + "."), max_size=12).map(" ".join)


def length(text: str) -> int:
    return len(re.findall(r"\S{1,20}", text))


def is_made_of(text: str, parts: list[str]) -> bool:
    """Whether some of the parts, in order and joined by spaces, give the text."""
    reached = {0}
    for part in parts:
        reached |= {at + len(part) + 1 for at in reached if text.startswith(part, at)}
    return len(text) + 1 in reached


@given(st.lists(prose, max_size=4), st.integers(10, 40))
def test_a_summary_is_a_subsequence_of_sentences_within_the_limit(texts, max_words):
    for text, short in zip(texts, summaries(texts, max_words, raw_up_to=max_words), strict=True):
        split = [text[start:end] for start, end in sentences(text)]
        if length(text) <= max_words:
            assert short == text
        elif any(length(sentence) <= max_words for sentence in split):
            assert is_made_of(short, split)
            assert 0 < length(short) <= max_words
        else:
            assert any(sentence.startswith(short) for sentence in split)
            assert length(short) == max_words


@given(st.text(), st.integers(1, 5))
def test_any_text_has_a_summary_within_the_limit(text, max_words):
    short = summary(text, max_words, raw_up_to=max_words)
    assert length(short) <= max_words
    assert bool(short.strip()) == bool(text.strip())


@given(prose)
def test_one_section_alone_equals_a_batch_of_one(text):
    assert summaries([text, "Short."], raw_up_to=5)[0] == summary(text, raw_up_to=5)


@given(st.lists(st.integers(0, 5), min_size=2, max_size=2))
def test_the_sentence_off_the_topic_is_left_out_of_every_section(places):
    counts = ["one", "two", "three", "four", "five"]
    topics = [
        [f"Ferry number {count} crosses the cold lake in winter." for count in counts],
        [f"The harvest of apples in orchard {count} was good." for count in counts],
    ]
    off_topic = "Parliament quarrelled about some zoning permits until late yesterday."
    mixed = [[*topic[:at], off_topic, *topic[at:]] for topic, at in zip(topics, places, strict=True)]
    found = summaries([" ".join(section) for section in mixed], max_words=45, raw_up_to=45)
    assert found == [" ".join(topic) for topic in topics]


def test_a_section_of_200_tokens_is_its_own_summary():
    text = "A few words here. " * 40
    assert count_tokens(text) == 200
    assert summary(text) == text
    assert length(summary(text + "More.")) <= 100


def test_text_without_spaces_or_words_is_cut():
    assert summary("\u6c49" * 10_000, max_words=10) == "\u6c49" * 20  # of these, two are a word
    assert summary("x" * 10_000, max_words=10) == "x" * 200
    assert summary("- " * 300, max_words=3) == "- - -"


def test_a_word_limit_below_one_is_refused():
    with pytest.raises(InvalidInput, match="at least 1"):
        summary("text", max_words=0)
