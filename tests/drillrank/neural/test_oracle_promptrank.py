"""Golden scores of paths: PromptRank's templates, ensembles, temperatures and demonstrations."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from drillrank import Passage, Path, PromptRank
from drillrank.prompts import prompt_text
from drillrank.rerank.demonstrations import Demonstration
from drillrank.rerank.formula import PRESETS
from drillrank.rerank.promptrank import PROMPTRANK_INSTRUCTIONS, build_path_prompt
from tests.drillrank.neural.golden import GPT2, T5, at_hand, golden, inputs, model
from tests.examples import some

pytestmark = at_hand
# The documents are given as they were cut.
UNLIMITED = {"max_document_tokens": 10**6, "max_prompt_tokens": 10**6, "max_demonstration_tokens": 10**6}
# On GPT-2 the code drops all white space around a prompt, and one blank where every document of a path is blank; the
# preset leaves both. One path of case r11 is such a path.
LEFT_OUT = {T5: 0, GPT2: 1}


def instructions_of(config: str, demo_templates: list[str]) -> list[str]:
    templates = inputs()["templates"]
    chosen = {
        "t0": templates[:1],
        "t4": templates[4:5],
        "ens5": templates[:5],
        "ens10": templates,
        "demo2": demo_templates[:1],
        "demo": demo_templates,
    }[config.split("_")[0]]
    return [template.replace("Document: <P>", "{path}") for template in chosen]


def rows_of(name: str, configs: str) -> list[tuple[str, list[list[str]], dict[str, Any], list[str], list[int]]]:
    """Question, paths of texts, the configuration with its golden scores, its instructions, and the paths to compare.

    Args:
        name: The model.
        configs: "bare" (no instruction), "token" (ensembles of tokens) or "whole" (all others).
    """
    part, rows = golden("promptrank")[name], []
    for row in part["rows"]:
        paths = row["shortened_paths"]
        chosen = [i for i, path in enumerate(paths) if name == T5 or any(map(str.strip, path))]
        for config in row["configs"]:
            kind = "bare" if "bare" in config["config"] else "token" if "token" in config["config"] else "whole"
            if kind == configs:
                instructions = [] if kind == "bare" else instructions_of(config["config"], part["demo_templates"])
                question = inputs()["path"][row["case"]]["question"]
                rows.append((question, paths, config, instructions, chosen))
    return rows


def as_path(texts: list[str]) -> Path:
    return Path(tuple(Passage(text) for text in texts))


def demonstrations_of(templates: list[str]) -> list[Demonstration]:
    """The demonstrations in the code's templates, with their documents as they were cut there."""
    wording = re.escape(PROMPTRANK_INSTRUCTIONS[0].removeprefix("{path}"))
    pattern = re.compile(rf"Document: (.*?) Document: (.*?) {wording} (.*?\?) (?=Document: )")
    return [Demonstration(as_path(found[:2]), found[2]) for text in templates for found in pattern.findall(text)]


@pytest.mark.parametrize("name", [T5, GPT2])
def test_ensembles_of_templates_and_demonstrations(name):
    shots = demonstrations_of(golden("promptrank")[name]["demo_templates"])
    assert len(shots) == 6
    rows = rows_of(name, "whole")
    assert sum(len(chosen) for *_, chosen in rows) == 13 * (32 - LEFT_OUT[name])
    for question, paths, config, templates, chosen in some(rows, 3):
        shown = config["config"].startswith("demo")
        ranker = PromptRank(
            model(name),
            settings={"formula": "promptrank", **UNLIMITED},
            instructions=PROMPTRANK_INSTRUCTIONS[:1] if shown else templates,
            demonstrations=shots[: 2 * len(templates)] if shown else (),
            ensemble=config["ensembling"],
            temperature=config["temperature"],
        )
        scored = ranker.score_paths(question, [as_path(paths[i]) for i in chosen])
        wanted = [config["naive"][i]["score"] for i in chosen]
        assert [score for score, _ in scored] == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize("name", [T5, GPT2])
def test_ensembles_of_tokens(name):
    """Not a component here; its numbers follow from the log-probabilities. The temperature divides once."""
    compared = 0
    for question, paths, config, instructions, chosen in rows_of(name, "token"):
        wording = [instruction.replace("{path}", PRESETS["promptrank"].template) for instruction in instructions]
        prompts = [prompt_text(build_path_prompt(as_path(paths[i]), one)) for i in chosen for one in wording]
        pairs = [(prompt, question) for prompt in prompts]
        results = iter(model(name).log_likelihood(pairs, temperature=config["temperature"]))
        for i in chosen:
            found = [next(results).log_probs for _ in wording]
            tokens = np.max(found, axis=0) if config["ensembling"] == "token-max" else np.mean(found, axis=0)
            assert tokens.mean() == pytest.approx(config["naive"][i]["score"], abs=1e-5)
            compared += 1
    assert compared == 3 * (32 - LEFT_OUT[name])
