"""`drillrank tune` on a whole set of training questions, and what the settings that it chooses bring to others.

PromptRank among the paragraphs of a QASPER question's own paper, BM25 first: on the papers for tuning, then on dev.
"""

from __future__ import annotations

from typing import Any

from rich.console import Console

from drillrank import D3, Passage
from drillrank.evaluation import compare, tune

from .long_documents import bm25, papers

MEASURE = "nDCG@10"


def main(questions: int | None = None) -> None:
    console = Console(width=120)
    tuned = tune(_paragraphs("qasper_tune", questions), "PromptRank", measure=MEASURE)
    console.print(str(tuned), markup=False)
    chosen: dict[str, Any] = {"component": "PromptRank", **tuned.best}
    if "mu" in chosen:
        chosen["model_options"] = {"mu": chosen.pop("mu")}
    found = compare(_paragraphs("qasper", questions), {"defaults": "PromptRank", "chosen": chosen}, measures=[MEASURE])
    mean, low, high, _, n = found.pair("defaults", "chosen").difference
    console.print(
        f"{n} other questions, {MEASURE}: BM25 {found.mean('first stage'):.3f}, defaults {found.mean('defaults'):.3f}, "
        f"chosen {found.mean('chosen'):.3f}, {mean:+.3f} ({low:+.3f} to {high:+.3f})"
    )


def _paragraphs(part: str, questions: int | None) -> list[dict[str, Any]]:
    """Questions with all paragraphs of their paper, in the order of BM25."""
    rows: list[dict[str, Any]] = []
    for paper in papers(part, D3(settings={"unit": "paragraph"}), questions):
        texts = {one.source.id: one.source.text for one in paper.ready.outline.paragraphs}
        for question in paper.questions:
            row, first = str(len(rows)), bm25(question.text, paper.ready)
            order = [*first, *(id_ for id_ in texts if id_ not in set(first))]
            rows.append(
                {
                    "id": row,
                    "question": question.text,
                    "gold": sorted(f"{row}/{id_}" for id_ in question.gold),
                    "candidates": [Passage(texts[id_], id=f"{row}/{id_}") for id_ in order],
                }
            )
    return rows
