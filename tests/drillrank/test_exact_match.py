from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank.evaluation.exact_match import exact_match

words = st.lists(st.sampled_from(["The", "a", "river", "River", "town.", "old-town", "the,", "7", "an"]), max_size=6)


def tokens(text):
    kept = "".join(character for character in text.lower() if character not in string.punctuation)
    return [word for word in kept.split() if word not in ("a", "an", "the")]


@given(st.lists(words.map(" ".join), max_size=4), st.lists(words.map("  ".join), max_size=3), st.integers(1, 5))
def test_an_answer_is_a_run_of_whole_words_in_one_of_the_first_texts(texts, answers, k):
    def holds(text, answer):
        return any(text[i : i + len(answer)] == answer for i in range(len(text) - len(answer) + 1))

    expected = any(tokens(answer) and holds(tokens(text), tokens(answer)) for text in texts[:k] for answer in answers)
    assert exact_match(texts, answers, k) == float(expected)


@pytest.mark.parametrize(("text", "found"), [("In 19456.", 0.0), ("in 1945: peace", 1.0), ("1 945", 0.0)])
def test_part_of_a_word_is_no_answer(text, found):
    assert exact_match([text], ["1945"], 1) == found
