"""Tiny models of every family, built in memory and saved where `from_pretrained` finds them."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import torch
import transformers
from tokenizers import Tokenizer, processors

from drillrank.likelihood import HuggingFaceModel
from tests.drillrank.neural.float64 import Yardstick
from tests.drillrank.neural.tokenizers_of_all_kinds import byte_fallback, byte_level, pairs, unigram, word_piece

SIZES = {"vocab": 400, "width": 32, "layers": 2, "heads": 4}


def between(tokenizer: Tokenizer, single: str) -> Tokenizer:
    """The same tokenizer, with special tokens around every text."""
    names = [name for name in single.split() if name != "$A"]
    special = [(name, tokenizer.token_to_id(name)) for name in names]
    tokenizer.post_processor = processors.TemplateProcessing(single=single, special_tokens=special)
    return tokenizer


def wrapped(tokenizer: Tokenizer, **special: str) -> transformers.PreTrainedTokenizerFast:
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)


def t5(tokenizer: Tokenizer, *, tied: bool):
    config = transformers.T5Config(
        vocab_size=SIZES["vocab"], d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, decoder_start_token_id=0,
        feed_forward_proj="relu" if tied else "gated-gelu",
    )  # fmt: skip
    model = transformers.T5ForConditionalGeneration(config)
    if not tied:
        model.lm_head.weight = torch.nn.Parameter(torch.randn_like(model.lm_head.weight))
    model.config.scale_decoder_outputs = tied
    special = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    return model, wrapped(between(tokenizer, "$A </s>"), **special, model_max_length=512)


def bart(tokenizer: Tokenizer):
    config = transformers.BartConfig(
        vocab_size=SIZES["vocab"], d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, max_position_embeddings=300,
    )  # fmt: skip
    special = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>"}
    model = transformers.BartForConditionalGeneration(config)
    for layer in model.model.decoder.layers:
        layer.encoder_attn.out_proj.weight.data *= 4  # or prompts hardly matter
    return model, wrapped(between(tokenizer, "<s> $A </s>"), **special)


def gpt2(tokenizer: Tokenizer):
    config = transformers.GPT2Config(
        vocab_size=SIZES["vocab"], n_embd=32, n_layer=2, n_head=4, n_positions=300, bos_token_id=0, eos_token_id=0
    )
    return transformers.GPT2LMHeadModel(config), wrapped(tokenizer, eos_token="<|endoftext|>")


def opt():
    config = transformers.OPTConfig(
        vocab_size=SIZES["vocab"], hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=48,
        word_embed_proj_dim=32, max_position_embeddings=300, pad_token_id=1, bos_token_id=2, eos_token_id=2,
    )  # fmt: skip
    tokenizer = between(byte_level(["<s>", "<pad>", "</s>"]), "</s> $A")
    return transformers.OPTForCausalLM(config), wrapped(tokenizer, eos_token="</s>", pad_token="<pad>")


def llama(tokenizer: Tokenizer):
    config = transformers.LlamaConfig(
        vocab_size=SIZES["vocab"], hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=300, bos_token_id=0, eos_token_id=1,
    )  # fmt: skip
    special = {"bos_token": "<s>", "eos_token": "</s>"}
    return transformers.LlamaForCausalLM(config), wrapped(between(tokenizer, "<s> $A"), **special)


def qwen2():
    config = transformers.Qwen2Config(
        vocab_size=SIZES["vocab"], hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=300, tie_word_embeddings=True,
    )  # fmt: skip
    tokenizer = byte_level(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    return transformers.Qwen2ForCausalLM(config), wrapped(tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>")


FAMILIES: dict[str, Callable[[], tuple]] = {
    "t5-tied": lambda: t5(unigram(["<pad>", "</s>"]), tied=True),
    "t5-untied": lambda: t5(byte_fallback(["<pad>", "</s>"]), tied=False),
    "bart": lambda: bart(byte_level(["<s>", "<pad>", "</s>", "<unk>"])),
    "gpt2": lambda: gpt2(byte_level(["<|endoftext|>"])),
    "opt": opt,
    "llama": lambda: llama(byte_fallback(["<s>", "</s>"])),
    "qwen2": qwen2,
}
# The engine's own tests go through these, too.
MORE_TOKENIZERS: dict[str, Callable[[], tuple]] = {
    "bart-word-piece": lambda: bart(word_piece(["<s>", "<pad>", "</s>"])),
    "gpt2-pairs": lambda: gpt2(pairs(["<|endoftext|>"])),
    "llama-unigram": lambda: llama(unigram(["<s>", "</s>"])),
}


@pytest.fixture(scope="session", params=FAMILIES)
def folder(request, tmp_path_factory) -> Path:
    return saved(request.param, tmp_path_factory)


def saved(family: str, tmp_path_factory) -> Path:
    """Return the directory of a model, which the processes of a test run save once. Copy it to change it."""
    base = tmp_path_factory.getbasetemp()
    place = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "models" / family
    place.parent.mkdir(exist_ok=True)
    if not place.exists():
        own = tmp_path_factory.mktemp(family)
        save_family(family, own)
        move_whole(own, place)
    return place


def move_whole(own: Path, place: Path) -> None:
    """Rename a directory, unless another process was first."""
    with suppress(OSError):
        own.rename(place)


def save_family(family: str, place: Path) -> None:
    torch.manual_seed(7)
    model, tokenizer = {**FAMILIES, **MORE_TOKENIZERS}[family]()
    for weight in (*model.parameters(), *model.buffers()):
        if weight.is_floating_point():
            # Most families begin so flat that mistakes would hide; nor are biases all 0, norms all 1 after training.
            weight.data *= 1 if family.startswith("t5") else 3
            weight.data += 0.2 * weight.abs().mean().clamp(min=0.1) * torch.randn_like(weight)
    model.save_pretrained(place)
    tokenizer.save_pretrained(place)


def smallest(place: Path) -> Path:
    """A directory with a random Llama of one layer, for what only has to load and answer."""
    torch.manual_seed(1)
    config = transformers.LlamaConfig(vocab_size=400, hidden_size=16, intermediate_size=16, num_hidden_layers=1,
                                      num_attention_heads=2, num_key_value_heads=1)  # fmt: skip
    transformers.LlamaForCausalLM(config).save_pretrained(place)
    wrapped(byte_level(["<|endoftext|>"]), eos_token="<|endoftext|>").save_pretrained(place)
    return place


def loaded(folder: Path) -> HuggingFaceModel:
    """Return a saved model in float32."""
    return HuggingFaceModel(str(folder), dtype="float32")


@pytest.fixture(scope="session")
def yardstick(folder) -> Yardstick:
    return Yardstick(folder)


@pytest.fixture(scope="session")
def model(folder) -> HuggingFaceModel:
    return HuggingFaceModel(str(folder), dtype="float32")
