"""Tiny models of every family, built in memory and saved where `from_pretrained` finds them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from drillrank.likelihood import HuggingFaceModel
from tests.drillrank.neural.float64 import Yardstick

TEXT = [
    "The old town of Basel lies on the Rhine, a river of Europe.",
    "Emma is a novel by Jane Austen; who wrote it? Please write a question based on this passage.",
    "Passage: Document: Question: Review previous documents and ask some question.",
    "Zürich, café, 東京 and naïve readers: 42 times the answer!",
] * 3
SIZES = {"vocab": 400, "width": 32, "layers": 2, "heads": 4}


def byte_pairs(special: list[str], *, bos: str | None = None) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=SIZES["vocab"], special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(TEXT, trainer)
    if bos:
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", special_tokens=[(bos, tokenizer.token_to_id(bos))]
        )
    return tokenizer


def unigram() -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=300, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(TEXT, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return tokenizer


def wrapped(tokenizer: Tokenizer, **special: str) -> transformers.PreTrainedTokenizerFast:
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)


def t5(*, tied: bool):
    config = transformers.T5Config(
        vocab_size=SIZES["vocab"],
        d_model=32,
        d_kv=8,
        d_ff=48,
        num_layers=2,
        num_heads=4,
        feed_forward_proj="relu" if tied else "gated-gelu",
        decoder_start_token_id=0,
    )
    model = transformers.T5ForConditionalGeneration(config)
    if not tied:
        model.lm_head.weight = torch.nn.Parameter(torch.randn_like(model.lm_head.weight))
    model.config.scale_decoder_outputs = tied
    return model, wrapped(unigram(), pad_token="<pad>", eos_token="</s>", unk_token="<unk>", model_max_length=512)


def bart():
    config = transformers.BartConfig(
        vocab_size=SIZES["vocab"], d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, max_position_embeddings=300,
    )  # fmt: skip
    tokenizer = byte_pairs(["<s>", "<pad>", "</s>", "<unk>"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    special = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>"}
    return transformers.BartForConditionalGeneration(config), wrapped(tokenizer, **special)


def gpt2():
    config = transformers.GPT2Config(
        vocab_size=SIZES["vocab"], n_embd=32, n_layer=2, n_head=4, n_positions=300, bos_token_id=0, eos_token_id=0
    )
    tokenizer = byte_pairs(["<|endoftext|>"])
    return transformers.GPT2LMHeadModel(config), wrapped(tokenizer, eos_token="<|endoftext|>")


def opt():
    config = transformers.OPTConfig(
        vocab_size=SIZES["vocab"], hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=48,
        word_embed_proj_dim=32, max_position_embeddings=300, pad_token_id=1, bos_token_id=2, eos_token_id=2,
    )  # fmt: skip
    tokenizer = byte_pairs(["<s>", "<pad>", "</s>"], bos="</s>")
    return transformers.OPTForCausalLM(config), wrapped(tokenizer, eos_token="</s>", pad_token="<pad>")


def llama():
    config = transformers.LlamaConfig(
        vocab_size=SIZES["vocab"], hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=300, bos_token_id=0, eos_token_id=1,
    )  # fmt: skip
    tokenizer = byte_pairs(["<s>", "</s>"], bos="<s>")
    return transformers.LlamaForCausalLM(config), wrapped(tokenizer, bos_token="<s>", eos_token="</s>")


def qwen2():
    config = transformers.Qwen2Config(
        vocab_size=SIZES["vocab"], hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=300, tie_word_embeddings=True,
    )  # fmt: skip
    tokenizer = byte_pairs(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    return transformers.Qwen2ForCausalLM(config), wrapped(tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>")


FAMILIES: dict[str, Callable[[], tuple]] = {
    "t5-tied": lambda: t5(tied=True),
    "t5-untied": lambda: t5(tied=False),
    "bart": bart,
    "gpt2": gpt2,
    "opt": opt,
    "llama": llama,
    "qwen2": qwen2,
}


@pytest.fixture(scope="session", params=FAMILIES)
def folder(request, tmp_path_factory) -> Path:
    torch.manual_seed(7)
    model, tokenizer = FAMILIES[request.param]()
    for weight in (*model.parameters(), *model.buffers()):
        if not request.param.startswith("t5"):  # most families begin so flat that mistakes would hide
            weight.data *= 3
        if weight.is_floating_point():  # nor are biases all 0 and norms all 1 after training
            weight.data += 0.2 * weight.abs().mean().clamp(min=0.1) * torch.randn_like(weight)
    place = tmp_path_factory.mktemp(request.param)
    model.save_pretrained(place)
    tokenizer.save_pretrained(place)
    return place


@pytest.fixture(scope="session")
def yardstick(folder) -> Yardstick:
    return Yardstick(folder)


@pytest.fixture(scope="session")
def model(folder) -> HuggingFaceModel:
    return HuggingFaceModel(str(folder), dtype="float32")
