"""Settings and a toy language model shared by the tests of the core."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
import pytest

from drillrank.cli import terminal
from drillrank.likelihood import LanguageModel, Likelihood, NextTokenRequest, NextTokens, Request
from drillrank.prompts import prompt_text


class HashModel(LanguageModel):
    """Arbitrary but reproducible log-probabilities per white-space token; records every request for a likelihood."""

    tells_next_tokens = True

    def __init__(self) -> None:
        self.requests: list[Request] = []

    @property
    def spec(self) -> str:
        return "hash"

    @staticmethod
    def log_probs(prompt: str, target: str, temperature: float = 1.0) -> list[float]:
        """Between -10 and 0, a function of the whole prompt, the temperature and the token."""
        return [
            -(zlib.crc32(f"{prompt}|{temperature}|{i}|{token}".encode("utf-8", "surrogatepass")) % 10_000) / 1000
            for i, token in enumerate(target.split())
        ]

    def log_likelihood_batch(
        self, requests: Sequence[Request], temperature: float, include_eos: bool
    ) -> list[Likelihood]:
        self.requests += requests
        results = []
        for request in requests:
            log_probs = np.array(self.log_probs(prompt_text(request.prompt), request.target, temperature))
            results.append(Likelihood(request.target.split(), log_probs, float(log_probs.sum())))
        return results

    def next_tokens_batch(self, requests: Sequence[NextTokenRequest], logits: bool) -> list[NextTokens]:
        return [
            NextTokens(np.array([sum(self.log_probs(prompt_text(one.prompt), str(answer))) for answer in one.answers]))
            for one in requests
        ]


@pytest.fixture(scope="session")
def hash_model():
    """The class, since each test wants its own record."""
    return HashModel


@pytest.fixture
def own_cache(tmp_path_factory, monkeypatch):
    """No test touches the user's cache."""
    folder = tmp_path_factory.mktemp("cache")
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA", "HOME"):
        monkeypatch.setenv(name, str(folder))
    return folder


@pytest.fixture
def wide(monkeypatch):
    """A terminal that breaks no line of ours."""
    monkeypatch.setattr(terminal, "console", terminal.Terminal(width=200, color_system=None))
