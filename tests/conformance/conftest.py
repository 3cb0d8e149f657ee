"""Language models for the suites: the embedded one, a tiny MonoT5, and a served one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from drillrank.likelihood import (
    HuggingFaceModel,
    LanguageModel,
    ServedModel,
    UnigramModel,
)
from drillrank.rerank.promptrank import PROMPTRANK_INSTRUCTIONS
from tests.conformance.corpus import QUERY, TEXTS, Slow, SlowModel


@dataclass(frozen=True)
class LanguageModels:
    """What a component is built with.

    Attributes:
        ready: A language model, ready for use.
        slow: One that takes long enough to show whether the event loop waits for it.
        configured: A specification and options, for configurations to make the round trip.
        usual: Arguments of every other component of the suite.
        informed: Whether its scores know anything; those of random weights, or of others' tasks, do not.
    """

    ready: LanguageModel
    slow: LanguageModel
    configured: dict[str, Any]
    usual: dict[str, Any] = field(default_factory=dict)
    informed: bool = True


@pytest.fixture(scope="session")
def embedded() -> LanguageModels:
    fitted = UnigramModel().fit(["a river and a town", *TEXTS])
    return LanguageModels(fitted, SlowModel(), {"model": "unigram", "model_options": {"mu": 77.0}})


class SlowNeuralModel(Slow, HuggingFaceModel):
    pass


@pytest.fixture(scope="session")
def tiny_monot5(tmp_path_factory) -> LanguageModels:
    pytest.importorskip("transformers")
    from tests.drillrank.neural.tiny_monot5 import save_tiny_monot5

    folder: Path = tmp_path_factory.mktemp("monot5")
    save_tiny_monot5(folder, list(_judged()))
    ready = HuggingFaceModel(str(folder), dtype="float32")
    slow = SlowNeuralModel(str(folder), dtype="float32")
    slow.engine  # noqa: B018  # loads it: scoring shall be slow, not the first use
    configured = {"model": f"hf:{folder}", "model_options": {"dtype": "float32", "batch_tokens": 100}}
    return LanguageModels(ready, slow, configured, usual={"model": ready})


@pytest.fixture(scope="session")
def tiny_relevance(tiny_monot5) -> LanguageModels:
    """The same model, asked for its next token."""
    preset = {"preset": "monot5"}
    return replace(tiny_monot5, configured=tiny_monot5.configured | preset, usual=tiny_monot5.usual | preset)


@pytest.fixture(scope="session")
def tiny_likelihood(tiny_monot5) -> LanguageModels:
    """The same model, asked for what it was not trained to say."""
    return replace(tiny_monot5, informed=False)


@pytest.fixture(scope="session")
def tiny_paths(tiny_likelihood) -> LanguageModels:
    """Under one instruction: the suite is to stay short."""
    one = {"instructions": PROMPTRANK_INSTRUCTIONS[:1]}
    return replace(tiny_likelihood, configured=tiny_likelihood.configured | one, usual=tiny_likelihood.usual | one)


class SlowServedModel(Slow, ServedModel):
    pass


@pytest.fixture(scope="session")
def served(tmp_path_factory) -> Iterator[LanguageModels]:
    """A tiny decoder-only model behind a server on this machine that speaks as vLLM does."""
    pytest.importorskip("transformers")
    from tests.drillrank.neural.conftest import saved
    from tests.drillrank.neural.fake_server import FakeServer

    server = FakeServer("vllm", saved("qwen2", tmp_path_factory))
    ready, slow = ServedModel(server.address), SlowServedModel(server.address)
    slow.tokenizer  # noqa: B018  # loads it: scoring shall be slow, not the first use
    configured = {"model": server.address, "model_options": {"prompts_per_request": 2}}
    yield LanguageModels(ready, slow, configured, usual={"model": ready}, informed=False)
    server.stop()


@pytest.fixture(scope="session")
def served_relevance(served) -> LanguageModels:
    asked = {"preset": "monot5", "positive": "e", "negative": "s"}
    return replace(served, configured=served.configured | asked, usual=served.usual | asked)


def _judged() -> Iterator[tuple[str, str, bool]]:
    """Relevance of the corpus's texts, alone and as either host shows them."""
    for number, text in enumerate(TEXTS):
        for shown in (text, f"T{number} {text}", f"title: T{number}\npage: {number}\n\n{text}"):
            yield QUERY, shown, "lies on the Rhine" in text
    for topic in ("novels", "the Rhine", "chess"):
        yield "Where is the Rhine?", f"topic: {topic}\nA text.", topic == "the Rhine"
