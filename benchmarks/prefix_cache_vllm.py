"""Prefix caches of drillrank and of vLLM: a first and a second question to 50 passages of 170 tokens.

`DRILLRANK_VLLM_PYTHON` names the Python of an environment with vLLM (`make test-vllm` installs it). vLLM reads no
prefix from its cache if log-probabilities of the prompt are requested, which query likelihood needs. The last row
requests one token in place of them, so it shows what its prefix cache saves, without a likelihood.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from time import perf_counter
from typing import Any

import httpx
import torch
from rich.console import Console
from rich.table import Table

from drillrank import UPR, Passage
from drillrank.likelihood import HuggingFaceModel, Request, ServedModel
from drillrank.likelihood.local import make_sequences
from tests.integration.vllm import PYTHON, VLLM

from .data import read
from .kept import folder_of
from .neural_operations import passages_of
from .prefix_cache import N_PASSAGES, PASSAGE_TOKENS, QUESTION_TOKENS

REPEATS = 3


def main(model: str = "smollm2") -> None:
    """Print one table for a model directory."""
    if not PYTHON:
        print("prefix_cache_vllm: left out. DRILLRANK_VLLM_PYTHON names no environment with vLLM.")
        return
    folder = folder_of(model.removeprefix("hf:"))
    n_threads = torch.get_num_threads()
    # Without a binding of its own, vLLM computes on as many threads as this process, and shares its cores.
    os.environ |= {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": str(n_threads)}
    os.environ["VLLM_SERVER_DEV_MODE"] = "1"  # permits `/reset_prefix_cache`
    cached = HuggingFaceModel(str(folder), dtype="bfloat16", prefix_cache="2 GB")
    request_lists = _requests(cached)
    with closing(VLLM(folder, "--enable-prefix-caching", "--dtype", "bfloat16")) as server:
        server.wait()
        served = ServedModel(server.address, tokenizer=str(folder))
        variants: dict[str, Callable[[Sequence[Request]], Any]] = {
            "drillrank, prefix cache": cached.log_likelihood,
            "vLLM, log-probabilities": served.log_likelihood,
            "vLLM, one token, no likelihood": partial(_read, server, cached),
        }
        seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in variants}
        for repeat in range(REPEATS):
            first, second = request_lists[2 * repeat : 2 * repeat + 2]  # passages of their own
            for name, run in variants.items():
                seconds[name].append((_time(run, first), _time(run, second)))
                _forget(server)  # the last row must not find what the one before it computed
        difference = max(
            abs(one.mean - other.mean)
            for one, other in zip(
                cached.log_likelihood(request_lists[0]), served.log_likelihood(request_lists[0]), strict=True
            )
        )
    title = f"{folder.name}, bfloat16, {n_threads} threads: {N_PASSAGES} passages of {PASSAGE_TOKENS} tokens"
    table = Table("computed by", "first question, s", "second question, s", "ratio", title=title)
    for name, pairs in seconds.items():
        first_seconds, second_seconds = min(one for one, _ in pairs), min(other for _, other in pairs)
        ratio = f"{first_seconds / second_seconds:.1f}x"
        table.add_row(name, f"{first_seconds:.2f}", f"{second_seconds:.2f}", ratio)
    table.caption = f"Fastest of {REPEATS} runs. Likelihoods of both differ by at most {difference:.1e} a token."
    Console(width=100).print(table)


def _requests(model: HuggingFaceModel) -> list[list[Request]]:
    """Return the requests of two questions to passages of their own, for each repeat."""
    texts = [passage["text"] for passage in read("rerank/squad_passages")]
    tokenizer = model.engine.tokenizer
    passages = passages_of(texts, tokenizer, REPEATS * N_PASSAGES, (PASSAGE_TOKENS, PASSAGE_TOKENS))
    questions = passages_of(texts[::-1], tokenizer, 2, (QUESTION_TOKENS, QUESTION_TOKENS))
    upr = UPR(model)
    return [
        [
            Request(prompt, question)
            for passage in passages[repeat * N_PASSAGES : (repeat + 1) * N_PASSAGES]
            for prompt in upr._prompts_of(Passage(passage))
        ]
        for repeat in range(REPEATS)
        for question in questions
    ]


def _read(server: VLLM, model: HuggingFaceModel, requests: Sequence[Request]) -> None:
    """Let the server read prompts with their targets, and generate one token after each."""
    prompts = [list(sequence.ids) for sequence in make_sequences(model.engine, requests)]
    payload = {"model": "tiny", "prompt": prompts, "max_tokens": 1, "temperature": 0}
    httpx.post(f"http://127.0.0.1:{server.port}/v1/completions", json=payload, timeout=600).raise_for_status()


def _forget(server: VLLM) -> None:
    """Empty the server's prefix cache."""
    httpx.post(f"http://127.0.0.1:{server.port}/reset_prefix_cache", timeout=60).raise_for_status()


def _time(run: Callable[[Sequence[Request]], Any], requests: Sequence[Request]) -> float:
    started = perf_counter()
    run(requests)
    return perf_counter() - started
