"""Demonstrations, paths and instructions in common: computed once, with the scores of the plain computation."""

from __future__ import annotations

import numpy as np
import pytest

from drillrank.likelihood import Request
from drillrank.likelihood import causal as causal_module
from drillrank.prompts import Evidence

DEMONSTRATION = "Document: Emma is a novel by Jane Austen. Question: who wrote it? " * 3
DOCUMENTS = ["The old town of Basel lies on the Rhine.", "Zürich is a river town.", "café", "Europe"]
ENDINGS = [" Review previous documents and ask some question. Question:", " Question:", " Ask."]


@pytest.fixture
def decoder_only(model):
    if model.engine.model.config.is_encoder_decoder:
        pytest.skip("encoder-decoder models share encoder states only")
    model.log_likelihood([("Basel", "who?")])  # finds out whether the model can share
    assert model.engine._shares
    return model


def unshared(model, requests):
    model.engine._shares = False
    try:
        return model.log_likelihood(requests)
    finally:
        model.engine._shares = True


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.log_probs, other.log_probs, atol=1e-4)


@pytest.mark.parametrize("batch_tokens", [1, 200, 300, 100_000])
def test_demonstrations_are_computed_once(decoder_only, monkeypatch, batch_tokens):
    requests = [
        Request((demonstration, Evidence(document), ending), question)
        for demonstration in (DEMONSTRATION, DEMONSTRATION[30:])
        for document in DOCUMENTS
        for ending in ENDINGS
        for question in ("which river?", "who wrote it?")
    ]
    expected = unshared(decoder_only, requests)
    plans = []

    def spied(*args, **options):
        plans.append(causal_plan(*args, **options))
        return plans[-1]

    causal_plan = causal_module.plan
    monkeypatch.setattr(causal_module, "plan", spied)
    monkeypatch.setattr(decoder_only.engine, "batch_tokens", batch_tokens)
    assert_same(decoder_only.log_likelihood(requests), expected)
    [plan] = plans
    assert len(plan.stems) == 2
    assert not plan.rows
    computed = sum(len(stem.ids) + sum(len(row.ids) for row in stem.rows) for stem in plan.stems)
    whole = sum(len(decoder_only.engine.tokenizer("".join(map(str, (r.prompt[0], r.target)))).ids) for r in requests)
    assert computed < whole / 3


def test_targets_of_different_lengths_behind_one_prompt(decoder_only):
    questions = ["who?", "which river lies in the old town of Basel, and who wrote it?", "Question:"]
    requests = [Request((DEMONSTRATION, Evidence(DOCUMENTS[0])), question) for question in questions]
    assert_same(decoder_only.log_likelihood(requests), unshared(decoder_only, requests))
