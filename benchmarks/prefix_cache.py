"""The prefix cache: a question to 50 passages of 170 tokens without it, cold, warm in memory and warm on disk.

The hand-written loops run the network over the same keys and values in one batch, without tokenising, padding, budgets
and a check of what is kept. One has logits in float32, as drillrank does, the other in the model's dtype. On a GPU,
models of random weights in the shapes of Qwen 0.5B and 1.5B read 100 passages.
"""

from __future__ import annotations

import copy
import gc
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from drillrank.errors import InvalidInput
from drillrank.likelihood import HuggingFaceModel, Likelihood, Request
from drillrank.likelihood.local import PrefixCacheOptions, TokenSequence, make_sequences
from drillrank.likelihood.torch_prefixes import TorchPrefixes
from drillrank.passages import Passage
from drillrank.rerank.upr import UPR

from . import random_models
from .data import read
from .kept import folder_of, named
from .neural_operations import executed_by, passages_of

MODELS = ("smollm2", "qwen-0.5b", "qwen-1.5b")
N_PASSAGES, N_PASSAGES_GPU, PASSAGE_TOKENS, QUESTION_TOKENS = 50, 100, 170, 12
REPEATS = 3
WITHOUT, WARM, LOOP = "without the cache", "warm in memory", "hand-written loop, warm"


def main(model: str = ",".join(MODELS)) -> None:
    """Print a table for each model below `DRILLRANK_MODELS`, or for one of random weights if there is none."""
    texts = [passage["text"] for passage in read("rerank/squad_passages")]
    folders = list(filter(None, (_find_folder(name.removeprefix("hf:")) for name in named(model))))
    with tempfile.TemporaryDirectory() as folder:
        for index, name in enumerate(folders or [random_models.save_llama(Path(folder), texts)]):
            _compare(name, texts, N_PASSAGES, Path(folder, f"cache-{index}"))
        if torch.cuda.is_available():
            for shape in random_models.QWEN_SHAPES:
                name = random_models.save_qwen(Path(folder), texts, shape)
                _compare(name, texts, N_PASSAGES_GPU, Path(folder, f"cache-{shape}"))
        else:
            print("There is no GPU, so its rows are left out.")


def _find_folder(name: str) -> str | None:
    try:
        return str(folder_of(name))
    except InvalidInput:
        print(f"{name} is not there, so its table is left out.")
        return None


def _compare(name: str, texts: list[str], n_passages: int, folder: Path) -> None:
    model = HuggingFaceModel(name)
    engine, tokenizer = model.engine, model.tokenizer
    passages = passages_of(texts, tokenizer, n_passages, (PASSAGE_TOKENS, PASSAGE_TOKENS))
    questions = passages_of(texts[::-1], tokenizer, REPEATS + 1, (QUESTION_TOKENS, QUESTION_TOKENS))
    prompts = [prompt for passage in passages for prompt in UPR()._prompts_of(Passage(passage))]
    request_lists = [[Request(prompt, question) for prompt in prompts] for question in questions]
    loop = HandWrittenLoop(engine.model, make_sequences(engine, request_lists[0]))
    in_memory = PrefixCacheOptions(2 * 10**9, is_int8=False, folder=None, disk_bytes=10**10)
    on_disk = replace(in_memory, folder=str(folder))

    def score(prefixes: TorchPrefixes | None, requests: Sequence[Request]) -> list[Likelihood]:
        engine.prefixes = prefixes
        return model.log_likelihood(requests)

    seconds: dict[str, list[float]] = {}
    for i, requests in enumerate(request_lists):
        sequences = make_sequences(engine, requests)
        memory, files = TorchPrefixes(engine, in_memory), TorchPrefixes(engine, on_disk)
        variants: dict[str, Callable[[], Any]] = {
            WITHOUT: partial(score, None, requests),
            "cold": partial(score, memory, requests),
            WARM: partial(score, memory, requests),
            "warm on disk": partial(score, files, requests),
            LOOP: partial(loop.run, sequences, torch.float32),
            f"{LOOP}, logits rounded": partial(loop.run, sequences, engine.model.dtype),
        }
        for variant, run in variants.items():
            gc.collect()
            started = perf_counter()
            run()
            if i:  # the first question fills the files
                seconds.setdefault(variant, []).append(perf_counter() - started)
    requests = request_lists[-1]
    pairs = zip(score(memory, requests), score(None, requests), strict=True)
    difference = max(float(np.abs(one.log_probs - other.log_probs).max()) for one, other in pairs)
    operations = [executed_by(model, partial(score, prefixes, requests)) for prefixes in (None, memory)]
    table = Table(
        "variant",
        "s",
        "ratio",
        title=f"{Path(name).name}, {engine.model.dtype}, {engine.device.type}, {torch.get_num_threads()} threads: "
        f"{n_passages} passages of {PASSAGE_TOKENS} tokens, questions of {QUESTION_TOKENS}",
    )
    medians = {variant: median(times) for variant, times in seconds.items()}
    for variant, time in medians.items():
        table.add_row(variant, f"{time:.3f}", f"{medians[WITHOUT] / time:.1f}x")
    n_tokens, _ = memory.count_tokens(sequences)
    table.caption = (
        f"Operations without the cache over those warm: {operations[0] / operations[1]:.1f}. Warm in memory over the "
        f"hand-written loop: {medians[WARM] / medians[LOOP]:.2f}. {memory.token_bytes / 1000:.1f} kB a token, so that "
        f"1 GB holds {int(1e9 / memory.token_bytes / n_tokens * n_passages)} passages with their instruction, "
        f"{n_tokens / n_passages:.0f} tokens each. Scores differ by at most {difference:.1e} a token."
    )
    Console(width=100).print(table)


class HandWrittenLoop:
    """Network over the keys and values of prompts.

    Args:
        network: Causal model of transformers.
        sequences: Prompts and targets. What all prompts of the shortest length have is kept.
    """

    def __init__(self, network: Any, sequences: Sequence[TokenSequence]) -> None:
        self._network = network.base_model
        head = network.get_output_embeddings().weight.detach()
        self._heads = {dtype: head.to(dtype) for dtype in (torch.float32, network.dtype)}
        self._width = min(one.positions[0] for one in sequences)
        ids = torch.tensor([one.ids[: self._width] for one in sequences], device=head.device)
        with torch.inference_mode():
            self._cache = self._network(ids, use_cache=True).past_key_values

    def run(self, sequences: Sequence[TokenSequence], logit_dtype: torch.dtype) -> list[float]:
        """Return log-probabilities of the targets, from logits of a dtype."""
        head = self._heads[logit_dtype]
        end = self._width + QUESTION_TOKENS + 1
        tokens = torch.tensor([[*one.ids, 0, 0][self._width : end] for one in sequences], device=head.device)
        cache = copy.copy(self._cache)
        cache.layers = [copy.copy(layer) for layer in self._cache.layers]
        with torch.inference_mode():
            states = self._network(tokens[:, :-1], past_key_values=cache).last_hidden_state
            logits = torch.nn.functional.linear(states.to(logit_dtype), head).float()
            log_probs = torch.log_softmax(logits, -1).gather(2, tokens[:, 1:, None])
        totals: list[float] = log_probs.sum((1, 2)).tolist()
        return totals
