"""D3, tables 1, 3 and 4 and figure 4: QASPER drilled by two small real models, the paper's figures beside ours.

Evidence F1 compares with each annotator's paragraphs and takes the best, as the paper does. Answers are read by the
same model from what it found, with the paper's prompt. What the models wrote is kept (`kept.py`).
"""

from __future__ import annotations

import re
import uuid
import warnings
from collections.abc import Sequence
from functools import partial
from statistics import mean
from typing import Any

from rich.console import Console
from rich.table import Table

from drillrank import D3
from drillrank.drilldown.answering import ANSWER_PROMPT, answer
from drillrank.errors import DrillrankWarning
from drillrank.evaluation.metrics import answer_f1, evidence_f1, recall
from drillrank.passages import Passage

from .kept import MODELS, KeptWriter, named
from .long_documents import Paper, Question, papers
from .oracle import Oracle

QUESTIONS, CHOICE_TOKENS, ANSWER_TOKENS = 100, 48, 48
# Evidence F1, tokens, calls and answer F1 by gpt-3.5-turbo.
PAPER = {
    "paragraph": "32.02 / 8519 / 47.2 / 47.92",
    "chunk": "35.59 / 5411 / 2.4 / 49.00",
    "map-reduce": "12.84 / 12730 / 48.2 / 39.26",
    "map-reduce-optimised": "50.11 / 7492 / 3.7 / 50.13",
    "base": "49.92 / 1981 / 2.0 / 47.45",
    "hierbase": "50.09 / 2126 / 2.9 / 49.48",
}
CHUNKS = (1000, 2000, 3500)
_HEADING = re.compile(r"^(#+ ).*$", re.MULTILINE)


def without_names(markdown: str) -> str:
    """The text with a UUID in place of every heading but the title (section 5.3.4)."""
    title, line, rest = markdown.partition("\n")
    return title + line + _HEADING.sub(lambda found: f"{found[1]}{uuid.uuid5(uuid.NAMESPACE_URL, found[0])}", rest)


def main(model: str = ",".join(MODELS), questions: int | None = None) -> None:
    models = named(model)
    count = questions or QUESTIONS
    warnings.simplefilter("ignore", DrillrankWarning)  # answers that cannot be read are counted
    d3 = D3(settings={"unit": "paragraph"})
    read = papers("qasper", d3, count)
    bare = papers("qasper", d3, count, without_names)
    console = Console(width=170)
    table = Table(
        "read by", "paragraphs by", "paper: F1 / tokens / calls / answer F1", "F1", "precision", "recall", "tokens",
        "calls", "left to likelihood", "answer F1", title=f"D3, tables 1 and 3: QASPER dev, {count} questions",
    )  # fmt: skip
    of_words = [d3.retrieve(question.text, paper.ready) for paper, question in _asked(read)]
    table.add_row("no LLM", "likelihood", "", *_figures(read, of_words), "")
    oracle = [
        D3(Oracle(paper.ready, question.gold), settings={"unit": "paragraph"}).retrieve(question.text, paper.ready)
        for paper, question in _asked(read)
    ]
    table.add_row("oracle", "base", "", *_figures(read, oracle), "")
    names = Table("read by", "sections", "paper, F1", "F1", "tokens", "calls", title="Table 4: UUIDs for headings")
    sizes = Table("read by", "tokens of a chunk", "F1", "precision", "recall", title="Figure 4: chunk sizes")
    for name in models:
        writer = KeptWriter(name, CHOICE_TOKENS)
        for strategy, published in PAPER.items():
            found = drilled(writer, read, paragraphs=strategy, max_prompt_tokens=3500)
            table.add_row(name, strategy, published, *_figures(read, found), f"{answered(name, read, found):.3f}")
        for label, of_paper, published in (("headings", read, "49.92"), ("UUIDs", bare, "43.11")):
            figures = _figures(of_paper, drilled(writer, of_paper, paragraphs="base", max_prompt_tokens=3500))
            names.add_row(name, label, published, figures[0], *figures[3:5])
        for size in CHUNKS:
            found = drilled(writer, read, paragraphs="chunk", max_prompt_tokens=size)
            sizes.add_row(name, str(size), *_figures(read, found)[:3])
    console.print(table, names, sizes)


def drilled(writer: KeptWriter, read: Sequence[Paper], **settings: Any) -> list[Any]:
    """What each question finds; where an answer cannot be read, likelihood chooses."""
    d3 = D3(writer, settings={"unit": "paragraph", "max_calls": 10**6, "workers": 4, **settings})
    asks = [partial(d3.retrieve, question.text, paper.ready) for paper, question in _asked(read)]
    return writer.together(asks)


def answered(name: str, read: Sequence[Paper], found: Sequence[Any]) -> float:
    """Mean answer F1 of what the model reads in what was found."""
    writer = KeptWriter(name, ANSWER_TOKENS)

    def ask(question: Question, passages: Sequence[Passage]) -> float:
        said = answer(question.text, passages, writer, prompt=ANSWER_PROMPT) if passages else None
        return answer_f1(said.text if said else "Unanswerable", question.answers)

    pairs = zip(_asked(read), found, strict=True)
    return mean(writer.together([partial(ask, question, [item.passage for item in of]) for (_, question), of in pairs]))


def _asked(read: Sequence[Paper]) -> list[tuple[Paper, Question]]:
    return [(paper, question) for paper in read for question in paper.questions]


def _figures(read: Sequence[Paper], found: Sequence[Any]) -> list[str]:
    rows = []
    for (_, question), of_question in zip(_asked(read), found, strict=True):
        ids = [item.passage.id for item in of_question]
        right = len(set(ids) & question.gold)
        rows.append(
            (
                evidence_f1(ids, question.annotations),
                right / len(ids) if ids else 0.0,
                recall(ids, question.gold, max(len(ids), 1)),
                of_question.usage.prompt_tokens,
                of_question.usage.calls,
                bool(of_question.problems),
            )
        )
    f1, precision, recalled, tokens, calls, nothing = (mean(column) for column in zip(*rows, strict=True))
    return [f"{f1:.3f}", f"{precision:.3f}", f"{recalled:.3f}", f"{tokens:,.0f}", f"{calls:.1f}", f"{nothing:.2f}"]
