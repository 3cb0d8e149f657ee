"""A small Llama that learned to ask: trained in minutes on SQuAD's passages and questions.

Scores of random weights hardly differ between passages, which says little of what rounding does to an order. To learn
within minutes that questions repeat words of their passage, its first layer begins as one that looks at all tokens
alike and copies what it sees.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import torch
import transformers

from drillrank.rerank.upr import UPR_PROMPT

from .data import read
from .random_models import byte_pairs

PIECES = 4_000
HELD_OUT = 120  # passages, the last ones, with all their questions
EPOCHS, BATCH, RATE = 1, 16, 1e-3
LONGEST = 256  # tokens of a passage with its prompt and question
SEED = 16


def held_out() -> list[str]:
    """Ids of the passages on which nothing is trained."""
    return [passage["id"] for passage in read("rerank/squad_passages")[-HELD_OUT:]]


def train(folder: Path) -> str:
    """Train the model on all other passages, and save it with its tokenizer."""
    kept = {*held_out()}
    texts = {passage["id"]: passage["text"] for passage in read("rerank/squad_passages") if passage["id"] not in kept}
    tokenizer = byte_pairs(list(texts.values()), PIECES)
    pairs = [(texts[item["gold"][0]], item["question"]) for item in read("rerank/squad") if item["gold"][0] in texts]
    torch.manual_seed(SEED)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=4, tie_word_embeddings=True, max_position_embeddings=512,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config).train()
    _let_copy(model.model.layers[0].self_attn)
    steps = EPOCHS * (len(pairs) // BATCH)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=steps, pct_start=0.1)
    for ids, labels in _batches(tokenizer, pairs, steps):
        model(input_ids=ids, attention_mask=(ids != 0).long(), labels=labels).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    model.eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def _let_copy(attention: torch.nn.Module) -> None:
    """Equal attention to all tokens so far, and their mean as it is."""
    with torch.no_grad():
        torch.nn.init.zeros_(attention.q_proj.weight)
        for projection in (attention.v_proj, attention.o_proj):
            torch.nn.init.eye_(projection.weight)


def _batches(
    tokenizer: transformers.PreTrainedTokenizerFast, pairs: list[tuple[str, str]], steps: int
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Prompts with their questions, of about equal length in a batch, in random order."""
    chosen = random.Random(SEED)
    prompts = tokenizer([UPR_PROMPT.format(title="", text=text) for text, _ in pairs])["input_ids"]
    targets = tokenizer([f" {question}" for _, question in pairs])["input_ids"]
    rows = sorted(((p + t)[-LONGEST:] for p, t in zip(prompts, targets, strict=True)), key=len)
    starts = [start for _ in range(EPOCHS + 1) for start in range(0, len(rows) - BATCH + 1, BATCH)]
    chosen.shuffle(starts)
    for start in starts[:steps]:
        batch = rows[start : start + BATCH]
        width = len(batch[-1])
        ids = torch.tensor([row + [0] * (width - len(row)) for row in batch])
        lengths = torch.tensor([len(row) for row in batch])
        yield ids, ids.masked_fill(torch.arange(width) >= lengths[:, None], -100)
