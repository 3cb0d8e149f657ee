"""The prefix cache: a question to 50 passages of 170 tokens without it, cold, warm in memory and warm on disk.

The hand-written loops run the network over the same keys and values in one batch, without tokenising, padding, budgets
and a check of what is kept. One has logits in float32, as drillrank does, the other in the model's dtype.
"""

from __future__ import annotations

import copy
import gc
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import torch
import transformers
from rich.console import Console
from rich.table import Table

from drillrank.likelihood import HuggingFaceModel, Request
from drillrank.likelihood.local import TokenSequence, make_sequences
from drillrank.likelihood.torch_prefixes import TorchPrefixes
from drillrank.passages import Passage
from drillrank.rerank.upr import UPR

from . import random_models
from .data import read
from .neural_operations import executed_by, passages_of
from .prefix_cache_int8 import print_changes

N_PASSAGES, PASSAGE_TOKENS, QUESTION_TOKENS = 50, 170, 12
REPEATS = 3
CACHE = "2 GB"


def main(model: str | None = None) -> None:
    """Print two tables for a model directory, or for a model of random weights."""
    texts = [passage["text"] for passage in read("rerank/squad_passages")]
    with tempfile.TemporaryDirectory() as folder:
        name = model.removeprefix("hf:") if model else random_models.save_llama(Path(folder), texts)
        _compare(name, texts, str(Path(folder, "cache")))
        print_changes(name, texts)


def _compare(name: str, texts: list[str], folder: str) -> None:
    plain, cached = HuggingFaceModel(name), HuggingFaceModel(name, prefix_cache=CACHE)
    stored = HuggingFaceModel(name, prefix_cache=CACHE, prefix_cache_dir=folder)
    tokenizer = plain.engine.tokenizer
    passages = passages_of(texts, tokenizer, N_PASSAGES, (PASSAGE_TOKENS, PASSAGE_TOKENS))
    questions = passages_of(texts[::-1], tokenizer, REPEATS + 1, (QUESTION_TOKENS, QUESTION_TOKENS))
    prompts = [prompt for passage in passages for prompt in UPR()._prompts_of(Passage(passage))]
    request_lists = [[Request(prompt, question) for prompt in prompts] for question in questions]
    network = transformers.AutoModelForCausalLM.from_pretrained(name, dtype=plain.engine.model.dtype).eval()
    loop = HandWrittenLoop(network, make_sequences(plain.engine, request_lists[0]))
    seconds: dict[str, list[float]] = {}
    for i, requests in enumerate(request_lists):
        sequences = make_sequences(plain.engine, requests)
        _empty_memory(cached)
        _empty_memory(stored)
        variants: dict[str, Callable[[], Any]] = {
            "without the cache": partial(plain.log_likelihood, requests),
            "cold": partial(cached.log_likelihood, requests),
            "warm in memory": partial(cached.log_likelihood, requests),
            "warm on disk": partial(stored.log_likelihood, requests),
            "hand-written loop, warm": partial(loop.run, sequences, torch.float32),
            "hand-written loop, warm, logits rounded": partial(loop.run, sequences, plain.engine.model.dtype),
        }
        for variant, run in variants.items():
            gc.collect()
            started = perf_counter()
            run()
            if i:  # the first question fills the files
                seconds.setdefault(variant, []).append(perf_counter() - started)
    requests = request_lists[-1]
    operations = {model: executed_by(model, partial(model.log_likelihood, requests)) for model in (plain, cached)}
    difference = max(
        abs(one.mean - other.mean)
        for one, other in zip(cached.log_likelihood(requests), plain.log_likelihood(requests), strict=True)
    )
    table = Table(
        "variant",
        "s",
        "ratio",
        title=f"{Path(name).name}, {plain.engine.model.dtype}: {N_PASSAGES} "
        f"passages of {PASSAGE_TOKENS} tokens, questions of {QUESTION_TOKENS}",
    )
    medians = {variant: median(times) for variant, times in seconds.items()}
    for variant, time in medians.items():
        table.add_row(variant, f"{time:.2f}", f"{medians['without the cache'] / time:.1f}x")
    loop_ratio = medians["warm in memory"] / medians["hand-written loop, warm"]
    table.caption = (
        f"Operations without the cache over those warm: {operations[plain] / operations[cached]:.1f}. Warm in memory "
        f"over the hand-written loop: {loop_ratio:.2f}. {_token_bytes(cached) / 1000:.1f} kB a token, so that 1 GB "
        f"holds {int(1e9 / _token_bytes(cached) / PASSAGE_TOKENS)} passages. Scores differ by at most {difference:.1e} "
        "a token."
    )
    Console(width=100).print(table)


def _empty_memory(model: HuggingFaceModel) -> None:
    """Give the model a prefix cache with nothing in memory."""
    options = model._prefix_cache_options()
    if options is not None:
        model.engine.prefixes = TorchPrefixes(model.engine, options)


def _token_bytes(model: HuggingFaceModel) -> int:
    return 0 if model.engine.prefixes is None else model.engine.prefixes.token_bytes


class HandWrittenLoop:
    """Network over the keys and values of prompts.

    Args:
        network: Causal model of transformers.
        sequences: Prompts and targets. What all prompts of the shortest length have is kept.
    """

    def __init__(self, network: Any, sequences: Sequence[TokenSequence]) -> None:
        self._network = network
        head = network.get_output_embeddings().weight.detach()
        self._heads = {torch.float32: head.float(), head.dtype: head}
        self._width = min(one.positions[0] for one in sequences)
        ids = torch.tensor([one.ids[: self._width] for one in sequences])
        with torch.inference_mode():
            self._cache = network(ids, use_cache=True, logits_to_keep=1).past_key_values

    def run(self, sequences: Sequence[TokenSequence], logit_dtype: torch.dtype) -> list[float]:
        """Return log-probabilities of the targets, from logits of a dtype."""
        end = self._width + QUESTION_TOKENS + 1
        tokens = torch.tensor([[*one.ids, 0, 0][self._width : end] for one in sequences])
        cache = copy.copy(self._cache)
        cache.layers = [copy.copy(layer) for layer in self._cache.layers]
        with torch.inference_mode():
            states = self._network.base_model(tokens[:, :-1], past_key_values=cache).last_hidden_state
            logits = torch.nn.functional.linear(states.to(logit_dtype), self._heads[logit_dtype]).float()
            log_probs = torch.log_softmax(logits, -1).gather(2, tokens[:, 1:, None])
        totals: list[float] = log_probs.sum((1, 2)).tolist()
        return totals
