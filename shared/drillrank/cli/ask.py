"""`drillrank ask`: evidence for questions, in any number of files."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.progress import track
from rich.table import Table

from drillrank.cli import terminal
from drillrank.cli.corpus import FileCorpus
from drillrank.cli.sources import STANDARD_INPUT, Skipped, found_sources, reported
from drillrank.cli.terminal import EXCERPT, excerpt, one_line, print_json, tell
from drillrank.drilldown.answering import Answer, answer
from drillrank.drilldown.d3 import D3, EvidenceRanking
from drillrank.drilldown.evidence import load_evidence_model
from drillrank.drilldown.prepared import PreparedCorpus
from drillrank.drilldown.settings import D3Settings
from drillrank.errors import DrillrankWarning, InvalidInput
from drillrank.explanation import Explanations
from drillrank.likelihood import LanguageModel
from drillrank.likelihood.chat import load_llm
from drillrank.llm import Reply, Usage, run
from drillrank.passages import Passage, Ranked, check_query, check_top_n
from drillrank.rerank.upr import UPR
from drillrank.settings import as_settings
from drillrank.structure import read_document
from drillrank.structure.pages import page_range
from drillrank.text import token_counter

Names = Mapping[str, str]  # of files, by the ids of their documents
_TOLD = 10  # skipped files that are named
_ALSO = 3  # places of the same text that are named
_RETRIES = 2  # of the LLM's server: somebody waits
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
        as_of: Documents of later are not read; None for that of the settings, or none.
        top_n: Evidence paragraphs for each question.
        as_json: Whether to write JSON Lines.
        explain: Whether to say why.
        llm: Address of a served chat model that drills; None for likelihood.
        answer: Whether it answers from the evidence.
        cache: Where documents are cached; None for nowhere.
        follow_links: Whether links that lead outside a folder are followed.
    """

    files: Sequence[str]
    questions: Sequence[str]
    model: str | None
    settings: str | None
    trust: bool
    language: str | None
    as_of: str | None
    top_n: int
    as_json: bool
    explain: bool
    llm: str | None
    answer: bool
    cache: Path | None
    follow_links: bool


def asked_of(given: Any, cache: Path | None) -> Asked:
    """What the parsed arguments ask for.

    Raises:
        InvalidInput: there is no question, there are no files, they cannot be read, or nobody can answer.
    """
    if given.answer and given.llm is None:
        raise InvalidInput("--answer needs an LLM: give --llm http://host:port/v1#model.")
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
        given.as_of,
        given.top_n,
        given.json,
        given.explain,
        given.llm,
        given.answer,
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
    d3 = D3(load_llm(asked.llm, retries=_RETRIES), **_settings(asked))
    # Loads a neural model, so that what is wrong with it is told first.
    UPR(d3.language_model).rank(asked.questions[0], [Passage(asked.questions[0])])
    with found_sources(asked.files, follow_links=asked.follow_links) as (sources, skipped):
        corpus = FileCorpus(sources, asked.cache, _tracked, d3.language_model.language)
        skipped = [*skipped, *corpus.skipped]
        _tell_skipped(len(corpus.names), skipped)
        if not corpus.names:
            raise InvalidInput("There is no file to read among those given.")
        found_any = False
        for question in asked.questions:
            ranking = corpus.ask(d3, partial(_ranking, d3, question, asked.top_n))
            names, here = corpus.names, ranking.found
            found = [item for item in ranking if d3.llm is not None or item.details.get("matched", True)]
            said = _answered(d3, question, names, found) if asked.answer else None
            found_any = found_any or bool((found and here) if said is None else said.text)
            why = _told(ranking, found, names) if asked.explain else None
            if asked.as_json:
                if said is not None:
                    cited = [_record(question, names, found[at]) for at in said.citations]
                    print_json({"question": question, "answer": said.text or None, "citations": cited})
                for place, item in enumerate(found):
                    print_json(_record(question, names, item) | {"found": here} | _reasons(why, place))
            else:
                _print(question, names, found, said, here, d3.llm is None)
                if why is not None:
                    terminal.console.print(why)
    return found_any


def _settings(asked: Asked) -> dict[str, Any]:
    """The arguments of D3."""
    model: str | LanguageModel | None = asked.model
    if asked.language is not None:
        model = load_evidence_model(asked.model or "unigram", language=asked.language)
    given: dict[str, Any] = {"model": model or "unigram"}
    if asked.settings is not None:
        from drillrank.evaluation.settings_file import load_settings

        given = load_settings(asked.settings, "D3", model=model, trust=asked.trust)
    if asked.as_of is not None:
        given["settings"] = replace(as_settings(D3Settings, given.get("settings", {})), as_of=asked.as_of)
    return given


def _ranking(d3: D3, question: str, top_n: int, files: PreparedCorpus) -> EvidenceRanking:
    usage = Usage(count=token_counter(d3.settings.tokens))
    requests = d3.requests(question, files, top_n, usage=usage)
    return run(requests, d3.llm, usage=usage, workers=d3.settings.workers, on_reply=_check_reply)


def _check_reply(reply: Reply) -> None:
    """A server that fails ends the command: who asked for an LLM is not given something else in its place."""
    if reply.failure:
        raise reply.failure


def _answered(d3: D3, question: str, names: Names, found: Sequence[Ranked[Passage]]) -> Answer:
    """What the LLM answers from the evidence, which it reads under the names of its files."""
    read = []
    for item in found:
        name = Path(names[item.passage.metadata["document"]]).name
        title = " > ".join(filter(None, (name, item.passage.title)))
        read.append(Passage(item.passage.text, id=item.passage.id, title=title))
    settings, llm = d3.settings, d3.llm
    assert llm is not None
    said = answer(question, read, llm, max_prompt_tokens=settings.max_prompt_tokens, tokens=settings.tokens)
    for problem in said.problems:
        warnings.warn(f"Answering {question!r:.100}: {problem}.", DrillrankWarning, stacklevel=2)
    return said


def _record(question: str, names: Names, item: Ranked[Passage]) -> dict[str, object]:
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
        **{name: item.details[name] for name in ("version", "other_versions") if name in item.details},
        **({"also": also} if (also := _also(names, item)) else {}),
    }


def _also(names: Names, item: Ranked[Passage]) -> list[dict[str, object]]:
    """Where else the same stands."""
    places = item.details.get("also_at", ())
    return [{"file": names[at["document"]], "page": at.get("pages", (None,))[0]} for at in places]


def _told(ranking: EvidenceRanking, found: Sequence[Ranked[Passage]], names: Names) -> Explanations:
    """Of what was found, with the names of the files."""
    why = ranking.explain()
    entries = [
        replace(entry, name=f"{names[item.passage.metadata['document']]}: {entry.name}")
        for entry, item in zip(why, found, strict=False)
    ]
    tree = [replace(node, name=names[node.id or ""]) if node.kind == "document" else node for node in why.tree]
    return Explanations(entries, why.question, tree)


def _reasons(why: Explanations | None, place: int) -> dict[str, object]:
    """Fields of one record; the tree is the question's, and stands in its first."""
    if why is None:
        return {}
    told = why.to_dict()
    return {"explanation": told["entries"][place]} | ({"tree": told["tree"]} if place == 0 else {})


def _print(
    question: str,
    names: Names,
    found: Sequence[Ranked[Passage]],
    said: Answer | None,
    here: bool,
    by_words: bool,
) -> None:
    terminal.console.rule(f"Question: {one_line(question)}")
    if said is not None:
        text = f"[bold]{one_line(said.text)}[/bold]" if said.text else "The evidence holds no answer."
        terminal.console.print(text, soft_wrap=True)
        for place in said.citations:
            cited = found[place].passage
            label = escape(f"[{place + 1}]")
            terminal.console.print(f"{label} {_where(names, cited.metadata)} {one_line(cited.title)}", soft_wrap=True)
    if not found:
        terminal.console.print(
            "Nothing matched: no paragraph has a word of the question." if by_words else "The LLM chose nothing."
        )
        return
    if not here:
        terminal.console.print("Nothing here seems to speak of this. What is nearest:")
    table = Table("score", "where", "evidence", show_lines=True)
    for item in found:
        text = one_line(excerpt(item.passage.text, 5 * EXCERPT))
        if also := [_where(names, place) for place in item.details.get("also_at", ())]:
            text += f"\nThe same: {'; '.join(also[:_ALSO])}{f'; and {len(also) - _ALSO} more' * (len(also) > _ALSO)}"
        where = f"{_where(names, item.passage.metadata)}\n{one_line(item.passage.title)}{_version(item)}"
        score = f"{item.score:.3f}" if said is None else escape(f"[{item.rank}] {item.score:.3f}")
        table.add_row(score, where, text)
    terminal.console.print(table)


def _version(item: Ranked[Passage]) -> str:
    """Which version of several it stands in."""
    if not (others := item.details.get("other_versions")):
        return ""
    of = f" of {item.details['version']}" if "version" in item.details else ""
    more = f" and {len(others) - _ALSO} more" if len(others) > _ALSO else ""
    return f"\nThe version{of}; there are others: {', '.join(map(one_line, others[:_ALSO]))}{more}"


def _where(names: Names, place: Mapping[str, Any]) -> str:
    """Name of the file, pages and span."""
    where = [f"[bold]{one_line(names[place['document']])}[/bold]"]
    where += [page_range(place["pages"])] if "pages" in place else []
    where += [f"{place['start']}–{place['end']}"] if "start" in place else []
    return " ".join(where)


def _tell_skipped(read: int, skipped: Sequence[Skipped]) -> None:
    if skipped:
        tell("yellow", f"{read} files read, {len(skipped)} skipped:")
        for one in islice(skipped, _TOLD):
            tell("yellow", one.reason)
        if len(skipped) > _TOLD:
            tell("yellow", f"and {len(skipped) - _TOLD} more.")


def _tracked(files: Iterable[Any], number: int) -> Iterable[Any]:
    """Files that are read, with a progress bar where somebody sees it."""
    console = terminal.Terminal(stderr=True, highlight=False)
    if not console.is_terminal or number < _SLOW:
        return files
    return track(files, "Reading", number, console=console, transient=True)
