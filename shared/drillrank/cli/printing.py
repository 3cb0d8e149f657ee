"""Printing of evidence for a question to the terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.markup import escape
from rich.padding import Padding

from drillrank.cli import terminal
from drillrank.cli.results import FileEvidence, QuestionEvidence
from drillrank.cli.terminal import EXCERPT_CHARACTERS, one_line, shorten
from drillrank.structure import breadcrumb
from drillrank.structure.pages import page_range

_N_NAMED = 3  # versions, or places of the same text, that are named
_NOTHING_FOUND = "Nothing here seems to speak of this. What is nearest: "
_LEGEND = (
    "Best first; the number is the mean log-likelihood of the question's words, given the paragraph: nearer to 0 is "
    "better, comparable within one question."
)


def print_evidence(result: QuestionEvidence) -> None:
    """Print the answer, if there is one, the evidence and the explanation of one question."""
    out = terminal.console
    out.rule(f"Question: {one_line(result.question)}")
    if result.answer is not None:
        out.print(f"[bold]{one_line(result.answer.text or 'The evidence holds no answer.')}[/bold]", soft_wrap=True)
        for index in result.answer.citations:
            out.print(f"{escape(f'[{index + 1}]')} {_describe_location(result.evidence[index])}", soft_wrap=True)
    if not result.evidence:
        out.print("Nothing matched: no paragraph has a word of the question, or the LLM chose none.")
    else:
        out.print("[dim]" + ("" if result.found else _NOTHING_FOUND) + _LEGEND + "[/dim]")
    for item in result.evidence:
        _print_item(item)
    if result.explanations is not None:
        out.print(result.explanations)


def _print_item(item: FileEvidence) -> None:
    """Print evidence with its location, its versions and its other locations."""
    out = terminal.console
    out.print(f"\n{item.rank}. {_describe_location(item)} [dim]{item.score:.3f}[/dim]", soft_wrap=True)
    out.print(Padding(one_line(shorten(item.text, 5 * EXCERPT_CHARACTERS)), (0, 0, 0, 3), expand=False))
    if item.other_versions is not None:
        version = f" of {item.version}" if item.version is not None else ""
        others = _join_first(map(one_line, item.other_versions))
        out.print(f"   The version{version}; there are others: {others}", soft_wrap=True)
    if item.other_locations:
        pages = [
            (other.file, None if other.page is None else (other.page, other.page)) for other in item.other_locations
        ]
        others = _join_first(" ".join([_bold(file), *([page_range(page)] if page else [])]) for file, page in pages)
        out.print(f"   The same stands in {others}", soft_wrap=True)


def _join_first(items: Iterable[str]) -> str:
    """Join the first items, and state how many more there are."""
    all_items = list(items)
    more = f" and {len(all_items) - _N_NAMED} more" if len(all_items) > _N_NAMED else ""
    return ", ".join(all_items[:_N_NAMED]) + more


def _describe_location(item: FileEvidence) -> str:
    """Return the file, pages, span and headings of evidence, as markup."""
    pages = [page_range(item.pages)] if item.pages else []
    span = ["–".join(map(str, item.span))] if item.span else []
    return " ".join([_bold(item.file), *pages, *span, one_line(breadcrumb(item.section))]).rstrip()


def _bold(file: str) -> str:
    """Return the name of a file, as markup."""
    return f"[bold]{one_line(file)}[/bold]"
