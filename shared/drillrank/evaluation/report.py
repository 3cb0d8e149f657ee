"""Report of a comparison as one self-contained HTML file: tables, plots, and the questions that differ most."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

from drillrank.evaluation.comparison import N_SHOWN, Comparison
from drillrank.evaluation.experiment import BM25, FIRST_STAGE, FUSION
from drillrank.evaluation.questions import Question
from drillrank.progress import OnProgress
from drillrank.text import without_surrogates
from drillrank.vectors import Floats

_MAX_PROBLEMS = 20
_MAX_EXCERPT = 160  # characters of a passage
_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 640, 320, 80, 272  # of a plot and its axes, in pixels
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


def html_report(comparison: Comparison, on_progress: OnProgress | None = None) -> str:
    """Return the page.

    Args:
        comparison: Result of `compare`. Its components are asked again for explanations of the listed questions. The
            reported times do not include this.
        on_progress: Callback, called as `(done, total)` after every explanation.
    """
    title = f"{len(comparison.questions):,} questions, {len(comparison.components)} components"
    parts = [
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Comparison: {title}</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{_STYLE}</style></head><body><main><h1>Does it help? {title}</h1>",
    ]
    if not comparison.complete:
        more = len(comparison.problems) - _MAX_PROBLEMS
        problems = [*comparison.problems[:_MAX_PROBLEMS], *([f"and {more:,} more"] if more > 0 else [])]
        parts.append(f'<div class="partial" role="note"><b>This comparison is partial.</b>{_list(problems)}</div>')
    parts.append(_list(comparison.advice))
    parts += [
        f"<h2>{escape(title)}</h2>{_table(title, names, rows)}" for title, (names, rows) in comparison.tables().items()
    ]
    parts.append(f"<h2>Plots</h2>{_latency(comparison)}")
    for name in [name for name in comparison.components if name not in (FIRST_STAGE, BM25, FUSION)]:
        change = comparison.values[name][comparison.primary] - comparison.values[FIRST_STAGE][comparison.primary]
        parts.append(
            _differences(np.sort(change[np.isfinite(change)]), f"{name} minus {FIRST_STAGE}, {comparison.primary}")
        )
    parts += [*_questions(comparison, on_progress), "</main></body></html>"]
    return without_surrogates("\n".join(parts))  # no file can contain them


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


# Plots have the page's colors. Their descriptions contain the numbers, too.


def _latency(comparison: Comparison) -> str:
    """Plot the quality of each component against its median milliseconds (logarithmic). Numbers name the components."""
    points = {
        name: (max(1000 * comparison.costs[name].p50, 1e-3), comparison.mean(name)) for name in comparison.components
    }
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
        f"{number} {name}: {ms:.3g} ms, {mean:.3f}" for number, (name, (ms, mean)) in enumerate(points.items(), start=1)
    )
    return _svg(parts, f"{comparison.primary} against median milliseconds of a question", "; ".join(captions))


def _differences(ordered: Floats, title: str) -> str:
    """Plot the sorted differences of all questions: the first component is better below the line, the second above."""
    if not len(ordered):
        return ""
    largest, wide, zero = float(np.abs(ordered).max()) or 1.0, _x(1) / len(ordered), _y(0.5)
    parts = [_tick(_LEFT - 30, _y(share) + 4, f"{largest * (2 * share - 1):+.2f}") for share in (0.0, 0.5, 1.0)]
    for index, value in enumerate(ordered.tolist()):
        y = _y(0.5 + value / largest / 2)
        parts.append(
            f'<rect class="{"up" if value > 0 else "down"}" x="{_LEFT + index * wide:.2f}" y="{min(y, zero):.1f}" '
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


# The questions that two components answer most differently


def _questions(comparison: Comparison, on_progress: OnProgress | None) -> list[str]:
    """Show the results of each pair side by side, with explanations of these questions only."""
    pairs = [
        pair for pair in comparison.pairs if pair.measure == comparison.primary and pair.before not in (BM25, FUSION)
    ]
    questions_by_pair = {(pair.before, pair.after): comparison.extremes(pair.before, pair.after) for pair in pairs}
    to_explain = dict.fromkeys(
        (question.id, name)
        for pair, (worse, better) in questions_by_pair.items()
        for question in (*worse, *better)
        for name in pair
    )
    questions = {question.id: question for question in comparison.questions}
    why: dict[tuple[str, str], str] = {}
    for n_done, (id_, name) in enumerate(to_explain, start=1):
        why[id_, name] = _why(comparison, questions[id_], name)
        if on_progress is not None:
            on_progress(n_done, len(to_explain))
    parts = ["<h2>Questions that differ most</h2>"] if to_explain else []
    for pair, worse_and_better in questions_by_pair.items():
        parts += [f"<h3>{escape(pair[0])} → {escape(pair[1])}</h3>"] if any(worse_and_better) else []
        for heading, listed in zip(("Worse", "Better"), worse_and_better, strict=True):
            parts += [f"<h4>{heading}</h4>"] if listed else []
            parts += [_question(comparison, pair, question, why) for question in listed]
    return parts


def _question(
    comparison: Comparison, pair: tuple[str, str], question: Question, why: Mapping[tuple[str, str], str]
) -> str:
    index = comparison.questions.index(question)
    before, after = (comparison.values[name][comparison.primary][index] for name in pair)
    sides = ""
    for name in pair:
        result, ranks, rows = comparison.results[name][question.id], comparison.ranks[name][question.id], []
        passages = result.passages(comparison.passages[question.id])[:N_SHOWN]
        for rank, (passage, score) in enumerate(zip(passages, result.scores, strict=False), start=1):
            text = f"{'✓ evidence ' if rank in ranks else ''}{passage.titled_text}"
            text = text if len(text) <= _MAX_EXCERPT else f"{text[: _MAX_EXCERPT - 1]}…"
            rows.append([str(rank), "–" if score is None else f"{score:#.4g}", text])
        rows += [["answer", "", result.answer or "none"]] if result.answer is not None else []
        table = _table(f"First {N_SHOWN} of {name}", ["rank", "score", "passage"], rows)
        sides += f"<div>{table}{why[question.id, name]}</div>"
    summary = f"{escape(question.text)} ({comparison.primary} {before:.2f} → {after:.2f})"
    return f'<details><summary>{summary}</summary><div class="sides">{sides}</div></details>'


def _why(comparison: Comparison, question: Question, name: str) -> str:
    """Return the explanations of a component's results, or the reason why there are none."""
    why, note, is_failure = comparison.explained(name, question)
    if why is None:
        return f'<p class="{"partial" if is_failure else "note"}">{escape(note)}</p>'
    return f"<details><summary>Why: {escape(name)}</summary>{why._repr_html_()}</details>"
