"""Read a PDF file: liteparse gives the text with places and fonts, PDFium the bookmarks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from drillrank.errors import InvalidInput, require
from drillrank.structure.pages import Pages
from drillrank.structure.pdf.blocks import blocks_of
from drillrank.structure.pdf.headings import Bookmark, are_enough, by_fonts, marked_rows
from drillrank.structure.pdf.rows import Row, rows_of, run_of
from drillrank.structure.pdf.running import without_running
from drillrank.structure.pdf.writing import words_of, written

_SECONDS = 300.0  # for one file
_BOOKMARKS = 20_000
_DEPTH = 15
_PASSWORD = 4  # PDFium's code of an error
_PDFIUM = threading.Lock()  # PDFium serves one thread at a time


def read_pdf(path: Path) -> tuple[str, Pages]:
    """The text of a PDF file as Markdown, and its pages.

    Headings are those of the file's bookmarks; where there are none or few, what stands out by its font. Running
    headers, footers and page numbers are left out. Tables have a row a line, cells between ` | `.

    Raises:
        InvalidInput: the file is broken, encrypted, or has no text.
        MissingExtra: the extra `pdf` is not installed.
    """
    printed = printed_pages(path)
    if not any(row.text.strip() for rows in printed.pages for row in rows):
        raise InvalidInput(f"{path} has no text: a scanned document? Recognise its text (OCR) first.")
    return text_of(printed)


class PrintedPages(NamedTuple):
    """What a file shows: the rows and the label of each page, and its bookmarks."""

    pages: list[list[Row]]
    labels: list[str]
    bookmarks: list[Bookmark]


def printed_pages(path: Path) -> PrintedPages:
    """Read a file; errors are those of `read_pdf`."""
    with _PDFIUM:
        bookmarks = _bookmarks(path)
        return PrintedPages(*_pages(path), bookmarks)


def text_of(printed: PrintedPages) -> tuple[str, Pages]:
    """The pages as Markdown."""
    pages = without_running(printed.pages)
    marked = marked_rows(printed.bookmarks, pages)
    blocks = [blocks_of(rows, number, marked) for number, rows in enumerate(pages)]
    levels: dict[int, int] = {}
    if not are_enough(marked, len(pages)):
        deepest = max((level for entries in marked.values() for level, _ in entries), default=0)
        levels = by_fonts([block for own in blocks for block in own], deepest)
    words = words_of(row for rows in pages for row in rows)
    return written(blocks, levels, marked, printed.labels, words)


def _bookmarks(path: Path) -> list[Bookmark]:
    """The file's outline; also finds out whether it can be opened at all."""
    pdfium = require("pypdfium2", "pdf")
    try:
        document = pdfium.PdfDocument(path)
    except (pdfium.PdfiumError, ValueError) as cause:
        if getattr(cause, "err_code", None) == _PASSWORD:
            raise InvalidInput(f"{path} is encrypted: save a copy without a password first.") from cause
        raise InvalidInput(f"{path} cannot be read as PDF, it is broken: {cause}") from cause
    try:
        if not len(document):
            raise InvalidInput(f"{path} has no pages.")
        return list(_outline(document))
    finally:
        document.close()


def _outline(document: Any) -> Iterator[Bookmark]:
    heights: dict[int, float] = {}
    for number, entry in enumerate(document.get_toc(max_depth=_DEPTH)):
        if number == _BOOKMARKS:
            return
        target = entry.get_dest()
        page = None if target is None else target.get_index()
        if page is None or not 0 <= page < len(document):
            continue
        view = target.get_view()[1]
        above = view[1] if len(view) == 3 else view[0] if len(view) == 1 else None
        if page not in heights:
            heights[page] = document.get_page_size(page)[1]
        y = None if above is None else heights[page] - above
        yield Bookmark(" ".join(entry.get_title().split()), entry.level + 1, page, y)


def _pages(path: Path) -> tuple[list[list[Row]], list[str]]:
    parsed = _parsed(path)
    pages: list[list[Row]] = [[] for _ in range(parsed.total_pages)]
    labels = [str(number + 1) for number in range(len(pages))]
    for page in parsed.pages:
        items = (item for item in page.text_items if not item.rotation % 360)
        runs = [
            run_of(item.text, item.x, item.y, item.width, item.height, item.font_name or "", item.font_weight or 0)
            for item in items
        ]
        pages[page.page_num - 1] = rows_of(runs)
        labels[page.page_num - 1] = page.page_label or labels[page.page_num - 1]
    return pages, labels


def _parsed(path: Path) -> Any:
    """What liteparse makes of a file; of one that it cannot read, of its pages alone."""
    liteparse = require("liteparse", "pdf")
    options = {"ocr_enabled": False, "image_mode": "off", "extract_text_metadata": True, "continue_on_page_error": True}
    try:
        # A process of its own: files that were made to harm crash the library, or keep it busy for ever.
        with liteparse.LiteParse(**options, quiet=True, pool_size=1, parse_timeout=_SECONDS) as parser:
            try:
                return parser.parse(path)
            except liteparse.ParseTimeoutError:
                raise
            except liteparse.ParseError:
                return parser.parse(_pages_alone(path))
    except liteparse.ParseTimeoutError as cause:
        raise InvalidInput(f"{path} cannot be read as PDF: it took more than {_SECONDS:.0f} seconds.") from cause
    except (liteparse.ParseError, OSError, ValueError) as cause:
        raise InvalidInput(f"{path} cannot be read as PDF, it is broken: {cause}") from cause


def _pages_alone(path: Path) -> bytes:
    """The file without what is not a page: bookmarks that run in a circle crash liteparse."""
    pdfium = require("pypdfium2", "pdf")
    copy, content = pdfium.PdfDocument.new(), BytesIO()
    try:
        document = pdfium.PdfDocument(path)
        copy.import_pages(document)
        copy.save(content)
    except pdfium.PdfiumError as cause:
        raise ValueError(cause) from cause
    finally:
        copy.close()
    return content.getvalue()
