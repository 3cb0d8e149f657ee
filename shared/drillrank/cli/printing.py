"""Printing of evidence for a question to the terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.markup import escape
from rich.padding import Padding

from drillrank.cli import terminal
from drillrank.cli.results import CheckedSentence, FileEvidence, QuestionEvidence, Range
from drillrank.cli.terminal import EXCERPT_CHARACTERS, one_line, shorten
from drillrank.structure import breadcrumb
from drillrank.structure.pages import page_range

_N_NAMED = 3  # versions, or places of the same text, that are named
_TEXT_CHARACTERS = 5 * EXCERPT_CHARACTERS
_REST_CHARACTERS = 3 * EXCERPT_CHARACTERS  # of a passage, in addition to its best paragraph
_LINK_CHARACTERS = 60
_NOTHING_MATCHED = "Nothing matched: no paragraph has a word of the question, or the LLM chose none."
_LEGEND = (
    "Best first. The number is the score per word of the question: the log-likelihood of its words given the text, "
    "plus what an encoder and a language model add, if there are any. Higher is better. "
    "Compare within one question only."
)


def print_evidence(result: QuestionEvidence) -> None:
    """Print the answer, if there is one, the evidence and the explanation of one question."""
    out = terminal.console
    out.rule(f"Question: {one_line(result.question)}")
    if result.answer is not None:
        for line in (result.answer.text or "The evidence contains no answer.").split("\n"):
            out.print(f"[bold]{one_line(line)}[/bold]", soft_wrap=True)
        for index in result.answer.citations:
            out.print(f"{escape(f'[{index + 1}]')} {_describe_location(result.evidence[index])}", soft_wrap=True)
        for sentence in result.checked:
            print_sentence(sentence)
    if result.finding:
        out.print(result.finding)
    out.print(f"[dim]{_LEGEND}[/dim]" if result.evidence else _NOTHING_MATCHED)
    for item in result.evidence:
        _print_item(item)
    if result.explanations is not None:
        out.print(result.explanations)


def print_sentence(item: CheckedSentence) -> None:
    """Print a sentence of an answer, if evidence supports it, and the places of that evidence."""
    judgment = item.judgment
    color, mark = ("green", "Supported") if judgment.supported else ("red", "Not supported")
    doubts = f" (compare: {', '.join(map(one_line, judgment.doubts))})" if judgment.doubts else ""
    terminal.console.print(
        f"[{color}]{mark}[/{color}]{doubts}: {one_line(' '.join(judgment.sentence.split()))}", soft_wrap=True
    )
    for evidence in item.evidence:
        terminal.console.print(f"   {_describe_location(evidence)}", soft_wrap=True)


def _print_item(item: FileEvidence) -> None:
    """Print evidence with its location, its versions and other places of the same text."""
    out = terminal.console
    heading = f"{_describe_step(item)}{_describe_location(item)}"
    out.print(f"\n{item.rank}. {heading} [dim]{item.score:.3f}[/dim]", soft_wrap=True)
    if item.best is None:
        _print_indented(one_line(shorten(item.text, _TEXT_CHARACTERS)))
    else:
        _print_indented(f"[bold]» {one_line(shorten(item.best.text, _TEXT_CHARACTERS))}[/bold]")
        if rest := _remove_best_paragraph(item.text, item.best.text):
            _print_indented(f"[dim]{one_line(shorten(rest, _REST_CHARACTERS))}[/dim]")
    if item.other_versions:
        version = f" of {item.version}" if item.version is not None else ""
        others = _join_first(map(one_line, item.other_versions))
        out.print(f"   The version{version}; there are others: {others}", soft_wrap=True)
    if item.same_text:
        others = _join_first(" ".join([_bold(other.file), *_describe_pages(other.pages)]) for other in item.same_text)
        out.print(f"   The same text is in {others}", soft_wrap=True)


def _print_indented(markup: str) -> None:
    terminal.console.print(Padding(markup, (0, 0, 0, 3), expand=False))


def _remove_best_paragraph(text: str, best: str) -> str:
    """Return what a passage has before and after its best paragraph; empty if the paragraph is not in the text."""
    before, paragraph, after = text.partition(best)
    return " … ".join(filter(None, (before.strip(), after.strip()))) if paragraph else ""


def _join_first(items: Iterable[str]) -> str:
    """Join the first items, and state how many more there are."""
    all_items = list(items)
    more = f" and {len(all_items) - _N_NAMED} more" if len(all_items) > _N_NAMED else ""
    return ", ".join(all_items[:_N_NAMED]) + more


def _describe_step(item: FileEvidence) -> str:
    """Return what leads to evidence from another file, as markup; empty if nothing does."""
    step = item.reached
    if step is None:
        return ""
    if step.rank is None:
        start = one_line(step.file)
    else:
        start = "there" if step.rank == item.rank - 1 else f"number {step.rank}"
    return f"and from {start}, by the {step.kind} “{one_line(shorten(step.text, _LINK_CHARACTERS))}”: "


def _describe_location(item: FileEvidence) -> str:
    """Return the file with its lines, and the pages, span and headings of evidence, as markup.

    The pages and headings are those of the best paragraph if the passage has several.
    """
    file = item.file if item.lines is None else f"{item.file}:{'-'.join(map(str, dict.fromkeys(item.lines)))}"
    span = ["–".join(map(str, item.span))] if item.span else []
    best = item.best
    pages = item.pages if best is None or best.pages is None else best.pages
    section = item.section if best is None or not best.section else best.section
    return " ".join([_bold(file), *_describe_pages(pages), *span, one_line(breadcrumb(section))]).rstrip()


def _describe_pages(pages: Range | None) -> list[str]:
    return [] if pages is None else [page_range(pages)]


def _bold(file: str) -> str:
    """Return the name of a file, as markup."""
    return f"[bold]{one_line(file)}[/bold]"
