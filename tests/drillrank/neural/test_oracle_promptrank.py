"""Golden scores of paths: PromptRank's templates, ensembles, temperatures and demonstrations."""

from __future__ import annotations

import re
from typing import Any

import pytest

from drillrank import Passage, Path, PromptRank
from drillrank.rerank.promptrank import PROMPTRANK_INSTRUCTIONS, Demonstration
from tests.drillrank.neural.golden import GPT2, T5, at_hand, golden, inputs, model

pytestmark = at_hand
# The documents are given as they were cut.
UNLIMITED = {"max_document_tokens": 10**6, "max_prompt_tokens": 10**6, "max_demonstration_tokens": 10**6}
# On GPT-2 the code drops all white space around a prompt, and one blank where every document of a path is blank; the
# preset leaves both. One path of case r11 is such a path.
LEFT_OUT = {T5: 0, GPT2: 1}


def instructions_of(config: str, demo_templates: list[str]) -> list[str]:
    whole, first = inputs()["templates"], demo_templates[:1]
    chosen = {
        "t0": whole[:1],
        "t4": whole[4:5],
        "ens5": whole[:5],
        "ens10": whole,
        "demo2": first,
        "demo": demo_templates,
    }
    return [template.replace("Document: <P>", "{path}") for template in chosen[config.split("_")[0]]]


def rows_of(name: str) -> list[tuple[str, list[list[str]], dict[str, Any], list[str], list[int]]]:
    """Question, paths of texts, the configuration with its golden scores, its instructions, the paths to compare."""
    part, rows = golden("promptrank")[name], []
    for row in part["rows"]:
        paths = row["shortened_paths"]
        chosen = [i for i, path in enumerate(paths) if name == T5 or any(map(str.strip, path))]
        for config in row["configs"]:
            if "bare" not in config["config"] and "token" not in config["config"]:  # which are no component here
                instructions = instructions_of(config["config"], part["demo_templates"])
                rows.append((inputs()["path"][row["case"]]["question"], paths, config, instructions, chosen))
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
    compared = 0
    for question, paths, config, templates, chosen in rows_of(name):
        shown = config["config"].startswith("demo")
        ranker = PromptRank(
            model(name),
            settings={"preset": "promptrank", **UNLIMITED},
            instructions=PROMPTRANK_INSTRUCTIONS[:1] if shown else templates,
            demonstrations=shots[: 2 * len(templates)] if shown else (),
            ensemble=config["ensembling"],
            temperature=config["temperature"],
        )
        scored = ranker.score_paths(question, [as_path(paths[i]) for i in chosen])
        wanted = [config["naive"][i]["score"] for i in chosen]
        assert [score for score, _ in scored] == pytest.approx(wanted, abs=1e-5)
        compared += len(scored)
    assert compared == 13 * (32 - LEFT_OUT[name])
