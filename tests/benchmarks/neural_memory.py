"""Peak memory above the loaded model while scoring 1,000 passages of 400 tokens with flan-t5-small's shape."""

from __future__ import annotations

import multiprocessing
import tempfile
from itertools import pairwise
from pathlib import Path

from drillrank.likelihood import HuggingFaceModel, Request
from drillrank.prompts import Evidence

from . import random_models
from .data import read
from .measure import resident

PASSAGES, TOKENS = 1000, 400
QUESTION = "Who was the first person to write a history of the old town?"


def main() -> None:
    """Print the peak for each dtype, each measured in a process of its own; Linux only."""
    texts = [passage["text"] for passage in read("rerank/squad_passages")]
    with tempfile.TemporaryDirectory() as folder:
        model = random_models.save_t5(Path(folder), texts)
        for dtype in ("bfloat16", "float32"):
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                extra = pool.apply(_extra_megabytes, (model, dtype, " ".join(texts)))
            print(
                f"{PASSAGES:,} passages of {TOKENS} tokens, T5-small shape, {dtype}: {extra:.0f} MB above the model",
                flush=True,
            )


def _extra_megabytes(folder: str, dtype: str, text: str) -> float:
    model = HuggingFaceModel(folder, dtype=dtype)
    ends = model.engine.tokenizer(text).ends
    starts = [0, *(int(ends[i]) for i in range(TOKENS - 1, len(ends) - 1, TOKENS))]
    passages = [text[a:b] for a, b in pairwise(starts)]
    passages = [passages[i % len(passages)] + f" {i}" for i in range(PASSAGES)]
    requests = [
        Request(("Passage: ", Evidence(passage), ". Please write a question based on this passage."), QUESTION)
        for passage in passages
    ]
    model.log_likelihood(requests[:1])
    before = resident()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # forget the peak so far
    model.log_likelihood(requests)
    return (resident("VmHWM") - before) / 1024
