"""Explanations as text, HTML and SVG, exported from one rendering with rich. No text in them is read as markup."""

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
_STRONGEST_NATS = 6.0  # terms with at least this absolute value have the strongest color
_DIGITS, _SMALL_DIGITS = 3, 5
_SMALL_SCORE = 0.1  # smaller scores, such as sums of reciprocal ranks, have more digits
_CELL, _NAME, _LINE = (
    24,
    48,
    160,
)  # maximum characters in a line of a cell, a name in a list, and a name on its own line
_N_SEPARATE_SIBLINGS = 2  # nodes with the same outcome that have lines of their own
_N_DECISIVE_TERMS = 4  # terms that explain the gap to the entry above
_FOR, _AGAINST = (46, 125, 50), (198, 40, 40)
_CAPTIONS = {GAINS: "Gain of each token, in nats", PATH: "Path, with log-priors", ODDS: "The model's answer"}
_OUTCOMES = {"evidence": ("●", 0.8), "read": ("○", 0.0), "opened": ("▾", 0.25), "left": ("·", 0.0)}  # marks and tones

# Rich assumes that every character is one cell wide. Fonts know the width of characters beyond ASCII better.
_UNNEEDED_SVG = re.compile(
    r"""<text [^<>]*>\s*</text>| clip-path="[^"]*"| textLength="[^"]*"(?=[^<>]{0,1000}>[^<]{0,1000}[^\x00-\x7f])"""
)
_RIGHT_TO_LEFT = re.compile(r"[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]+")
_HTML = '<pre style="font:12px/1.35 ui-monospace,Menlo,Consolas,monospace;overflow-x:auto">{code}</pre>'
_SVG = """<svg xmlns="http://www.w3.org/2000/svg" role="img" width="996" height="{height}" \
viewBox="-10 -20 996 {height}"><title/><style>{styles} .{unique_id}-matrix {{ unicode-bidi: isolate; \
font: 20px ui-monospace,Menlo,Consolas,monospace; }}</style><rect x="-10" y="-20" width="996" height="100%" \
fill="#ffffff"/>{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></svg>
"""


def as_text(scores: Sequence[Term], tree: Sequence[Node] = ()) -> str:
    """Render scores and a tree as plain text, 80 characters wide."""
    return "\n".join(line.rstrip() for line in _recorded(scores, tree, shaded=False).export_text().splitlines())


def as_html(scores: Sequence[Term], tree: Sequence[Node] = ()) -> str:
    """Render scores and a tree as one `<pre>` with escaped text. It keeps the writing direction of its page."""
    page = _recorded(scores, tree, shaded=True).export_html(code_format=_HTML, inline_styles=True)
    return _RIGHT_TO_LEFT.sub(r"<bdi>\g<0></bdi>", page)


def as_svg(scores: Sequence[Term], tree: Sequence[Node] = ()) -> str:
    """Render scores and a tree as an SVG picture, dark on white, with a description as text."""
    title, _, _ = (text := escape(as_text(scores, tree))).partition("\n")
    picture = _recorded(scores, tree, shaded=True).export_svg(code_format=_SVG, theme=DEFAULT_TERMINAL_THEME)
    return _UNNEEDED_SVG.sub("", picture).replace("<title/>", f"<title>{title}</title><desc>{text}</desc>", 1)


def _recorded(scores: Sequence[Term], tree: Sequence[Node], *, shaded: bool) -> Console:
    console = Console(file=StringIO(), width=_WIDTH, record=True, force_jupyter=False, legacy_windows=False)
    console.print(renderable(scores, tree, shaded=shaded))
    return console


def renderable(scores: Sequence[Term], tree: Sequence[Node], *, shaded: bool = False) -> Group:
    """Return scores and a tree as objects that rich prints.

    Args:
        scores: Scores with their terms, best first.
        tree: Documents, sections and paragraphs of a drill-down, in pre-order.
        shaded: Whether values have colored backgrounds. Otherwise the text has colors that suit any terminal.
    """
    pairs = zip([None, *scores], scores, strict=False)
    parts = [part for previous, score in pairs for part in _score(score, previous, shaded)]
    if tree:
        heading = Text("What was opened, read and left", "bold")
        key = _dim("; ".join(f"{mark} {outcome}" for outcome, (mark, _) in _OUTCOMES.items()))
        parts += [*([Text()] if parts else []), heading, key, *_tree(tree, shaded)]
    return Group(*parts)


def _score(score: Term, previous: Term | None, shaded: bool) -> Iterator[RenderableType]:
    """Return the lines of a score: name, terms, sum, and the gap to the previous score of the ranking."""
    digits = _DIGITS if abs(score.value) >= _SMALL_SCORE else _SMALL_DIGITS
    yield Text("\n" * (previous is not None) + f"{on_one_line(score.name, _LINE)}: {score.value:.{digits}f}", "bold")
    terms = [term for term in score.terms if term.name != NOTHING and (term.value or len(term.terms) > 1)]
    for term in filter(lambda term: term.terms, terms):
        sources = [f"{number}: {on_one_line(part.name, _NAME)}" for number, part in enumerate(term.terms[0].terms, 1)]
        yield _dim("; ".join([_CAPTIONS.get(term.name, term.name), *filter(None, [term.text]), *sources]))
        yield _cells(term.terms, digits, shaded, linked=term.name == PATH)
    if simple_terms := [term for term in terms if not term.terms]:
        yield _cells(simple_terms, digits, shaded)
    if len(score.terms) > 1 or score.per > 1:
        yield _dim(f"{_sum(score.terms, score.per, digits)} = {score.value:.{digits}f}")
    if previous is not None and previous.value != score.value:
        gap = previous - score
        leaves = [leaf for term in gap.terms for leaf in ((term.name == GAINS and term.terms) or (term,))]
        decisive_terms = sorted(leaves, key=lambda leaf: -abs(leaf.value))[:_N_DECISIVE_TERMS]
        reason = f", mostly {_sum(decisive_terms, gap.per, digits)}" if leaves else ""
        yield _dim(f"Behind the one above by {gap.value:.{digits}f}{reason}")
    if score.text:
        yield _dim(score.text)


def _sum(terms: Sequence[Term], per: int, digits: int) -> str:
    added = ", ".join(f"{on_one_line(term.name, _NAME)} {term.value:+.{digits}f}" for term in terms if term.value)
    return f"({added}) / {per} tokens" if per > 1 else added


def _cells(terms: Sequence[Term], digits: int, shaded: bool, *, linked: bool = False) -> Columns:
    """Return terms in reading order, each with its text and value.

    Args:
        terms: The terms.
        digits: Number of decimal digits of the score.
        shaded: Whether values have colored backgrounds.
        linked: Whether the terms are documents of a path, with links between them.
    """
    strongest = _STRONGEST_NATS if digits == _DIGITS else max(abs(term.value) for term in terms)
    cells = []
    for index, term in enumerate(terms):
        if linked and index:
            cells.append(Text(f"─ {on_one_line(term.text, _CELL)} →"))
        lines = wrap(on_one_line(term.name, _LINE), _CELL) + wrap("" if linked else on_one_line(term.text), _CELL)
        lines += [f"{term.value:+.{2 if digits == _DIGITS else digits}f}"] if term.value or not linked else []
        if term.terms and term.value > 0:  # name the largest share
            shares = [part.value / term.value for part in term.terms]
            lines.append(f"{shares.index(max(shares)) + 1}: {max(shares):.0%}")
        cells.append(Text("\n".join(lines), _style(term.value / (strongest or 1.0), shaded), justify="center"))
    return Columns(cells, padding=(0, 1))


def _tree(nodes: Sequence[Node], shaded: bool) -> Iterator[RenderableType]:
    for node in _fold_siblings(nodes):
        mark, tone = _OUTCOMES[node.outcome]
        score = "" if node.score is None else f" {node.score:.3f}"
        headline = (f"{mark} {on_one_line(node.name, _LINE)}{score}", _style(tone, shaded))
        yield Padding(Text.assemble(headline, (f" – {on_one_line(node.why)}", "dim")), (0, 0, 0, 2 * node.depth))


def _fold_siblings(nodes: Sequence[Node]) -> Iterator[Node]:
    """Replace all but the first nodes of each run by one node that counts them, such as "and 5 more paragraphs".

    A run has nodes of one kind that were all left, or all read only. Sections above paragraphs are not in a run.
    """
    has_paragraphs = [*(node.kind != after.kind == "paragraph" for node, after in pairwise(nodes)), False]
    may_fold = [node.outcome in ("left", "read") and not has for node, has in zip(nodes, has_paragraphs, strict=True)]
    runs = groupby(zip(nodes, may_fold, strict=True), lambda pair: (pair[0].outcome, pair[0].kind, pair[1]))
    for (outcome, kind, folds), pairs in runs:
        run = [node for node, _ in pairs]
        if not folds:
            yield from run
            continue
        separate_nodes = [node for node in run if node.depth <= run[0].depth][:_N_SEPARATE_SIBLINGS]
        yield from separate_nodes
        if n_folded := len(run) - len(separate_nodes):
            name = f"and {n_folded} more {kind}{'s' if n_folded > 1 else ''}"
            yield replace(run[0], name=name, why=outcome, score=None)


def _dim(text: str) -> Text:
    return Text(on_one_line(text), "dim")


def _style(tone: float, shaded: bool) -> Style:
    """Return the style of a term by its tone, from -1 (strongly against an entry) to 1 (strongly for it)."""
    if not tone or not shaded:
        return Style(color=("green" if tone > 0 else "red") if tone else None, bold=abs(tone) > 0.3 or None)
    strength = 0.45 * min(abs(tone), 1.0)
    blended = (round(255 + strength * (color - 255)) for color in (_FOR if tone > 0 else _AGAINST))
    return Style(color="#1b1f24", bgcolor="#{:02x}{:02x}{:02x}".format(*blended))
