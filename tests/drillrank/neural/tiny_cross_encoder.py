"""A tiny cross-encoder with random weights, built here and saved for sentence-transformers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

LONGEST = 48  # tokens of a pair


def save_cross_encoder(
    folder: Path, texts: Sequence[str], *, seed: int = 3, n_labels: int = 1, width: int = 24, n_heads: int = 3
) -> str:
    """Save a BERT of two layers with a classification head, whose vocabulary is that of the texts."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(texts, trainers.WordPieceTrainer(vocab_size=200, special_tokens=special))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    transformers.set_seed(seed)
    config = transformers.BertConfig(
        vocab_size=200, hidden_size=width, num_hidden_layers=2, num_attention_heads=n_heads, intermediate_size=32,
        max_position_embeddings=LONGEST, initializer_range=0.6, num_labels=n_labels,
    )  # fmt: skip
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        mask_token="[MASK]", model_max_length=LONGEST,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    ).save_pretrained(folder)  # fmt: skip
    return str(folder)
