"""`drillrank ask`: find evidence for questions in any number of files."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.filesize import decimal

from drillrank.cli import terminal
from drillrank.cli.corpus import FileCorpus
from drillrank.cli.lines import LineNumbers
from drillrank.cli.options import EvidenceSize, FinderOptions
from drillrank.cli.printing import print_evidence
from drillrank.cli.results import CheckedSentence, FileEvidence, QuestionEvidence
from drillrank.cli.sources import STANDARD_INPUT, InputFile, list_input_files, read_named_document
from drillrank.cli.terminal import count_of, print_json, print_problem
from drillrank.corpus.documents import DEFAULT_UNIT
from drillrank.drilldown.answering import CITED_ANSWER_PROMPT, CitedAnswer, answer
from drillrank.drilldown.d3 import D3
from drillrank.drilldown.prepared import PreparedCorpus
from drillrank.drilldown.result import EvidenceResult
from drillrank.errors import InvalidInput, warn
from drillrank.explanation import Explanations
from drillrank.files import cache_folder
from drillrank.generation.support import check_support
from drillrank.likelihood import LanguageModel, SumOfExperts, UnigramModel
from drillrank.passages import Passage, Ranked, check_query
from drillrank.prompts import check_placeholders
from drillrank.rerank.upr import UPR
from drillrank.structure import breadcrumb

_PASSED_OVER = "Hidden and ignored files are passed over, and those that --include and --exclude leave out."
_N_NAMED = 10  # skipped files that are named
_PROBE = "drillrank"  # a question and a passage; what a model computes of a passage may be stored, so not the user's
_N_PRECOMPUTED = 100  # passages for each question
_N_SPARE = 10  # passages that are read in addition where some of the best have no word of the question


def run_ask(
    words: Sequence[str],
    questions: str | None,
    *,
    with_answer: bool,
    answer_prompt: str | None,
    top_n: int | None,
    max_tokens: int | None,
    as_json: bool,
    explain: bool,
    include: Sequence[str],
    exclude: Sequence[str],
    follow_links: bool,
    no_cache: bool,
    precompute: bool = False,
    **options: Any,
) -> bool:
    """Print evidence for each question. `drillrank ask --help` explains the options.

    Returns:
        True if there is evidence or, with `with_answer`, an answer for at least one question.

    Raises:
        InvalidInput: The question or the files are missing, a file cannot be read, or no model can answer.
    """
    finder = FinderOptions(**options)
    if with_answer and finder.llm is None:
        raise InvalidInput("--answer needs an LLM: give --llm http://host:port/v1#model.")
    prompt = _read_answer_prompt(answer_prompt)
    files, all_questions = _split_words(words, questions)
    size = EvidenceSize(top_n, max_tokens)
    cache = None if no_cache else cache_folder()
    d3 = finder.build(cache)
    if precompute:
        _check_prefix_cache(d3.language_model)
    if not isinstance(d3.language_model, UnigramModel):  # load it now, so that its errors come before any output
        UPR(d3.language_model).rank(_PROBE, [Passage(_PROBE)])
    listed = list_input_files(files, follow_links=follow_links, include=include, exclude=exclude)
    corpus = read_corpus(*listed, d3, cache)
    if precompute:
        _precompute(d3, corpus, all_questions)
    is_success = False
    for question in all_questions:
        result = ask_files(d3, corpus, question, size, explain=explain)
        if with_answer:
            result = _add_answer(d3, result, prompt)
        is_success = is_success or result.is_success
        _print_result(result, as_json)
    return is_success


def _print_result(result: QuestionEvidence, as_json: bool) -> None:
    if as_json:
        print_json(result.to_json())
    else:
        print_evidence(result)


def _read_answer_prompt(file: str | None) -> str:
    """Return the prompt in a file, ours for None.

    Raises:
        InvalidInput: The file cannot be read, or its text lacks a placeholder.
    """
    if file is None:
        return CITED_ANSWER_PROMPT
    prompt = read_named_document(file, " of the prompt").text
    check_placeholders(prompt, "contents", "question")
    return prompt


def _split_words(words: Sequence[str], questions_file: str | None) -> tuple[list[str], list[str]]:
    """Return the files and the questions of a command.

    Args:
        words: Words of the command that are not options.
        questions_file: File with a question on each line; None if the last word is the question.

    Raises:
        InvalidInput: The question is missing, or there is nothing to read.
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
            after = f" after {questions[0]}, which exists as a file or folder" if questions else ""
            raise InvalidInput(f'The question is missing{after}. Give it last: drillrank ask FILE... "question".')
    if not files and (sys.stdin is None or sys.stdin.isatty() or questions_file == STANDARD_INPUT):
        raise InvalidInput("There is nothing to read: name files or folders, or give a text on standard input.")
    return files or [STANDARD_INPUT], [*map(check_query, questions)]


def read_corpus(sources: list[InputFile], skipped: list[str], d3: D3, cache: Path | None) -> FileCorpus:
    """Read files, with progress and a summary of the skipped ones on standard error.

    Args:
        sources: Files to read.
        skipped: Messages about files that are not among them.
        d3: Component that will be asked.
        cache: Folder of the cache; None for no cache.

    Raises:
        InvalidInput: A file that the user named cannot be read, or none of the files can.
    """
    with terminal.progress("Reading") as on_progress:
        corpus = FileCorpus(
            sources, cache, d3.language_model.language, on_progress, unit=d3.settings.unit or DEFAULT_UNIT
        )
    skipped = skipped + corpus.skipped
    if not corpus.names:
        more = f"{len(skipped) - 1:,} more are skipped." if len(skipped) > 1 else ""
        reason = f"{skipped[0]} {more}" if skipped else ""
        raise InvalidInput(f"There are no files to read. {_PASSED_OVER} {reason}".rstrip())
    if skipped:
        n_more = len(skipped) - _N_NAMED
        details = [*skipped[:_N_NAMED], f"and {n_more:,} more."] if n_more > 0 else skipped
        print_problem("yellow", f"{count_of(len(corpus.names), 'file')} read, {len(skipped):,} skipped:", details)
    return corpus


def _check_prefix_cache(language_model: LanguageModel) -> None:
    if not _has_prefix_cache(language_model):
        raise InvalidInput(
            f"--precompute needs a Hugging Face model and the cache, got {language_model.spec!r:.200}. Give --model "
            "unigram+hf:DIR without --no-cache."
        )


def _has_prefix_cache(model: LanguageModel) -> bool:
    """Return True if a model, or an expert of a sum, keeps what it computes of passages."""
    experts = model.experts if isinstance(model, SumOfExperts) else [model]
    return any(expert.options.get("prefix_cache") is not None for expert in experts)


def _precompute(d3: D3, corpus: FileCorpus, questions: Sequence[str]) -> None:
    """Let the model compute the passages that the first stage ranks best for each question.

    Raises:
        InvalidInput: They do not fit into the cache.
    """

    def list_passages(files: PreparedCorpus) -> list[Passage]:
        passages = [one for question in questions for one in d3.list_first_stage(question, files, _N_PRECOMPUTED)]
        return list({(passage.title, passage.text): passage for passage in passages}.values())

    passages, ranker = corpus.ask(d3, list_passages), UPR(d3.language_model)
    estimate = ranker.estimate_precompute(passages)
    size = f"{count_of(len(passages), 'passage')} of {decimal(estimate.n_bytes)}"
    if not estimate.fits:
        raise InvalidInput(
            f"--precompute would keep {size}, got room for {decimal(estimate.max_bytes)}. Raise --prefix-cache, "
            "or ask fewer questions at once."
        )
    print_problem("dim", f"Computing {size}, in about {estimate.seconds:,.0f} s.")
    with terminal.progress("Computing passages") as on_progress:
        ranker.precompute(passages, on_progress)


def ask_files(
    d3: D3, corpus: FileCorpus, question: str, size: EvidenceSize, *, explain: bool = False
) -> QuestionEvidence:
    """Return the evidence for a question, under the names of the files.

    Args:
        d3: Component that finds the evidence.
        corpus: The files.
        question: The question.
        size: Size of the evidence.
        explain: True to explain each score.
    """

    def report(files: PreparedCorpus) -> QuestionEvidence:
        result = _retrieve(d3, files, question, size)
        line_numbers = LineNumbers(corpus)
        rank_by_id = {item.passage.id: item.rank for item in result}
        return QuestionEvidence(
            question,
            result.found,
            tuple(FileEvidence.from_ranked(item, corpus.names, line_numbers, rank_by_id) for item in result),
            result.confidence,
            result.scoring,
            _explain_with_file_names(result, corpus.names) if explain else None,
            gap=result.gap if result.evidence else "",
        )

    evidence = corpus.ask(d3, report)
    if d3.settings.as_of and not evidence.evidence:
        warn(
            f"No match. Files dated after {d3.settings.as_of} were not searched. Give a later --as-of to include them."
        )
    return evidence


def _retrieve(d3: D3, files: PreparedCorpus, question: str, size: EvidenceSize) -> EvidenceResult:
    """Return the evidence for a question.

    Without an LLM and an encoder, evidence that has no word of the question is dropped if other evidence has one. It is
    dropped before the result is cut to its size, so that it never takes the place of the answer. If no text of the
    files has a word of the question, the evidence is all that the files say, or nothing if they say more.
    """
    top_n = size.choose_top_n(d3.settings)
    result = d3.retrieve(question, files, top_n, max_tokens=size.max_tokens)
    if d3.llm is not None or d3.embed is not None:
        return result
    if any(item.details.get("nothing_matched") for item in result):
        return result if len(result) == len(files.document_of) else result[:0]
    if not all(map(_is_match, result)) and top_n is not None and len(result) == top_n:
        result = d3.retrieve(question, files, top_n + _N_SPARE, max_tokens=size.max_tokens)
    matches = [item for item in result if _is_match(item)] or [*result]  # perhaps only texts that are not in it match
    entries = enumerate(matches[:top_n], start=1)
    return replace(result, evidence=tuple(replace(item, rank=rank) for rank, item in entries))


def _is_match(item: Ranked[Passage]) -> bool:
    """Return True if evidence has a word of the question, or if a link of other evidence leads to it."""
    return item.details.get("matched", True) or "link" in item.details


def _add_answer(d3: D3, result: QuestionEvidence, prompt: str) -> QuestionEvidence:
    """Return the evidence with the LLM's answer from it, and what supports each sentence of the answer."""
    llm_answer = _answer_from_evidence(d3, result, prompt)
    return replace(result, answer=llm_answer, checked=tuple(match_evidence(d3, llm_answer.text, result.evidence)))


def _answer_from_evidence(d3: D3, result: QuestionEvidence, prompt: str) -> CitedAnswer:
    """Return the LLM's answer from the evidence, which it reads under the names of the files."""
    passages = [Passage(item.text, title=_title(item)) for item in result.evidence]
    settings, llm = d3.settings, d3.llm
    assert llm is not None
    llm_answer = answer(
        result.question,
        passages,
        llm,
        max_prompt_tokens=settings.max_prompt_tokens,
        tokens=settings.tokens,
        prompt=prompt,
    )
    for problem in llm_answer.problems:
        warn(f"Answering a question: {problem}.")
    return llm_answer


def match_evidence(d3: D3, answer: str, evidence: Sequence[FileEvidence]) -> list[CheckedSentence]:
    """Check which sentences of an answer some evidence supports, in the language of D3."""
    passages = [Passage(item.text, id=str(index), title=_title(item)) for index, item in enumerate(evidence)]
    return [
        CheckedSentence(judgment, tuple(evidence[int(passage.id)] for passage in judgment.passages))
        for judgment in check_support(answer, passages, language=d3.language_model.language)
    ]


def _title(item: FileEvidence) -> str:
    """Return the name of the file and the headings of evidence."""
    return " > ".join(filter(None, (Path(item.file).name, breadcrumb(item.section))))


def _explain_with_file_names(result: EvidenceResult, names: Mapping[str, str]) -> Explanations:
    """Return the explanations of evidence, with the names of the files."""
    why = result.explain()
    files = [names[item.passage.metadata["document"]] for item in result]
    entries = [replace(entry, name=f"{file}: {entry.name}") for entry, file in zip(why, files, strict=True)]
    tree = [replace(node, name=names[node.id or ""]) if node.kind == "document" else node for node in why.tree]
    return Explanations(entries, why.question, tree)
