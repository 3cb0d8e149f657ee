from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank import MonoT5, Passage
from drillrank.errors import LacksCapability
from drillrank.likelihood import HuggingFaceModel, LanguageModel, NextTokens, SumOfExperts, UnigramModel
from tests.drillrank.neural.conftest import loaded, saved
from tests.drillrank.neural.float64 import Yardstick
from tests.drillrank.neural.tiny_monot5 import save_tiny_monot5

QUERY = "Which river flows through Basel?"
RELEVANT, OTHERS = "The Rhine flows through Basel.", ["Emma is a novel.", "Chess is a game.", "The Thames is a river."]


@pytest.fixture(scope="module")
def tiny_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("monot5")
    save_tiny_monot5(folder, [(QUERY, RELEVANT, True), *((QUERY, text, False) for text in OTHERS)])
    return folder


@pytest.fixture(scope="module")
def tiny(tiny_folder) -> HuggingFaceModel:
    """Fine-tuned to answer "true" and "false", each of which is one token."""
    return HuggingFaceModel(str(tiny_folder), dtype="float32")


def paper_prompt(query: str, passage: Passage | str) -> str:
    text = passage if isinstance(passage, str) else f"{passage.title} {passage.text}" if passage.title else passage.text
    return f"Query: {query} Document: {text} Relevant:"


def in_input_order(ranking):
    return [item.score for item in sorted(ranking, key=lambda item: item.details["position"])]


@pytest.mark.parametrize("family", ["t5-untied", "bart", "gpt2", "llama"])
def test_an_answer_of_several_tokens_counts_as_a_whole_word(tmp_path_factory, family):
    folder = saved(family, tmp_path_factory)
    model, alone = loaded(folder), Yardstick(folder)
    given_ = [RELEVANT, Passage(OTHERS[0], title="Emma")]
    for item in MonoT5(model).rank(QUERY, given_):
        prompt = paper_prompt(QUERY, item.passage)
        answers = [alone(prompt, word, include_eos=False) for word in ("true", "false")]
        assert all(len(answer) > 1 for answer in answers)
        true, false = (float(answer.sum()) for answer in answers)
        assert (item.details["positive"], item.details["negative"]) == pytest.approx((true, false), abs=1e-3)
        assert item.score == pytest.approx(true - np.logaddexp(true, false), abs=1e-3)


def test_a_model_that_tells_likelihoods_alone_is_asked_for_them(tiny):
    both = SumOfExperts([tiny, tiny], [0.5, 0.5])
    assert not both.tells_next_tokens
    [expected, found] = (in_input_order(MonoT5(model).rank(QUERY, [*OTHERS, RELEVANT])) for model in (tiny, both))
    assert found == pytest.approx(expected, abs=1e-4)


class Convinced(LanguageModel):
    """Answers with given log-odds, however sure; nine times in ten it says something else; keeps what it is asked."""

    spec = "convinced"
    tells_next_tokens = True

    def __init__(self, log_odds):
        self.log_odds, self.requests = log_odds, []

    def log_likelihood_batch(self, requests, temperature, include_eos):
        raise AssertionError("the next token is asked for")

    def next_tokens_batch(self, requests, logits):
        assert not logits
        self.requests += requests
        return [NextTokens(np.log(0.1) - np.logaddexp(0, [-odds, odds])) for odds in self.log_odds]


@given(st.lists(st.floats(-700, 700).map(lambda odds: round(odds, 3)), min_size=1, max_size=6))
def test_sure_answers_are_told_apart_where_the_probability_is_0_or_1(log_odds):
    ranking = MonoT5(Convinced(log_odds)).rank("q", [str(i) for i in range(len(log_odds))])
    assert [item.details["position"] for item in ranking] == sorted(
        range(len(log_odds)), key=lambda i: log_odds[i], reverse=True
    )
    expected = [-math.log1p(math.exp(-odds)) if odds > 0 else odds - math.log1p(math.exp(odds)) for odds in log_odds]
    assert in_input_order(ranking) == pytest.approx(expected, rel=1e-9, abs=0)


def test_models_that_read_no_instructions_are_refused():
    for lexical in ("unigram", UnigramModel(), UnigramModel().fit(["a text"])):
        with pytest.raises(LacksCapability, match=r"reads instructions, got 'unigram.*Use a neural"):
            MonoT5(lexical)
