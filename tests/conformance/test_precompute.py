"""Passages computed at indexing time, in both frameworks."""

from __future__ import annotations

import pytest

from tests.conformance.frameworks import both_frameworks
from tests.drillrank.neural.conftest import smallest

TEXTS = ("The old town of Basel lies on the Rhine.", "Emma is a novel by Jane Austen.")


@pytest.fixture(scope="module")
def model_name(tmp_path_factory):
    return f"hf:{smallest(tmp_path_factory.mktemp('model'))}"


@both_frameworks
def test_a_question_computes_its_own_tokens_only(host, model_name):
    options = {"dtype": "float32"}
    reranker = host.ext.UPRRerank(model_name, model_options={**options, "prefix_cache": "1 MB"}, top_n=None)
    records = [host.record(text, title="Basel", file_name="a.md") for text in TEXTS]
    estimate = reranker.estimate_precompute(records)
    assert (estimate.n_prompts, estimate.fits) == (2, True)
    progress = []
    reranker.precompute(records, lambda *counts: progress.append(counts))
    assert progress[-1] == (2, 2)
    assert reranker.estimate_precompute(records).seconds == 0
    widths = []
    network = reranker.language_model.engine.model
    network.register_forward_pre_hook(lambda _, __, inputs: widths.append(inputs["input_ids"].shape), with_kwargs=True)
    results = host.rerank(reranker, "Which novel?", *records)
    assert len(widths) == 1
    without = host.ext.UPRRerank(model_name, model_options=options, top_n=None)
    expected = host.rerank(without, "Which novel?", *records)
    assert [one.score for one in results] == pytest.approx([one.score for one in expected], abs=1e-4)
