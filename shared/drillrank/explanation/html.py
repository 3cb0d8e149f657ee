"""Figures as HTML, for notebooks and pages, in the colours of their theme."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from drillrank.explanation.figures import Branch, Cell, Figure, Flow, Heading, Tree
from drillrank.explanation.text import on_one_line

_FOR, _AGAINST = "46,125,50", "198,40,40"
_CELL = "display:inline-block;margin:1px;padding:2px 6px;text-align:center;vertical-align:top;border-radius:4px"
_LINES = 'style="margin:.2em 0 .6em"'


def as_html(figures: Iterable[Figure]) -> str:
    """One `<div>`; all text in it is escaped."""
    return f"<div>{''.join(map(_figure, figures))}</div>"


def _figure(figure: Figure) -> str:
    if isinstance(figure, Heading):
        return f"<p><b>{_isolated(figure.text)}</b></p>"
    if isinstance(figure, Flow):
        return f"<div {_LINES}>{_caption(figure.caption)}<div>{''.join(map(_cell, figure.cells))}</div></div>"
    if isinstance(figure, Tree):
        return f"<div {_LINES}>{_caption(figure.caption)}{_nested(figure.branches)}</div>"
    return f"<p><small>{_isolated(figure.text)}</small></p>"


def _cell(cell: Cell) -> str:
    first, *rest = map(_isolated, cell.lines)
    lines = "".join([first, *(f"<br><small>{line}</small>" for line in rest)])
    frame = ";border:1px solid rgba(128,128,128,.5)" if cell.framed else ""
    return f'<span style="{_CELL}{frame}{_color(cell.tone)}">{lines}</span> '


def _nested(branches: Sequence[Branch]) -> str:
    lines = "".join(
        f'<li style="margin-left:{1.4 * branch.depth:.1f}em{_color(branch.tone)}">{branch.mark} '
        f"{_isolated(branch.text)} <small>– {_isolated(branch.why)}</small></li>"
        for branch in branches
    )
    return f'<ul style="list-style:none;margin:0;padding:0">{lines}</ul>'


def _caption(caption: str) -> str:
    return f"<div><small>{_isolated(caption)}</small></div>"


def _isolated(text: str) -> str:
    """Escaped; the direction of its writing turns nothing around it."""
    return f"<bdi>{escape(on_one_line(text))}</bdi>"


def _color(tone: float) -> str:
    return f";background:rgba({_FOR if tone > 0 else _AGAINST},{0.45 * abs(tone):.2f})" if tone else ""
