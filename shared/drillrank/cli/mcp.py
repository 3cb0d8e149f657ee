"""`drillrank mcp FOLDER`: let agents ask about a folder over the Model Context Protocol."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, wraps
from importlib.metadata import version
from itertools import dropwhile, takewhile
from pathlib import Path
from threading import Lock
from typing import Any

from drillrank.cli.ask import ask_files
from drillrank.cli.corpus import FileCorpus
from drillrank.cli.options import EvidenceSize, FinderOptions
from drillrank.cli.sources import InputFile, list_input_files
from drillrank.corpus.documents import DEFAULT_UNIT
from drillrank.drilldown.d3 import D3
from drillrank.errors import DrillrankError, DrillrankWarning, InvalidInput, require, warn
from drillrank.files import cache_folder, is_outside
from drillrank.passages import check_query
from drillrank.structure import Document
from drillrank.structure.read import read_content

_MAX_READ_CHARACTERS = 20_000  # of one answer of `read`
_MAX_PROBLEMS = 10  # that an answer of `ask` names
_INSTRUCTIONS = (
    "Finds evidence in the files of one folder. Ask first: `ask` returns passages with their file, pages or lines, and "
    "section. `outline` lists the sections of a file, `read` returns the text of a file, a section or pages."
)
_NOTHING_MATCHED = "No passage has a word of the question. Ask again in words that the files may use."


class FolderTools:
    """Tools of agents: ask about the files that `list_files` finds in the working directory, and read these files.

    Nothing is written to the working directory.

    Args:
        d3: Component that finds the evidence.
        follow_links: True to follow links that lead outside the folder.
        cache: Folder of the cache; None for no cache.
    """

    def __init__(self, d3: D3, follow_links: bool = False, cache: Path | None = None) -> None:
        self._d3 = d3
        self._follow_links = follow_links
        self._cache = cache
        self._corpus: tuple[object, FileCorpus] | None = None

    def ask(
        self,
        question: str,
        as_of: str | None = None,
        top_n: int | None = None,
        max_tokens: int | None = None,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        hops: int | None = None,
    ) -> dict[str, Any]:
        """Find the passages that answer a question, best first, each with its file, pages or lines, and section.

        `finding` says how likely they answer it. If `found` is false, the files seem to speak of other subjects; ask
        once more in other words before you say that there is nothing. If `found` is absent, read the passages: the
        answer may be in them or near them. `best` is the paragraph of a passage that speaks most of the question.
        `from` says which passage of another file leads there, and by what link, title or name.

        Args:
            question: Question in words that the files may use.
            as_of: Date such as 2023-06: later files are left out, and the version of that time counts.
            top_n: Number of passages; 5 by default, or as many as fit in max_tokens.
            max_tokens: Size of all passages together, in tokens.
            include: Patterns such as *.md or notes/: only matching files are read.
            exclude: Patterns of files that are not read.
            hops: 2 for questions that need two files: links of the best passages are followed. 1 follows none.
        """
        check_query(question)
        size = EvidenceSize(top_n, max_tokens)
        d3 = self._d3
        overrides: dict[str, Any] = {"as_of": as_of, "hops": hops}
        overrides = {name: value for name, value in overrides.items() if value is not None}
        if overrides:
            d3 = D3(d3.llm, d3.language_model, embed=d3.embed, settings=replace(d3.settings, **overrides))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", DrillrankWarning)
            sources, skipped = self._sources(include, exclude)
            stamp = [(name, os.stat(source.path)[6:9]) for name, source in sources.items()]  # size, times
            if self._corpus is None or self._corpus[0] != stamp:
                files = [*sources.values()]
                self._corpus = (
                    stamp,
                    FileCorpus(files, self._cache, d3.language_model.language, unit=d3.settings.unit or DEFAULT_UNIT),
                )
            corpus = self._corpus[1]
            result = ask_files(d3, corpus, question, size)
        problems = [*skipped, *corpus.skipped, *(str(warning.message) for warning in caught)]
        record = result.to_json()
        answer: dict[str, Any] = {name: record[name] for name in ("found", "confidence") if name in record}
        answer["finding"] = result.finding or ("" if result.evidence else _NOTHING_MATCHED)
        answer |= {"evidence": record.get("evidence", []), "problems": problems[:_MAX_PROBLEMS]}
        return {name: value for name, value in answer.items() if value or name in ("found", "evidence")}

    def outline(self, file: str = "") -> list[dict[str, Any]]:
        """List the sections of a file with their pages and spans; without a file, list the files of the folder.

        Args:
            file: Name of a file, as `ask` returns it.
        """
        if not file:
            return [{"file": name} for name in self._sources()[0]]
        document = self._document(file)
        return [
            {
                "section": section.path,
                "pages": document.page_numbers(section.start, section.end),
                "span": [section.start, section.end],
            }
            for section in document.sections()
        ]

    def read(
        self, file: str, section: Sequence[str] | str = (), first_page: int = 0, last_page: int = 0, start: int = 0
    ) -> dict[str, Any]:
        """Read a file, a section with those in it, or pages; a long text in parts.

        Args:
            file: Name of a file, as `ask` returns it.
            section: Headings from the root to the section: a list, or with " > " between them.
            first_page: Number of the first page to read.
            last_page: Number of the last page; the first one by default.
            start: Offset at which to continue: `next` of the previous part.
        """
        document = self._document(file)
        begin, end = 0, len(document.text)
        if section:
            path = tuple(section.split(" > ") if isinstance(section, str) else section)
            begin, end = _find_section_span(document, path, file)
        elif first_page:
            begin, end = _find_page_span(document, first_page, last_page or first_page, file)
        begin = max(begin, start)
        stop = min(end, begin + _MAX_READ_CHARACTERS)
        return {"text": document.text[begin:stop], "span": [begin, stop], "next": stop if stop < end else None}

    def _sources(
        self, include: Sequence[str] = (), exclude: Sequence[str] = ()
    ) -> tuple[dict[str, InputFile], list[str]]:
        """Return the files of the folder by name, and messages about the skipped ones."""
        sources, skipped = list_input_files(["."], follow_links=self._follow_links, include=include, exclude=exclude)
        return {source.name: source for source in sources}, skipped

    def _document(self, file: str) -> Document:
        """Return a file of the folder.

        Raises:
            InvalidInput: The file is outside the folder, hidden or ignored, or cannot be read.
        """
        name = os.path.relpath(file) if file else ""
        source = self._sources()[0].get(name)
        if source is None:
            raise InvalidInput(f"{file:.200} is not a file of this folder: `outline` without a file lists them.")
        with source.name_in_errors():
            return _read_source(source, os.stat(name).st_mtime_ns)


def _find_section_span(document: Document, path: tuple[str, ...], file: str) -> tuple[int, int]:
    """Return the start and end of a section with the sections in it.

    Raises:
        InvalidInput: The document has no section of this path.
    """
    from_section = dropwhile(lambda section: section.path[: len(path)] != path, document.sections())
    sections = list(takewhile(lambda section: section.path[: len(path)] == path, from_section))
    if not sections:
        raise InvalidInput(f"{file} has no section {path!r:.200}: see its outline.")
    return sections[0].start, sections[-1].end


def _find_page_span(document: Document, first: int, last: int, file: str) -> tuple[int, int]:
    """Return the start and end of consecutive pages.

    Raises:
        InvalidInput: The document has no such pages.
    """
    pages = document.pages
    start_and_number = list(zip(pages.starts, pages.numbers, strict=True)) if pages else []
    starts = [start for start, number in start_and_number if first <= number <= last]
    if not starts:
        raise InvalidInput(f"{file} has no page {first}: see its outline.")
    starts_of_others = (start for start, _ in start_and_number if start > starts[-1])
    return starts[0], next(starts_of_others, len(document.text))


@lru_cache(maxsize=8)
def _read_source(file: InputFile, _time_of_change: int) -> Document:
    """Read a file, once for each time of its change."""
    return read_content(file.read(), file.path)


def serve(folder: str, follow_links: bool, no_cache: bool, **options: Any) -> None:
    """Answer on standard input and output until the input ends.

    Raises:
        DrillrankError: The folder is not one, the SDK is not installed, or an option cannot be used.
    """
    sdk = require("mcp.server.mcpserver", "mcp")
    exceptions = require("mcp.server.mcpserver.exceptions", "mcp")
    types = require("mcp.types", "mcp")
    cache = None if no_cache else cache_folder()
    if cache is not None and not is_outside(cache, Path(folder)):
        warn("Nothing is cached: the cache lies inside the folder.")
        cache = None
    d3 = FinderOptions(**options).build(cache)
    try:
        os.chdir(folder)
    except OSError as cause:
        raise InvalidInput(f"{folder:.200} is not a folder to ask about: {cause.strerror}.") from cause
    tools = FolderTools(d3, follow_links, cache)
    lock = Lock()  # one call at a time

    def report_errors(tool: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(tool)
        def call_tool(**arguments: Any) -> Any:
            try:
                with lock:
                    return tool(**arguments)
            except DrillrankError as error:
                raise exceptions.ToolError(str(error)) from error

        return call_tool

    server = sdk.MCPServer("drillrank", instructions=_INSTRUCTIONS, version=version("drillrank"), log_level="WARNING")
    for tool in (tools.ask, tools.outline, tools.read):
        server.add_tool(report_errors(tool), annotations=types.ToolAnnotations(read_only_hint=True))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(
            number, signal.SIG_DFL
        )  # Python would not interrupt the thread that reads, and no work is half done
    try:
        server.run("stdio")
    except Exception as group:  # a group of the tasks' errors: the client may be gone before it is answered
        if not hasattr(group, "split") or group.split(BrokenPipeError)[1]:
            raise
        raise BrokenPipeError from group
