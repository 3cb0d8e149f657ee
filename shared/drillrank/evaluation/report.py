"""A comparison as one HTML file that needs nothing else: tables, plots, and the questions that differ most."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

from drillrank.evaluation.comparison import SHOWN, Comparison
from drillrank.evaluation.experiment import BM25, FIRST_STAGE, FUSION
from drillrank.evaluation.questions import Question
from drillrank.progress import OnProgress
from drillrank.text import without_surrogates
from drillrank.vectors import Floats

_PROBLEMS = 20  # that are shown
_EXCERPT = 160  # characters of a passage
_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 640, 320, 80, 272  # of a plot, and where its axes stand
_STYLE = """
:root { color-scheme: light dark; --fg: #1b1f24; --bg: #ffffff; --soft: #f3f5f8; --line: #c6ccd4; --mute: #505a66;
  --mark: #1f5fae; --up: #1d7a3a; --down: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --fg: #e8ebef; --bg: #14171b; --soft: #20252b; --line: #47505b;
  --mute: #aab4c0; --mark: #7fb2ff; --up: #69d08c; --down: #ff8a80; } }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--fg); background: var(--bg); margin: 0 auto; max-width: 1100px;
  padding: 1rem; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; } :is(.scroll, summary):focus-visible { outline: 3px solid var(--mark); }
table { border-collapse: collapse; width: 100%; overflow-wrap: normal; } caption { text-align: left; }
th, td { padding: .35rem .6rem; border-bottom: 1px solid var(--line); text-align: right; }
th:first-child, .sides :last-child { text-align: left; } thead th { background: var(--soft); }
.partial { border-left: 4px solid var(--down); background: var(--soft); padding: .5rem 1rem; }
.note, caption { color: var(--mute); } details { border-bottom: 1px solid var(--line); padding: .4rem 0; }
svg { width: 100%; max-width: 640px; background: var(--soft); } svg text { font: 13px sans-serif; fill: var(--fg); }
.axis { fill: none; stroke: var(--line); } .mark { fill: var(--mark); } .up { fill: var(--up); }
.down { fill: var(--down); } figure { margin: 1rem 0; }
.sides { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: 1rem; }
.sides > div { min-width: 0; }
"""


def html_report(found: Comparison, on_progress: OnProgress | None = None) -> str:
    """The whole page.

    Args:
        found: What `compare` returned; its components are asked again for explanations of the questions that are
            listed, outside of all times that are told.
        on_progress: Callback, called as `(done, total)` after every explanation.
    """
    title = f"{len(found.questions):,} questions, {len(found.components)} components"
    parts = [
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Comparison: {title}</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{_STYLE}</style></head><body><main><h1>Does it help? {title}</h1>",
    ]
    if not found.complete:
        more = len(found.problems) - _PROBLEMS
        problems = [*found.problems[:_PROBLEMS], *([f"and {more:,} more"] if more > 0 else [])]
        parts.append(f'<div class="partial" role="note"><b>This comparison is partial.</b>{_list(problems)}</div>')
    parts.append(_list(found.advice))
    parts += [f"<h2>{escape(of)}</h2>{_table(of, names, rows)}" for of, (names, rows) in found.tables().items()]
    parts.append(f"<h2>Plots</h2>{_latency(found)}")
    for name in [name for name in found.components if name not in (FIRST_STAGE, BM25, FUSION)]:
        change = found.values[name][found.primary] - found.values[FIRST_STAGE][found.primary]
        parts.append(_differences(np.sort(change[np.isfinite(change)]), f"{name} minus {FIRST_STAGE}, {found.primary}"))
    parts += [*_questions(found, on_progress), "</main></body></html>"]
    return without_surrogates("\n".join(parts))  # which no file takes


def _list(lines: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"


def _table(caption: str, names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in cells)}</tr>'
        for name, *cells in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table>'
        f"<caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


# Plots: their colours are the page's, their numbers stand in a description, too


def _latency(found: Comparison) -> str:
    """Components by median milliseconds (logarithmic) and quality, by their numbers."""
    points = {name: (max(1000 * found.costs[name].p50, 1e-3), found.mean(name)) for name in found.components}
    points = {name: point for name, point in points.items() if math.isfinite(point[1])}
    if not points:
        return ""
    logs = [math.log10(ms) for ms, _ in points.values()]
    low, high = math.floor(min(logs)), math.floor(max(logs)) + 1
    parts = [
        _tick(_LEFT + _x((power - low) / (high - low)), _BOTTOM + 17, f"{10.0**power:g}")
        for power in range(low, high + 1)
    ]
    parts += [_tick(_LEFT - 20, _y(share) + 4, f"{share:.1f}") for share in (0.0, 0.5, 1.0)]
    for number, (log, (_, quality)) in enumerate(zip(logs, points.values(), strict=True), start=1):
        x = _LEFT + _x((log - low) / (high - low))
        parts.append(f'<circle class="mark" cx="{x:.1f}" cy="{_y(quality):.1f}" r="5"/>')
        parts.append(_tick(x + 12, _y(quality) - 6, str(number)))
    captions = (
        f"{at} {name}: {ms:.3g} ms, {mean:.3f}" for at, (name, (ms, mean)) in enumerate(points.items(), start=1)
    )
    return _svg(parts, f"{found.primary} against median milliseconds of a question", "; ".join(captions))


def _differences(ordered: Floats, title: str) -> str:
    """The differences of all questions, sorted: below the line the first one is better, above it the second."""
    if not len(ordered):
        return ""
    largest, wide, zero = float(np.abs(ordered).max()) or 1.0, _x(1) / len(ordered), _y(0.5)
    parts = [_tick(_LEFT - 30, _y(share) + 4, f"{largest * (2 * share - 1):+.2f}") for share in (0.0, 0.5, 1.0)]
    for location, value in enumerate(ordered.tolist()):
        y = _y(0.5 + value / largest / 2)
        parts.append(
            f'<rect class="{"up" if value > 0 else "down"}" x="{_LEFT + location * wide:.2f}" y="{min(y, zero):.1f}" '
            f'width="{max(wide, 0.6):.2f}" height="{abs(y - zero):.1f}"/>'
        )
    better, worse = int((ordered > 0).sum()), int((ordered < 0).sum())
    return _svg(parts, title, f"{better} questions better, {worse} worse, {len(ordered) - better - worse} equal")


def _x(share: float) -> float:
    return share * (_WIDTH - _LEFT - 24)


def _y(share: float) -> float:
    return _BOTTOM - share * (_BOTTOM - 18)


def _tick(x: float, y: float, label: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{escape(label)}</text>'


def _svg(parts: Sequence[str], title: str, described: str) -> str:
    return (
        f'<figure><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(title)}. {escape(described)}">'
        f'<path class="axis" d="M{_LEFT} 18V{_BOTTOM}H{_WIDTH - 12}"/>{"".join(parts)}</svg>'
        f"<figcaption>{escape(title)}. {escape(described)}</figcaption></figure>"
    )


# The questions that two components answer most differently: what each found, and why


def _questions(found: Comparison, on_progress: OnProgress | None) -> list[str]:
    """Of every pair, side by side; explanations are asked for of these questions, and of no others."""
    shown = [pair for pair in found.pairs if pair.measure == found.primary and pair.before not in (BM25, FUSION)]
    listed = {(pair.before, pair.after): found.extremes(pair.before, pair.after) for pair in shown}
    wanted = dict.fromkeys(
        (question.id, name) for pair, some in listed.items() for question in (*some[0], *some[1]) for name in pair
    )
    questions = {question.id: question for question in found.questions}
    why: dict[tuple[str, str], str] = {}
    for done, (id_, name) in enumerate(wanted, start=1):
        why[id_, name] = _why(found, questions[id_], name)
        if on_progress is not None:
            on_progress(done, len(wanted))
    parts = ["<h2>Questions that differ most</h2>"] if wanted else []
    for pair, some in listed.items():
        parts += [f"<h3>{escape(pair[0])} → {escape(pair[1])}</h3>"] if any(some) else []
        for heading, those in zip(("Worse", "Better"), some, strict=True):
            parts += [f"<h4>{heading}</h4>"] if those else []
            parts += [_question(found, pair, question, why) for question in those]
    return parts


def _question(found: Comparison, pair: tuple[str, str], question: Question, why: Mapping[tuple[str, str], str]) -> str:
    location = found.questions.index(question)
    before, after = (found.values[name][found.primary][location] for name in pair)
    sides = ""
    for name in pair:
        record, ranks, rows = found.results[name][question.id], found.ranks[name][question.id], []
        passages = record.passages(found.passages[question.id])[:SHOWN]
        for rank, (passage, score) in enumerate(zip(passages, record.scores, strict=False), start=1):
            text = f"{'✓ evidence ' if rank in ranks else ''}{passage.titled_text}"
            text = text if len(text) <= _EXCERPT else f"{text[: _EXCERPT - 1]}…"
            rows.append([str(rank), "–" if score is None else f"{score:#.4g}", text])
        rows += [["answer", "", record.answer or "none"]] if record.answer is not None else []
        table = _table(f"First {SHOWN} of {name}", ["rank", "score", "passage"], rows)
        sides += f"<div>{table}{why[question.id, name]}</div>"
    summary = f"{escape(question.text)} ({found.primary} {before:.2f} → {after:.2f})"
    return f'<details><summary>{summary}</summary><div class="sides">{sides}</div></details>'


def _why(found: Comparison, question: Question, name: str) -> str:
    """What explains these results, or a sentence that says why nothing does."""
    why, note, failed = found.explained(name, question)
    if why is None:
        return f'<p class="{"partial" if failed else "note"}">{escape(note)}</p>'
    return f"<details><summary>Why: {escape(name)}</summary>{why._repr_html_()}</details>"
