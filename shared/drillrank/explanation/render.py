"""Explanations as text, HTML and SVG: one rendering, which rich exports. Nothing in them is read as markup."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import escape
from io import StringIO
from itertools import groupby, pairwise
from textwrap import wrap

from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.style import Style
from rich.terminal_theme import DEFAULT_TERMINAL_THEME
from rich.text import Text

from drillrank.explanation.terms import (
    GAINS,
    NOTHING,
    ODDS,
    PATH,
    Node,
    Term,
    on_one_line,
)

_WIDTH = 80
_STRONG = 6.0  # nats from which on a term is shown in the strongest colour
_DIGITS, _SMALL = 3, 0.1  # scores below are shown with 5 digits, as sums of reciprocal ranks are
_CELL, _NAME, _LINE = 24, 48, 160  # characters: in a line of a cell; of a name among others, and of one alone
_ALONE = 2  # siblings that were left, which have lines of their own
_DECISIVE = 4  # terms that are named where one entry is behind another
_FOR, _AGAINST = (46, 125, 50), (198, 40, 40)
_CAPTIONS = {GAINS: "Gain of each token, in nats", PATH: "Path, with log-priors", ODDS: "The model's answer"}
_OUTCOMES = {"evidence": ("●", 0.8), "read": ("○", 0.0), "opened": ("▾", 0.25), "left": ("·", 0.0)}  # marks and tones

# In pictures rich takes every character for one cell wide: fonts know better how wide those beyond ASCII are.
_NEEDLESS = re.compile(
    r"""<text [^<>]*>\s*</text>| clip-path="[^"]*"| textLength="[^"]*"(?=[^<>]{0,1000}>[^<]{0,1000}[^\x00-\x7f])"""
)
_FROM_THE_RIGHT = re.compile(r"[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]+")
_HTML = '<pre style="font:12px/1.35 ui-monospace,Menlo,Consolas,monospace;overflow-x:auto">{code}</pre>'
_SVG = """<svg xmlns="http://www.w3.org/2000/svg" role="img" width="996" height="{height}" \
viewBox="-10 -20 996 {height}"><title/><style>{styles} .{unique_id}-matrix {{ unicode-bidi: isolate; \
font: 20px ui-monospace,Menlo,Consolas,monospace; }}</style><rect x="-10" y="-20" width="996" height="100%" \
fill="#ffffff"/>{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></svg>
"""


def as_text(scores: Sequence[Term], tree: Sequence[Node] = ()) -> str:
    """Plain text, 80 characters wide."""
    return "\n".join(line.rstrip() for line in _recorded(scores, tree, shaded=False).export_text().splitlines())


def as_html(scores: Sequence[Term], tree: Sequence[Node] = ()) -> str:
    """One `<pre>` in the colours of the page around it; all text in it is escaped, and turns nothing around it."""
    page = _recorded(scores, tree, shaded=True).export_html(code_format=_HTML, inline_styles=True)
    return _FROM_THE_RIGHT.sub(r"<bdi>\g<0></bdi>", page)


def as_svg(scores: Sequence[Term], tree: Sequence[Node] = ()) -> str:
    """A picture, dark on white, with its text as description."""
    title, _, _ = (text := escape(as_text(scores, tree))).partition("\n")
    picture = _recorded(scores, tree, shaded=True).export_svg(code_format=_SVG, theme=DEFAULT_TERMINAL_THEME)
    return _NEEDLESS.sub("", picture).replace("<title/>", f"<title>{title}</title><desc>{text}</desc>", 1)


def _recorded(scores: Sequence[Term], tree: Sequence[Node], *, shaded: bool) -> Console:
    console = Console(file=StringIO(), width=_WIDTH, record=True, force_jupyter=False, legacy_windows=False)
    console.print(renderable(scores, tree, shaded=shaded))
    return console


def renderable(scores: Sequence[Term], tree: Sequence[Node], *, shaded: bool = False) -> Group:
    """What rich prints.

    Args:
        scores: With the terms that they consist of, best first.
        tree: What drilling down made of documents, sections and paragraphs.
        shaded: Whether values have coloured grounds, in place of colours that suit any terminal.
    """
    pairs = zip([None, *scores], scores, strict=False)
    shown = [part for before, score in pairs for part in _score(score, before, shaded)]
    if tree:
        heading = Text("What was opened, read and left", "bold")
        key = _dim("; ".join(f"{mark} {outcome}" for outcome, (mark, _) in _OUTCOMES.items()))
        shown += [*([Text()] if shown else []), heading, key, *_tree(tree, shaded)]
    return Group(*shown)


def _score(score: Term, before: Term | None, shaded: bool) -> Iterator[RenderableType]:
    digits = _DIGITS if abs(score.value) >= _SMALL else 5
    yield Text("\n" * (before is not None) + f"{on_one_line(score.name, _LINE)}: {score.value:.{digits}f}", "bold")
    terms = [term for term in score.terms if term.name != NOTHING and (term.value or len(term.terms) > 1)]
    for term in filter(lambda term: term.terms, terms):
        numbered = [
            f"{location}: {on_one_line(part.name, _NAME)}" for location, part in enumerate(term.terms[0].terms, 1)
        ]
        yield _dim("; ".join([_CAPTIONS.get(term.name, term.name), *filter(None, [term.text]), *numbered]))
        yield _cells(term.terms, digits, shaded, linked=term.name == PATH)
    if alone := [term for term in terms if not term.terms]:
        yield _cells(alone, digits, shaded)
    if len(score.terms) > 1 or score.per > 1:
        yield _dim(f"{_sum(score.terms, score.per, digits)} = {score.value:.{digits}f}")
    if before is not None and before.value != score.value:
        gap = before - score
        leaves = [leaf for term in gap.terms for leaf in ((term.name == GAINS and term.terms) or (term,))]
        most = _sum(sorted(leaves, key=lambda leaf: -abs(leaf.value))[:_DECISIVE], gap.per, digits)
        yield _dim(f"Behind the one above by {gap.value:.{digits}f}" + (f", mostly {most}" if leaves else ""))
    if score.text:
        yield _dim(score.text)


def _sum(terms: Sequence[Term], per: int, digits: int) -> str:
    added = ", ".join(f"{on_one_line(term.name, _NAME)} {term.value:+.{digits}f}" for term in terms if term.value)
    return f"({added}) / {per} tokens" if per > 1 else added


def _cells(terms: Sequence[Term], digits: int, shaded: bool, *, linked: bool = False) -> Columns:
    """Terms in reading order, each with what is known of it and its value; links stand between documents."""
    strongest = _STRONG if digits == _DIGITS else max(abs(term.value) for term in terms)
    cells = []
    for location, term in enumerate(terms):
        if linked and location:
            cells.append(Text(f"─ {on_one_line(term.text, _CELL)} →"))
        lines = wrap(on_one_line(term.name, _LINE), _CELL) + wrap("" if linked else on_one_line(term.text), _CELL)
        lines += [f"{term.value:+.{2 if digits == _DIGITS else digits}f}"] if term.value or not linked else []
        if term.terms and term.value > 0:  # what brings most of it
            shares = [part.value / term.value for part in term.terms]
            lines.append(f"{shares.index(max(shares)) + 1}: {max(shares):.0%}")
        cells.append(Text("\n".join(lines), _style(term.value / (strongest or 1.0), shaded), justify="center"))
    return Columns(cells, padding=(0, 1))


def _tree(nodes: Sequence[Node], shaded: bool) -> Iterator[RenderableType]:
    """What was opened, read and left. Many siblings that were left for one reason share a line."""
    holding = [*(node.kind != after.kind == "paragraph" for node, after in pairwise(nodes)), False]
    folded = [node.outcome in ("left", "read") and not holds for node, holds in zip(nodes, holding, strict=True)]
    runs = groupby(zip(nodes, folded, strict=True), lambda pair: (pair[0].outcome, pair[0].kind, pair[1]))
    for (outcome, kind, folds), run in runs:
        (mark, tone), alike = _OUTCOMES[outcome], [node for node, _ in run]
        shown = [node for node in alike if node.depth <= alike[0].depth][:_ALONE] if folds else alike
        if rest := len(alike) - len(shown):
            more = f"and {rest} more {kind}{'s' if rest > 1 else ''}"
            shown.append(replace(alike[0], name=more, why=outcome, score=None))
        for node in shown:
            score = "" if node.score is None else f" {node.score:.3f}"
            headline = (f"{mark} {on_one_line(node.name, _LINE)}{score}", _style(tone, shaded))
            yield Padding(Text.assemble(headline, (f" – {on_one_line(node.why)}", "dim")), (0, 0, 0, 2 * node.depth))


def _dim(text: str) -> Text:
    return Text(on_one_line(text), "dim")


def _style(tone: float, shaded: bool) -> Style:
    """Of something that speaks for an entry, from 1 on as much as anything does, or against it, below 0."""
    if not tone or not shaded:
        return Style(color=("green" if tone > 0 else "red") if tone else None, bold=abs(tone) > 0.3 or None)
    strength = 0.45 * min(abs(tone), 1.0)
    blended = (round(255 + strength * (color - 255)) for color in (_FOR if tone > 0 else _AGAINST))
    return Style(color="#1b1f24", bgcolor="#{:02x}{:02x}{:02x}".format(*blended))
