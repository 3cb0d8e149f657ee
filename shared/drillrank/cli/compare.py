"""`drillrank compare` measures whether components help on a user's questions; `drillrank tune` finds settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.markup import escape

from drillrank.cli import terminal
from drillrank.errors import InvalidInput
from drillrank.files import check_target, replace_file
from drillrank.limits import read_json

_OF_TUNE = ("folds", "measure")  # options that a calibration does not take
_PRESET_COMPONENTS = ("UPR", "BRMGR", "PromptRank", "PathSearch", "MultiViewIndex", "D3")


def run_compare(
    components: Sequence[str],
    settings: str | None,
    trust_settings: bool,
    strategies: bool,
    preset: str | None,
    html: str | None,
    as_json: bool,
    **options: Any,
) -> bool:
    """Compare components and print the result. Return False if the comparison is partial."""
    from drillrank.evaluation import compare, html_report

    if html:
        check_target(html)
        for other in (options["questions"], *options["corpus"], options["results"], settings):
            if other and Path(other).resolve() == Path(html).resolve():
                raise InvalidInput(f"{html} is read or kept: give the report a file of its own.")
    component_by_name = _name_components(components, strategies, options["llm"])
    if settings:
        shared = {"settings": settings, "trust_settings": trust_settings}
        component_by_name = {name: shared | component for name, component in component_by_name.items()}
    if preset:
        component_by_name = {name: _with_preset(component, preset) for name, component in component_by_name.items()}
    with terminal.progress("questions") as on_progress:
        comparison = compare(components=component_by_name, on_progress=on_progress, **_as_arguments(options))
    if as_json:
        terminal.print_json(comparison.to_dict())
    else:
        terminal.console.print(comparison)
    if html:
        with terminal.progress("explanations") as on_progress:
            page = html_report(comparison, on_progress)
        try:
            with replace_file(Path(html)) as file:
                file.write(page.encode())
        except OSError as problem:
            raise InvalidInput(f"{html} cannot be written: {problem.strerror}.") from problem
    return comparison.complete


def run_tune(
    component: str,
    tried: Sequence[str],
    write_instructions: str | None,
    n_instructions: int,
    preset: str | None,
    out: str | None,
    as_json: bool,
    coverage: float | None,
    **options: Any,
) -> None:
    """Tune a component, print the settings that were tried, and write the best ones to a file."""
    if coverage is not None:
        _run_calibration(component, coverage, out or "coverage.json", as_json, options)
        return
    out = out or "settings.json"
    from drillrank.evaluation import tune
    from drillrank.evaluation.settings_file import read_settings_file

    _, specification = _parse_component(component)
    if preset:
        specification = _with_preset(specification, preset)
    check_target(out)
    if Path(out).exists():
        read_settings_file(out)  # raises if it is another kind of file, which must not be overwritten
    grid = _read_grid(tried, write_instructions, n_instructions)
    try:
        with terminal.progress("questions and settings") as on_progress:
            tuning = tune(component=specification, grid=grid, on_progress=on_progress, **_as_arguments(options))
    except KeyboardInterrupt:
        hint = f"{options['results']} keeps what was computed" if options["results"] else "--results FILE would keep it"
        terminal.print_problem(
            "yellow", f"Interrupted, nothing was chosen: {hint}; the same command goes on from there."
        )
        raise
    tuning.save(out)
    if as_json:
        terminal.print_json(tuning.to_dict())
    else:
        terminal.console.print(escape(f"{tuning}\n{out} contains the settings of {tuning.component}."))


def _run_calibration(component: str, share: float, out: str, as_json: bool, options: Mapping[str, Any]) -> None:
    """Calibrate the coverage of a reranker, and write it to a file."""
    from drillrank.coverage import Coverage
    from drillrank.evaluation.calibration import calibrate_coverage

    check_target(out)
    if Path(out).exists():
        Coverage.load(out)  # raises if it is another kind of file, which must not be overwritten
    arguments = {name: value for name, value in _as_arguments(dict(options)).items() if name not in _OF_TUNE}
    with terminal.progress("questions") as on_progress:
        coverage = calibrate_coverage(
            component=_parse_component(component)[1], share=share, on_progress=on_progress, **arguments
        )
    coverage.save(out)
    if as_json:
        terminal.print_json(asdict(coverage))
    else:
        terminal.console.print(
            f"{out}: of {coverage.n_questions:,} questions like yours, {share:.0%} keep their evidence among the "
            f"passages with a score of at most {coverage.margin:.4g} below the best one. "
            f'Use it as top_n=Coverage.load("{escape(out)}").'
        )


def _read_grid(tried: Sequence[str], write_instructions: str | None, n_instructions: int) -> dict[str, Any]:
    """Return the candidates of each setting: those of the user, and instructions that a T5 writes.

    Raises:
        InvalidInput: The candidates are not JSON, or the model writes no instructions.
    """
    grid = {}
    for candidates in tried:
        name, _, values = candidates.partition("=")
        grid[name] = read_json(values, f"--try is SETTING=LIST, such as mu=[30,300]; {candidates[:50]!r}")
    if write_instructions:
        from drillrank.rerank.tuning import generate_instructions

        grid["instructions"] = generate_instructions(write_instructions, n_instructions)
    return grid


def _as_arguments(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as arguments of `compare` and `tune`: None for an empty tuple, and columns as a mapping.

    Raises:
        InvalidInput: One of the columns is not a pair, or the dataset cannot be read.
    """
    columns = [column.partition("=") for column in options["columns"]]
    for column, equals, _ in columns:
        if not equals:
            raise InvalidInput(f"--column is OURS=THEIRS, such as candidates=bm25_top; not {column!r:.200}.")
    arguments = {name: value if value != () else None for name, value in options.items()}
    dataset, n_questions = arguments.pop("dataset"), arguments.pop("n_questions")
    questions, corpus = _read_questions(dataset, n_questions, arguments)
    arguments |= {"questions": questions, "corpus": corpus}
    return {**arguments, "columns": {name: column_name for name, _, column_name in columns}}


def _read_questions(dataset: str | None, n_questions: int | None, arguments: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the questions and the corpus: the names of files, or those of a public dataset."""
    from drillrank.evaluation import datasets, questions

    if dataset is None:
        file: Any = arguments["questions"]
        if n_questions is not None:
            columns = dict(column.split("=", 1) for column in arguments["columns"] or ())
            file = questions.read_questions(file, columns)[:n_questions]
        return file, arguments["corpus"]
    if arguments["corpus"]:
        raise InvalidInput(f"--dataset {dataset} has its own corpus, got {arguments['corpus']!r:.200}. Remove it.")
    read = {
        "qasper": datasets.read_qasper,
        "hotpotqa": datasets.read_hotpotqa,
        "2wikimultihop": datasets.read_2wikimultihop,
        "dpr": datasets.read_dpr,
    }[dataset]
    return read(arguments["questions"], n_questions)


def _name_components(components: Sequence[str], strategies: bool, llm: str | None) -> dict[str, dict[str, Any]]:
    """Return the components by name. D3's strategies, if they are asked for, come last.

    Raises:
        InvalidInput: Two components have one name, or the strategies have no LLM.
    """
    from drillrank.evaluation import d3_strategies

    if strategies and llm is None:
        raise InvalidInput("--strategies needs an LLM: give --llm http://host:port/v1#model.")
    pairs = [_parse_component(component) for component in components or ([] if strategies else ["UPR"])]
    component_by_name = dict(pairs)
    if len(component_by_name) < len(pairs):
        raise InvalidInput("Two components have one name: give NAME=COMPONENT.")
    return component_by_name | (d3_strategies(llm) if strategies and llm else {})


def _parse_component(option: str) -> tuple[str, dict[str, Any]]:
    """Return the name and the component of `NAME=COMPONENT`.

    Raises:
        InvalidInput: The component begins like JSON but is not JSON.
    """
    name, equals, component = option.partition("=")
    if not equals or "{" in name:
        name = component = option
    if component.startswith("{"):
        parsed: dict[str, Any] = read_json(component, f"--component {name:.50}")
        return name, parsed
    return name, {"component": component}


def _with_preset(component: Mapping[str, Any], preset: str) -> dict[str, Any]:
    """Return a component with the preset. Its own settings win.

    Raises:
        InvalidInput: The component has no preset.
    """
    if component.get("component") not in _PRESET_COMPONENTS:
        raise InvalidInput(
            f"--preset needs components out of {', '.join(_PRESET_COMPONENTS)}, got "
            f'{component.get("component")!r:.200}. Write its preset in JSON: {{"component": ..., "preset": ...}}.'
        )
    return {"preset": preset, **component}
