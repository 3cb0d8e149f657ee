"""What an explanation shows, whatever shows it: headings, notes, rows of cells that wrap, and a tree."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from drillrank.explanation.summands import Answer, Fate, Part, PathStep, TokenContribution, TreeNode, ViewRank
from drillrank.explanation.text import on_one_line

_STRONG = 6.0  # nats from which on a contribution is shown in the strongest colour
_NAME, _LINE = 48, 160  # characters of a name that are shown in a cell, and on a line of its own
_ALONE = 3  # siblings that were left, of which each has its own line

MARKS: dict[Fate, str] = {"opened": "▾", "evidence": "●", "read": "○", "left": "·"}


@dataclass(frozen=True, slots=True)
class Heading:
    """Above what belongs to one entry."""

    text: str


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence."""

    text: str


@dataclass(frozen=True, slots=True)
class Cell:
    """Some lines, one below the other.

    Attributes:
        lines: The first is the main one.
        tone: From -1, speaks against, to 1, speaks for.
        framed: Whether it is a thing, such as a document, or stands between two.
    """

    lines: tuple[str, ...]
    tone: float = 0.0
    framed: bool = True


@dataclass(frozen=True, slots=True)
class Flow:
    """Cells in reading order; they wrap."""

    caption: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Branch:
    """A line of a tree."""

    depth: int
    mark: str
    text: str
    why: str
    tone: float = 0.0


@dataclass(frozen=True, slots=True)
class Tree:
    """Lines of a tree, in pre-order."""

    caption: str
    branches: tuple[Branch, ...]


Figure = Heading | Note | Flow | Tree


def path_figure(steps: Sequence[PathStep]) -> Flow:
    """A path: its documents, and between them how it came from one to the next, with the log-prior."""
    cells = [Cell((_name(steps[0].document), *_prior(steps[0])))]
    for step in steps[1:]:
        cells += [Cell((f"─ {step.by} →", *_prior(step)), framed=False), Cell((_name(step.document),))]
    return Flow("Path", tuple(cells))


def _prior(step: PathStep) -> tuple[str, ...]:
    return (f"log-prior {step.log_prior:+.2f}",) if step.log_prior else ()


def token_figure(tokens: Sequence[TokenContribution], documents: Sequence[str]) -> Flow:
    """The question, each token with its gain and, where there are several, the document that brings most of it."""
    cells = []
    for token in tokens:
        lines = [token.token, f"{token.gain:+.2f}"]
        if len(documents) > 1 and token.shares and token.gain > 0:
            most = max(range(len(token.shares)), key=token.shares.__getitem__)
            lines.append(f"{most + 1}: {token.shares[most]:.0%}")
        cells.append(Cell(tuple(lines), _tone(token.gain)))
    where = "".join(f"; {number}: {_name(name)}" for number, name in enumerate(documents, 1))
    return Flow(f"Gain of each token, in nats{where if len(documents) > 1 else ''}", tuple(cells))


def part_figure(parts: Sequence[Part]) -> Flow:
    """The other summands."""
    return Flow(
        "Beside the tokens", tuple(Cell((part.name, f"{part.value:+.3f}"), _tone(part.value)) for part in parts)
    )


def answer_figure(answers: Sequence[Answer]) -> Flow:
    """The answers with their probabilities, and the margin between two."""
    cells = []
    for answer, tone in zip(answers, (0.5, -0.5), strict=False):
        value = f"logit {answer.log_prob:+.3f}" if answer.is_logit else f"P = {math.exp(answer.log_prob):.4g}"
        cells.append(
            Cell((f"“{on_one_line(answer.text, _NAME)}”", ("at most " if answer.at_most else "") + value), tone)
        )
    if len(answers) == 2:
        margin = answers[0].log_prob - answers[1].log_prob
        cells.append(Cell(("margin", f"{margin:+.3f} nats"), _tone(margin)))
    return Flow("Is it relevant? The model's answer", tuple(cells))


def view_figure(views: Sequence[ViewRank]) -> Flow:
    """The views that rank a section."""
    cells = tuple(
        Cell(
            (one.view, f"rank {one.rank}", f"weight {one.weight:g}", f"+{one.value:.5f}"),
            1 / one.rank if one.value else 0,
        )
        for one in views
    )
    return Flow("Views that found it", cells)


def tree_figure(nodes: Sequence[TreeNode]) -> Tree:
    """What was opened, read and left. Many siblings that were left for one reason share a line."""
    return Tree("● evidence  ○ read  ▾ opened  · left", tuple(_branches(nodes)))


def _branches(nodes: Sequence[TreeNode]) -> Iterator[Branch]:
    def alone_or_alike(pair: tuple[TreeNode, TreeNode | None]) -> tuple[Fate, str, object]:
        node, after = pair
        holds_paragraphs = node.kind != "paragraph" and after is not None and after.kind == "paragraph"
        return node.fate, node.kind, pair if node.fate == "opened" or holds_paragraphs else None

    for (fate, kind, _), run in groupby(zip(nodes, [*nodes[1:], None], strict=True), alone_or_alike):
        alike = [node for node, _ in run]
        shown = [node for at, node in enumerate(alike) if node.depth <= min(one.depth for one in alike[: at + 1])]
        if fate in ("left", "read") and len(shown) > _ALONE:
            shown = shown[: _ALONE - 1]
        for node in shown:
            score = "" if node.score is None else f" {node.score:.3f}"
            tone = {"evidence": 0.8, "opened": 0.25}.get(fate, 0.0)
            yield Branch(node.depth, MARKS[fate], f"{on_one_line(node.name, _LINE)}{score}", node.why, tone)
        if rest := len(alike) - len(shown):
            yield Branch(shown[0].depth, MARKS[fate], f"and {rest} more {kind}{'s' if rest > 1 else ''}", fate)


def _name(name: str) -> str:
    return on_one_line(name, _NAME)


def _tone(value: float) -> float:
    return max(-1.0, min(1.0, value / _STRONG))
