"""`drillrank compare`: does a component help on these questions? `drillrank tune`: with which settings?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.markup import escape

from drillrank.cli import terminal
from drillrank.errors import InvalidInput
from drillrank.files import check_target, replace_file
from drillrank.limits import read_json


def run_compare(
    components: Sequence[str],
    settings: str | None,
    trust_settings: bool,
    html: str | None,
    as_json: bool,
    **options: Any,
) -> bool:
    """Compare and print; False where the comparison is partial."""
    from drillrank.evaluation import compare, html_report

    if html:
        check_target(html)
        for other in (options["questions"], *options["corpus"], options["results"], settings):
            if other and Path(other).resolve() == Path(html).resolve():
                raise InvalidInput(f"{html} is read or kept: give the report a file of its own.")
    named = dict(map(_component, components))
    if len(named) < len(components):
        raise InvalidInput("Two components have one name: give NAME=COMPONENT.")
    if settings:
        more = {"settings": settings, "trust_settings": trust_settings}
        named = {name: more | ({"component": what} if isinstance(what, str) else what) for name, what in named.items()}
    with terminal.progress("questions") as on_progress:
        found = compare(components=named, on_progress=on_progress, **_as_arguments(options))
    if as_json:
        terminal.print_json(found.to_dict())
    else:
        terminal.console.print(found)
    if html:
        with terminal.progress("explanations") as on_progress:
            page = html_report(found, on_progress)
        try:
            with replace_file(Path(html)) as file:
                file.write(page.encode())
        except OSError as problem:
            raise InvalidInput(f"{html} cannot be written: {problem.strerror}.") from problem
    return found.complete


def run_tune(component: str, tried: Sequence[str], out: str, as_json: bool, **options: Any) -> None:
    """Tune, print what was tried, and write the settings."""
    from drillrank.evaluation import tune
    from drillrank.evaluation.settings_file import read_settings_file

    _, what = _component(component)
    grid = {}
    for one in tried:
        name, _, values = one.partition("=")
        grid[name] = read_json(values, f"--try is SETTING=LIST, such as mu=[30,300]; {one[:50]!r}")
    check_target(out)
    if Path(out).exists():
        read_settings_file(out)  # another file is not overwritten
    try:
        with terminal.progress("questions and settings") as on_progress:
            found = tune(component=what, grid=grid, on_progress=on_progress, **_as_arguments(options))
    except KeyboardInterrupt:
        hint = f"{options['results']} keeps what was computed" if options["results"] else "--results FILE would keep it"
        terminal.tell("yellow", f"Interrupted, nothing was chosen: {hint}; the same command goes on from there.")
        raise
    found.save(out)
    if as_json:
        terminal.print_json(found.to_dict())
    else:
        terminal.console.print(escape(f"{found}\n{out} holds the settings of {found.component}."))


def _as_arguments(options: dict[str, Any]) -> dict[str, Any]:
    """Of `compare` and `tune`: what is given is None or not empty, and columns are a mapping.

    Raises:
        InvalidInput: one of the columns is no pair.
    """
    columns = [column.partition("=") for column in options["columns"]]
    for column, equals, _ in columns:
        if not equals:
            raise InvalidInput(f"--column is OURS=THEIRS, such as candidates=bm25_top; not {column!r:.200}.")
    given = {name: value if value != () else None for name, value in options.items()}
    return {**given, "columns": {ours: given_name for ours, _, given_name in columns}}


def _component(given: str) -> tuple[str, Any]:
    """Name and component of `NAME=COMPONENT`.

    Raises:
        InvalidInput: it begins like JSON and is none.
    """
    name, equals, what = given.partition("=")
    if not equals or "{" in name:
        name = what = given
    return name, read_json(what, f"--component {name:.50}") if what.startswith("{") else what
