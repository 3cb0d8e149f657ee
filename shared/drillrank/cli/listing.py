"""`drillrank outline`: the sections of a file; `components`: what there is to set; `doctor`: what is installed."""

from __future__ import annotations

import dataclasses
import inspect
import os
import platform
import re
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Column, Table
from rich.tree import Tree

from drillrank.cli import terminal
from drillrank.cli.sources import read_named_document
from drillrank.cli.terminal import counted, excerpt, one_line
from drillrank.components import COMPONENTS, component
from drillrank.files import cache_folder
from drillrank.structure.pages import page_range

_NOT_THE_USERS = ("all", "dev", "integration", "serving", "ray", "mutation")  # extras


def run_outline(file: str) -> bool:
    """Print the sections of a file; whether it has any heading."""
    document = read_named_document(file, ": an outline is that of a single one")
    sections = document.sections()
    size = f"{counted(len(document.text), 'character')}, {counted(len(sections), 'section')}"
    root = Tree(f"[bold]{one_line(file)}[/bold]: {size}")
    branches: list[tuple[int, Tree]] = [(0, root)]
    for section in sections:
        depth = max(len(section.path), 1)
        while branches[-1][0] >= depth:
            branches.pop()
        pages = document.page_numbers(section.start, section.end)
        location = ", ".join([*([page_range(pages)] if pages else []), f"{section.start}–{section.end}"])
        label = f"{one_line(section.heading) or '(no heading)'} [dim]{location}[/dim]"
        branches.append((depth, branches[-1][1].add(label)))
    terminal.console.print(root)
    return any(section.path for section in sections)


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
    lists = {"llama_index_ext": one.llama_index, "langchain_ext": one.langchain, "needs": one.needs, "takes": one.takes}
    for label, items in {**lists, "extra": filter(None, [one.extra])}.items():
        if text := ", ".join(items):
            terminal.console.print(f"{label}: {text}")
    table = Table("argument", "type", "default")
    for argument, (annotation, default) in _arguments(one.core_class).items():
        table.add_row(argument, escape(annotation), escape(excerpt(repr(default), 40)))
    terminal.console.print(table)


def _arguments(cls: type) -> dict[str, tuple[str, Any]]:
    """Type and default of the arguments that may be left out, and of what `settings=` holds."""
    found: dict[str, tuple[str, Any]] = {}
    for name, given in inspect.signature(cls).parameters.items():
        if name == "settings":
            fields = dataclasses.fields(given.default)
            found |= {f"settings.{item.name}": (str(item.type), item.default) for item in fields}
        elif given.default is not given.empty:
            found[name] = (str(given.annotation), given.default)
    return found


def run_doctor() -> None:
    """Print what is installed, on what it computes, and what is kept where."""
    out = terminal.console
    out.print(f"drillrank {version('drillrank')}, Python {platform.python_version()}, {escape(platform.platform())}")
    extras: dict[str, list[str]] = {}
    for line in requires("drillrank") or ():
        extra = re.search(r"extra == ['\"]([\w-]+)", line)
        name = re.match(r"[\w.-]+", line)
        if name and name[0] != "drillrank" and (extra is None or extra[1] not in _NOT_THE_USERS):
            extras.setdefault(extra[1] if extra else "always", []).append(_installed(name[0]))
    table = Table("extra", "packages")
    for extra_name, packages in sorted(extras.items()):
        table.add_row(extra_name, ", ".join(packages))
    out.print(table)
    try:
        from drillrank.likelihood.huggingface import best_device

        device = best_device()
    except ImportError:
        device = "cpu"
    out.print(f"neural models compute on: {device}, {counted(os.cpu_count() or 1, 'core')} here")
    hub = os.environ.get("HF_HUB_CACHE") or Path(os.environ.get("HF_HOME") or "~/.cache/huggingface", "hub")
    models = sorted(path.name[len("models--") :] for path in Path(hub).expanduser().glob("models--*"))
    names = ["unigram (embedded)", *(name.replace("--", "/") for name in models)]
    out.print(f"models: {escape(', '.join(names))}", soft_wrap=True)
    folder = cache_folder()
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) if folder else 0
    out.print(f"cache: {escape(str(folder))}, {size / 1e6:,.1f} MB", soft_wrap=True)


def _installed(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"[red]{package} is missing[/red]"
