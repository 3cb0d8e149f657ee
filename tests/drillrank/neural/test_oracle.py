"""Golden scores of an independent float64 implementation; skipped where they are not at hand."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from drillrank.likelihood import HuggingFaceModel
from tests.benchmarks.data import data_folder

ORACLE = data_folder().parent / "oracle"
MODELS = ("tiny-t5-v1_1-gated", "tiny-gpt2")

pytestmark = pytest.mark.skipif(not ORACLE.is_dir(), reason="the golden scores are not at hand")


def golden(name: str) -> Any:
    with gzip.open(ORACLE / f"{name}.json.gz", "rt", encoding="utf-8") as file:
        return json.load(file)


@pytest.fixture(scope="module")
def models() -> dict[str, HuggingFaceModel]:
    # The T5 cases that the references cut at 512 tokens are left out, so nothing need be cut here.
    return {name: HuggingFaceModel(str(ORACLE / "models" / name), dtype="float32") for name in MODELS}


@pytest.fixture(scope="module")
def cases() -> dict[str, dict[str, Any]]:
    return {case["id"]: case for case in golden("inputs")["upr_cases"]}


def test_upr_sums_with_end_of_sequence(models):
    compared = 0
    for case in golden("upr_t5")["tiny-t5-v1_1-gated"]:
        for result in case["results"]:
            for naive in result["naive"].values():
                whole = naive["n_ctx"] == naive["n_ctx_untruncated"] and naive["prompt"] is not None
                if not whole or case["case"] == "c16":  # c16: the reference cuts the question at 128 tokens
                    continue
                [found] = models["tiny-t5-v1_1-gated"].log_likelihood([(naive["prompt"], naive["target"])])
                assert len(found.log_probs) == naive["n_target"]
                assert found.total == pytest.approx(naive["sum"], abs=1e-4)
                compared += 1
    assert compared > 60


@pytest.mark.parametrize("name", MODELS)
def test_sums_of_a_continuation(models, cases, name):
    compared = 0
    for case in golden("peers_lm_eval_minicons")[name]:
        asked = cases[case["case"]]
        for passage, result in zip(asked["passages"], case["results"], strict=True):
            naive = result["naive"].get("lm_eval")
            titled = passage["title"] and passage["text"].strip()
            if not naive or naive.get("left_truncated") or naive["n_ctx"] == 512 or not titled:
                continue
            context = (
                f"Passage: {passage['title']} {passage['text']}. "
                "Please write a question based on this passage. Question:"
            )
            [found] = models[name].log_likelihood([(context, f" {asked['question']}")], include_eos=False)
            assert len(found.log_probs) == naive["n_target"]
            assert found.total == pytest.approx(naive["sum"], abs=1e-4 if naive["n_target"] <= 100 else 3e-4)
            compared += 1
    assert compared > 30
