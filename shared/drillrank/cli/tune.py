"""`drillrank tune`: settings for these questions, if they are better than the defaults by more than noise."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rich.markup import escape

from drillrank.cli import terminal
from drillrank.cli.compare import add_questions, column, component
from drillrank.errors import InvalidInput
from drillrank.files import check_target
from drillrank.limits import read_json

_WRITTEN = 20  # instructions that a model writes


def add_tune_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    add_questions(parser)
    parser.add_argument(
        "--component",
        default="UPR",
        help='UPR by default, PromptRank, PathSearch, MultiViewIndex or D3, or JSON with "component" and settings that '
        "stay as they are",
    )
    parser.add_argument("--measure", metavar="NAME", help="what decides; nDCG@10 by default")
    parser.add_argument(
        "--try",
        action="append",
        default=[],
        dest="candidates_of",
        metavar="SETTING=LIST",
        help="candidates in place of the usual ones, as a JSON list, such as mu=[30,300]; [] leaves a setting alone",
    )
    parser.add_argument(
        "--instructions",
        metavar="FILE|hf:MODEL",
        help=f"a file of instructions, one on each line, with {{path}} (UPR: {{text}}); or a T5 that writes {_WRITTEN}",
    )
    parser.add_argument(
        "--folds",
        type=int,
        default=10,
        help="parts of the questions, each measured with what those before choose, 10 by default",
    )
    parser.add_argument("--seed", type=int, default=0, help="which question is in which part")
    parser.add_argument(
        "--out", metavar="FILE", default="settings.json", help="the settings, settings.json by default; see --settings"
    )
    parser.set_defaults(run=run_tune)


def run_tune(given: argparse.Namespace) -> None:
    """Tune, print what was tried, and write the settings."""
    from drillrank.evaluation import tune
    from drillrank.evaluation.settings_file import read_settings_file

    _, what = component(given.component)
    grid = _grid(given, what)
    check_target(given.out)
    if Path(given.out).exists():
        read_settings_file(given.out)  # another file is not overwritten
    try:
        with terminal.progress("questions and settings") as on_progress:
            found = tune(
                given.questions,
                what,
                given.corpus or None,
                grid=grid,
                folds=given.folds,
                seed=given.seed,
                measure=given.measure,
                first_stage=given.first_stage,
                candidates=given.candidates,
                columns=dict(map(column, given.column)),
                results=given.results,
                on_progress=on_progress,
            )
    except KeyboardInterrupt:
        kept = f"{given.results} keeps what was computed" if given.results else "--results FILE would keep it"
        terminal.tell("yellow", f"Interrupted, nothing was chosen: {kept}; the same command goes on from there.")
        raise
    found.save(given.out)
    if given.json:
        terminal.print_json(found.to_dict())
        return
    terminal.console.print(escape(str(found)))
    terminal.console.print(escape(f"{given.out} holds the settings of {found.component}."))


def _grid(given: argparse.Namespace, what: Any) -> dict[str, Any]:
    grid: dict[str, Any] = {}
    for said in given.candidates_of:
        name, _, values = said.partition("=")
        grid[name] = read_json(values, f"--try is SETTING=LIST, such as mu=[30,300]; {said[:50]!r}")
    if given.instructions:
        wordings = _instructions(given.instructions)
        kind = what if isinstance(what, str) else what.get("component")
        if kind == "UPR":
            grid["template"] = [wording.replace("{path}", "{text}") for wording in wordings]
        else:
            grid["instructions"] = wordings
    return grid


def _instructions(given: str) -> list[str]:
    if given.startswith("hf:"):
        from drillrank.rerank.tuning import generate_instructions

        return generate_instructions(given, _WRITTEN)
    try:
        lines = Path(given).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        why = getattr(problem, "strerror", None) or problem
        raise InvalidInput(f"{given:.200} cannot be read: {why}.") from problem
    found = [line.strip() for line in lines if line.strip()]
    if not found:
        raise InvalidInput(f"{given} holds no instruction: write one on each line.")
    return found
