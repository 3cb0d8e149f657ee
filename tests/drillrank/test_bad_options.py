"""Options of models, rankers and generation that cannot be used are refused by an error of drillrank, never another."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from drillrank import BRMGR, UPR, MonoT5, PromptRank, Relevance, load_language_model
from drillrank.errors import DrillrankError
from drillrank.generation import cluster_prompts, generated_passages
from drillrank.likelihood import HuggingFaceModel, RerankServerModel, ServedModel, SumOfExperts, UnigramModel
from drillrank.likelihood.chat import ServedLLM
from drillrank.likelihood.cross_encoder import CrossEncoderModel, FastEmbedCrossEncoderModel
from drillrank.llm import run
from drillrank.rerank.brmgr import BRMGRSettings
from drillrank.rerank.promptrank import PromptRankSettings
from drillrank.rerank.relevance import RelevanceSettings

VALUES = [
    [],
    {},
    (),
    [[]],
    {"x": []},
    object(),
    -1,
    0,
    0.5,
    math.nan,
    math.inf,
    10**400,
    True,
    "",
    "x",
    "\ud83e",
    b"x",
    {1},
]
PAIRS = [("Who wrote Emma?", "Jane Austen."), ("Where is Basel?", "On the Rhine.")]

BUILDERS: dict[Callable[..., Any], tuple[Any, ...]] = {
    CrossEncoderModel: ("model",),
    FastEmbedCrossEncoderModel: ("model",),
    RerankServerModel: ("http://localhost:1/rerank#m",),
    ServedModel: ("http://localhost:1/v1#m",),
    ServedLLM: ("http://localhost:1/v1#m",),
    HuggingFaceModel: ("model",),
    UnigramModel: (),
    SumOfExperts: ([UnigramModel()],),
    UPR: (),
    BRMGR: (),
    PromptRank: (),
    Relevance: ("hf:model",),
    MonoT5: ("hf:model",),
    BRMGRSettings: (),
    PromptRankSettings: (),
    RelevanceSettings: (),
    load_language_model: (),
    cluster_prompts: (PAIRS,),
}
OPTIONS = [
    (build, arguments, name)
    for build, arguments in BUILDERS.items()
    for position, (name, parameter) in enumerate(inspect.signature(build).parameters.items())
    if position >= len(arguments) and parameter.kind is not parameter.VAR_KEYWORD
]


def check_refusal(call: Callable[[], object]) -> None:
    """Check that a call returns, or raises an error of drillrank whose message is short."""
    message = ""
    try:
        call()
    except DrillrankError as error:
        message = str(error)
    assert len(message) < 3_000


@pytest.mark.parametrize(
    ("build", "arguments", "name"), OPTIONS, ids=[f"{one[0].__name__}-{one[2]}" for one in OPTIONS]
)
def test_an_option_is_taken_or_refused(build, arguments, name):
    for value in VALUES:
        check_refusal(partial(build, *arguments, **{name: value}))


@pytest.mark.parametrize("build", [build for build, given in BUILDERS.items() if given and isinstance(given[0], str)])
def test_a_name_is_taken_or_refused(build):
    for value in (
        *VALUES,
        "http://",
        "http://h:99999999/v1",
        "http://[",
        "ce:",
        "ce:fastembed:",
        "hf:",
        "+",
        "2*",
        "x:y",
    ):
        check_refusal(partial(build, value))


@pytest.mark.parametrize("name", ["question", "n", "prompts", "on_failure"])
def test_an_argument_of_generation_is_taken_or_refused(name):
    for value in VALUES:
        if value != 10**400:  # so many calls are a valid request
            arguments = {"question": "Who wrote Emma?", "n": 1, name: value}
            check_refusal(partial(_generate, arguments))


def _generate(arguments: dict[str, Any]) -> None:
    run(generated_passages(**arguments), lambda _: "Jane Austen.")
