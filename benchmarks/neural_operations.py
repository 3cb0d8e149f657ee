"""Floating-point operations that scoring executes, over the fewest possible: exact, whatever else the machine does.

Fewest is what an ideal would execute that pads nothing, computes each distinct prefix once, no pair of tokens that
attention hides, and logits only where one is read. What a token, a pair and a row of logits cost is found by counting
what the network alone executes on inputs of a few lengths: the counts are polynomials of these.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only
from torch.utils.flop_counter import flop_registry, sdpa_flop_count

from drillrank.likelihood import HuggingFaceModel
from drillrank.likelihood.torch_engine import common_prefix
from drillrank.prompts import Prompt, TruncatableText
from drillrank.rerank.promptrank import PROMPTRANK_INSTRUCTIONS
from drillrank.rerank.upr import UPR_PROMPT

from .plain_loops import Example

QUESTION = "Who was the first person to write a history of the old town"
DEMONSTRATION_TOKENS = 400


def prompts_of(model: HuggingFaceModel, passages: Sequence[str], texts: Sequence[str]) -> Mapping[str, list[Prompt]]:
    """The prompts of each case: of an encoder-decoder one instruction, of a decoder what prefixes have in common."""
    if model.engine.model.config.is_encoder_decoder:
        before, after = UPR_PROMPT.split("{title} {text}")
        return {"one instruction": [(before, TruncatableText(passage), after) for passage in passages]}
    endings = [instruction.removeprefix("{path}") for instruction in PROMPTRANK_INSTRUCTIONS[:5]]
    demonstration = model.first_tokens(" ".join(texts[:20]), DEMONSTRATION_TOKENS) + " "
    documents = [("Document: ", TruncatableText(passage)) for passage in passages]
    return {
        "one instruction": [(*parts, endings[0]) for parts in documents],
        "five instructions": [(*parts, ending) for parts in documents for ending in endings],
        f"one instruction, {DEMONSTRATION_TOKENS} tokens of demonstrations": [
            (demonstration, *parts, endings[0]) for parts in documents
        ],
    }


_ATTENTION = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu  # which torch itself does not count
_COUNTS = {
    **flop_registry,
    _ATTENTION: lambda query, key, value, *_, **__: sdpa_flop_count(query.shape, key.shape, value.shape),
}


class Uncomputed(TorchDispatchMode):
    """Counts the operations of matrix products and attention, and answers them with zeros in place of computing."""

    operations = 0

    def __torch_dispatch__(self, function: Any, _: Any, arguments: Any = (), options: Any = None) -> Any:
        options = options or {}
        count = _COUNTS.get(function._overloadpacket)
        if count is None:
            with self:
                parts = function.decompose(*arguments, **options)
            return function(*arguments, **options) if parts is NotImplemented else parts
        on_meta = tree_map_only(torch.Tensor, lambda tensor: tensor.to("meta"), (arguments, options))
        shapes = function(*on_meta[0], **on_meta[1])
        self.operations += count(*arguments, **options, out_val=shapes)
        device = next(one.device for one in arguments if isinstance(one, torch.Tensor))
        return tree_map_only(torch.Tensor, lambda tensor: torch.zeros_like(tensor, device=device), shapes)


def passages_of(texts: Sequence[str], tokenizer: Any, count: int, lengths: tuple[int, int]) -> list[str]:
    """Passages of as many tokens as between the two lengths, evenly mixed."""
    rng = random.Random(0)
    words = [word for text in texts for word in text.split()]
    passages = []
    for _ in range(count):
        start = rng.randrange(len(words) - 400)
        text = " ".join(words[start : start + 400])
        passages.append(text[: int(tokenizer(text).ends[rng.randint(*lengths) - 1])])
    return passages


def executed(run: Callable[[], Any]) -> int:
    """Floating-point operations of the matrix products that a run asks for, padding and hidden pairs included.

    They are counted, not computed: what the run returns means nothing.
    """
    with torch.inference_mode(), Uncomputed() as counter:
        run()
    return counter.operations


def executed_by(model: HuggingFaceModel, run: Callable[[], Any]) -> int:
    """As `executed`, of a run that asks a model: on the thread on which that computes."""
    return asyncio.run(model.run_in_worker(executed, run))


def fewest(network: Any, examples: Sequence[Example]) -> int:
    """What an ideal executes for these examples."""
    return round((_of_encoder_decoder if network.config.is_encoder_decoder else _of_decoder)(network, examples))


def _of_encoder_decoder(network: Any, examples: Sequence[Example]) -> float:
    """Each distinct prompt is encoded once; each target sees it, and itself up to each token."""

    def alone(prompt: int, target: int) -> int:
        source, written = (torch.ones(1, n, dtype=torch.long, device=network.device) for n in (prompt, target))
        return executed(lambda: network(input_ids=source, decoder_input_ids=written, use_cache=False))

    lengths = [(8, 1), (16, 1), (8, 2), (16, 2), (8, 3)]
    terms = [(n, n * n, m, m * m, n * m) for n, m in lengths]
    token, pair, written, among_written, across = np.linalg.solve(terms, [alone(n, m) for n, m in lengths])
    encoded = {tuple(example.context) for example in examples}
    total = sum(token * len(ids) + pair * len(ids) ** 2 for ids in encoded)
    for ids, target in {(tuple(example.context), tuple(example.target)) for example in examples}:
        m = len(target)
        total += written * m + among_written * m * (m + 1) / 2 + across * m * len(ids)
    return float(total)


def _of_decoder(network: Any, examples: Sequence[Example]) -> float:
    """Each distinct prefix is one token, which sees itself and those before it; a last one predicts nothing."""

    def alone(tokens: int, logits: int) -> int:
        ids = torch.ones(1, tokens, dtype=torch.long, device=network.device)
        return executed(lambda: network(input_ids=ids, logits_to_keep=logits, use_cache=False))

    lengths = [(8, 1), (16, 1), (8, 2)]
    terms = [(n, n * n, m) for n, m in lengths]
    token, pair, logit = np.linalg.solve(terms, [alone(n, m) for n, m in lengths])
    strings = sorted({(*example.context, *example.target[:-1]) for example in examples})
    total = 0.0
    for before, ids in pairwise([(), *strings]):
        shared = common_prefix(before, ids)
        total += token * (len(ids) - shared) + pair * sum(range(shared + 1, len(ids) + 1))
    reads = {(*example.context, *example.target[:end]) for example in examples for end in range(len(example.target))}
    return float(total + logit * len(reads))
