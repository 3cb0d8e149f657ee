"""Figures as one SVG picture, for reports: dark on white, in a font in which every character is as wide as the next."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from rich.cells import cell_len

from drillrank.explanation.figures import Branch, Cell, Figure, Flow, Heading, Tree
from drillrank.explanation.terminal import as_text
from drillrank.explanation.text import on_one_line

_WIDTH, _MARGIN, _LINE, _PAD, _GAP = 760.0, 12.0, 18.0, 6.0, 4.0
_ADVANCE = 7.9  # of a character of 13 pixels, in the widest of the usual fonts
_FOR, _AGAINST = "46,125,50", "198,40,40"


def as_svg(figures: Iterable[Figure]) -> str:
    """A picture 760 pixels wide, with its own text as description; all text in it is escaped."""
    figures = list(figures)
    page = _Page()
    for figure in figures:
        page.draw(figure)
    title = next((figure.text for figure in figures if isinstance(figure, Heading)), "Explanation")
    height = page.y + _MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {_WIDTH:.0f} {height:.0f}" '
        f'width="{_WIDTH:.0f}" height="{height:.0f}" font-family="ui-monospace,Menlo,Consolas,monospace" '
        f'font-size="13" fill="#1b1f24"><title>{escape(on_one_line(title))}</title>'
        f"<desc>{escape(as_text(figures))}</desc>"
        f'<rect width="100%" height="100%" fill="#ffffff"/>{"".join(page.parts)}</svg>\n'
    )


class _Page:
    """What has been drawn, from the top down."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.y = _MARGIN

    def draw(self, figure: Figure) -> None:
        """Draw a figure below what is there."""
        if isinstance(figure, Heading):
            self.y += _PAD
            self._lines(figure.text, "font-weight='bold'")
        elif isinstance(figure, Flow):
            self._lines(figure.caption, "fill='#505a66'")
            self._flow(figure)
        elif isinstance(figure, Tree):
            self._lines(figure.caption, "fill='#505a66'")
            for branch in figure.branches:
                self._branch(branch)
            self.y += _PAD
        else:
            self._lines(figure.text, "fill='#505a66'")

    def _lines(self, text: str, style: str) -> None:
        for line in _wrapped(text, _WIDTH - 2 * _MARGIN):
            self.parts.append(_text(_MARGIN, self.y + 13, line, style))
            self.y += _LINE

    def _flow(self, flow: Flow) -> None:
        x, height = _MARGIN, 0.0
        for cell in flow.cells:
            wide = max(map(_wide, cell.lines)) + 2 * _PAD
            if x > _MARGIN and x + wide > _WIDTH - _MARGIN:
                x, self.y, height = _MARGIN, self.y + height + _GAP, 0.0
            self._cell(cell, x, wide)
            x += wide + _GAP
            height = max(height, _LINE * len(cell.lines) + _PAD)
        self.y += height + 2 * _PAD

    def _cell(self, cell: Cell, x: float, wide: float) -> None:
        frame = "stroke='#c6ccd4'" if cell.framed else "stroke='none'"
        self.parts.append(
            f"<rect x='{x:.1f}' y='{self.y:.1f}' width='{wide:.1f}' height='{_LINE * len(cell.lines) + _PAD:.1f}' "
            f"rx='4' {frame} {_fill(cell.tone)}/>"
        )
        for number, line in enumerate(cell.lines):
            y = self.y + 15 + _LINE * number
            self.parts.append(_text(x + wide / 2, y, line, "text-anchor='middle'"))

    def _branch(self, branch: Branch) -> None:
        x = _MARGIN + 20 * branch.depth
        name = f"{branch.mark} {branch.text}"
        if branch.tone:
            self.parts.append(
                f"<rect x='{x - 3:.1f}' y='{self.y:.1f}' width='{_wide(name) + 6:.1f}' height='{_LINE:.1f}' rx='4' "
                f"{_fill(branch.tone)}/>"
            )
        self.parts.append(_text(x, self.y + 13, name))
        beside = x + _wide(name) + 10
        if beside + _wide(branch.why) > _WIDTH - _MARGIN:
            self.y += _LINE
            beside = x + 20
        for line in _wrapped(branch.why, _WIDTH - _MARGIN - beside):
            self.parts.append(_text(beside, self.y + 13, line, "fill='#505a66'"))
            self.y += _LINE


def _text(x: float, y: float, text: str, style: str = "") -> str:
    return f"<text x='{x:.1f}' y='{y:.1f}' {style} style='unicode-bidi:isolate'>{escape(on_one_line(text))}</text>"


def _wrapped(text: str, wide: float) -> list[str]:
    """The text in lines that are no wider, cut at blanks, or anywhere where there are none."""
    lines = [""]
    for word in on_one_line(text).split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if _wide(longer) <= wide:
            lines[-1] = longer
            continue
        lines += [word] if lines[-1] else []
        lines[-1] = word
        while _wide(lines[-1]) > wide and len(lines[-1]) > 1:
            fits = next(n for n in range(len(lines[-1]) - 1, 0, -1) if n == 1 or _wide(lines[-1][:n]) <= wide)
            lines[-1:] = [lines[-1][:fits], lines[-1][fits:]]
    return lines


def _wide(text: str) -> float:
    return _ADVANCE * cell_len(on_one_line(text))


def _fill(tone: float) -> str:
    return f"fill='rgba({_FOR if tone > 0 else _AGAINST},{0.4 * abs(tone):.2f})'" if tone else "fill='none'"
