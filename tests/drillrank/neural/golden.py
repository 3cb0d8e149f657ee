"""The golden scores and the tiny models that they belong to; not part of a plain clone."""

from __future__ import annotations

import gzip
import json
from functools import lru_cache
from typing import Any

import pytest

from benchmarks.data import data_folder
from drillrank.likelihood import HuggingFaceModel
from tests.drillrank.neural.float64 import Yardstick

ORACLE = data_folder().parent / "oracle"
T5, GPT2 = "tiny-t5-v1_1-gated", "tiny-gpt2"

at_hand = pytest.mark.skipif(not ORACLE.is_dir(), reason="the golden scores are not at hand")


def golden(name: str) -> Any:
    with gzip.open(ORACLE / f"{name}.json.gz", "rt", encoding="utf-8") as file:
        return json.load(file)


@lru_cache(maxsize=1)
def inputs() -> dict[str, dict[str, Any]]:
    """Cases by kind and id."""
    cases = {
        kind: {case["id"]: case for case in golden("inputs")[f"{kind}_cases"]} for kind in ("upr", "path", "brmgr")
    }
    return {**cases, "templates": golden("inputs")["promptrank_templates"]}


@lru_cache(maxsize=2)
def model(name: str) -> HuggingFaceModel:
    # PromptRank's code allows prompts of 1024 tokens with demonstrations; T5 has no limit of its own.
    longest = 4096 if name == T5 else None
    return HuggingFaceModel(str(ORACLE / "models" / name), dtype="float32", max_length=longest)


@lru_cache(maxsize=2)
def yardstick(name: str) -> Yardstick:
    return Yardstick(ORACLE / "models" / name)


def close(tokens: int) -> float:
    """The tolerance of a sum over so many tokens, in nats."""
    return 1e-4 if tokens <= 100 else 3e-4
