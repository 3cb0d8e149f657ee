"""Speed, counted: operations that scoring executes over the fewest possible, which no other load can change."""

from __future__ import annotations

from functools import cache, partial
from random import Random

import pytest
import transformers

from benchmarks.neural_operations import QUESTION, executed_by, fewest, passages_of, prompts_of
from benchmarks.plain_loops import examples_of
from drillrank.likelihood import HuggingFaceModel, Request
from drillrank.prompts import prompt_text
from drillrank.rerank.promptrank import PROMPTRANK_INSTRUCTIONS
from drillrank.rerank.upr import UPR_PROMPT
from tests.drillrank.neural.tiny_monot5 import word_pieces

WORDS = [f"w{number}" for number in range(500)]
TEXTS = [" ".join(Random(number).choices(WORDS, k=200)) for number in range(20)]


@pytest.fixture(scope="module")
def shaped(tmp_path_factory):
    """One layer of the widths of T5-small and GPT-2, so that tokens cost as much beside pairs of them as there."""
    tokenizer = word_pieces(" ".join([*WORDS, QUESTION, UPR_PROMPT, *PROMPTRANK_INSTRUCTIONS, "Document:"]))
    size = len(tokenizer)
    t5 = transformers.T5Config(
        vocab_size=size, d_model=512, d_kv=64, d_ff=1024, num_layers=1, num_heads=6, decoder_start_token_id=0
    )
    gpt2 = transformers.GPT2Config(vocab_size=size, n_layer=1, bos_token_id=1, eos_token_id=1)

    @cache
    def load(kind: str) -> HuggingFaceModel:
        place = tmp_path_factory.mktemp(kind)
        network = transformers.T5ForConditionalGeneration(t5) if kind == "t5" else transformers.GPT2LMHeadModel(gpt2)
        network.save_pretrained(place)
        tokenizer.save_pretrained(place)
        return HuggingFaceModel(str(place), dtype="float32")

    return load


def test_kept_prefixes_save_nine_of_ten_operations(shaped):
    """A change that computes more for a second question shows here, and one that computes less."""
    model = shaped("gpt2")
    cached = HuggingFaceModel(model.spec.removeprefix("hf:"), dtype="float32", prefix_cache="100 MB")
    passages = passages_of(TEXTS, model.engine.tokenizer, 40, (170, 170))
    requests = [Request(prompt, QUESTION) for prompt in prompts_of(model, passages, TEXTS)["one instruction"]]
    cached.log_likelihood(requests)
    whole, kept = (executed_by(one, partial(one.log_likelihood, requests)) for one in (model, cached))
    assert whole / kept == pytest.approx(12.97, abs=0.05)


@pytest.mark.parametrize(
    ("kind", "case", "ratio"),
    [
        ("t5", "one instruction", 1.0597),
        ("gpt2", "one instruction", 1.0609),
        ("gpt2", "five instructions", 1.0628),
        ("gpt2", "one instruction, 400 tokens of demonstrations", 1.0420),
    ],
)
def test_what_is_computed_beyond_the_fewest(shaped, kind, case, ratio):
    """Of 40 passages; of more, less is padding. A change that computes more shows here, and one that computes less."""
    model = shaped(kind)
    passages = passages_of(TEXTS, model.engine.tokenizer, 40, (100, 200))
    prompts = prompts_of(model, passages, TEXTS)[case]
    least = fewest(model.engine.model, examples_of(model, [(prompt_text(prompt), QUESTION) for prompt in prompts]))
    ours = executed_by(model, partial(model.log_likelihood, [Request(prompt, QUESTION) for prompt in prompts]))
    assert ours / least == pytest.approx(ratio, abs=1e-3)
