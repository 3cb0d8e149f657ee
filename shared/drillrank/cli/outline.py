"""`drillrank outline`: the section tree of a file."""

from __future__ import annotations

from collections.abc import Sequence

from rich.tree import Tree

from drillrank.cli import terminal
from drillrank.cli.sources import found_sources, reported
from drillrank.cli.terminal import one_line
from drillrank.errors import InvalidInput
from drillrank.structure import Document, read_document
from drillrank.structure.pages import page_range


def run_outline(file: str) -> bool:
    """Print the sections of a file; whether it has any heading."""
    with found_sources([file]) as (sources, _):
        if len(sources) != 1 or not sources[0].named:
            raise InvalidInput(f"{file} is not one file: an outline is that of a single one.")
        with reported(sources[0]):
            document = read_document(sources[0].path)
    print_tree([file], [document])
    return any(section.path for section in document.sections())


def print_tree(names: Sequence[str], documents: Sequence[Document]) -> None:
    """The section trees of documents, with pages and spans."""
    for name, document in zip(names, documents, strict=True):
        sections = document.sections()
        root = Tree(f"[bold]{one_line(name)}[/bold]: {len(document.text):,} characters, {len(sections)} sections")
        branches: list[tuple[int, Tree]] = [(0, root)]
        for section in sections:
            depth = max(len(section.path), 1)
            while branches[-1][0] >= depth:
                branches.pop()
            pages = document.page_numbers(section.start, section.end)
            place = f"{page_range(pages)}, {section.start}–{section.end}" if pages else f"{section.start}–{section.end}"
            label = f"{one_line(section.heading) or '(no heading)'} [dim]{place}[/dim]"
            branches.append((depth, branches[-1][1].add(label)))
        terminal.console.print(root)
