"""Yardsticks of speed: the loops that the papers' code and lm-evaluation-harness run, over the same token ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

SHARD = 16


@dataclass
class Example:
    """Token ids of one request: encoder input and target, or one string and where its target begins."""

    context: list[int]
    target: list[int]


def examples_of(model: Any, requests: Sequence[tuple[str, str]]) -> list[Example]:
    """Requests as token ids, the same that drillrank scores: the target whole, with EOS for encoder-decoders."""
    engine = model.engine
    tokenizer = engine.tokenizer
    if engine.model.config.is_encoder_decoder:
        return [
            Example(tokenizer(context).ids + tokenizer.suffix, [*tokenizer(target).ids, tokenizer.eos_id])
            for context, target in requests
        ]
    examples = []
    for context, target in requests:
        tokens = tokenizer(f"{context} {target}")
        first = sum(end <= len(context) + 1 for end in tokens.ends)
        examples.append(Example(tokenizer.prefix + tokens.ids[:first], tokens.ids[first:]))
    return examples


def reference_loop(network: Any, examples: Sequence[Example]) -> list[float]:
    """As upr.py and Rankify do it: pad all to the longest of all, shards of 16, every position's probabilities."""
    longest = max(len(e.context) + (0 if network.config.is_encoder_decoder else len(e.target)) for e in examples)
    return [
        score
        for start in range(0, len(examples), SHARD)
        for score in _shard(network, examples[start : start + SHARD], longest)
    ]


def harness_like_loop(network: Any, examples: Sequence[Example]) -> list[float]:
    """As lm-evaluation-harness does it: longest first, batches of 16, each padded to its own longest."""
    order = sorted(range(len(examples)), key=lambda i: -len(examples[i].context) - len(examples[i].target))
    scores = [0.0] * len(examples)
    for start in range(0, len(order), SHARD):
        some = order[start : start + SHARD]
        for i, score in zip(some, _shard(network, [examples[i] for i in some], None), strict=True):
            scores[i] = score
    return scores


def _shard(network: Any, examples: Sequence[Example], longest: int | None) -> list[float]:
    device = network.device
    if network.config.is_encoder_decoder:
        ids, mask = _padded([e.context for e in examples], device, longest)
        labels, real = _padded([e.target for e in examples], device)
        logits = network(input_ids=ids, attention_mask=mask, decoder_input_ids=network._shift_right(labels)).logits
        log_probs = torch.log_softmax(logits, dim=-1).gather(2, labels[:, :, None])[:, :, 0]
        return (log_probs * real).sum(dim=1).tolist()
    ids, mask = _padded([e.context + e.target for e in examples], device, longest)
    logits = network(input_ids=ids, attention_mask=mask).logits
    log_probs = torch.log_softmax(logits[:, :-1], dim=-1).gather(2, ids[:, 1:, None])[:, :, 0]
    ends = [(len(e.context), len(e.context) + len(e.target)) for e in examples]
    return [log_probs[row, first - 1 : last - 1].sum().item() for row, (first, last) in enumerate(ends)]


def _padded(lists: Sequence[list[int]], device: Any, longest: int | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    width = longest or max(map(len, lists))
    ids = torch.tensor([item + [0] * (width - len(item)) for item in lists], device=device)
    mask = torch.tensor([[1] * len(item) + [0] * (width - len(item)) for item in lists], device=device)
    return ids, mask
