"""Figures in a terminal, by rich. Nothing is read as markup."""

from __future__ import annotations

from collections.abc import Iterable
from io import StringIO

from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.style import Style
from rich.text import Text

from drillrank.explanation.figures import Cell, Figure, Flow, Heading, Tree
from drillrank.explanation.text import on_one_line

_WIDTH = 100


def as_renderable(figures: Iterable[Figure]) -> RenderableType:
    """What rich prints."""
    return Group(*(part for figure in figures for part in _figure(figure)))


def as_text(figures: Iterable[Figure]) -> str:
    """Plain text, 100 characters wide."""
    console = Console(file=StringIO(), width=_WIDTH, color_system=None, legacy_windows=False)
    with console.capture() as captured:
        console.print(as_renderable(figures))
    return "\n".join(line.rstrip() for line in captured.get().rstrip().splitlines())


def _figure(figure: Figure) -> list[RenderableType]:
    if isinstance(figure, Heading):
        return [Text(on_one_line(figure.text), style="bold")]
    if isinstance(figure, Flow):
        return [Text(on_one_line(figure.caption), style="dim"), Columns(map(_cell, figure.cells), padding=(0, 2))]
    if isinstance(figure, Tree):
        return [Text(on_one_line(figure.caption), style="dim"), *_lines(figure)]
    return [Text(on_one_line(figure.text), style="dim")]


def _cell(cell: Cell) -> Text:
    return Text("\n".join(map(on_one_line, cell.lines)), style=_style(cell.tone), justify="center")


def _lines(tree: Tree) -> list[Text]:
    return [
        Text.assemble(
            "  " * branch.depth,
            (on_one_line(f"{branch.mark} {branch.text}"), _style(branch.tone)),
            (f" – {on_one_line(branch.why)}", "dim"),
        )
        for branch in tree.branches
    ]


def _style(tone: float) -> Style:
    if not tone:
        return Style.null()
    return Style(color="green" if tone > 0 else "red", bold=abs(tone) > 0.3)
