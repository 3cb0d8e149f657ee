"""`drillrank mcp FOLDER`: agents ask about a folder, over the Model Context Protocol."""

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

from drillrank.cli.ask import ask_files, evidence_finder
from drillrank.cli.corpus import FileCorpus
from drillrank.cli.sources import InputFile, list_input_files
from drillrank.drilldown.d3 import D3
from drillrank.errors import DrillrankError, DrillrankWarning, InvalidInput, require, warn
from drillrank.files import cache_folder, is_outside
from drillrank.passages import check_query, check_top_n
from drillrank.structure import Document
from drillrank.structure.read import read_content

_CHARACTERS = 20_000  # of one answer of `read`
_PROBLEMS = 10  # that an answer of `ask` tells
_INSTRUCTIONS = (
    "Finds evidence in the files of one folder. Ask first: `ask` gives paragraphs with their file, page and section. "
    "`outline` shows the sections of a file, `read` the text of a file, a section or pages."
)


class FolderTools:
    """What agents may do: ask, and read what `list_files` finds in the working directory. Nothing is written there.

    Args:
        d3: Finds the evidence.
        follow_links: Whether links that lead outside the folder are followed.
        cache: Where documents are cached; None for nowhere.
    """

    def __init__(self, d3: D3, follow_links: bool = False, cache: Path | None = None) -> None:
        self._d3 = d3
        self._follow_links = follow_links
        self._cache = cache
        self._corpus: tuple[object, FileCorpus] | None = None

    def ask(self, question: str, as_of: str | None = None, top_n: int = 5) -> dict[str, Any]:
        """Find the paragraphs that answer a question, best first, each with its file, page and section.

        Where `found` is false, nothing in the folder seems to speak of it: say so, and take what is given as nearest.

        Args:
            question: In words that the files may use.
            as_of: A date, such as 2023-06: files of later are left out, and of versions the one of that time counts.
            top_n: How many paragraphs.
        """
        check_query(question)
        check_top_n(top_n)
        d3 = self._d3
        if as_of is not None:
            d3 = D3(d3.llm, d3.language_model, embed=d3.embed, settings=replace(d3.settings, as_of=as_of))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", DrillrankWarning)
            sources, skipped = self._sources()
            stamp = [(name, os.stat(source.path)[6:9]) for name, source in sources.items()]  # size, times
            if self._corpus is None or self._corpus[0] != stamp:
                files = [*sources.values()]
                self._corpus = stamp, FileCorpus(files, self._cache, d3.language_model.language, unit=d3.settings.unit)
            corpus = self._corpus[1]
            here, _, records = ask_files(d3, corpus, question, top_n)
        problems = [*skipped, *corpus.skipped, *(str(one.message) for one in caught)]
        return {
            "found": here and bool(records),
            "evidence": [{name: value for name, value in one.items() if name != "question"} for one in records],
            **({"problems": problems[:_PROBLEMS]} if problems else {}),
        }

    def outline(self, file: str = "") -> list[dict[str, Any]]:
        """The sections of a file, with their pages and spans; without a file, the files of the folder.

        Args:
            file: As `ask` names it.
        """
        if not file:
            return [{"file": name} for name in self._sources()[0]]
        document = self._document(file)
        spans = [(one.path, one.start, one.end) for one in document.sections()]
        return [{"section": path, "pages": document.page_numbers(*span), "span": span} for path, *span in spans]

    def read(
        self, file: str, section: Sequence[str] | str = (), first_page: int = 0, last_page: int = 0, start: int = 0
    ) -> dict[str, Any]:
        """The text of a file, of a section with those in it, or of pages; a long one in parts.

        Args:
            file: As `ask` names it.
            section: Its headings, from the root: a list, or with " > " between them.
            first_page: The first page to read.
            last_page: The last one; the first by default.
            start: Where to read on, as `next` of the part before says.
        """
        document = self._document(file)
        begin, end = 0, len(document.text)
        if section:
            path = tuple(section.split(" > ") if isinstance(section, str) else section)
            from_there = dropwhile(lambda one: one.path[: len(path)] != path, document.sections())
            inside = list(takewhile(lambda one: one.path[: len(path)] == path, from_there))
            if not inside:
                raise InvalidInput(f"{file} has no section {section!r:.200}: see its outline.")
            begin, end = inside[0].start, inside[-1].end
        elif first_page:
            marks = list(zip(document.pages.starts, document.pages.numbers, strict=True)) if document.pages else []
            inside_pages = [at for at, number in marks if first_page <= number <= (last_page or first_page)]
            if not inside_pages:
                raise InvalidInput(f"{file} has no page {first_page}.")
            begin, end = inside_pages[0], next((at for at, _ in marks if at > inside_pages[-1]), end)
        begin = max(begin, start)
        stop = min(end, begin + _CHARACTERS)
        return {"text": document.text[begin:stop], "span": [begin, stop], "next": stop if stop < end else None}

    def _sources(self) -> tuple[dict[str, InputFile], list[str]]:
        sources, skipped = list_input_files(["."], follow_links=self._follow_links)
        return {source.name: source for source in sources}, skipped

    def _document(self, file: str) -> Document:
        """A file of the folder.

        Raises:
            InvalidInput: it is outside, hidden or ignored, or cannot be read.
        """
        name = os.path.relpath(file) if file else ""
        source = self._sources()[0].get(name)
        if source is None:
            raise InvalidInput(f"{file:.200} is no file of this folder: `outline` without a file lists them.")
        with source.name_in_errors():
            return _parsed(source, os.stat(name).st_mtime_ns)


@lru_cache(maxsize=8)
def _parsed(file: InputFile, _changed: int) -> Document:
    return read_content(file.read(), file.path)


def serve(folder: str, follow_links: bool, no_cache: bool, **options: Any) -> None:
    """Answer on standard input and output until the input ends.

    Raises:
        DrillrankError: the folder is none, the SDK is not installed, or an option cannot be used.
    """
    sdk = require("mcp.server.mcpserver", "mcp")
    exceptions = require("mcp.server.mcpserver.exceptions", "mcp")
    types = require("mcp.types", "mcp")
    d3 = evidence_finder(**options)
    cache = None if no_cache else cache_folder()
    try:
        os.chdir(folder)
    except OSError as cause:
        raise InvalidInput(f"{folder:.200} is no folder to ask about: {cause.strerror}.") from cause
    if cache is not None and not is_outside(cache, Path()):
        warn("Nothing is cached: the cache lies inside the folder.")
        cache = None
    tools = FolderTools(d3, follow_links, cache)
    one_at_a_time = Lock()

    def reporting(tool: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(tool)
        def showing_warnings(**arguments: Any) -> Any:
            try:
                with one_at_a_time:
                    return tool(**arguments)
            except DrillrankError as error:
                raise exceptions.ToolError(str(error)) from error

        return showing_warnings

    server = sdk.MCPServer("drillrank", instructions=_INSTRUCTIONS, version=version("drillrank"), log_level="WARNING")
    for tool in (tools.ask, tools.outline, tools.read):
        server.add_tool(reporting(tool), annotations=types.ToolAnnotations(read_only_hint=True))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)  # nothing is half done; the thread that reads would not be interrupted
    try:
        server.run("stdio")
    except Exception as group:  # of tasks: the client may be gone before it is answered
        if not hasattr(group, "split") or group.split(BrokenPipeError)[1]:
            raise
        raise BrokenPipeError from group
