"""The questions of a report that two components answer most differently: what each found, and why."""

from __future__ import annotations

from html import escape
from typing import NamedTuple

from drillrank.evaluation.comparison_result import Comparison
from drillrank.evaluation.explaining import SHOWN
from drillrank.evaluation.questions import Question
from drillrank.evaluation.report_tables import table
from drillrank.evaluation.running import BM25, FUSION, OnProgress

_EXCERPT = 160  # characters of a passage
_WORSE, _BETTER = "Worse", "Better"


class _Listed(NamedTuple):
    before: str
    after: str
    worse: list[Question]
    better: list[Question]


def questions_that_differ(found: Comparison, on_progress: OnProgress | None) -> str:
    """Of every pair, side by side; explanations are asked for of these questions, and of no others."""
    shown = [pair for pair in found.pairs if pair.measure == found.primary and pair.before not in (BM25, FUSION)]
    listed = [_Listed(pair.before, pair.after, *found.extremes(pair.before, pair.after)) for pair in shown]
    wanted = dict.fromkeys(
        (question.id, name)
        for pair in listed
        for question in (*pair.worse, *pair.better)
        for name in (pair.before, pair.after)
    )
    questions = {question.id: question for question in found.questions}
    why = {}
    for done, (id_, name) in enumerate(wanted, start=1):
        why[id_, name] = _why(found, questions[id_], name)
        if on_progress is not None:
            on_progress(done, len(wanted))
    tables = "".join(_pair(found, pair, why) for pair in listed if pair.worse or pair.better)
    return f"<h2>Questions that differ most</h2>{tables}" if tables else ""


def _pair(found: Comparison, pair: _Listed, why: dict[tuple[str, str], str]) -> str:
    lists = "".join(
        f"<h4>{said}</h4>{''.join(_question(found, pair, question, why) for question in questions)}"
        for said, questions in ((_WORSE, pair.worse), (_BETTER, pair.better))
        if questions
    )
    return f"<h3>{escape(pair.before)} → {escape(pair.after)}</h3>{lists}"


def _question(found: Comparison, pair: _Listed, question: Question, why: dict[tuple[str, str], str]) -> str:
    place = found.questions.index(question)
    names = (pair.before, pair.after)
    before, after = (found.values[name][found.primary][place] for name in names)
    sides = "".join(f"<div>{_first(found, question, name)}{why[question.id, name]}</div>" for name in names)
    summary = f"{escape(question.text)} ({found.primary} {before:.2f} → {after:.2f})"
    return f'<details><summary>{summary}</summary><div class="sides">{sides}</div></details>'


def _first(found: Comparison, question: Question, name: str) -> str:
    """The first few results of a component."""
    record = found.results[name][question.id]
    passages = record.passages(found.passages[question.id])[:SHOWN]
    ranks = found.ranks[name][question.id]
    rows = []
    for rank, (passage, score) in enumerate(zip(passages, record.scores, strict=False), start=1):
        text = passage.titled_text
        shown = text if len(text) <= _EXCERPT else f"{text[: _EXCERPT - 1]}…"
        mark = "<b>✓ evidence</b> " if rank in ranks else ""
        rows.append([str(rank), "–" if score is None else f"{score:#.4g}", mark + escape(shown)])
    return table(f"First {SHOWN} of {name}", ["rank", "score", "passage"], rows)


def _why(found: Comparison, question: Question, name: str) -> str:
    """What explains these results, or a sentence that says why nothing does."""
    explained = found.explained(name, question)
    note, failed = explained.note, explained.failed
    if explained.why is not None:
        try:
            shown = explained.why._repr_html_()
            return f'<details class="why"><summary>Why: {escape(name)}</summary>{shown}</details>'
        except Exception as problem:  # a file of results may hold anything
            note, failed = f"Not explained: {type(problem).__name__}: {problem}"[:500], True
    return f'<p class="{"partial" if failed else "note"}">{escape(note)}</p>'
