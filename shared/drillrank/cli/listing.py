"""The commands that list: `outline` (sections), `components` (settings) and `doctor` (installed packages)."""

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
from drillrank.cli.terminal import count_of, one_line, shorten
from drillrank.components import COMPONENTS, component
from drillrank.files import cache_folder
from drillrank.structure.pages import page_range

_HIDDEN_EXTRAS = ("all", "dev", "integration", "serving", "ray", "mutation")  # users do not install them one by one


def run_outline(file: str) -> bool:
    """Print the sections of a file. Return True if it has a heading."""
    document = read_named_document(file, ": an outline is that of a single one")
    sections = document.sections()
    size = f"{count_of(len(document.text), 'character')}, {count_of(len(sections), 'section')}"
    root = Tree(f"[bold]{one_line(file)}[/bold]: {size}")
    branches: list[tuple[int, Tree]] = [(0, root)]
    for section in sections:
        depth = max(len(section.path), 1)
        while branches[-1][0] >= depth:
            branches.pop()
        pages = document.page_numbers(section.start, section.end)
        extent = ", ".join([*([page_range(pages)] if pages else []), f"{section.start}–{section.end}"])
        label = f"{one_line(section.heading) or '(no heading)'} [dim]{extent}[/dim]"
        branches.append((depth, branches[-1][1].add(label)))
    terminal.console.print(root)
    return any(section.path for section in sections)


def run_components(name: str | None) -> None:
    """Print a table of all components, or the settings of one of them."""
    if name is None:
        table = Table(Column("component", no_wrap=True), "job", Column("in the frameworks", no_wrap=True), "needs")
        for entry in COMPONENTS:
            framework_names = dict.fromkeys([*entry.llama_index, *entry.langchain])
            table.add_row(entry.name, entry.job, "\n".join(framework_names), "\n".join(entry.needs))
        terminal.console.print(table)
        return
    entry = component(name)
    summary = (entry.core_class.__doc__ or "").partition("\n")[0]
    terminal.console.print(f"[bold]{entry.name}[/bold] ({entry.core_class.__module__}): {escape(summary)}")
    if entry.paper is not None:
        terminal.console.print(f"{entry.paper.authors}, {escape(entry.paper.title)}, arXiv {entry.paper.arxiv}")
    names_by_label = {
        "llama_index_ext": entry.llama_index,
        "langchain_ext": entry.langchain,
        "needs": entry.needs,
        "takes": entry.takes,
        "extra": filter(None, [entry.extra]),
    }
    for label, names in names_by_label.items():
        if text := ", ".join(names):
            terminal.console.print(f"{label}: {text}")
    table = Table("argument", "type", "default")
    for argument, (annotation, default) in _list_arguments(entry.core_class).items():
        table.add_row(argument, escape(annotation), escape(shorten(repr(default), 40)))
    terminal.console.print(table)


def _list_arguments(cls: type) -> dict[str, tuple[str, Any]]:
    """Return the type and default of each optional argument and of each field of `settings`."""
    arguments: dict[str, tuple[str, Any]] = {}
    for name, parameter in inspect.signature(cls).parameters.items():
        if name == "settings":
            fields = dataclasses.fields(parameter.default)
            arguments |= {f"settings.{field.name}": (str(field.type), field.default) for field in fields}
        elif parameter.default is not parameter.empty:
            arguments[name] = (str(parameter.annotation), parameter.default)
    return arguments


def run_doctor() -> None:
    """Print the installed packages, the device of neural models, the models, and the size and place of the cache."""
    out = terminal.console
    out.print(f"drillrank {version('drillrank')}, Python {platform.python_version()}, {escape(platform.platform())}")
    extras: dict[str, list[str]] = {}
    for line in requires("drillrank") or ():
        extra = re.search(r"extra == ['\"]([\w-]+)", line)
        name = re.match(r"[\w.-]+", line)
        if name and name[0] != "drillrank" and (extra is None or extra[1] not in _HIDDEN_EXTRAS):
            extras.setdefault(extra[1] if extra else "always", []).append(_describe_package(name[0]))
    table = Table("extra", "packages")
    for extra_name, packages in sorted(extras.items()):
        table.add_row(extra_name, ", ".join(packages))
    out.print(table)
    try:
        from drillrank.likelihood.huggingface import best_device

        device = best_device()
    except ImportError:
        device = "cpu"
    out.print(f"neural models compute on: {device}, {count_of(os.cpu_count() or 1, 'core')} here")
    hub = os.environ.get("HF_HUB_CACHE") or Path(os.environ.get("HF_HOME") or "~/.cache/huggingface", "hub")
    models = sorted(path.name[len("models--") :] for path in Path(hub).expanduser().glob("models--*"))
    names = ["unigram (embedded)", *(name.replace("--", "/") for name in models)]
    out.print(f"models: {escape(', '.join(names))}", soft_wrap=True)
    folder = cache_folder()
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) if folder else 0
    out.print(f"cache: {escape(str(folder))}, {size / 1e6:,.1f} MB", soft_wrap=True)


def _describe_package(package: str) -> str:
    """Return the name and version of a package, or markup that says that it is missing."""
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"[red]{package} is missing[/red]"
