"""A tiny sentence encoder, built here and saved where sentence-transformers finds it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers


def saved_encoder(place: Path, texts: Sequence[str]) -> str:
    """A directory with a BERT of two layers that knows the texts' words, mean pooling, and a prompt for questions."""
    import sentence_transformers

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(texts, trainers.WordPieceTrainer(vocab_size=200, special_tokens=special))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    transformers.set_seed(3)
    config = transformers.BertConfig(
        vocab_size=200, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=32,
        max_position_embeddings=64, initializer_range=0.4,
    )  # fmt: skip
    transformers.BertModel(config).save_pretrained(place / "bert")
    wrapped = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        mask_token="[MASK]", model_max_length=64,
    )  # fmt: skip
    wrapped.save_pretrained(place / "bert")
    whole = sentence_transformers.SentenceTransformer(str(place / "bert"), device="cpu")
    whole.prompts = {"query": "question: ", "document": ""}
    whole.save(str(place / "whole"))
    return str(place / "whole")
