"""Presets against explicit prompts, scored by the yardstick, on every family of models."""

from __future__ import annotations

import pytest

from drillrank import UPR, Passage
from tests.drillrank.neural.float64 import of_ids

ASK = "Please write a question based on this passage."


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
