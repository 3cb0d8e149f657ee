"""`drillrank compare`: does a component help on these questions? `drillrank tune`: with which settings?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Column, Table

from drillrank.cli import terminal
from drillrank.errors import InvalidInput
from drillrank.files import check_target, whole_file
from drillrank.limits import read_json

if TYPE_CHECKING:
    from drillrank.evaluation import Comparison

WRITTEN = 20  # instructions that a model writes


def run_compare(
    questions: str,
    corpus: Sequence[str],
    components: Sequence[str],
    measures: Sequence[str],
    settings: str | None,
    trust_settings: bool,
    html: str | None,
    results: str | None,
    as_json: bool,
    **options: Any,
) -> bool:
    """Compare and print; False where the comparison is partial."""
    from drillrank.evaluation import compare, html_report

    if html:
        check_target(html)
        for other in (questions, *corpus, results, settings):
            if other and Path(other).resolve() == Path(html).resolve():
                raise InvalidInput(f"{html} is read or kept: give the report a file of its own.")
    named = dict(map(_component, components))
    if len(named) < len(components):
        raise InvalidInput("Two components have one name: give NAME=COMPONENT.")
    if settings:
        more = {"settings": settings, "trust_settings": trust_settings}
        named = {name: more | ({"component": what} if isinstance(what, str) else what) for name, what in named.items()}
    with terminal.progress("questions") as on_progress:
        found = compare(
            questions, named, list(corpus) or None, measures=measures or None, results=results, on_progress=on_progress,
            **_as_given(options),
        )  # fmt: skip
    if as_json:
        terminal.print_json(found.to_dict())
    else:
        _print(found)
    if html:
        with terminal.progress("explanations") as on_progress:
            page = html_report(found, on_progress)
        try:
            with whole_file(Path(html)) as file:
                file.write(page.encode())
        except OSError as problem:
            raise InvalidInput(f"{html} cannot be written: {problem.strerror}.") from problem
    return found.complete


def run_tune(
    questions: str,
    corpus: Sequence[str],
    component: str,
    tried: Sequence[str],
    instructions: str | None,
    results: str | None,
    out: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Tune, print what was tried, and write the settings."""
    from drillrank.evaluation import tune
    from drillrank.evaluation.settings_file import read_settings_file

    _, what = _component(component)
    grid = {}
    for one in tried:
        name, _, values = one.partition("=")
        grid[name] = read_json(values, f"--try is SETTING=LIST, such as mu=[30,300]; {one[:50]!r}")
    if instructions:
        wordings = _instructions(instructions)
        if (what if isinstance(what, str) else what.get("component")) == "UPR":
            grid["template"] = [wording.replace("{path}", "{text}") for wording in wordings]
        else:
            grid["instructions"] = wordings
    check_target(out)
    if Path(out).exists():
        read_settings_file(out)  # another file is not overwritten
    try:
        with terminal.progress("questions and settings") as on_progress:
            found = tune(
                questions, what, list(corpus) or None, grid=grid, results=results, on_progress=on_progress,
                **_as_given(options),
            )  # fmt: skip
    except KeyboardInterrupt:
        kept = f"{results} keeps what was computed" if results else "--results FILE would keep it"
        terminal.tell("yellow", f"Interrupted, nothing was chosen: {kept}; the same command goes on from there.")
        raise
    found.save(out)
    if as_json:
        terminal.print_json(found.to_dict())
        return
    terminal.console.print(escape(str(found)))
    terminal.console.print(escape(f"{out} holds the settings of {found.component}."))


def _print(found: Comparison) -> None:
    table = _table("", *found.components)  # there are more measures than a terminal has room for
    for measure in found.measures:
        table.add_row(measure, *(f"{found.mean(name, measure):.3f}" for name in found.components))
    table.add_row("failed", *(f"{found.failed[name]:,}" for name in found.components))
    table.add_row("unjudged", *(f"{found.unjudged[name]:,}" for name in found.components))
    costs = [found.costs[name] for name in found.components]
    table.add_row("p50 ms", *(f"{1000 * cost.p50:.2f}" for cost in costs))
    table.add_row("p95 ms", *(f"{1000 * cost.p95:.2f}" for cost in costs))
    terminal.console.print(table)
    table = _table("pair", "difference", "95 % interval", "p, corrected", "verdict", title=escape(found.primary))
    for pair in found.pairs:
        if pair.measure == found.primary:
            mean, low, high, _, _ = pair.difference
            names = f"{escape(pair.before)} → {escape(pair.after)}"
            interval = f"{low:+.3f} to {high:+.3f}"
            table.add_row(names, f"{mean:+.3f}", interval, f"{pair.adjusted_p:.4f}", pair.verdict)
    terminal.console.print(table)
    for line in found.advice:
        terminal.console.print(escape(line))


def _table(*names: str, title: str | None = None) -> Table:
    """Cells that have no room are folded: an ellipsis would cut digits off."""
    return Table(*(Column(escape(name), overflow="fold") for name in names), title=title)


def _as_given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of `compare` and `tune`, with the pairs of `--column` as a mapping.

    Raises:
        InvalidInput: one of them is no pair.
    """
    columns = [column.partition("=") for column in options["columns"]]
    for ours, equals, _ in columns:
        if not equals:
            raise InvalidInput(f"--column is OURS=THEIRS, such as candidates=bm25_top; not {ours!r:.200}.")
    return {**options, "columns": {ours: theirs for ours, _, theirs in columns}}


def _component(given: str) -> tuple[str, Any]:
    """Name and component of `NAME=COMPONENT`.

    Raises:
        InvalidInput: it begins like JSON and is none.
    """
    name, equals, what = given.partition("=")
    if not equals or "{" in name:
        name = what = given
    return name, read_json(what, f"--component {name:.50}") if what.startswith("{") else what


def _instructions(given: str) -> list[str]:
    if given.startswith("hf:"):
        from drillrank.rerank.tuning import generate_instructions

        return generate_instructions(given, WRITTEN)
    try:
        lines = Path(given).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        why = getattr(problem, "strerror", None) or problem
        raise InvalidInput(f"{given:.200} cannot be read: {why}.") from problem
    found = [line.strip() for line in lines if line.strip()]
    if not found:
        raise InvalidInput(f"{given} holds no instruction: write one on each line.")
    return found
