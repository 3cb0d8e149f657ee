"""`drillrank components`: what there is, and what there is to set in it."""

from __future__ import annotations

from rich.markup import escape
from rich.table import Column, Table

from drillrank.cli import terminal
from drillrank.cli.terminal import excerpt
from drillrank.registry import component, components


def run_components(name: str | None) -> None:
    """Print a table of all components, or one of them with its settings."""
    if name is None:
        table = Table(Column("component", no_wrap=True), "job", Column("in the hosts", no_wrap=True), "needs")
        for one in components():
            in_hosts = dict.fromkeys([*one.llama_index, *one.langchain])
            table.add_row(one.name, one.job, "\n".join(in_hosts), "\n".join(one.needs))
        terminal.console.print(table)
        return
    one = component(name)
    terminal.console.print(f"[bold]{one.name}[/bold] ({one.home}): {one.does}")
    if one.paper is not None:
        terminal.console.print(f"{one.paper.authors}, {escape(one.paper.title)}, arXiv {one.paper.arxiv}")
    for host, names in {"llama_index_ext": one.llama_index, "langchain_ext": one.langchain}.items():
        terminal.console.print(f"{host}: {', '.join(names)}")
    lists = {"needs": one.needs, "takes": one.takes, "extras": one.extras}
    for said, items in lists.items():
        if items:
            terminal.console.print(f"{said}: {', '.join(items)}")
    table = Table("setting", "default", "description")
    for setting in one.settings():
        table.add_row(setting.name, escape(excerpt(repr(setting.default), 40)), escape(setting.description))
    terminal.console.print(table)
