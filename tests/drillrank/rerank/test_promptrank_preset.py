"""PromptRank's preset against the text of the paper: prompts (table A1), limits and temperature (section 3)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank import Passage, Path, PromptRank
from drillrank.prompts import prompt_text
from drillrank.rerank.base import PRESETS, LikelihoodFormula
from drillrank.rerank.demonstrations import Demonstration
from drillrank.rerank.promptrank import PROMPTRANK_INSTRUCTIONS, PromptRankSettings
from tests.drillrank.conftest import HashModel
from tests.drillrank.helpers import refuses

# Table A1, as printed, in the order of R@2. [D1] and [D2] are documents.
TABLE_A1 = """
1 Document: [D1] Document: [D2] Review previous documents and ask some question. Question:
2 Document: [D1] Document: [D2] Review the previous documents and answer question. Question:
3 Document: [D1] Document: [D2] Read the previous documents and write the following question. Question:
4 Document: [D1] Document: [D2] Search previous documents and ask the question. Question:
5 To analyze the documents and ask question. Document: [D1] Document: [D2] Question:
6 Document: [D1] Document: [D2] To read the previous documents and write a question. Question:
7 Document: [D1] Document: [D2] Read previous documents and write your exam question. Question:
8 Document: [D1] Document: [D2] Read the previous documents and ask this question. Question:
9 Read two documents and answer a question. Document: [D1] Document: [D2] Question:
10 Identify all documents and ask question. Document: [D1] Document: [D2] Question:
"""
PRINTED = [line.split(" ", 1)[1] for line in TABLE_A1.strip().splitlines()]
PATH = Path((Passage("[D1]", title="Basel"), Passage("[D2]")))


class Recorder(HashModel):
    """Model whose tokens are words. It records what it is asked."""

    def __init__(self):
        super().__init__()
        self.seen, self.temperatures = [], []

    def first_tokens(self, text, count):
        return " ".join(text.split(" ")[:count])

    def _log_likelihood(self, requests, temperature, include_eos):
        self.seen += requests
        self.temperatures.append(temperature)
        return super()._log_likelihood(requests, temperature, include_eos)


def asked(path=PATH, question="where?", **options):
    """Requests that score one path, and the temperature."""
    model = Recorder()
    PromptRank(model, **options).score_paths(question, [path])
    [temperature] = set(model.temperatures)
    return model.seen, temperature


def prompts(**options):
    return [" ".join(prompt_text(request.prompt).split()) for request in asked(**options)[0]]


def test_the_prompts_are_the_first_five_of_table_a1():
    assert prompts(preset="paper") == PRINTED[:5]


def test_all_instructions_are_those_of_table_a1():
    assert prompts(preset="paper", instructions=PROMPTRANK_INSTRUCTIONS) == PRINTED


def test_logits_are_divided_by_1_4():
    assert asked(preset="paper")[1] == 1.4
    assert asked()[1] == 1.0


def test_scores_of_the_instructions_are_combined_by_their_maximum():
    ranker = PromptRank(Recorder(), preset="paper")
    [(score, _)] = ranker.score_paths("where?", [PATH])
    assert score == max(score for [score] in ranker.score_prompts("where?", [PATH])[0])


def test_a_document_keeps_230_tokens_and_a_prompt_600():
    words = [f"w{i}" for i in range(400)]
    path = Path((Passage(" ".join(words)), Passage(" ".join(words))))
    requests, _ = asked(path, preset="paper")
    assert all(prompt_text(request.prompt).count(" w229.") == 2 for request in requests)
    assert not any("w230" in prompt_text(request.prompt) for request in requests)
    assert {request.max_tokens for request in requests} == {600}


def test_with_demonstrations_a_prompt_has_1024_tokens_and_the_best_instruction():
    shots = [Demonstration(PATH, f"{kind}?", kind) for kind in ("bridge", "comparison", "bridge", "comparison")]
    requests, _ = asked(preset="paper", demonstrations=shots)
    assert {request.max_tokens for request in requests} == {1024}
    assert len(requests) == 2  # contexts of two demonstrations each
    for request in requests:
        text = " ".join(prompt_text(request.prompt).split())
        assert text == f"{PRINTED[0]} bridge? {PRINTED[0]} comparison? {PRINTED[0]}"


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "instructions": st.sampled_from([PROMPTRANK_INSTRUCTIONS[:5], ("{path} Ask. Question:",)]),
            "ensemble": st.sampled_from(["max", "mean"]),
            "temperature": st.sampled_from([1.0, 1.4, 2.0]),
        },
    ),
    st.sampled_from(["paper", None]),
)
def test_explicit_values_win_over_the_preset_also_if_they_equal_a_default(explicit, preset):
    ranker = PromptRank(HashModel(), preset=preset, **explicit)
    for built in (ranker, ranker.with_model(HashModel())):
        for name in ("instructions", "ensemble", "temperature"):
            assert getattr(built, name) == explicit.get(name, getattr(PromptRank(HashModel(), preset=preset), name))


def test_an_explicit_formula_wins_over_the_preset():
    formula = LikelihoodFormula("{path}")
    titled = prompts(preset="paper", instructions=["{path} Ask. Question:"], settings={"formula": formula})
    assert titled == ["Document: Basel [D1] Document: [D2] Ask. Question:"]


def test_the_preset_is_an_argument_or_a_setting():
    by_argument = PromptRank(Recorder(), preset="paper")
    by_setting = PromptRank(Recorder(), settings={"preset": "paper"})
    assert by_argument.settings == by_setting.settings == PromptRankSettings(preset="paper")
    assert by_argument.score_paths("where?", [PATH]) == by_setting.score_paths("where?", [PATH])


@pytest.mark.parametrize("formula", ["promptrank", PRESETS["promptrank"]])
def test_a_formula_alone_leaves_the_temperature(formula):
    assert PromptRank(HashModel(), settings={"formula": formula}).temperature == 1.0


test_what_is_no_preset = refuses(
    (lambda: PromptRank(HashModel(), preset="promptrank"), "preset must be \"paper\" or None, got 'promptrank'"),
    (lambda: PromptRankSettings(preset="pap"), 'preset must be "paper" or None'),
    (
        lambda: PromptRankSettings(formula="upr"),
        "formula must be \"promptrank\", a LikelihoodFormula or None, got 'upr'",
    ),
    (lambda: PromptRank("unigram", preset="paper"), "neural"),
)
