"""A comparison as one HTML file that needs nothing else: tables, plots, and the questions that differ most."""

from __future__ import annotations

from html import escape

import numpy as np

from drillrank.evaluation.comparison_result import Comparison
from drillrank.evaluation.plots import differences, histogram, quality_against_latency
from drillrank.evaluation.report_questions import questions_that_differ
from drillrank.evaluation.report_tables import SORTING, table
from drillrank.evaluation.running import BM25, FIRST_STAGE, FUSION, OnProgress
from drillrank.evaluation.statistics import Pair
from drillrank.text import without_surrogates

_PROBLEMS = 20  # that are shown
_STYLE = """
:root { color-scheme: light dark; --fg: #1b1f24; --bg: #ffffff; --soft: #f3f5f8; --line: #c6ccd4; --mute: #505a66;
  --mark: #1f5fae; --up: #1d7a3a; --down: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --fg: #e8ebef; --bg: #14171b; --soft: #20252b; --line: #47505b;
  --mute: #aab4c0; --mark: #7fb2ff; --up: #69d08c; --down: #ff8a80; } }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--fg); background: var(--bg); margin: 0 auto; max-width: 1100px;
  padding: 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.25rem; margin-top: 2.2rem; } h3 { font-size: 1.05rem; }
.scroll { overflow-x: auto; } :is(.scroll, summary, button):focus-visible { outline: 3px solid var(--mark); }
table { border-collapse: collapse; width: 100%; overflow-wrap: normal; }
caption { text-align: left; color: var(--mute); padding-bottom: .4rem; }
th, td { padding: .35rem .6rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:first-child, .text { text-align: left; }
tbody th { white-space: normal; min-width: 7rem; overflow-wrap: anywhere; } thead th { background: var(--soft); }
th button { font: inherit; color: inherit; background: none; border: 0; padding: 0; cursor: pointer; }
th button::after { content: " ↕"; color: var(--mute); } th[aria-sort=ascending] button::after { content: " ▲"; }
th[aria-sort=descending] button::after { content: " ▼"; }
.better { color: var(--up); font-weight: 600; } .worse { color: var(--down); font-weight: 600; }
.partial { border-left: 4px solid var(--down); background: var(--soft); padding: .5rem 1rem; }
svg { width: 100%; height: auto; max-width: 640px; background: var(--soft); border-radius: 6px; }
svg text { font: 13px system-ui, sans-serif; fill: var(--fg); } svg .tick { fill: var(--mute); }
svg .axis { fill: none; stroke: var(--line); } .mark { fill: var(--mark); } .up { fill: var(--up); }
.down { fill: var(--down); }
@media (max-width: 520px) { svg text { font-size: 19px; } }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: 1rem; }
details { border-bottom: 1px solid var(--line); padding: .4rem 0; } summary { cursor: pointer; }
.sides { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: .6rem 1.4rem; }
.sides > div { min-width: 0; } .sides :is(th, td) { vertical-align: top; }
.sides :is(th, td):last-child { white-space: normal; text-align: left; width: 100%; min-width: 11rem;
  overflow-wrap: anywhere; }
.note { color: var(--mute); } .why { border: 1px solid var(--line); border-radius: 6px; padding: .3rem .7rem;
  margin-top: .6rem; }
"""


def html_report(found: Comparison, on_progress: OnProgress | None = None) -> str:
    """The whole page.

    Args:
        found: What `compare` returned; as long as its components are there, they are asked again for explanations of
            the questions that are listed, outside of all times that are told.
        on_progress: Callback, called as `(done, total)` after every explanation.
    """
    title = f"{len(found.questions):,} questions, {len(found.components)} components"
    parts = [
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Comparison: {title}</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{_STYLE}</style></head><body><main><h1>Does it help? {title}</h1>",
    ]
    if not found.complete:
        told = "".join(f"<li>{escape(problem)}</li>" for problem in found.problems[:_PROBLEMS])
        if (more := len(found.problems) - _PROBLEMS) > 0:
            told += f"<li>and {more:,} more</li>"
        parts.append(f'<div class="partial" role="note"><b>This comparison is partial.</b><ul>{told}</ul></div>')
    parts.append("<ul>" + "".join(f"<li>{escape(line)}</li>" for line in found.advice) + "</ul>")
    parts += [_means(found), _pairs(found), _oracle_recall(found), _costs(found), _plots(found)]
    parts.append(questions_that_differ(found, on_progress))
    parts.append(f"</main><script>{SORTING}</script></body></html>")
    return without_surrogates("\n".join(parts))  # which no file takes


def _means(found: Comparison) -> str:
    rows = [[escape(name), *(f"{found.mean(name, m):.3f}" for m in found.measures)] for name in found.components]
    for row, failed, unjudged in zip(rows, found.failed.values(), found.unjudged.values(), strict=True):
        row += [f"{failed:,}", f"{unjudged:,}"]
    caption = "Mean over the questions, failed ones count 0; results that no gold id can judge"
    return "<h2>Quality</h2>" + table(caption, ["component", *found.measures, "failed", "unjudged"], rows)


def _pairs(found: Comparison) -> str:
    rows = [_pair_cells(pair) for pair in found.pairs if pair.measure == found.primary]
    names = ["pair", "difference", "95 % interval", "p, corrected", "verdict", "questions", "would tell"]
    caption = f"{found.primary}: the second minus the first, question by question"
    return "<h2>Differences</h2>" + table(caption, names, rows)


def _pair_cells(pair: Pair) -> list[str]:
    mean, low, high, _, n = pair.difference
    said = f'<span class="{pair.verdict.replace(" ", "-")}">{pair.verdict}</span>'
    needed = f"{pair.needed:,}" if pair.needed and pair.verdict == "cannot tell" else "–"
    names = f"{escape(pair.before)} → {escape(pair.after)}"
    return [names, f"{mean:+.3f}", f"{low:+.3f} to {high:+.3f}", f"{pair.adjusted_p:.4f}", said, f"{n:,}", needed]


def _oracle_recall(found: Comparison) -> str:
    rows = [[escape(name), *(f"{share:.1%}" for share in recall)] for name, recall in found.oracle_recall.items()]
    names = ["component", "some evidence was there", "all evidence was there", "there, but not first"]
    return "<h2>Where evidence is lost</h2>" + table("Share of the questions", names, rows)


def _costs(found: Comparison) -> str:
    rows = []
    for name, cost in found.costs.items():
        told = [cost.prompt_tokens, cost.completion_tokens, cost.calls]
        rows.append(
            [
                escape(name),
                f"{1000 * cost.p50:.2f}",
                f"{1000 * cost.p95:.2f}",
                f"{cost.per_second:,.1f}",
                f"{cost.preparing:.2f}",
                *("–" if number is None else f"{number:,}" for number in told),
                "–" if cost.money is None else f"{cost.money:.4f}",
            ]
        )
    names = ["component", "p50 ms", "p95 ms", "questions/s", "indexing s", "tokens in", "tokens out", "calls", "money"]
    return "<h2>Costs</h2>" + table("Of a question, and in all", names, rows)


def _plots(found: Comparison) -> str:
    points = {
        name: (1000 * found.costs[name].p50, found.mean(name))
        for name in found.components
        if np.isfinite(found.mean(name)) and name in found.costs
    }
    drawn = [quality_against_latency(points, found.primary)] if points else []
    for name in [name for name in found.components if name not in (FIRST_STAGE, BM25, FUSION)]:
        change = found.values[name][found.primary] - found.values[FIRST_STAGE][found.primary]
        change = change[np.isfinite(change)]
        if len(change):
            drawn.append(differences(change.tolist(), f"{name} minus {FIRST_STAGE}, {found.primary}"))
        first = [r.scores[0] for r in found.results[name].values() if r.scores and r.scores[0] is not None]
        if first:
            drawn.append(histogram(first, f"{name}: scores of the first result"))
    figures = [f"<figure style='margin:0'>{svg}<figcaption>{_caption(svg)}</figcaption></figure>" for svg in drawn]
    return f'<h2>Plots</h2><div class="plots">{"".join(figures)}</div>'


def _caption(svg: str) -> str:
    return svg.partition("<title>")[2].partition("</title>")[0]
