"""Tiny language models with random weights: they know nothing, but two trees have to say the same with them."""

from __future__ import annotations

import hashlib
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from .data import passages


def folder(kind: str) -> str:
    """The directory of a model, built at its first use: `"t5"`, `"gpt2"`, `"llama"` or `"encoder"`."""
    import torch

    key = hashlib.blake2b(f"{torch.__version__} {Path(__file__).read_text()}".encode(), digest_size=6).hexdigest()
    place = Path(os.environ["RECORD_MODELS"]) / f"{kind}-{key}"
    if not place.exists():
        torch.manual_seed(7)
        with tempfile.TemporaryDirectory(dir=place.parent) as made:
            _encoder(Path(made) / kind) if kind == "encoder" else _language_model(kind, Path(made) / kind)
            with suppress(OSError):  # another process was faster
                (Path(made) / kind).rename(place)
    return str(place)


def spec(kind: str) -> str:
    """What `load_language_model` takes."""
    return f"{'st' if kind == 'encoder' else 'hf'}:{folder(kind)}"


def _texts() -> list[str]:
    words = ("true", "false", "yes", "no", "Yes", "No", "0", "1")  # each is to be one token, with and without a blank
    wording = ["Passage: Document: Query: Relevant: Please write a question based on this passage.", *words]
    wording += [f"Relevant: {word}" for word in words]
    return [passage.titled_text for passage in list(passages("nq").values())[:300]] + wording * 300


def _language_model(kind: str, place: Path) -> None:
    import torch
    import transformers

    tokenizer = _tokenizer(seq2seq=kind == "t5")
    size = len(tokenizer)
    model: Any
    if kind == "t5":
        config = transformers.T5Config(
            vocab_size=size, d_model=48, d_kv=12, d_ff=64, num_layers=2, num_heads=4, feed_forward_proj="gated-gelu",
            decoder_start_token_id=0, tie_word_embeddings=False,
        )  # fmt: skip
        model = transformers.T5ForConditionalGeneration(config)
        model.lm_head.weight = torch.nn.Parameter(torch.randn_like(model.lm_head.weight))
    elif kind == "gpt2":
        config = transformers.GPT2Config(
            vocab_size=size, n_embd=48, n_layer=2, n_head=4, n_positions=1024, bos_token_id=0, eos_token_id=0
        )
        model = transformers.GPT2LMHeadModel(config)
    else:
        config = transformers.LlamaConfig(
            vocab_size=size, hidden_size=48, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, max_position_embeddings=2048, bos_token_id=0, eos_token_id=0,
        )  # fmt: skip
        model = transformers.LlamaForCausalLM(config)
    if kind != "t5":  # or what is read would hardly matter
        for weight in model.parameters():
            weight.data *= 3
            weight.data += 0.1 * torch.randn_like(weight)
    model.save_pretrained(place)
    tokenizer.save_pretrained(place)


def _tokenizer(*, seq2seq: bool) -> Any:
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    special = ["<pad>", "</s>"] if seq2seq else ["<|endoftext|>"]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=1200, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(_texts(), trainer)
    if seq2seq:
        tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
        named = {"pad_token": "<pad>", "eos_token": "</s>", "model_max_length": 512}
        return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **named)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=special[0])


def _encoder(place: Path) -> None:
    import sentence_transformers
    import transformers
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=1200, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(_texts(), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    named = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    wrapped = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **named, model_max_length=128)
    config = transformers.BertConfig(
        vocab_size=len(wrapped), hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=32,
        max_position_embeddings=128, initializer_range=0.4,
    )  # fmt: skip
    transformers.BertModel(config).save_pretrained(place / "bert")
    wrapped.save_pretrained(place / "bert")
    sentence_transformers.SentenceTransformer(str(place / "bert"), device="cpu").save(str(place))
