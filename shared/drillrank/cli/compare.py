"""`drillrank compare`: does a component help on these questions?"""

from __future__ import annotations

import argparse
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


TRUST_SETTINGS = "let the file of settings name folders, addresses, code and keys: only if it is your own"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    add_questions(parser)
    parser.add_argument(
        "--component",
        action="append",
        default=[],
        metavar="[NAME=]COMPONENT",
        help='one of ours, a dotted path, or JSON with "component" and settings; may be given several times; '
        "UPR by default",
    )
    parser.add_argument(
        "--settings", metavar="FILE", help="settings of the components, as `drillrank tune` writes them"
    )
    parser.add_argument("--trust-settings", action="store_true", help=TRUST_SETTINGS)
    parser.add_argument("--measure", action="append", metavar="NAME", help="several times; the first one decides")
    parser.add_argument("--html", metavar="FILE", help="write a report that needs no network")
    parser.set_defaults(run=run_compare)


def add_questions(parser: argparse.ArgumentParser) -> None:
    """What is asked, of what, and where the results are kept."""
    parser.add_argument("questions", help="JSON Lines or CSV: question, and gold, spans or answers (docs/comparing.md)")
    parser.add_argument("corpus", nargs="*", help="files and folders of documents, or tables of passages")
    parser.add_argument("--first-stage", metavar="PATH", help="a retriever by dotted path; BM25 by default")
    parser.add_argument("--candidates", type=int, default=50, help="candidates for each question, 50 by default")
    parser.add_argument("--column", action="append", default=[], metavar="OURS=THEIRS", help="what the file calls it")
    parser.add_argument("--results", metavar="FILE", help="keep results in this JSON Lines file, and go on from it")
    parser.add_argument("--json", action="store_true", help="write JSON in place of the tables")


def run_compare(given: argparse.Namespace) -> bool:
    """Compare and print; False where the comparison is partial."""
    from drillrank.evaluation import compare, html_report

    if given.html:
        check_target(given.html)
        for other in (given.questions, *given.corpus, given.results, given.settings):
            if other and Path(other).resolve() == Path(given.html).resolve():
                raise InvalidInput(f"{given.html} is read or kept: give the report a file of its own.")
    components = dict(map(component, given.component or ["UPR"]))
    if len(components) < len(given.component):
        raise InvalidInput("Two components have one name: give NAME=COMPONENT.")
    if given.settings:
        components = {
            name: {
                "settings": given.settings,
                "trust_settings": given.trust_settings,
                **({"component": what} if isinstance(what, str) else what),
            }
            for name, what in components.items()
        }
    with terminal.progress("questions") as on_progress:
        found = compare(
            given.questions,
            components,
            given.corpus or None,
            first_stage=given.first_stage,
            candidates=given.candidates,
            measures=given.measure,
            columns=dict(map(column, given.column)),
            results=given.results,
            on_progress=on_progress,
        )
    _print(found, given.json)
    if given.html:
        with terminal.progress("explanations") as on_progress:
            page = html_report(found, on_progress)
        try:
            with whole_file(Path(given.html)) as file:
                file.write(page.encode())
        except OSError as problem:
            raise InvalidInput(f"{given.html} cannot be written: {problem.strerror}.") from problem
    return found.complete


def _print(found: Comparison, as_json: bool) -> None:
    if as_json:
        terminal.print_json(found.to_dict())
        return
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


def component(said: str) -> tuple[str, Any]:
    """Name and component of `NAME=COMPONENT`.

    Raises:
        InvalidInput: it begins like JSON and is none.
    """
    name, equals, what = said.partition("=")
    if not equals or "{" in name:
        name = what = said
    if what.startswith("{"):
        return name, read_json(what, f"--component {name:.50}")
    return name, what


def column(said: str) -> tuple[str, str]:
    """Our name and theirs.

    Raises:
        InvalidInput: there is only one.
    """
    ours, equals, theirs = said.partition("=")
    if not equals:
        raise InvalidInput(f"--column is OURS=THEIRS, such as candidates=bm25_top; not {said!r:.200}.")
    return ours, theirs
