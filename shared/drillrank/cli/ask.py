"""`drillrank ask`: find evidence for questions in any number of files."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from drillrank.cli import terminal
from drillrank.cli.corpus import FileCorpus
from drillrank.cli.printing import print_evidence
from drillrank.cli.results import FileEvidence, QuestionEvidence
from drillrank.cli.sources import STANDARD_INPUT, list_input_files, read_named_document
from drillrank.cli.terminal import count_of, print_json, print_problem
from drillrank.corpus.documents import DEFAULT_UNIT
from drillrank.drilldown.answering import CitedAnswer, answer
from drillrank.drilldown.d3 import D3
from drillrank.drilldown.paragraph_scores import load_evidence_model
from drillrank.drilldown.prepared import PreparedCorpus
from drillrank.drilldown.result import EvidenceResult
from drillrank.drilldown.settings import D3Settings
from drillrank.errors import InvalidInput, warn
from drillrank.explanation import Explanations
from drillrank.files import cache_folder
from drillrank.likelihood import LanguageModel, UnigramModel
from drillrank.likelihood.chat import load_llm
from drillrank.llm import Reply, Usage, run
from drillrank.passages import Passage, check_query, check_top_n
from drillrank.rerank.upr import UPR
from drillrank.settings import as_settings
from drillrank.structure import breadcrumb
from drillrank.text import token_counter

_N_NAMED = 10  # skipped files that are named
_RETRIES = 2  # requests to the LLM's server after a failure; the user waits meanwhile


@dataclass(frozen=True, kw_only=True)
class FinderOptions:
    """Options of the commands that find evidence.

    Attributes:
        model: Specification of the language model; None for "unigram".
        language: Language of the unigram model's stemmer; None for "english".
        settings: Name of a file with settings of D3; None for the defaults.
        trust_settings: True if the settings may name folders, addresses, code and keys.
        as_of: Year, month or day: later files are not read.
        llm: Address of a served chat model; None chooses by likelihood.
    """

    model: str | None = None
    language: str | None = None
    settings: str | None = None
    trust_settings: bool = False
    as_of: str | None = None
    llm: str | None = None

    def build(self) -> D3:
        """Return D3 with these options.

        Raises:
            DrillrankError: One of the options cannot be used.
        """
        lm: str | LanguageModel | None = self.model
        if self.language is not None:
            lm = load_evidence_model(self.model or "unigram", language=self.language)
        arguments: dict[str, Any] = {"model": lm or "unigram"}
        if self.settings is not None:
            from drillrank.evaluation.settings_file import load_settings

            arguments = load_settings(self.settings, "D3", model=lm, trust=self.trust_settings)
        if self.as_of is not None:
            settings = as_settings(D3Settings, arguments.get("settings", {}))
            arguments["settings"] = replace(settings, as_of=self.as_of)
        return D3(load_llm(self.llm, retries=_RETRIES), **arguments)


def run_ask(
    words: Sequence[str],
    questions: str | None,
    *,
    with_answer: bool,
    top_n: int,
    as_json: bool,
    explain: bool,
    follow_links: bool,
    no_cache: bool,
    **options: Any,
) -> bool:
    """Print evidence for each question.

    Returns:
        True if there is evidence or, with `with_answer`, an answer for at least one question.

    Raises:
        InvalidInput: There is no question, there are no files, they cannot be read, or no model can answer.
    """
    finder = FinderOptions(**options)
    if with_answer and finder.llm is None:
        raise InvalidInput("--answer needs an LLM: give --llm http://host:port/v1#model.")
    files, all_questions = _split_words(words, questions)
    check_top_n(top_n)
    d3 = finder.build()
    if not isinstance(d3.language_model, UnigramModel):  # load it now, so that its errors come before any output
        UPR(d3.language_model).rank(all_questions[0], [Passage(all_questions[0])])
    corpus = _read_corpus(files, d3, follow_links=follow_links, no_cache=no_cache)
    is_success = False
    for question in all_questions:
        result = ask_files(d3, corpus, question, top_n, explain=explain)
        if with_answer:
            result = replace(result, answer=_answer_from_evidence(d3, result))
        is_success = is_success or result.is_success
        if as_json:
            for record in result.to_json():
                print_json(record)
        else:
            print_evidence(result)
    return is_success


def _split_words(words: Sequence[str], questions_file: str | None) -> tuple[list[str], list[str]]:
    """Return the files and the questions of a command.

    Args:
        words: Words of the command that are not options.
        questions_file: File with a question on each line; None if the last word is the question.

    Raises:
        InvalidInput: There is no question, or nothing to read.
    """
    files = list(words)
    if [*files, questions_file].count(STANDARD_INPUT) > 1:
        raise InvalidInput("Standard input can be read only once.")
    if questions_file is not None:
        lines = read_named_document(questions_file, " of questions").text.splitlines()
        questions = [*filter(None, map(str.strip, lines))]
        if not questions:
            raise InvalidInput(f"{questions_file} holds no question: write one on each line.")
    else:
        questions = [os.fsencode(files.pop()).decode("utf-8", "replace")] if files else []
        if not questions or os.path.lexists(questions[0]):
            after = f" after {questions[0]}, which is a file" if questions else ""
            raise InvalidInput(f'There is no question{after}: drillrank ask FILE... "question".')
    if not files and (sys.stdin is None or sys.stdin.isatty() or questions_file == STANDARD_INPUT):
        raise InvalidInput("There is nothing to read: name files or folders, or give a text on standard input.")
    return files or [STANDARD_INPUT], [*map(check_query, questions)]


def _read_corpus(files: Sequence[str], d3: D3, *, follow_links: bool, no_cache: bool) -> FileCorpus:
    """Read files, with progress and a summary of the skipped ones on standard error.

    Raises:
        InvalidInput: A file that the user named cannot be read, or there is no file that can.
    """
    sources, skipped = list_input_files(files, follow_links=follow_links)
    with terminal.progress("Reading") as on_progress:
        cache = None if no_cache else cache_folder()
        corpus = FileCorpus(
            sources, cache, d3.language_model.language, on_progress, unit=d3.settings.unit or DEFAULT_UNIT
        )
    skipped += corpus.skipped
    if not corpus.names:
        more = f"{len(skipped) - 1:,} more are skipped." if len(skipped) > 1 else ""
        reason = f"{skipped[0]} {more}" if skipped else ""
        raise InvalidInput(f"There is no file to read (hidden and ignored ones are passed over). {reason}")
    if skipped:
        print_problem("yellow", f"{count_of(len(corpus.names), 'file')} read, {len(skipped):,} skipped:")
        for reason in skipped[:_N_NAMED]:
            print_problem("yellow", reason)
        if len(skipped) > _N_NAMED:
            print_problem("yellow", f"and {len(skipped) - _N_NAMED:,} more.")
    return corpus


def ask_files(d3: D3, corpus: FileCorpus, question: str, top_n: int, *, explain: bool = False) -> QuestionEvidence:
    """Return the evidence for a question: what has a word of it, or what an LLM chose."""

    def retrieve(files: PreparedCorpus) -> EvidenceResult:
        if d3.llm is None:
            return d3.retrieve(question, files, top_n)
        usage = Usage(count=token_counter(d3.settings.tokens))
        requests = d3.drill_down(question, files, top_n, usage=usage)
        return run(requests, d3.llm, usage=usage, workers=d3.settings.workers, on_reply=_raise_failure)

    result = corpus.ask(d3, retrieve)
    matches = [item for item in result if d3.llm is not None or item.details.get("matched", True)]
    if d3.settings.as_of and not matches:
        warn(f"Files of later than {d3.settings.as_of} are left out.")
    result = replace(result, evidence=tuple(replace(item, rank=rank) for rank, item in enumerate(matches, start=1)))
    items = tuple(FileEvidence.from_ranked(item, corpus.names) for item in result)
    explanations = _explain_with_file_names(result, corpus.names) if explain else None
    return QuestionEvidence(question, result.found, items, explanations)


def _raise_failure(reply: Reply) -> None:
    """Raise the failure of a server: a user who asks for an LLM gets no evidence that it did not choose."""
    if reply.failure:
        raise reply.failure


def _answer_from_evidence(d3: D3, result: QuestionEvidence) -> CitedAnswer:
    """Return the LLM's answer from the evidence, which it reads under the names of the files."""
    passages = [
        Passage(item.text, title=" > ".join(filter(None, (Path(item.file).name, breadcrumb(item.section)))))
        for item in result.evidence
    ]
    settings, llm = d3.settings, d3.llm
    assert llm is not None
    llm_answer = answer(
        result.question, passages, llm, max_prompt_tokens=settings.max_prompt_tokens, tokens=settings.tokens
    )
    for problem in llm_answer.problems:
        warn(f"Answering {result.question!r:.100}: {problem}.")
    return llm_answer


def _explain_with_file_names(result: EvidenceResult, names: Mapping[str, str]) -> Explanations:
    """Return the explanations of evidence, with the names of the files."""
    why = result.explain()
    files = [names[item.passage.metadata["document"]] for item in result]
    entries = [replace(entry, name=f"{file}: {entry.name}") for entry, file in zip(why, files, strict=True)]
    tree = [replace(node, name=names[node.id or ""]) if node.kind == "document" else node for node in why.tree]
    return Explanations(entries, why.question, tree)
