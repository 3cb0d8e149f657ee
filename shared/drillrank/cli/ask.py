"""`drillrank ask`: evidence for questions, in any number of files."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.padding import Padding

from drillrank.cli import terminal
from drillrank.cli.corpus import FileCorpus, cache_folder
from drillrank.cli.sources import STANDARD_INPUT, list_input_files, read_named_document
from drillrank.cli.terminal import EXCERPT, counted, excerpt, one_line, print_json, tell
from drillrank.drilldown.answering import CitedAnswer, answer
from drillrank.drilldown.d3 import D3, EvidenceRanking
from drillrank.drilldown.evidence import load_evidence_model
from drillrank.drilldown.prepared import PreparedCorpus
from drillrank.drilldown.settings import D3Settings
from drillrank.errors import InvalidInput, warn
from drillrank.explanation import Explanations
from drillrank.explanation.explanations import SCORING
from drillrank.likelihood import LanguageModel, UnigramModel
from drillrank.likelihood.chat import load_llm
from drillrank.llm import Reply, Usage, run
from drillrank.passages import Passage, Ranked, Ranking, check_query, check_top_n
from drillrank.rerank.upr import UPR
from drillrank.settings import as_settings
from drillrank.structure import breadcrumb
from drillrank.structure.pages import page_range
from drillrank.text import token_counter

Record = dict[str, Any]
"""A paragraph as JSON has it."""
_FIELDS = ("question", "rank", "score", "scoring", "file", "page", "last_page", "section", "span", "text", "found")
_TOLD = 10  # skipped files that are named
_ALSO = 3  # places of the same text that are named
_RETRIES = 2  # of the LLM's server: somebody waits
_NOT_HERE = "Nothing here seems to speak of this. What is nearest: "
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
    files, all_questions = _files_and_questions(words, questions)
    check_top_n(top_n)
    d3 = evidence_finder(llm=llm, **options)
    if not isinstance(d3.language_model, UnigramModel):  # loaded now, what is wrong with it is told first
        UPR(d3.language_model).rank(all_questions[0], [Passage(all_questions[0])])
    sources, skipped = list_input_files(files, follow_links=follow_links)
    with terminal.progress("Reading") as on_progress:
        corpus = FileCorpus(sources, None if no_cache else cache_folder(), d3.language_model.language, on_progress)
    skipped += corpus.skipped
    if not corpus.names:
        reason = f"{skipped[0]} " + f"{len(skipped) - 1:,} more are skipped." * (len(skipped) > 1) if skipped else ""
        raise InvalidInput(f"There is no file to read (hidden and ignored ones are passed over). {reason}")
    if skipped:
        tell("yellow", f"{counted(len(corpus.names), 'file')} read, {len(skipped):,} skipped:")
        more = [f"and {len(skipped) - _TOLD:,} more."] * (len(skipped) > _TOLD)
        for reason in [*skipped[:_TOLD], *more]:
            tell("yellow", reason)
    found_any = False
    for question in all_questions:
        here, found, records = ask_files(d3, corpus, question, top_n)
        found_answer = _answered(d3, question, records) if with_answer else None
        found_any = found_any or bool((records and here) if found_answer is None else found_answer.text)
        explanation = _explained(found, corpus.names) if explain else None
        (_print_json if as_json else _print)(question, records, found_answer, explanation)
    return found_any


def _files_and_questions(words: Sequence[str], file: str | None) -> tuple[list[str], list[str]]:
    files = list(words)
    if [*files, file].count(STANDARD_INPUT) > 1:
        raise InvalidInput("Standard input can be read only once.")
    if file is not None:
        lines = read_named_document(file, " of questions").text.splitlines()
        questions = [*filter(None, map(str.strip, lines))]
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


def ask_files(d3: D3, corpus: FileCorpus, question: str, top_n: int) -> tuple[bool, Ranking[Passage], list[Record]]:
    """Whether anything speaks of a question; what holds a word of it, or an LLM chose; and that as JSON has it."""

    def ask(files: PreparedCorpus) -> EvidenceRanking:
        if d3.llm is None:
            return d3.retrieve(question, files, top_n)
        usage = Usage(count=token_counter(d3.settings.tokens))
        requests = d3.requests(question, files, top_n, usage=usage)
        return run(requests, d3.llm, usage=usage, workers=d3.settings.workers, on_reply=_check_reply)

    ranking = corpus.ask(d3, ask)
    matched = [item for item in ranking if d3.llm is not None or item.details.get("matched", True)]
    if d3.settings.as_of and not matched:
        warn(f"Files of later than {d3.settings.as_of} are left out.")
    found = Ranking[Passage]([replace(item, rank=rank) for rank, item in enumerate(matched, start=1)], ranking.why)
    return ranking.found, found, [_record(question, corpus.names, item, ranking.found) for item in found]


def _check_reply(reply: Reply) -> None:
    """A server that fails ends the command: who asked for an LLM is not given something else in its place."""
    if reply.failure:
        raise reply.failure


def _answered(d3: D3, question: str, records: Sequence[Record]) -> CitedAnswer:
    """What the LLM answers from the evidence, which it reads under the names of its files."""
    titles = [" > ".join(filter(None, (Path(one["file"]).name, breadcrumb(one["section"])))) for one in records]
    read = [Passage(one["text"], title=title) for one, title in zip(records, titles, strict=True)]
    settings, llm = d3.settings, d3.llm
    assert llm is not None
    found_answer = answer(question, read, llm, max_prompt_tokens=settings.max_prompt_tokens, tokens=settings.tokens)
    for problem in found_answer.problems:
        warn(f"Answering {question!r:.100}: {problem}.")
    return found_answer


def _explained(found: Ranking[Passage], names: Mapping[str, str]) -> Explanations:
    """With the names of the files."""
    why = found.explain()
    files = [names[item.passage.metadata["document"]] for item in found]
    entries = [replace(entry, name=f"{file}: {entry.name}") for entry, file in zip(why, files, strict=True)]
    tree = [replace(node, name=names[node.id or ""]) if node.kind == "document" else node for node in why.tree]
    return Explanations(entries, why.question, tree)


def _record(question: str, names: Mapping[str, str], item: Ranked[Passage], here: bool) -> Record:
    location, details = item.passage.metadata, item.details
    first, last = location.get("pages", (None, None))
    also = [{"file": names[at["document"]], "page": at.get("pages", (None,))[0]} for at in details.get("also_at", ())]
    return {
        "question": question,
        "rank": item.rank,
        "score": item.score,
        "scoring": SCORING,
        "file": names[location["document"]],
        "page": first,
        "last_page": last,
        "section": location["section_path"],
        "span": [location["start"], location["end"]] if "start" in location else None,
        "text": item.passage.text,
        "found": here,
        **{name: details[name] for name in ("version", "other_versions") if name in details},
        **({"also": also} if also else {}),
    }


def _print_json(
    question: str, records: Sequence[Record], found_answer: CitedAnswer | None, why: Explanations | None
) -> None:
    if found_answer is not None:
        cited = [records[at] for at in found_answer.citations]
        print_json({"question": question, "answer": found_answer.text or None, "citations": cited})
    explanation = why.to_dict() if why else {}
    tree = {"tree": explanation["tree"]} if "tree" in explanation else {}
    explained = [{"explanation": entry} for entry in explanation.get("entries", ())] or [{}] * len(records)
    for location, one in enumerate(records):
        print_json(one | explained[location] | (tree if location == 0 else {}))
    if not records:
        print_json({**dict.fromkeys(_FIELDS), "question": question, "found": False, **tree})


def _print(
    question: str, records: Sequence[Record], found_answer: CitedAnswer | None, why: Explanations | None
) -> None:
    out = terminal.console
    out.rule(f"Question: {one_line(question)}")
    if found_answer is not None:
        out.print(f"[bold]{one_line(found_answer.text or 'The evidence holds no answer.')}[/bold]", soft_wrap=True)
        for at in found_answer.citations:
            out.print(f"{escape(f'[{at + 1}]')} {_where(records[at])}", soft_wrap=True)
    if not records:
        out.print("Nothing matched: no paragraph has a word of the question, or the LLM chose none.")
    else:
        out.print("[dim]" + ("" if records[0]["found"] else _NOT_HERE) + _LEGEND + "[/dim]")
    for one in records:
        out.print(f"\n{one['rank']}. {_where(one)} [dim]{one['score']:.3f}[/dim]", soft_wrap=True)
        out.print(Padding(one_line(excerpt(one["text"], 5 * EXCERPT)), (0, 0, 0, 3), expand=False))
        if "other_versions" in one:
            of = f" of {one['version']}" if "version" in one else ""
            others = map(one_line, one["other_versions"])
            out.print(f"   The version{of}; there are others: {_some(others)}", soft_wrap=True)
        if "also" in one:
            out.print(f"   The same stands in {_some(map(_where, one['also']))}", soft_wrap=True)
    if why is not None:
        out.print(why)


def _some(items: Iterable[str]) -> str:
    """The first ones, and how many more."""
    some = list(items)
    return ", ".join(some[:_ALSO]) + f" and {len(some) - _ALSO} more" * (len(some) > _ALSO)


def _where(one: Mapping[str, Any]) -> str:
    """Name of the file, pages, span and headings."""
    where = [f"[bold]{one_line(one['file'])}[/bold]"]
    where += [page_range((one["page"], one.get("last_page", one["page"])))] if one["page"] is not None else []
    where += ["–".join(map(str, one["span"]))] if one.get("span") else []
    return " ".join([*where, one_line(breadcrumb(one.get("section", ())))]).rstrip()
