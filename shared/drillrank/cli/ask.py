"""`drillrank ask`: evidence for questions, in any number of files."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from rich.progress import Progress
from rich.table import Table

from drillrank.cli import terminal
from drillrank.cli.corpus import FileCorpus
from drillrank.cli.sources import STANDARD_INPUT, Skipped, Source, found_sources, reported
from drillrank.cli.terminal import EXCERPT, excerpt, one_line, print_json, tell
from drillrank.drilldown.d3 import D3, EvidenceRanking
from drillrank.drilldown.evidence import load_evidence_model
from drillrank.drilldown.prepared import PreparedDocuments
from drillrank.drilldown.settings import MAX_DOCUMENTS
from drillrank.errors import InvalidInput
from drillrank.explanation import Explanations
from drillrank.likelihood import LanguageModel
from drillrank.passages import Passage, Ranked, check_query, check_top_n
from drillrank.rerank.upr import UPR
from drillrank.structure import Document, read_document
from drillrank.structure.pages import page_range

Chosen = Sequence[tuple[str, Document]]  # names and documents
_TOLD = 10  # skipped files that are named
_SLOW = 8  # files from which on a progress bar is worth a line


@dataclass(frozen=True, slots=True)
class Asked:
    """What `drillrank ask` was asked.

    Attributes:
        files: Files, folders and patterns; `-` is standard input.
        questions: At least one.
        model: A language model's specification; None for that of the settings, or the unigram model.
        settings: A file of settings; None for the defaults.
        trust: Whether that file may name folders, addresses, code and keys.
        language: Whose stemmer the unigram model takes; None for that of the settings, or English.
        top_n: Evidence paragraphs for each question.
        as_json: Whether to write JSON Lines.
        explain: Whether to say why.
        cache: Where documents are cached; None for nowhere.
        follow_links: Whether links that lead outside a folder are followed.
    """

    files: Sequence[str]
    questions: Sequence[str]
    model: str | None
    settings: str | None
    trust: bool
    language: str | None
    top_n: int
    as_json: bool
    explain: bool
    cache: Path | None
    follow_links: bool


def asked_of(given: Any, cache: Path | None) -> Asked:
    """What the parsed arguments ask for.

    Raises:
        InvalidInput: there is no question, there are no files, or they cannot be read.
    """
    files, questions = list(given.arguments), []
    if files.count(STANDARD_INPUT) + (given.questions == STANDARD_INPUT) > 1:
        raise InvalidInput("Standard input can be read only once.")
    if given.questions is not None:
        questions = _questions_in(given.questions)
    elif files:
        questions = [readable(files.pop())]
        if not files and os.path.exists(questions[0]):
            raise InvalidInput(f'There is no question after {questions[0]}: drillrank ask FILE... "question".')
    if not files:
        if sys.stdin is None or sys.stdin.isatty() or given.questions == STANDARD_INPUT:
            raise InvalidInput("There is nothing to read: name files or folders, or give a text on standard input.")
        files = [STANDARD_INPUT]
    for question in questions:
        check_query(question)
    check_top_n(given.top_n)
    return Asked(
        files,
        questions,
        given.model,
        given.settings,
        given.trust_settings,
        given.language,
        given.top_n,
        given.json,
        given.explain,
        cache,
        given.follow_links,
    )


def readable(argument: str) -> str:
    """An argument; as UTF-8 where the terminal's own encoding could not read it."""
    try:
        argument.encode()
    except UnicodeEncodeError:
        return os.fsencode(argument).decode("utf-8", "replace")
    return argument


def _questions_in(file: str) -> list[str]:
    """The lines of a file that are not blank."""
    with found_sources([file]) as (sources, _):
        if len(sources) != 1 or not sources[0].named:
            raise InvalidInput(f"{file} is not one file of questions.")
        with reported(sources[0]):
            text = read_document(sources[0].path).text
    questions = [line.strip() for line in text.splitlines() if line.strip()]
    if not questions:
        raise InvalidInput(f"{file} holds no question: write one on each line.")
    return questions


def run_ask(asked: Asked) -> bool:
    """Print evidence for each question; whether there was any."""
    d3 = D3(**_settings(asked))
    # Loads a neural model, so that what is wrong with it is told first.
    UPR(d3.language_model).rank(asked.questions[0], [Passage(asked.questions[0])])
    with found_sources(asked.files, follow_links=asked.follow_links) as (sources, skipped):
        corpus = FileCorpus(sources, asked.cache, _tracked, d3.language_model.language)
        skipped = [*skipped, *corpus.skipped]
        _tell_skipped(len(corpus.names), skipped)
        if not corpus.names:
            raise InvalidInput("There is no file to read among those given.")
        found_any = False
        for question, chosen, ranking in _rankings(d3, corpus, asked):
            names = [name for name, _ in chosen]
            matched = bool(ranking) and not ranking[0].details.get("nothing_matched")
            found_any = found_any or matched
            found = ranking if matched else ranking[:0]
            why = _told(ranking, found, names) if asked.explain else None
            if asked.as_json:
                for place, item in enumerate(found):
                    print_json(_record(question, names, item) | _reasons(why, place))
            else:
                _print(question, chosen, found)
                if why is not None:
                    terminal.console.print(why)
    return found_any


def _settings(asked: Asked) -> dict[str, Any]:
    """The arguments of D3."""
    model: str | LanguageModel | None = asked.model
    if asked.language is not None:
        model = load_evidence_model(asked.model or "unigram", language=asked.language)
    if asked.settings is None:
        return {"model": model or "unigram"}
    from drillrank.evaluation.settings_file import load_settings

    return load_settings(asked.settings, "D3", model=model, trust=asked.trust)


def _rankings(d3: D3, corpus: FileCorpus, asked: Asked) -> Iterator[tuple[str, Chosen, EvidenceRanking]]:
    """Each question, the documents that were drilled into, and its evidence."""
    ready: PreparedDocuments | None = None
    prepared: Sequence[str] = ()
    for question in asked.questions:
        chosen = corpus.documents(question, d3.settings.max_documents or MAX_DOCUMENTS)
        names = [name for name, _ in chosen]
        if ready is None or names != prepared:
            ready, prepared = d3.prepare([document for _, document in chosen], names), names
        yield question, chosen, d3.retrieve(question, ready, asked.top_n)


def _record(question: str, names: Sequence[str], item: Ranked[Passage]) -> dict[str, object]:
    place = item.passage.metadata
    first, last = place.get("pages", (None, None))
    return {
        "question": question,
        "rank": item.rank,
        "score": item.score,
        "file": names[place["document"]],
        "page": first,
        "last_page": last,
        "section": place["section_path"],
        "span": [place["start"], place["end"]] if "start" in place else None,
        "text": item.passage.text,
    }


def _told(ranking: EvidenceRanking, found: Sequence[Ranked[Passage]], names: Sequence[str]) -> Explanations:
    """Of what was found, with the names of the files."""
    why = ranking.explain()
    entries = [
        replace(entry, name=f"{names[item.passage.metadata['document']]}: {entry.name}")
        for entry, item in zip(why, found, strict=False)
    ]
    tree = [replace(node, name=names[int(node.id or 0)]) if node.kind == "document" else node for node in why.tree]
    return Explanations(entries, why.question, tree)


def _reasons(why: Explanations | None, place: int) -> dict[str, object]:
    """Fields of one record; the tree is the question's, and stands in its first."""
    if why is None:
        return {}
    told = why.to_dict()
    return {"explanation": told["entries"][place]} | ({"tree": told["tree"]} if place == 0 else {})


def _readable(document: Document, passage: Passage) -> str:
    """A paragraph without markup; parts of a long one have none."""
    place = passage.metadata
    if "part" in place or "start" not in place:
        return passage.text
    blocks = (block for section in document.sections() for block in document.blocks(section))
    return next((document.readable(block) for block in blocks if block.start == place["start"]), passage.text)


def _print(question: str, chosen: Chosen, found: Sequence[Ranked[Passage]]) -> None:
    terminal.console.rule(f"Question: {one_line(question)}")
    if not found:
        terminal.console.print("Nothing matched: no paragraph has a word of the question.")
        return
    table = Table("score", "where", "evidence", show_lines=True)
    for item in found:
        place = item.passage.metadata
        name, document = chosen[place["document"]]
        where = [f"[bold]{one_line(name)}[/bold]"]
        where += [page_range(place["pages"])] if "pages" in place else []
        where += [f"{place['start']}–{place['end']}"] if "start" in place else []
        text = one_line(excerpt(_readable(document, item.passage), 5 * EXCERPT))
        table.add_row(f"{item.score:.3f}", f"{' '.join(where)}\n{one_line(item.passage.title)}", text)
    terminal.console.print(table)


def _tell_skipped(read: int, skipped: Sequence[Skipped]) -> None:
    if skipped:
        tell("yellow", f"{read} files read, {len(skipped)} skipped:")
        for one in islice(skipped, _TOLD):
            tell("yellow", one.reason)
        if len(skipped) > _TOLD:
            tell("yellow", f"and {len(skipped) - _TOLD} more.")


def _tracked(sources: Sequence[tuple[str, Source]]) -> Iterable[tuple[str, Source]]:
    """Files that are read, with a progress bar where somebody sees it."""
    console = terminal.Terminal(stderr=True, highlight=False)
    if not console.is_terminal or len(sources) < _SLOW:
        yield from sources
        return
    with Progress(console=console, transient=True) as progress:
        yield from progress.track(sources, description="Reading")
