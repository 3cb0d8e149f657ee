"""Prefix caches of drillrank and of vLLM: a first and a second question to 50 passages of 170 tokens.

`DRILLRANK_VLLM_PYTHON` names the Python of an environment with vLLM (`make test-vllm` installs it). vLLM reads no
prefix from its cache if log-probabilities of the prompt are requested, which query likelihood needs. The last row
requests one token in place of them, so it shows what its prefix cache saves, without a likelihood. Seconds of processor
time are those of all processes that compute, and depend less on what else the machine does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

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
N_WARM_UP = 2  # passages
TIMEOUT = 1800.0  # seconds of a request, on a busy machine


class Seconds(NamedTuple):
    """Time that passed, and processor time."""

    wall: float
    cpu: float


def main(model: str = "smollm2") -> None:
    """Print one table for a model directory."""
    if not PYTHON:
        print("prefix_cache_vllm: left out. DRILLRANK_VLLM_PYTHON names no environment with vLLM.")
        return
    folder = folder_of(model.removeprefix("hf:"))
    n_threads = torch.get_num_threads()
    cores = sorted(os.sched_getaffinity(0))[:n_threads]  # by default, vLLM leaves one core to other processes
    os.environ["VLLM_CPU_OMP_THREADS_BIND"] = ",".join(map(str, cores))
    os.environ["VLLM_SERVER_DEV_MODE"] = "1"  # permits `/reset_prefix_cache`
    cached = HuggingFaceModel(str(folder), dtype="bfloat16", prefix_cache="2 GB")
    *request_lists, warm_up = _requests(cached)
    with closing(VLLM(folder, "--enable-prefix-caching", "--dtype", "bfloat16")) as server:
        server.wait()
        served = ServedModel(server.address, tokenizer=str(folder), timeout=TIMEOUT)
        variants: dict[str, Callable[[Sequence[Request]], Any]] = {
            "drillrank, prefix cache": cached.log_likelihood,
            "vLLM, log-probabilities": served.log_likelihood,
            "vLLM, one token, no likelihood": partial(_read, server, cached),
        }
        for run in variants.values():
            run(warm_up)
        seconds: dict[str, list[tuple[Seconds, Seconds]]] = {name: [] for name in variants}
        for repeat in range(REPEATS):
            first, second = request_lists[2 * repeat : 2 * repeat + 2]  # passages of their own
            for name, run in variants.items():
                seconds[name].append((_time(run, first, server), _time(run, second, server)))
                _forget(server)  # the last row must not find what the one before it computed
        difference = max(
            abs(one.mean - other.mean)
            for one, other in zip(
                cached.log_likelihood(request_lists[0]), served.log_likelihood(request_lists[0]), strict=True
            )
        )
    table = Table("computed by", "first question, s", "second, s", "ratio", "CPU: first, s", "second, s", "ratio")
    table.title = f"{folder.name}, bfloat16, {n_threads} threads: {N_PASSAGES} passages of {PASSAGE_TOKENS} tokens"
    for name, pairs in seconds.items():
        row = [name]
        for unit in Seconds._fields:
            first_seconds, second_seconds = (
                min(getattr(one, unit) for one in times) for times in zip(*pairs, strict=True)
            )
            row += [f"{first_seconds:.2f}", f"{second_seconds:.2f}", f"{first_seconds / second_seconds:.1f}x"]
        table.add_row(*row)
    table.caption = f"Fastest of {REPEATS} runs. Likelihoods of both differ by at most {difference:.1e} a token."
    Console(width=120).print(table)


def _requests(model: HuggingFaceModel) -> list[list[Request]]:
    """Return the requests of two questions to passages of their own, for each repeat, and some to other passages."""
    texts = [passage["text"] for passage in read("rerank/squad_passages")]
    tokenizer = model.engine.tokenizer
    n_passages = REPEATS * N_PASSAGES + N_WARM_UP
    passages = passages_of(texts, tokenizer, n_passages, (PASSAGE_TOKENS, PASSAGE_TOKENS))
    questions = passages_of(texts[::-1], tokenizer, 2, (QUESTION_TOKENS, QUESTION_TOKENS))
    upr = UPR(model)
    prompts = [prompt for passage in passages for prompt in upr._prompts_of(Passage(passage))]
    parts = [prompts[start : start + N_PASSAGES] for start in range(0, n_passages, N_PASSAGES)]
    request_lists = [[Request(prompt, question) for prompt in part] for part in parts for question in questions]
    return request_lists[:-1]


def _read(server: VLLM, model: HuggingFaceModel, requests: Sequence[Request]) -> None:
    """Let the server read prompts with their targets, and generate one token after each."""
    prompts = [list(sequence.ids) for sequence in make_sequences(model.engine, requests)]
    payload = {"model": "tiny", "prompt": prompts, "max_tokens": 1, "temperature": 0}
    httpx.post(f"http://127.0.0.1:{server.port}/v1/completions", json=payload, timeout=TIMEOUT).raise_for_status()


def _forget(server: VLLM) -> None:
    """Empty the server's prefix cache."""
    httpx.post(f"http://127.0.0.1:{server.port}/reset_prefix_cache", timeout=TIMEOUT).raise_for_status()


def _time(run: Callable[[Sequence[Request]], Any], requests: Sequence[Request], server: VLLM) -> Seconds:
    started, cpu_before = perf_counter(), process_time() + _cpu_seconds(server)
    run(requests)
    return Seconds(perf_counter() - started, process_time() + _cpu_seconds(server) - cpu_before)


def _cpu_seconds(server: VLLM) -> float:
    """Return the processor time of all processes of a server, which are one process group; Linux only."""
    n_ticks = 0
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # the process ended meanwhile
            fields = file.read_text().rpartition(")")[2].split()  # the name may contain blanks
            if int(fields[2]) == server.process.pid:
                n_ticks += int(fields[11]) + int(fields[12])
    return n_ticks / os.sysconf("SC_CLK_TCK")
