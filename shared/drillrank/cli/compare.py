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


def run_compare(
    components: Sequence[str],
    settings: str | None,
    trust_settings: bool,
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
    component_by_name = dict(map(_parse_component, components))
    if len(component_by_name) < len(components):
        raise InvalidInput("Two components have one name: give NAME=COMPONENT.")
    if settings:
        shared = {"settings": settings, "trust_settings": trust_settings}
        component_by_name = {
            name: shared | ({"component": component} if isinstance(component, str) else component)
            for name, component in component_by_name.items()
        }
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
    component: str, tried: Sequence[str], out: str | None, as_json: bool, coverage: float | None, **options: Any
) -> None:
    """Tune a component, print the settings that were tried, and write the best ones to a file."""
    if coverage is not None:
        _run_calibration(component, coverage, out or "coverage.json", as_json, options)
        return
    out = out or "settings.json"
    from drillrank.evaluation import tune
    from drillrank.evaluation.settings_file import read_settings_file

    _, specification = _parse_component(component)
    grid = {}
    for candidates in tried:
        name, _, values = candidates.partition("=")
        grid[name] = read_json(values, f"--try is SETTING=LIST, such as mu=[30,300]; {candidates[:50]!r}")
    check_target(out)
    if Path(out).exists():
        read_settings_file(out)  # raises if it is another kind of file, which must not be overwritten
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
        terminal.console.print(escape(f"{tuning}\n{out} holds the settings of {tuning.component}."))


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


def _as_arguments(options: dict[str, Any]) -> dict[str, Any]:
    """Return options as arguments of `compare` and `tune`: None for an empty tuple, and columns as a mapping.

    Raises:
        InvalidInput: One of the columns is not a pair.
    """
    columns = [column.partition("=") for column in options["columns"]]
    for column, equals, _ in columns:
        if not equals:
            raise InvalidInput(f"--column is OURS=THEIRS, such as candidates=bm25_top; not {column!r:.200}.")
    arguments = {name: value if value != () else None for name, value in options.items()}
    return {**arguments, "columns": {name: column_name for name, _, column_name in columns}}


def _parse_component(option: str) -> tuple[str, Any]:
    """Return the name and the component of `NAME=COMPONENT`.

    Raises:
        InvalidInput: The component begins like JSON but is not JSON.
    """
    name, equals, component = option.partition("=")
    if not equals or "{" in name:
        name = component = option
    return name, read_json(component, f"--component {name:.50}") if component.startswith("{") else component
