"""Callers who come while a model computes are computed together, and get the scores that they have alone."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from drillrank import UPR
from drillrank.errors import InvalidInput
from drillrank.likelihood import Request
from drillrank.likelihood.base import NextTokenRequest
from drillrank.prompts import Evidence

DOCUMENTS = ["The old town of Basel lies on the Rhine.", "Zürich is a river town.", "café", "Europe " * 40]
QUESTIONS = [f"{word} {number}?" for number, word in enumerate(["which river", "who wrote it", "what", "where"] * 2)]


def requests_of(question):
    return [Request(("Passage: ", Evidence(document), " Question:"), question) for document in DOCUMENTS]


class Held:
    """Holds the model's first turn back until as many calls as wanted stand behind it."""

    def __init__(self, model, monkeypatch):
        self.turns = []
        self.begun = threading.Event()
        self._shared = model.engine._turns
        compute = self._shared._compute

        def held(requests, work):
            self.turns.append(len(requests))
            first = not self.begun.is_set()
            self.begun.set()
            end = time.monotonic() + 30
            while first and len(self._shared._waiting) < self.wanted and time.monotonic() < end:
                time.sleep(0.001)
            return compute(requests, work)

        monkeypatch.setattr(self._shared, "_compute", held)

    def together(self, first, others):
        """Run one call, and the others while it is computed."""
        self.wanted = len(others)
        with ThreadPoolExecutor(len(others) + 1) as threads:
            ahead = threads.submit(first)
            assert self.begun.wait(30)
            behind = [threads.submit(other) for other in others]
            return [ahead, *behind]


def test_likelihoods_of_calls_that_gather(model, monkeypatch):
    alone = [model.log_likelihood(requests_of(question)) for question in QUESTIONS]
    held = Held(model, monkeypatch)
    calls = [lambda question=question: model.log_likelihood(requests_of(question)) for question in QUESTIONS]
    found = held.together(calls[0], calls[1:])
    for own, expected in zip(found, alone, strict=True):
        for one, other in zip(own.result(30), expected, strict=True):
            assert one.tokens == other.tokens
            np.testing.assert_allclose(one.log_probs, other.log_probs, atol=1e-4)
    assert held.turns == [len(DOCUMENTS), len(DOCUMENTS) * (len(QUESTIONS) - 1)]


def test_a_budget_that_cannot_be_met_is_the_fault_of_its_caller_alone(model, monkeypatch):
    bad = [Request(("x ", Evidence("y")), "who?", max_tokens=1)]
    expected = model.log_likelihood(requests_of(QUESTIONS[0]))
    held = Held(model, monkeypatch)
    good = lambda: model.log_likelihood(requests_of(QUESTIONS[0]))  # noqa: E731
    ahead, wrong, right = held.together(good, [lambda: model.log_likelihood(bad), good])
    with pytest.raises(InvalidInput):
        wrong.result(30)
    for found in (ahead, right):
        for one, other in zip(found.result(30), expected, strict=True):
            np.testing.assert_allclose(one.log_probs, other.log_probs, atol=1e-4)


def test_other_temperatures_and_next_tokens_have_turns_of_their_own(model, monkeypatch):
    asked = [NextTokenRequest(("Is it relevant? ",), ("a", "b"))]
    warm = model.log_likelihood(requests_of("what?"), temperature=2.0)
    told = model.next_tokens(asked)
    held = Held(model, monkeypatch)
    _, first, second = held.together(
        lambda: model.log_likelihood(requests_of("what?")),
        [lambda: model.log_likelihood(requests_of("what?"), temperature=2.0), lambda: model.next_tokens(asked)],
    )
    np.testing.assert_allclose(first.result(30)[0].log_probs, warm[0].log_probs, atol=1e-4)
    np.testing.assert_allclose(second.result(30)[0].values, told[0].values, atol=1e-4)
    assert held.turns == [4, 4, 1]


def test_rankings_of_many_users_are_those_of_each(model):
    ranker = UPR(model)
    expected = [ranker.rank(question, DOCUMENTS) for question in QUESTIONS]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda question: ranker.rank(question, DOCUMENTS), QUESTIONS))
    for own, other in zip(found, expected, strict=True):
        assert [item.passage.text for item in own] == [item.passage.text for item in other]
        np.testing.assert_allclose([item.score for item in own], [item.score for item in other], atol=1e-4)
