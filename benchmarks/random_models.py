"""Randomly initialised models of real shapes, saved where `load_language_model` finds them."""

from __future__ import annotations

from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from drillrank.rerank.promptrank import PROMPTRANK_INSTRUCTIONS
from drillrank.rerank.upr import UPR_PROMPT

PIECES = 16_000  # of the tokenizers; the models' vocabularies are as large as the real ones


def save_t5(folder: Path, texts: list[str]) -> str:
    """flan-t5-small's shape (77 M parameters)."""
    shape = {"d_model": 512, "d_kv": 64, "d_ff": 1024, "num_layers": 8, "num_heads": 6}
    config = transformers.T5Config(vocab_size=32128, feed_forward_proj="gated-gelu", decoder_start_token_id=0, **shape)
    torch.manual_seed(0)
    model = transformers.T5ForConditionalGeneration(config)
    model.lm_head.weight = torch.nn.Parameter(torch.randn_like(model.lm_head.weight))
    return _save(folder / "t5-small", model, _unigram_tokenizer(texts))


def save_gpt2(folder: Path, texts: list[str]) -> str:
    """GPT-2 small's shape (124 M parameters)."""
    torch.manual_seed(0)
    return _save(folder / "gpt2-small", transformers.GPT2LMHeadModel(transformers.GPT2Config()), byte_pairs(texts))


def save_llama(folder: Path, texts: list[str]) -> str:
    """A Llama with grouped-query attention: SmolLM-135M's shape."""
    shape = {"hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30, "num_attention_heads": 9}
    config = transformers.LlamaConfig(num_key_value_heads=3, vocab_size=49152, **shape)
    torch.manual_seed(0)
    return _save(folder / "llama-135m", transformers.LlamaForCausalLM(config), byte_pairs(texts))


QWEN_SHAPES = {
    "qwen-0.5b": {"hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14},
    "qwen-1.5b": {"hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 28, "num_attention_heads": 12},
}


def save_qwen(folder: Path, texts: list[str], shape: str) -> str:
    """A shape of Qwen 2.5, in bfloat16."""
    config = transformers.Qwen2Config(
        num_key_value_heads=2, vocab_size=151_936, tie_word_embeddings=True, **QWEN_SHAPES[shape]
    )
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    return _save(folder / shape, model, byte_pairs(texts))


def _save(folder: Path, model: transformers.PreTrainedModel, tokenizer: transformers.PreTrainedTokenizerFast) -> str:
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def _training_texts(texts: list[str]) -> list[str]:
    # Instructions must not fall into more pieces than with a real tokenizer.
    return texts + [*PROMPTRANK_INSTRUCTIONS, UPR_PROMPT] * 50


def byte_pairs(texts: list[str], pieces: int = PIECES) -> transformers.PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=pieces, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(_training_texts(texts), trainer)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=special[0])


def _unigram_tokenizer(texts: list[str]) -> transformers.PreTrainedTokenizerFast:
    special = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=PIECES, special_tokens=list(special.values()), unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(_training_texts(texts), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)
