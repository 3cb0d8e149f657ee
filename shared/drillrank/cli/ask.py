"""`drillrank ask`: evidence for questions, in any number of files."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.padding import Padding
from rich.progress import track

from drillrank.cli import terminal
from drillrank.cli.corpus import FileCorpus, cache_folder
from drillrank.cli.sources import STANDARD_INPUT, found_sources, named_source
from drillrank.cli.terminal import EXCERPT, counted, excerpt, one_line, print_json, tell
from drillrank.drilldown.answering import Answer, answer
from drillrank.drilldown.d3 import D3, EvidenceRanking
from drillrank.drilldown.evidence import load_evidence_model
from drillrank.drilldown.prepared import PreparedDocuments
from drillrank.drilldown.settings import MAX_DOCUMENTS, D3Settings
from drillrank.drilldown.versions import Date
from drillrank.errors import DrillrankWarning, InvalidInput
from drillrank.explanation import Explanations
from drillrank.likelihood import LanguageModel
from drillrank.likelihood.chat import load_llm
from drillrank.llm import Reply, Usage, run
from drillrank.passages import Passage, Ranked, check_query, check_top_n
from drillrank.rerank.upr import UPR
from drillrank.settings import as_settings
from drillrank.structure import Document, breadcrumb, read_document
from drillrank.structure.pages import page_range
from drillrank.text import token_counter

Chosen = Sequence[tuple[str, Document]]  # names and documents
_TOLD = 10  # skipped files that are named
_ALSO = 3  # places of the same text that are named
_RETRIES = 2  # of the LLM's server: somebody waits
_SLOW = 8  # files from which on a progress bar is worth a line
_LEGEND = (
    "Best first; the number is the mean log-likelihood of the question's words, given the paragraph: nearer to 0 is "
    "better, comparable within one question."
)


def run_ask(
    words: Sequence[str],
    questions: str | None,
    llm: str | None,
    with_answer: bool,
    top_n: int,
    as_json: bool,
    explain: bool,
    follow_links: bool,
    no_cache: bool,
    **options: Any,
) -> bool:
    """Print evidence for each question; whether there was any.

    Raises:
        InvalidInput: there is no question, there are no files, they cannot be read, or nobody can answer.
    """
    if with_answer and llm is None:
        raise InvalidInput("--answer needs an LLM: give --llm http://host:port/v1#model.")
    files, asked = _files_and_questions(words, questions)
    check_top_n(top_n)
    d3 = evidence_finder(llm=llm, **options)
    # Loads a neural model, so that what is wrong with it is told first.
    UPR(d3.language_model).rank(asked[0], [Passage(asked[0])])
    sources, skipped = found_sources(files, follow_links=follow_links)
    corpus = FileCorpus(sources, None if no_cache else cache_folder(), _tracked, d3.language_model.language)
    skipped += corpus.skipped
    if not corpus.names:
        reasons = " ".join([*skipped[:1], *([f"So it is with {len(skipped) - 1:,} more."] if skipped[1:] else [])])
        raise InvalidInput(f"There is no file to read (hidden and ignored ones are passed over). {reasons}")
    if skipped:
        tell("yellow", f"{counted(len(corpus.names), 'file')} read, {len(skipped):,} skipped:")
        more = [f"and {len(skipped) - _TOLD:,} more."] * (len(skipped) > _TOLD)
        for reason in [*skipped[:_TOLD], *more]:
            tell("yellow", reason)
    found_any = False
    for question, chosen, ranking, here in rankings(d3, corpus, asked, top_n):
        found = matched(d3, ranking)
        said = _answered(d3, question, chosen, found) if with_answer else None
        found_any = found_any or bool((found and here) if said is None else said.text)
        told = _explained(ranking, found, chosen) if explain else None
        some: Sequence[Ranked[Passage] | None] = found or [None]
        records = [record(question, chosen, item, here) for item in some]
        if as_json:
            _print_json(question, records, said, told)
        else:
            _print(records, [_readable(chosen, item.passage) for item in found], said)
            if told is not None:
                terminal.console.print(told)
    return found_any


def _files_and_questions(words: Sequence[str], file: str | None) -> tuple[list[str], list[str]]:
    files = list(words)
    if [*files, file].count(STANDARD_INPUT) > 1:
        raise InvalidInput("Standard input can be read only once.")
    if file is not None:
        source = named_source(file, " of questions")
        with source.reported():
            lines = read_document(source.path).text.splitlines()
        questions = [line.strip() for line in lines if line.strip()]
        if not questions:
            raise InvalidInput(f"{file} holds no question: write one on each line.")
    else:
        questions = [os.fsencode(files.pop()).decode("utf-8", "replace")] if files else []
        if not questions or os.path.lexists(questions[0]):
            after = f" after {questions[0]}, which is a file" if questions else ""
            raise InvalidInput(f'There is no question{after}: drillrank ask FILE... "question".')
    if not files and (sys.stdin is None or sys.stdin.isatty() or file == STANDARD_INPUT):
        raise InvalidInput("There is nothing to read: name files or folders, or give a text on standard input.")
    return files or [STANDARD_INPUT], [*map(check_query, questions)]


def evidence_finder(
    model: str | None = None,
    language: str | None = None,
    settings: str | None = None,
    trust_settings: bool = False,
    as_of: str | None = None,
    llm: str | None = None,
) -> D3:
    """D3 as the options have it.

    Raises:
        DrillrankError: one of them cannot be used.
    """
    lm: str | LanguageModel | None = model
    if language is not None:
        lm = load_evidence_model(model or "unigram", language=language)
    given: dict[str, Any] = {"model": lm or "unigram"}
    if settings is not None:
        from drillrank.evaluation.settings_file import load_settings

        given = load_settings(settings, "D3", model=lm, trust=trust_settings)
    if as_of is not None:
        given["settings"] = replace(as_settings(D3Settings, given.get("settings", {})), as_of=as_of)
    return D3(load_llm(llm, retries=_RETRIES), **given)


def rankings(
    d3: D3, corpus: FileCorpus, questions: Iterable[str], top_n: int
) -> Iterator[tuple[str, Chosen, EvidenceRanking, bool]]:
    """Each question, the documents that were drilled into, its evidence, and whether anything speaks of it."""
    ready: PreparedDocuments | None = None
    prepared: Sequence[str] = ()
    for question in questions:
        chosen, answerable = corpus.documents(question, d3.settings.max_documents or MAX_DOCUMENTS)
        names = [name for name, _ in chosen]
        if ready is None or names != prepared:
            ready = d3.prepare([document for _, document in chosen], names, [*map(_changed, names)])
            prepared = names
        usage = Usage(count=token_counter(d3.settings.tokens))
        requests = d3.requests(question, ready, top_n, usage=usage)
        workers = d3.settings.workers
        found = run(requests, d3.llm, usage=usage, workers=workers, on_reply=_check_reply)
        here = bool(found) and (found.answerable is None or answerable >= d3.settings.answerable)
        yield question, chosen, found, here


def _changed(file: str) -> Date | None:
    """The day on which a file was changed last."""
    try:
        day = date.fromtimestamp(Path(file).stat().st_mtime)
    except (OSError, ValueError, OverflowError):  # standard input
        return None
    return day.year, day.month, day.day


def _check_reply(reply: Reply) -> None:
    """A server that fails ends the command: who asked for an LLM is not given something else in its place."""
    if reply.failure:
        raise reply.failure


def matched(d3: D3, ranking: EvidenceRanking) -> list[Ranked[Passage]]:
    """The evidence that holds a word of the question, or that an LLM chose."""
    return [item for item in ranking if d3.llm is not None or item.details.get("matched", True)]


def _answered(d3: D3, question: str, chosen: Chosen, found: Sequence[Ranked[Passage]]) -> Answer:
    """What the LLM answers from the evidence, which it reads under the names of its files."""
    read = []
    for item in found:
        name, _ = chosen[item.passage.metadata["document"]]
        title = " > ".join(filter(None, (Path(name).name, item.passage.title)))
        read.append(Passage(_readable(chosen, item.passage), id=item.passage.id, title=title))
    settings, llm = d3.settings, d3.llm
    assert llm is not None
    said = answer(question, read, llm, max_prompt_tokens=settings.max_prompt_tokens, tokens=settings.tokens)
    for problem in said.problems:
        warnings.warn(f"Answering {question!r:.100}: {problem}.", DrillrankWarning, stacklevel=2)
    return said


def _explained(ranking: EvidenceRanking, found: Sequence[Ranked[Passage]], chosen: Chosen) -> Explanations:
    """Of what was found, with the names of the files."""
    why = ranking.explain()
    names = [name for name, _ in chosen]
    entries = [
        replace(entry, name=f"{names[item.passage.metadata['document']]}: {entry.name}")
        for entry, item in zip(why, found, strict=False)
    ]
    tree = [replace(node, name=names[int(node.id or 0)]) if node.kind == "document" else node for node in why.tree]
    return Explanations(entries, why.question, tree)


def _readable(chosen: Chosen, passage: Passage) -> str:
    """A paragraph without markup; parts of a long one have none."""
    place = passage.metadata
    _, document = chosen[place["document"]]
    if "part" in place or "start" not in place:
        return passage.text
    blocks = (block for section in document.sections() for block in document.blocks(section))
    return next((document.readable(block) for block in blocks if block.start == place["start"]), passage.text)


def record(question: str, chosen: Chosen, item: Ranked[Passage] | None, here: bool) -> dict[str, Any]:
    """A paragraph as JSON has it; null in all fields where there is none."""
    place: Mapping[str, Any] = item.passage.metadata if item else {}
    first, last = place.get("pages", (None, None))
    details: Mapping[str, Any] = item.details if item else {}
    also = [
        {"file": chosen[at["document"]][0], "page": at.get("pages", (None,))[0]} for at in details.get("also_at", ())
    ]
    return {
        "question": question,
        "rank": item and item.rank,
        "score": item and item.score,
        "file": item and chosen[place["document"]][0],
        "page": first,
        "last_page": last,
        "section": item and place["section_path"],
        "span": [place["start"], place["end"]] if "start" in place else None,
        "text": item and item.passage.text,
        **{name: details[name] for name in ("version", "other_versions") if name in details},
        **({"also": also} if also else {}),
        "found": here,
    }


def _print_json(
    question: str, records: Sequence[dict[str, Any]], said: Answer | None, why: Explanations | None
) -> None:
    if said is not None:
        print_json(
            {"question": question, "answer": said.text or None, "citations": [records[at] for at in said.citations]}
        )
    told = why.to_dict() if why else {}
    tree = {"tree": told["tree"]} if "tree" in told else {}
    for place, one in enumerate(records):
        entry = {"explanation": told["entries"][place]} if place < len(told.get("entries", ())) else {}
        print_json(one | entry | (tree if place == 0 else {}))


def _print(records: Sequence[dict[str, Any]], texts: Sequence[str], said: Answer | None) -> None:
    out = terminal.console
    out.rule(f"Question: {one_line(records[0]['question'])}")
    if said is not None:
        out.print(
            f"[bold]{one_line(said.text)}[/bold]" if said.text else "The evidence holds no answer.", soft_wrap=True
        )
        for at in said.citations:
            out.print(f"{escape(f'[{at + 1}]')} {_where(records[at])}", soft_wrap=True)
    if not texts:
        out.print("Nothing matched: no paragraph has a word of the question, or the LLM chose none.")
        return
    if not records[0]["found"]:
        out.print("Nothing here seems to speak of this. What is nearest:")
    out.print(f"[dim]{_LEGEND}[/dim]")
    for one, text in zip(records, texts, strict=True):
        out.print(f"\n{one['rank']}. {_where(one)} [dim]{one['score']:.3f}[/dim]", soft_wrap=True)
        out.print(Padding(one_line(excerpt(text, 5 * EXCERPT)), (0, 0, 0, 3), expand=False))
        if "other_versions" in one:
            of = f" of {one['version']}" if "version" in one else ""
            out.print(
                f"   The version{of}; there are others: {_some(map(one_line, one['other_versions']))}", soft_wrap=True
            )
        if "also" in one:
            places = [_where({**at, "last_page": at["page"], "span": None, "section": ()}) for at in one["also"]]
            out.print(f"   The same stands in {_some(places)}", soft_wrap=True)


def _some(items: Iterable[str]) -> str:
    """The first ones, and how many more."""
    items = list(items)
    return ", ".join(items[:_ALSO]) + f" and {len(items) - _ALSO} more" * (len(items) > _ALSO)


def _where(one: Mapping[str, Any]) -> str:
    """Name of the file, pages, span and headings."""
    where = [f"[bold]{one_line(one['file'])}[/bold]"]
    where += [page_range((one["page"], one["last_page"]))] if one["page"] is not None else []
    where += [f"{one['span'][0]}–{one['span'][1]}"] if one["span"] else []
    return " ".join([*where, one_line(breadcrumb(one["section"]))]).rstrip()


def _tracked(files: Iterable[Any], number: int) -> Iterable[Any]:
    """Files that are read, with a progress bar and an estimate where somebody sees it."""
    console = terminal.Terminal(stderr=True, highlight=False)
    if not console.is_terminal or number < _SLOW:
        return files
    return track(files, "Reading", number, console=console, transient=True)
