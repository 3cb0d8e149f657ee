"""Presets against explicit prompts, scored by the yardstick, on every family of models."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from drillrank import UPR, Passage, Path, PromptRank
from drillrank.rerank.base import PRESETS
from tests.drillrank.neural.float64 import of_ids

ASK = "Please write a question based on this passage."
EMMA = Passage("Emma is a novel by Jane Austen", title="Emma")
RHINE = Passage("The Rhine is a river of Europe.")
QUESTION = "who wrote the novel"
WORDING = {
    "upr": (f"Passage:  Emma {EMMA.text}. {ASK}", f"Passage:  {RHINE.text}. {ASK}", f"Question: {QUESTION}"),
    "rankify": (f"Passage:  Emma {EMMA.text}. {ASK}", f"Passage:  {RHINE.text}. {ASK}", QUESTION),
    "rerankers": (f"Passage: {EMMA.text}. {ASK}", f"Passage: {RHINE.text}. {ASK}", QUESTION),
    "brmgr": (f"passage: Emma {EMMA.text}. {ASK}", f"passage: {RHINE.text}. {ASK}", QUESTION),
}


@pytest.mark.parametrize("include_eos", [None, True, False])
@pytest.mark.parametrize("preset", WORDING)
def test_upr(model, yardstick, preset, include_eos):
    *prompts, target = WORDING[preset]
    counts_end = model.include_eos_by_default if include_eos is None else include_eos
    log_probs = [yardstick(prompt, target, include_eos=counts_end) for prompt in prompts]
    expected = [each.mean() if preset == "brmgr" else each.sum() for each in log_probs]
    ranking = UPR(model, preset=replace(PRESETS[preset], include_eos=include_eos)).rank(QUESTION, [EMMA, RHINE])
    assert [item.score for item in ranking] == pytest.approx(sorted(expected, reverse=True), abs=1e-4)
    assert [item.details["position"] for item in ranking] == np.argsort(expected)[::-1].tolist()


def test_long_prompts_and_questions_lose_their_ends(model, yardstick):
    tokenizer, config = yardstick.tokenizer, yardstick.network.config
    if not config.get("is_encoder_decoder"):
        pytest.skip("the code glues the question to a decoder-only model's prompt without a blank")
    longest = min(512, config.get("max_position_embeddings", 512))
    passage, question = Passage("a river " * 400, title="Emma"), "river a " * 100
    prompt = f"Passage:  Emma {passage.text}. {ASK}"
    encoded = tokenizer(prompt, truncation=True, max_length=longest)["input_ids"]
    added = len(tokenizer("")["input_ids"])
    labels = tokenizer(f"Question: {question}", add_special_tokens=False)["input_ids"][:127]
    before = [config["decoder_start_token_id"], *tokenizer("")["input_ids"][: added - 1]]
    expected = of_ids(yardstick.network, before, [*labels, tokenizer.eos_token_id], encoded).sum()
    [item] = UPR(model, preset="upr").rank(question, [passage])
    assert len(encoded) == longest
    assert item.details["tokens"] == 128
    assert item.score == pytest.approx(expected, abs=3e-4)
    assert item.details["cut_tokens"] == len(tokenizer(prompt)["input_ids"]) - longest


@pytest.mark.parametrize("temperature", [1.0, 1.4])
@pytest.mark.parametrize("ensemble", ["mean", "max"])
def test_promptrank(model, yardstick, ensemble, temperature):
    instructions = ["{path} Ask some question. Question:", "Read. {path} Question:"]
    prompts = [
        f"Document: {EMMA.text} Document: {RHINE.text}  Ask some question. Question:",
        f"Read. Document: {EMMA.text} Document: {RHINE.text}  Question:",
    ]
    settings = {"include_eos": model.include_eos_by_default, "temperature": temperature}
    means = [yardstick(prompt, f"{QUESTION}?", **settings).mean() for prompt in prompts]
    ranker = PromptRank(
        model, settings={"preset": "promptrank"}, instructions=instructions, ensemble=ensemble, temperature=temperature
    )
    [(score, _)] = ranker.score_paths(QUESTION, [Path((EMMA, Passage(" "), RHINE))])
    assert score == pytest.approx(max(means) if ensemble == "max" else sum(means) / 2, abs=1e-5)


def test_the_first_tokens_of_a_text(model, yardstick):
    text = "The old town of Basel lies on the Rhine."
    encoded = yardstick.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    for count, (_, end) in enumerate(encoded["offset_mapping"], start=1):
        first = model.first_tokens(text, count)
        counted = len(yardstick.tokenizer(text[:end], add_special_tokens=False)["input_ids"])
        assert first == (text[:end] if counted <= count else text[: len(first)])
        assert len(yardstick.tokenizer(first, add_special_tokens=False)["input_ids"]) <= count
    assert model.first_tokens(text, count + 1) == text
