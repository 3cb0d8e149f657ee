"""A tiny MonoT5: a T5 of two layers, fine-tuned as Nogueira et al. (2020) did, on a handful of judged passages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from tests.drillrank.neural.conftest import wrapped

Judged = tuple[str, str, bool]  # query, passage, relevant


def word_pieces(text: str) -> transformers.PreTrainedTokenizerFast:
    """A unigram tokenizer as T5's: each word of the text is one piece, other words fall into characters."""
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", -20.0)]
    pieces += [(f"▁{word}", -5.0) for word in sorted(set(re.findall(r"\w+", text)))]
    pieces += [(character, -10.0) for character in ["▁", *map(chr, range(33, 127))]]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=2))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return wrapped(tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", model_max_length=512)


def save_tiny_monot5(folder: Path, judged: Sequence[Judged]) -> None:
    """Fine-tune a new T5 until it knows the judgements by heart, and save it with its tokenizer."""
    prompts = [f"Query: {query} Document: {passage} Relevant:" for query, passage, _ in judged]
    answers = ["true" if relevant else "false" for *_, relevant in judged]
    tokenizer = word_pieces(" ".join([*prompts, "true false"]))
    inputs = tokenizer(prompts, padding=True, return_tensors="pt")
    labels = tokenizer(answers, return_tensors="pt")["input_ids"]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = transformers.T5Config(
            vocab_size=len(tokenizer), d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, dropout_rate=0.0,
            decoder_start_token_id=0,
        )  # fmt: skip
        model = transformers.T5ForConditionalGeneration(config)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        for _ in range(200):
            loss = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], labels=labels).loss
            if loss.item() < 0.05:
                break
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        else:
            raise AssertionError("the tiny MonoT5 did not learn its judgements")
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
