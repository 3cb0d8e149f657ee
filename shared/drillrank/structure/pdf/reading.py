"""What a PDF file shows: liteparse gives the text with places and fonts, PDFium the bookmarks.

Both may crash or never end over a file that was made to harm; `isolated` is where that does no harm.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from typing import Any, NamedTuple

from drillrank.errors import InvalidInput, require
from drillrank.structure.pages import Pages
from drillrank.structure.pdf.blocks import blocks_of
from drillrank.structure.pdf.headings import Bookmark, are_enough, by_fonts, marked_rows
from drillrank.structure.pdf.rows import Row, rows_of, run_of
from drillrank.structure.pdf.running import without_running
from drillrank.structure.pdf.spacing import rejoined
from drillrank.structure.pdf.writing import words_of, written

_BOOKMARKS = 20_000
_DEPTH = 15
_BATCH = 16  # pages that liteparse holds at once
_PASSWORD = 4  # PDFium's code of an error


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
    angles: Counter[int] = Counter()
    runs = []
    for item in page.text_items:
        angle = round(item.rotation) % 360
        angles[angle] += len(item.text)
        if not angle:
            font, weight = item.font_name or "", item.font_weight or 0
            runs.append(run_of(item.text, item.x, item.y, item.width, item.height, font, weight))
    most = angles.most_common(1)[0][0] if angles else 0
    return _Page(rows_of(runs), page.page_label or str(page.page_num), most if most % 90 == 0 else 0)


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
