"""Demonstrations, documents and instructions in common: computed once, in batches that count what they stand on."""

from __future__ import annotations

import numpy as np
import pytest

from drillrank.likelihood import HuggingFaceModel, Request
from drillrank.prompts import TruncatableText, prompt_text
from tests.drillrank.neural.counting import counted

DEMONSTRATION = "Document: Emma is a novel by Jane Austen. Question: who wrote it? " * 3
DOCUMENTS = ["The old town of Basel lies on the Rhine.", "Zürich is a river town.", "café", "Europe"]
ENDINGS = [" Review previous documents and ask some question. Question:", " Question:", " Ask."]
QUESTIONS = ["which river?", "who wrote it?"]


@pytest.fixture
def decoder_only(model):
    if model.include_eos_by_default:
        pytest.skip("encoder-decoder models share encoder states only")
    return model


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.log_probs, other.log_probs, atol=1e-4)


def alone(model, requests):
    return [model.log_likelihood([request])[0] for request in requests]


@pytest.mark.parametrize("batch_tokens", [1, 200, 300, 100_000])
def test_demonstrations_are_computed_once(decoder_only, batch_tokens):
    requests = [
        Request((demonstration, TruncatableText(document), ending), question)
        for demonstration in (DEMONSTRATION, DEMONSTRATION[30:])
        for document in DOCUMENTS
        for ending in ENDINGS
        for question in QUESTIONS
    ]
    expected = alone(decoder_only, requests)
    model = HuggingFaceModel(decoder_only.spec.removeprefix("hf:"), dtype="float32", batch_tokens=batch_tokens)
    with counted(model) as passes:
        assert_same(model.log_likelihood(requests), expected)
    tokens = sum(rows * width for rows, width, _ in passes)
    tokenizer = model.engine.tokenizer
    whole = sum(len(tokenizer(f"{prompt_text(one.prompt)} {one.target}").ids) for one in requests)
    assert tokens < whole * (0.6 if batch_tokens > 1 else 1)
    for rows, width, stem in passes:
        assert rows * (width + stem) <= batch_tokens or rows == 1


def test_targets_of_different_lengths_behind_one_prompt(decoder_only):
    questions = ["who?", "which river lies in the old town of Basel, and who wrote it?", "Question:"]
    requests = [Request((DEMONSTRATION, TruncatableText(DOCUMENTS[0])), question) for question in questions]
    assert_same(decoder_only.log_likelihood(requests), alone(decoder_only, requests))


def test_the_same_request_twice_ties_exactly_whatever_batch_it_falls_into(model):
    requests = [
        Request((TruncatableText(f"{document} " * times),), "who?") for times in range(1, 9) for document in DOCUMENTS
    ]
    small = HuggingFaceModel(model.spec.removeprefix("hf:"), dtype="float32", batch_tokens=100)
    found = [one.total for one in small.log_likelihood([*requests, *requests[::-1]])]
    assert found[: len(requests)] == found[len(requests) :][::-1]
