"""PDF: text with its places and fonts becomes Markdown with headings, tables and pages.

liteparse gives the text, PDFium the bookmarks. Both may crash, or never end, over a file that was made to harm, so
they run in a separate process (`drillrank.structure.isolation`).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from itertools import accumulate
from typing import Any, NamedTuple

from drillrank import limits
from drillrank.errors import InvalidInput, require
from drillrank.structure.formats import ConvertedText
from drillrank.structure.markdown import heading, prose, table
from drillrank.structure.pages import Pages
from drillrank.structure.pdf_layout import (
    Bookmark,
    PrintedBlock,
    Row,
    Run,
    blocks_of,
    by_fonts,
    marked_rows,
    rejoined,
    rows_of,
    run_of,
    without_running,
)

_BOOKMARKS = 20_000
_DEPTH = 15
_BATCH = 16  # pages that liteparse holds at once
_PASSWORD = 4  # PDFium's code of an error
_BELOW = 50.0  # points: what is written at an angle is no part of the last paragraph
_ENOUGH = 0.2  # bookmarks a page: then they are all headings that there are
_CONTINUED = re.compile(r"[\s\-–—]*\(?continued\)?\s*$", re.IGNORECASE)
_BULLET = re.compile(r"[•●◦▪■·–—*-]\s+")
_HYPHEN = re.compile(r"(\w*[^\W\d_])[-\u00ad]$")
_LONGEST_WORD = 100
_WORDS = re.compile(r"[^\W\d_]+")


def convert_pdf(content: bytes) -> ConvertedText:
    """Convert a PDF to Markdown with its pages.

    Headings are those of the file's bookmarks; where there are none or few, what stands out by its font. Running
    headers, footers and page numbers are left out. Tables have a row a line, cells between ` | `.

    Raises:
        InvalidInput: The file is broken or encrypted, or has no text.
        MissingExtra: The extra `files` is not installed.
    """
    return _convert(content, alone=False)


def convert_pdf_pages_alone(content: bytes) -> ConvertedText:
    """Convert a PDF without its bookmarks and page labels, over which liteparse may crash; see `convert_pdf`."""
    return _convert(content, alone=True)


def _convert(content: bytes, *, alone: bool) -> ConvertedText:
    printed = printed_pages(content, alone=alone)
    text, pages = text_of(printed)
    try:
        limits.check_extracted(len(text), len(content))
    except InvalidInput as problem:
        raise InvalidInput(f"cannot be read as PDF: {problem}.") from problem
    unread = [number for number, page in enumerate(printed.pages, 1) if page.is_broken]
    warnings = (
        (f"{len(unread)} of its pages cannot be read and are left out, page {unread[0]} first.",) if unread else ()
    )
    return ConvertedText(text, pages, warnings)


class PrintedPage(NamedTuple):
    """What a page shows."""

    rows: list[Row]
    label: str
    angle: int = 0  # of most of its text, clockwise
    is_broken: bool = False


class PrintedPages(NamedTuple):
    """What a file shows."""

    pages: list[PrintedPage]
    bookmarks: list[Bookmark]


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
    content = _pages_alone(content) if alone else content
    pages = _parsed(content)
    if turned := [(number, page.angle) for number, page in enumerate(pages, 1) if page.angle]:
        pages = _parsed(content, page_orientation_corrections=turned)
    if not any(row.text.strip() for page in pages for row in page.rows):
        raise InvalidInput("has no text: a scanned document? Recognise its text (OCR) first.")
    return PrintedPages(pages, bookmarks)


def text_of(printed: PrintedPages) -> tuple[str, Pages]:
    """The pages as Markdown."""
    rows = [row for page in printed.pages for row in page.rows]
    words = Counter(word for row in rows for word in _WORDS.findall(row.text.casefold()))
    pages = without_running([[rejoined(row, words) for row in page.rows] for page in printed.pages])
    marked = marked_rows(printed.bookmarks, pages)
    blocks = [blocks_of(rows, number, marked) for number, rows in enumerate(pages)]
    levels: dict[PrintedBlock, int] = {}
    if len(marked) < _ENOUGH * len(pages):
        deepest = max((level for entries in marked.values() for level in entries.values()), default=0)
        levels = by_fonts([block for page_blocks in blocks for block in page_blocks], deepest)
    return _written(blocks, levels, marked, [page.label for page in printed.pages], words)


def _broken(cause: object) -> InvalidInput:
    return InvalidInput(f"cannot be read as PDF, it is broken: {cause}")


def bookmarks_of(content: bytes) -> list[Bookmark]:
    """A file's outline; errors are those of `printed_pages`, for a file that cannot be opened."""
    pdfium = require("pypdfium2", "files")
    try:
        document = pdfium.PdfDocument(content)
    except (pdfium.PdfiumError, ValueError) as cause:
        if getattr(cause, "err_code", None) == _PASSWORD:
            raise InvalidInput("is encrypted: save a copy without a password first.") from cause
        raise _broken(cause) from cause
    if not len(document):
        raise InvalidInput("has no pages.")
    found: list[Bookmark] = []
    heights: dict[int, float] = {}
    for number, entry in enumerate(document.get_toc(max_depth=_DEPTH)):
        if number == _BOOKMARKS:
            break
        try:
            title, target = " ".join(entry.get_title().split()), entry.get_dest()
        except UnicodeDecodeError:  # half of a character
            continue
        page = None if target is None else target.get_index()
        if page is None or not 0 <= page < len(document):
            continue
        if page not in heights:
            try:
                heights[page] = document.get_page_size(page)[1]
            except pdfium.PdfiumError:  # the page is broken
                heights[page] = math.nan
        view = target.get_view()[1]
        above = view[1] if len(view) == 3 else view[0] if len(view) == 1 else None  # from the bottom
        y = math.nan if above is None else heights[page] - above
        found.append(Bookmark(title, entry.level + 1, page, y if math.isfinite(y) else None))
    return found


def _parsed(content: bytes, **options: Any) -> list[PrintedPage]:
    """All pages; one that liteparse cannot read is empty."""
    liteparse = require("liteparse", "files")
    options |= {"ocr_enabled": False, "image_mode": "off", "quiet": True}
    parser = liteparse.LiteParse(extract_text_metadata=True, continue_on_page_error=True, **options)
    pages: dict[int, PrintedPage] = {}
    total = 0
    try:
        for batch in parser.parse_batches(content, _BATCH):
            total = batch.total_pages
            pages |= {page.page_num: _page(page) for page in batch.result.pages}
    except liteparse.ParseError as cause:
        raise _broken(cause) from cause
    return [pages.get(number) or PrintedPage([], str(number), is_broken=True) for number in range(1, total + 1)]


def _page(page: Any) -> PrintedPage:
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
    return PrintedPage(rows, page.page_label or str(page.page_num), most if most % 90 == 0 else 0)


def _pages_alone(content: bytes) -> bytes:
    """The file without what is not a page: bookmarks that run in a circle crash liteparse."""
    pdfium = require("pypdfium2", "files")
    copy, saved = pdfium.PdfDocument.new(), BytesIO()
    try:
        copy.import_pages(pdfium.PdfDocument(content))
        copy.save(saved)
    except pdfium.PdfiumError as cause:
        raise _broken(cause) from cause
    return saved.getvalue()


def _written(
    pages: Sequence[Sequence[PrintedBlock]],
    levels: Mapping[PrintedBlock, int],
    marked: Mapping[Row, Mapping[str, int]],
    labels: Sequence[str],
    words: Collection[str],
) -> tuple[str, Pages]:
    """The whole file as Markdown.

    Args:
        pages: The blocks of each page.
        levels: Of blocks that are headings.
        marked: Titles and levels of bookmarks, by the row that they name.
        labels: Of the pages.
        words: Of the file.
    """
    parts: list[str] = []  # each behind what sets it apart from the one before
    firsts: list[int] = []  # of each page, the number of its first part
    last: PrintedBlock | None = None
    heading_above = ""
    for blocks in pages:
        firsts.append(len(parts))
        for block in blocks:
            entries = marked.get(block.rows[0], {})
            titles = entries or ({block.text: levels[block]} if block in levels else {})
            for title, level in titles.items():
                title = " ".join(title.split())
                title = _CONTINUED.sub("", title) or title
                if title != heading_above:  # else it says that the section goes on
                    parts.append(f"\n\n{heading(level, title)}")
                    heading_above, last = title, None
            if titles and (not entries or (len(block.rows) == 1 and _repeats(block.text, entries))):
                continue
            text = _shown(block, words)
            goes_on = last is not None and last.kind != "table" and last.page != block.page and block.kind != "item"
            goes_on = goes_on and text[:1].islower() and (parts[-1][-1].isalpha() or parts[-1][-1] == ",")
            parts.append(f" {text}" if goes_on else f"\n\n{text}")
            last = block
    ends = list(accumulate(map(len, parts), initial=-2))  # two line ends before the first part are left out
    result = f"{''.join(parts)[2:]}\n"
    places = [end + len(part) - len(part.lstrip()) for end, part in zip(ends, parts, strict=False)]
    places.append(len(result) - 1)  # a blank page begins where the next one does
    starts = tuple(min(places[first], len(result) - 1) for first in firsts)
    return result, Pages(starts, tuple(range(1, len(pages) + 1)), tuple(labels))


def _shown(block: PrintedBlock, words: Collection[str]) -> str:
    """A block as Markdown; a word parted at the end of a line is written as one if it is one of the file's."""
    if block.kind == "table":
        return table([row.cells for row in block.rows])
    parts: list[str] = []
    for row in block.rows:
        line = " | ".join(row.cells) if len(block.rows) == 1 and len(row.cells) > 1 else row.text
        parted = _HYPHEN.search(parts[-1][-_LONGEST_WORD:]) if parts else None
        rest = _WORDS.match(line)
        if parted and rest and (parted[1] + rest[0]).casefold() in words:
            parts[-1] = parts[-1][:-1]
        parts.append(line if parted or not parts else f" {line}")
    text = prose("".join(parts))
    return f"- {_BULLET.sub('', text, count=1)}" if block.kind == "item" and _BULLET.match(text) else text


def _repeats(text: str, titles: Iterable[str]) -> bool:
    """Whether a row says nothing but what its bookmark says."""
    words = _WORDS.findall(text.casefold())
    return any(words == _WORDS.findall(title.casefold())[: len(words)] for title in titles)
