"""PDF: text with its places and fonts becomes Markdown with headings, tables and pages.

liteparse gives the text, PDFium the bookmarks. Both may crash, or never end, over a file that was made to harm: they
run in a process of its own, which reads the file from its standard input and writes the text, or what is wrong, to its
standard output.
"""

from __future__ import annotations

import json
import math
import os
import re
import select
import signal
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from multiprocessing import spawn
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

from drillrank import limits
from drillrank.errors import DrillrankWarning, InvalidInput, MissingExtra, require
from drillrank.structure.markdown import heading, prose, table
from drillrank.structure.pages import Pages
from drillrank.structure.pdf_layout import (
    Bookmark,
    PrintedBlock,
    Row,
    Run,
    are_enough,
    blocks_of,
    by_fonts,
    marked_rows,
    rejoined,
    rows_of,
    run_of,
    without_continued,
    without_running,
)

SECONDS = 300  # for one file
MEMORY = 3 << 30  # bytes for one file, where the system has such limits; PDFium sets one gigabyte aside, used or not
# The paths are the caller's: one of its folder could hold a module that is named like one of the standard library.
_START = "import sys; sys.path[:] = sys.argv[4:]; from drillrank.structure.pdf import serve; serve()"
_FILE_BYTES = 64 << 20  # of what the process may write into files
# What a process needs of its environment; the rest may hold secrets.
_ENVIRONMENT = (
    *("PATH", "PYTHONHOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT"),
    *("HOME", "TMPDIR", "TEMP", "TMP", "LANG", "LC_ALL", "LC_CTYPE"),
)
_READER = "_DRILLRANK_PDF_READER"  # set in the environment of the process, which starts none of its own
_STARTED = b"\n"  # its first word, which JSON may begin with
_BOOKMARKS = 20_000
_DEPTH = 15
_BATCH = 16  # pages that liteparse holds at once
_PASSWORD = 4  # PDFium's code of an error
_BELOW = 50.0  # points: what is written at an angle is no part of the last paragraph
_BULLET = re.compile(r"[•●◦▪■·–—*-]\s+")
_HYPHEN = re.compile(r"(\w*[^\W\d_])[-\u00ad]$")
_LONGEST_WORD = 100
_WORDS = re.compile(r"[^\W\d_]+")


def read_pdf(path: Path) -> tuple[str, Pages]:
    """The text of a PDF file as Markdown, and its pages.

    Headings are those of the file's bookmarks; where there are none or few, what stands out by its font. Running
    headers, footers and page numbers are left out. Tables have a row a line, cells between ` | `.

    The interpreter of the process is `sys.executable`, or what `multiprocessing.set_executable` was told. Pages that
    cannot be read are left out, with a warning.

    Raises:
        InvalidInput: the file cannot be opened, is broken or encrypted, has no text, or takes more than 300 seconds or
            three gigabytes.
        MissingExtra: the extra `pdf` is not installed.
    """
    answer = _answer(path, alone=False)
    if "crashed" in answer:
        answer = _answer(path, alone=True)
    match answer:
        case {"text": text, "pages": pages, "unread": unread}:
            if unread:
                told = f"{path}: {len(unread)} of its pages cannot be read and are left out, page {unread[0]} first."
                warnings.warn(told, DrillrankWarning, stacklevel=3)
            return text, Pages.of(pages)
        case {"missing": missing}:
            raise MissingExtra(missing)
        case {"problem": problem}:
            raise InvalidInput(f"{path} {problem}")
    raise InvalidInput(
        f"{path} cannot be read as PDF: its reader crashed, or needed more than {MEMORY >> 30} GB. {answer['crashed']}"
    )


def _answer(path: Path, *, alone: bool) -> dict[str, Any]:
    """What the process says of a file."""
    settings = [str(SECONDS), str(MEMORY), str(int(alone))]
    python = os.fsdecode(spawn.get_executable() or "")
    if _READER in os.environ:
        return {"problem": _no_python(python, "it is this program, started once more")}
    try:
        file = path.open("rb")
    except OSError as cause:
        return {"problem": f"cannot be read: {cause.strerror}."}
    with file:
        try:
            done = subprocess.run(
                [python, "-c", _START, *settings, *map(str, sys.path)],
                stdin=file,
                capture_output=True,
                timeout=SECONDS,
                env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ} | {_READER: "1"},
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {"problem": f"cannot be read as PDF: it took more than {SECONDS} seconds."}
        except OSError as cause:
            return {"problem": _no_python(python, cause)}
    said = "".join(done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:])
    if not done.stdout.startswith(_STARTED):
        return {"problem": _no_python(python, said or f"it ended with {done.returncode}")}
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        answer = {"crashed": said}
    return answer


def _no_python(python: str, cause: object) -> str:
    return (
        f"cannot be read as PDF, which takes a Python that starts; {python!r} does not ({cause}). "
        "Name one with multiprocessing.set_executable."
    )


def serve() -> None:
    """Answer for the file on standard input; the whole work of the process."""
    seconds, memory, alone = map(int, sys.argv[1:4])
    answers = os.dup(1)
    os.dup2(2, 1)  # a library that prints shall not speak in between
    os.write(answers, _STARTED)
    _limit(seconds, memory, answers)
    answer = json.dumps(_read(sys.stdin.buffer.read(), alone=bool(alone)))
    with os.fdopen(answers, "w", encoding="ascii") as file:
        file.write(answer)
    os._exit(0)  # nothing is worth the time that tearing down takes


def _read(content: bytes, *, alone: bool) -> dict[str, Any]:
    try:
        printed = printed_pages(content, alone=alone)
        text, pages = text_of(printed)
    except MissingExtra as missing:
        return {"missing": str(missing)}
    except InvalidInput as problem:
        return {"problem": str(problem)}
    try:
        limits.check_extracted(len(text), len(content))
    except InvalidInput as problem:
        return {"problem": f"cannot be read as PDF: {problem}."}
    marks = list(zip(pages.starts, pages.numbers, pages.labels, strict=True))
    return {"text": text, "pages": marks, "unread": printed.unread}


def _limit(seconds: int, memory: int, answers: int) -> None:
    """Limits that hold even when the process that waits for this one is gone; with it, this one ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who waits for this process ends it
    try:
        import resource
    except ImportError:  # of POSIX
        return
    Thread(target=_end_unheard, args=(answers,), daemon=True).start()
    signal.alarm(seconds + 5)
    for limit, most in (
        (resource.RLIMIT_DATA, memory),
        (resource.RLIMIT_FSIZE, _FILE_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(limit)
        resource.setrlimit(limit, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _end_unheard(answers: int) -> None:
    """End when nobody is left to read the answers."""
    waiting = select.poll()
    waiting.register(answers, 0)
    waiting.poll()
    os._exit(1)


class PrintedPages(NamedTuple):
    """What a file shows: the rows and the label of each page, its bookmarks, and numbers of pages that are broken."""

    pages: list[list[Row]]
    labels: list[str]
    bookmarks: list[Bookmark]
    unread: list[int]


def printed_pages(content: bytes, *, alone: bool = False) -> PrintedPages:
    """Read a file.

    Args:
        content: Of the file.
        alone: Whether to give liteparse the pages alone, without bookmarks and labels, over which it may crash.

    Raises:
        InvalidInput: the file is broken, encrypted, or has no text; the message begins with what to say of the file.
        MissingExtra: the extra `pdf` is not installed.
    """
    bookmarks = bookmarks_of(content)
    pages = _pages(_pages_alone(content) if alone else content)
    if not any(row.text.strip() for page in pages for row in page.rows):
        raise InvalidInput("has no text: a scanned document? Recognise its text (OCR) first.")
    unread = [number for number, page in enumerate(pages, 1) if page.is_broken]
    return PrintedPages([page.rows for page in pages], [page.label for page in pages], bookmarks, unread)


def text_of(printed: PrintedPages) -> tuple[str, Pages]:
    """The pages as Markdown."""
    words = words_of(row for rows in printed.pages for row in rows)
    pages = without_running([[rejoined(row, words) for row in rows] for rows in printed.pages])
    marked = marked_rows(printed.bookmarks, pages)
    blocks = [blocks_of(rows, number, marked) for number, rows in enumerate(pages)]
    levels: dict[int, int] = {}
    if not are_enough(marked, len(pages)):
        deepest = max((level for entries in marked.values() for level in entries.values()), default=0)
        levels = by_fonts([block for own in blocks for block in own], deepest)
    return written(blocks, levels, marked, printed.labels, words)


def _broken(cause: object) -> InvalidInput:
    return InvalidInput(f"cannot be read as PDF, it is broken: {cause}")


def bookmarks_of(content: bytes) -> list[Bookmark]:
    """A file's outline; errors are those of `printed_pages`, for a file that cannot be opened."""
    pdfium = require("pypdfium2", "pdf")
    try:
        document = pdfium.PdfDocument(content)
    except (pdfium.PdfiumError, ValueError) as cause:
        if getattr(cause, "err_code", None) == _PASSWORD:
            raise InvalidInput("is encrypted: save a copy without a password first.") from cause
        raise _broken(cause) from cause
    if not len(document):
        raise InvalidInput("has no pages.")
    return list(_outline(document))


def _outline(document: Any) -> Iterator[Bookmark]:
    heights: dict[int, float | None] = {}
    for number, entry in enumerate(document.get_toc(max_depth=_DEPTH)):
        if number == _BOOKMARKS:
            return
        try:
            title, target = " ".join(entry.get_title().split()), entry.get_dest()
        except UnicodeDecodeError:  # half of a character
            continue
        page = None if target is None else target.get_index()
        if page is None or not 0 <= page < len(document):
            continue
        if page not in heights:
            heights[page] = _height(document, page)
        yield Bookmark(title, entry.level + 1, page, _below_top(heights[page], target.get_view()[1]))


def _height(document: Any, page: int) -> float | None:
    try:
        return float(document.get_page_size(page)[1])
    except require("pypdfium2", "pdf").PdfiumError:  # the page is broken
        return None


def _below_top(height: float | None, view: list[float]) -> float | None:
    """How far from the top of the page a target stands, if it says so."""
    above = view[1] if len(view) == 3 else view[0] if len(view) == 1 else None
    if height is None or above is None or not math.isfinite(height - above):
        return None
    return height - above


def _pages(content: bytes) -> list[_Page]:
    """All pages; one whose text stands on its side is turned."""
    pages = _parsed(content)
    turned = [(number, page.angle) for number, page in enumerate(pages, 1) if page.angle]
    if turned:
        pages = _parsed(content, page_orientation_corrections=turned)
    return pages


class _Page(NamedTuple):
    rows: list[Row]
    label: str
    angle: int = 0  # of most of its text, clockwise
    is_broken: bool = False


def _parsed(content: bytes, **options: Any) -> list[_Page]:
    """All pages; one that liteparse cannot read is empty."""
    liteparse = require("liteparse", "pdf")
    options |= {"ocr_enabled": False, "image_mode": "off", "quiet": True}
    parser = liteparse.LiteParse(extract_text_metadata=True, continue_on_page_error=True, **options)
    pages: dict[int, _Page] = {}
    total = 0
    try:
        for batch in parser.parse_batches(content, _BATCH):
            total = batch.total_pages
            pages |= {page.page_num: _page(page) for page in batch.result.pages}
    except liteparse.ParseError as cause:
        raise _broken(cause) from cause
    return [pages.get(number) or _Page([], str(number), is_broken=True) for number in range(1, total + 1)]


def _page(page: Any) -> _Page:
    """The rows of a page; what is written at another angle than most of it stands below."""
    runs: dict[int, list[Run]] = {}
    length: Counter[int] = Counter()
    for item in page.text_items:
        angle = round(item.rotation) % 360
        length[angle] += len(item.text)
        box = item.x, item.y, item.width, item.height
        if angle % 90:  # a stamp over the page: its box is no measure of its letters
            box = item.x, item.y, item.width, min(item.height, item.font_size or item.height)
        runs.setdefault(angle, []).append(run_of(item.text, box, item.font_name or "", item.font_weight or 0, angle))
    most = length.most_common(1)[0][0] if length else 0
    rows = rows_of(runs.pop(0, []))
    for _, others in sorted(runs.items()):
        top = max((row.bottom for row in rows), default=0.0) + _BELOW - min(run.y for run in others)
        rows += rows_of([replace(run, y=run.y + top) for run in others])
    return _Page(rows, page.page_label or str(page.page_num), most if most % 90 == 0 else 0)


def _pages_alone(content: bytes) -> bytes:
    """The file without what is not a page: bookmarks that run in a circle crash liteparse."""
    pdfium = require("pypdfium2", "pdf")
    copy, saved = pdfium.PdfDocument.new(), BytesIO()
    try:
        copy.import_pages(pdfium.PdfDocument(content))
        copy.save(saved)
    except pdfium.PdfiumError as cause:
        raise _broken(cause) from cause
    return saved.getvalue()


class MarkdownText:
    """A text that grows block by block.

    Args:
        words: All words of the file: a word that is parted at the end of a line is written as one if it is one of them.
    """

    def __init__(self, words: Collection[str]) -> None:
        self._words = words
        self._parts: list[str] = []
        self._length = 0
        self._last: PrintedBlock | None = None
        self._heading = ""

    def __str__(self) -> str:
        """The text so far."""
        return "".join(self._parts)

    def page(self) -> int:
        """A page begins: where what comes next will stand."""
        return self._length + (2 if self._parts else 0)

    def heading(self, level: int, title: str) -> None:
        """Write a heading, unless it only says that the section goes on."""
        title = without_continued(" ".join(title.split()))
        if title == self._heading:
            return
        self._heading = title
        self._write(heading(level, title))
        self._last = None

    def block(self, block: PrintedBlock) -> int | None:
        """Write a block; where it stands if it goes on with the sentence that the page before broke off."""
        if block.kind == "table":
            self._write(table([row.cells for row in block.rows]))
        else:
            text = self._prose(block.rows)
            if self._breaks_off(block, text):
                at = self._length + 1
                self._parts.append(f" {text}")
                self._length += len(text) + 1
                self._last = block
                return at
            self._write(f"- {_BULLET.sub('', text, count=1)}" if block.kind == "item" and _BULLET.match(text) else text)
        self._last = block
        return None

    def _breaks_off(self, block: PrintedBlock, text: str) -> bool:
        last = self._last
        if last is None or last.kind == "table" or last.page == block.page or block.kind == "item":
            return False
        before = self._parts[-1][-1:]
        return text[:1].islower() and (before.isalpha() or before == ",")

    def _write(self, text: str) -> None:
        if self._parts:
            text = f"\n\n{text}"
        self._parts.append(text)
        self._length += len(text)

    def _prose(self, rows: Sequence[Row]) -> str:
        parts: list[str] = []
        for row in rows:
            line = " | ".join(row.cells) if len(rows) == 1 and len(row.cells) > 1 else row.text
            parted = _HYPHEN.search(parts[-1][-_LONGEST_WORD:]) if parts else None
            rest = _WORDS.match(line)
            if parted and rest and (parted[1] + rest[0]).casefold() in self._words:
                parts[-1] = parts[-1][:-1]
            parts.append(line if parted or not parts else f" {line}")
        return prose("".join(parts))


def words_of(rows: Iterable[Row]) -> Counter[str]:
    """How often each word stands inside of lines."""
    return Counter(word for row in rows for word in _WORDS.findall(row.text.casefold()))


def written(
    pages: Sequence[Sequence[PrintedBlock]],
    levels: Mapping[int, int],
    marked: Mapping[int, Mapping[str, int]],
    labels: Sequence[str],
    words: Collection[str],
) -> tuple[str, Pages]:
    """The whole file as Markdown.

    Args:
        pages: The blocks of each page.
        levels: Of blocks that are headings, by identity.
        marked: Titles and levels of bookmarks, by the identity of the row that they name.
        labels: Of the pages.
        words: Of the file.
    """
    text = MarkdownText(words)
    starts = []
    for blocks in pages:
        starts.append(text.page())
        for number, block in enumerate(blocks):
            entries = marked.get(id(block.rows[0]), {})
            for title, level in entries.items():
                text.heading(level, title)
            said = block.text
            if id(block) in levels and not entries:
                text.heading(levels[id(block)], said)
            elif not (entries and len(block.rows) == 1 and _repeats(said, entries)):
                at = text.block(block)
                if at is not None and number == 0:
                    starts[-1] = at
    result = f"{text}\n"
    for number in reversed(range(len(starts))):  # a blank page begins where the next one does
        starts[number] = min([starts[number], len(result) - 1, *starts[number + 1 : number + 2]])
    return result, Pages(tuple(starts), tuple(range(1, len(pages) + 1)), tuple(labels))


def _repeats(said: str, titles: Iterable[str]) -> bool:
    """Whether a row says nothing but what its bookmark says."""
    words = _WORDS.findall(said.casefold())
    return any(words == _WORDS.findall(title.casefold())[: len(words)] for title in titles)
