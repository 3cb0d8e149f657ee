from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank.passages import Passage, Path
from drillrank.rerank.formula import PRESETS, LikelihoodFormula
from drillrank.rerank.promptrank import PromptRank
from drillrank.rerank.upr import UPR
from tests.drillrank.conftest import HashModel
from tests.drillrank.helpers import refuses

UPR_PRESETS = sorted(set(PRESETS) - {"promptrank"})
texts = st.sampled_from(["a red fox", "a river. ", "", "{text}", "{path}?", "who crossed the river?"])
passages = st.builds(Passage, texts, title=texts)
questions = st.sampled_from(["which river", "which river?", "{question}", "who is it ?"])
REQUEST = "Please write a question based on this passage."


@pytest.fixture(scope="module")
def word_model(hash_model):
    class WordModel(hash_model):
        """Words are its tokens; it remembers whether the end of the sequence was to count."""

        include_eos = None

        def first_tokens(self, text, count):
            return " ".join(text.split(" ")[:count])

        def log_likelihood_batch(self, requests, temperature, include_eos):
            self.include_eos = include_eos
            return super().log_likelihood_batch(requests, temperature, include_eos)

    return WordModel


def prompt_and_target(preset: str, passage: Passage, question: str) -> tuple[str, str]:
    title = f"{passage.title} " if passage.title else ""
    return {
        "upr": (f"Passage:  {title}{passage.text}. {REQUEST}", f"Question: {question}"),
        "rankify": (f"Passage:  {title}{passage.text}. {REQUEST}", question),
        "rerankers": (f"Passage: {passage.text}. {REQUEST}", question),
        "brmgr": (f"passage: {title}{passage.text}. {REQUEST}", question),
        "paper": (f"Passage: {title}{passage.text}. {REQUEST}", question),
    }[preset]


@pytest.mark.parametrize("preset", UPR_PRESETS)
@given(questions, st.lists(passages, max_size=4))
def test_a_preset_of_upr(word_model, preset, question, passages):
    expected = []
    for passage in passages:
        prompt, target = prompt_and_target(preset, passage, question)
        total = sum(word_model.log_probs(prompt, target))
        expected.append(total / len(target.split()) if preset in ("brmgr", "paper") else total)
    ranking = UPR(word_model(), preset=preset).rank(question, passages)
    assert [item.score for item in ranking] == pytest.approx([expected[item.details["position"]] for item in ranking])
    assert [item.score for item in ranking] == sorted((item.score for item in ranking), reverse=True)


@given(questions, st.lists(st.lists(passages, min_size=1, max_size=3).map(Path), max_size=3))
def test_the_preset_of_promptrank(word_model, question, paths):
    instructions = ["{path} Ask. Question:", "Read. {path} Question:"]
    expected = []
    for path in paths:
        found = []
        target = question if question.endswith("?") else f"{question}?"
        for instruction in instructions:
            documents = [passage.text for passage in path.passages]  # without titles
            whole = " ".join(f"Document: {text}" for text in documents if text.strip())
            before, after = instruction.split("{path}")
            log_probs = word_model.log_probs(f"{before}{whole} {after}", target)
            found.append(sum(log_probs) / len(log_probs))
        expected.append(sum(found) / 2)
    ranker = PromptRank(word_model(), settings={"formula": "promptrank"}, instructions=instructions, ensemble="mean")
    for same in (ranker, ranker.with_model(word_model())):
        assert [score for score, _ in same.score_paths(question, paths)] == pytest.approx(expected)


test_presets_that_cannot_be_used = refuses(
    (lambda: UPR(HashModel(), preset="colbert"), "one of upr, .*, promptrank"),
    (lambda: UPR(HashModel(), preset=None, template="{path}"), "template"),
    (lambda: UPR(HashModel(), preset="promptrank"), "another"),
    (lambda: UPR(HashModel(), preset="upr", template="Text: {text}"), "includes its template and limits"),
    (lambda: UPR(HashModel(), preset="upr", max_passage_tokens=100), "includes its template and limits"),
    (lambda: UPR(HashModel(), preset=3), "LikelihoodFormula"),
    (lambda: UPR(HashModel(), preset=LikelihoodFormula(3)), "another"),
    (lambda: UPR(HashModel(), preset=LikelihoodFormula("{text} {title}")), "before it"),
    (lambda: LikelihoodFormula("{text}", max_prompt_tokens=0), "max_prompt_tokens"),
    (lambda: LikelihoodFormula("{text}", max_target_tokens=0), "max_target_tokens"),
    (lambda: UPR(HashModel(), preset="upr").rank("who?", ["a"]), "'hash' does not report where its tokens end"),
    *((lambda preset=preset: UPR("unigram", preset=preset), "neural") for preset in UPR_PRESETS),
    (lambda: PromptRank("unigram", settings={"formula": "promptrank"}), "neural"),
)
