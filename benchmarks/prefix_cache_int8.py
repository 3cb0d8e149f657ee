"""Keys and values in 8 bits: changes of log-probabilities against float32 without a prefix cache."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from drillrank.likelihood import HuggingFaceModel, Likelihood, Request
from drillrank.passages import Passage
from drillrank.rerank.upr import UPR

from .neural_operations import QUESTION, passages_of

N_PASSAGES, PASSAGE_TOKENS = 20, (100, 200)
QUESTIONS = (QUESTION, "When did the war between the two countries end")
VARIANTS: dict[str, dict[str, Any]] = {
    "float32": {"dtype": "float32"},
    "float32, 8 bits kept": {"dtype": "float32", "prefix_cache": "500 MB", "prefix_cache_dtype": "int8"},
    "bfloat16": {"dtype": "bfloat16"},
    "bfloat16, 8 bits kept": {"dtype": "bfloat16", "prefix_cache": "500 MB", "prefix_cache_dtype": "int8"},
}


def print_changes(name: str, texts: list[str]) -> None:
    """Print one table for a model directory, with passages made of the texts."""
    tokenizer = HuggingFaceModel(name).tokenizer
    passages = list(map(Passage, passages_of(texts, tokenizer, N_PASSAGES, PASSAGE_TOKENS)))
    prompts = [prompt for passage in passages for prompt in UPR()._prompts_of(passage)]
    requests = [Request(prompt, question) for question in QUESTIONS for prompt in prompts]
    table = Table("variant", "a token, at most", "a passage's mean, at most", title="change of log-probabilities")
    expected: list[Likelihood] = []
    for variant, options in VARIANTS.items():
        likelihoods = HuggingFaceModel(name, **options).log_likelihood(requests)
        expected = expected or likelihoods
        pairs = list(zip(likelihoods, expected, strict=True))
        token_change = max(np.abs(one.log_probs - other.log_probs).max() for one, other in pairs)
        mean_change = max(abs(one.mean - other.mean) for one, other in pairs)
        table.add_row(variant, f"{token_change:.3f}", f"{mean_change:.3f}")
    Console(width=100).print(table)
