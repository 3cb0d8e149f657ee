"""`drillrank components`: what there is, and what there is to set in it."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

from rich.markup import escape
from rich.table import Column, Table

from drillrank.cli import terminal
from drillrank.cli.terminal import excerpt
from drillrank.components import COMPONENTS, component


def run_components(name: str | None) -> None:
    """Print a table of all components, or one of them with its settings."""
    if name is None:
        table = Table(Column("component", no_wrap=True), "job", Column("in the hosts", no_wrap=True), "needs")
        for one in COMPONENTS:
            in_hosts = dict.fromkeys([*one.llama_index, *one.langchain])
            table.add_row(one.name, one.job, "\n".join(in_hosts), "\n".join(one.needs))
        terminal.console.print(table)
        return
    one = component(name)
    does = (one.core_class.__doc__ or "").partition("\n")[0]
    terminal.console.print(f"[bold]{one.name}[/bold] ({one.core_class.__module__}): {escape(does)}")
    if one.paper is not None:
        terminal.console.print(f"{one.paper.authors}, {escape(one.paper.title)}, arXiv {one.paper.arxiv}")
    for host, names in {"llama_index_ext": one.llama_index, "langchain_ext": one.langchain}.items():
        terminal.console.print(f"{host}: {', '.join(names)}")
    for label, items in {"needs": one.needs, "takes": one.takes}.items():
        if items:
            terminal.console.print(f"{label}: {', '.join(items)}")
    if one.extra:
        terminal.console.print(f"extra: {one.extra}")
    table = Table("argument", "type", "default")
    for argument, (annotation, default) in _arguments(one.core_class).items():
        table.add_row(argument, escape(annotation), escape(excerpt(repr(default), 40)))
    terminal.console.print(table)


def _arguments(cls: type) -> dict[str, tuple[str, Any]]:
    """Type and default of the arguments that may be left out, and of what `settings=` holds."""
    found: dict[str, tuple[str, Any]] = {}
    for name, given in inspect.signature(cls).parameters.items():
        if name == "settings":
            found |= {
                f"settings.{item.name}": (str(item.type), item.default) for item in dataclasses.fields(given.default)
            }
        elif given.default is not given.empty:
            found[name] = (str(given.annotation), given.default)
    return found
