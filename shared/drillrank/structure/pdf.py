"""PDF files: text with its boxes and fonts becomes Markdown with headings, tables and pages.

liteparse reads the text, PDFium the bookmarks. A malicious file may crash both or keep them busy, so they run in a
separate process (`drillrank.structure.isolation`). The other modules `pdf_*` lay out what is read here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from typing import Any, NamedTuple

from drillrank import limits
from drillrank.errors import InvalidInput, require
from drillrank.structure.formats import ConvertedText
from drillrank.structure.pages import Pages
from drillrank.structure.pdf_annotations import PageNote, read_notes, remove_check_marks
from drillrank.structure.pdf_columns import layout_rows
from drillrank.structure.pdf_headings import Bookmark
from drillrank.structure.pdf_markdown import render_pages
from drillrank.structure.pdf_scripts import SuperscriptReader, split_superscripts
from drillrank.structure.pdf_text import LayoutRow, TextRun, make_text_run
from drillrank.structure.pdf_words import is_letter_spaced, join_spaced_letters

_MOST_BOOKMARKS = 20_000
_OUTLINE_DEPTH = 15
_MOST_PAGES = 20_000
_MOST_RUNS = 100_000  # texts of one page
_LONGEST_LABEL = 100  # characters
_LONGEST_TITLE = 1_000  # characters of a bookmark
_BATCH_PAGES = 16  # pages that liteparse keeps in memory
_PASSWORD_ERROR = 4  # code of PDFium
_BELOW = 50.0  # points; text at another angle does not continue the last paragraph


def convert_pdf(content: bytes) -> ConvertedText:
    """Convert a PDF to Markdown with its pages.

    Bookmarks of the file are its headings. If there are none or few, text that stands out by its font is a heading.
    Running heads, running feet and page numbers are left out. Tables have one line per row, with ` | ` between cells.

    Raises:
        InvalidInput: The file is broken or encrypted, or has no text.
        MissingExtra: The extra `files` is not installed.
    """
    return _convert(content, pages_only=False)


def convert_pdf_pages_alone(content: bytes) -> ConvertedText:
    """Convert a PDF without its bookmarks and page labels, which may crash liteparse; see `convert_pdf`."""
    return _convert(content, pages_only=True)


def _convert(content: bytes, *, pages_only: bool) -> ConvertedText:
    printed = read_printed_pages(content, pages_only=pages_only)
    text, pages = render_printed_pages(printed)
    _check_size(len(text), len(content))
    return ConvertedText(text, pages, tuple(_unread_parts(printed)))


def _unread_parts(printed: PrintedPages) -> Iterator[str]:
    """Yield a warning for each kind of content that is left out."""
    if unread := [number for number, page in enumerate(printed.pages, 1) if page.is_broken]:
        yield f"{len(unread)} of its pages cannot be read and are left out, page {unread[0]} first."
    if printed.n_pages > len(printed.pages):
        n_more = printed.n_pages - len(printed.pages)
        yield f"{n_more} of its pages are left out: the first {_MOST_PAGES} are read. Split the file."
    if shortened := [number for number, page in enumerate(printed.pages, 1) if page.is_shortened]:
        yield f"{len(shortened)} of its pages are read in part, page {shortened[0]} first: over {_MOST_RUNS} texts."


class PrintedPage(NamedTuple):
    """Content of a page.

    Attributes:
        rows: Rows in reading order.
        label: Printed label, or the page's number.
        angle: Clockwise rotation of most of the text: 0, 90, 180 or 270 degrees.
        is_broken: True if the page cannot be read.
        is_shortened: True if the page has more texts than are read.
        annotations: Annotations and form fields.
    """

    rows: list[LayoutRow]
    label: str
    angle: int = 0
    is_broken: bool = False
    is_shortened: bool = False
    annotations: tuple[PageNote, ...] = ()


class PrintedPages(NamedTuple):
    """Content of a file.

    Attributes:
        pages: Pages that were read.
        bookmarks: Outline of the file.
        n_pages: Number of pages of the file.
    """

    pages: list[PrintedPage]
    bookmarks: list[Bookmark]
    n_pages: int


def read_printed_pages(content: bytes, *, pages_only: bool = False) -> PrintedPages:
    """Read the pages and bookmarks of a file.

    Args:
        content: Bytes of the file.
        pages_only: True gives liteparse a copy without bookmarks and labels, which may crash it.

    Raises:
        InvalidInput: The file is broken, encrypted, or has no text; the message continues the file's name.
        MissingExtra: The extra `files` is not installed.
    """
    document = _open_document(content)
    bookmarks = _read_bookmarks(document)
    if pages_only:
        content = _copy_pages(document)
        document = _open_document(content)
    pages = _parse_pages(content, document)
    if turned := [(number, page.angle) for number, page in enumerate(pages, 1) if page.angle]:
        pages = _parse_pages(content, document, page_orientation_corrections=turned)
    if not any(row.text.strip() for page in pages for row in page.rows) and not any(page.annotations for page in pages):
        raise InvalidInput("has no text: a scanned document? Recognise its text (OCR) first.")
    return PrintedPages(pages, bookmarks, len(document))


def render_printed_pages(printed: PrintedPages) -> tuple[str, Pages]:
    """Return the Markdown of the pages, and the offset of each page."""
    return render_pages(
        [page.rows for page in printed.pages],
        [page.label for page in printed.pages],
        printed.bookmarks,
        [page.annotations for page in printed.pages],
    )


def _broken_file(cause: object) -> InvalidInput:
    return InvalidInput(
        f"cannot be read as PDF, because the file is damaged: {str(cause).rstrip('.')}. Replace it with an intact "
        "copy, or leave it out (on the command line: --exclude)."
    )


def _open_document(content: bytes) -> Any:
    """Return the file as a document of PDFium with at least one page."""
    pdfium = require("pypdfium2", "files")
    try:
        document = pdfium.PdfDocument(content)
    except (pdfium.PdfiumError, ValueError) as cause:
        if getattr(cause, "err_code", None) == _PASSWORD_ERROR:
            raise InvalidInput("is encrypted: save a copy without a password first.") from cause
        raise _broken_file(cause) from cause
    if not len(document):
        raise InvalidInput("has no pages.")
    return document


def count_pages(content: bytes) -> int:
    """Return the number of pages of a PDF, at least 1, without reading them.

    Raises:
        InvalidInput: The file is broken or encrypted, or has no pages.
        MissingExtra: The extra `files` is not installed.
    """
    return len(_open_document(content))


def _read_bookmarks(document: Any) -> list[Bookmark]:
    """Return the outline of a file."""
    bookmarks: list[Bookmark] = []
    page_heights: dict[int, float] = {}
    for count, entry in enumerate(document.get_toc(max_depth=_OUTLINE_DEPTH)):
        if count == _MOST_BOOKMARKS:
            break
        try:
            title, target = " ".join(entry.get_title()[:_LONGEST_TITLE].split()), entry.get_dest()
        except UnicodeDecodeError:  # half of a character
            continue
        page_index = None if target is None else target.get_index()
        if page_index is None or not 0 <= page_index < len(document):
            continue
        if page_index not in page_heights:
            page_heights[page_index] = _page_height(document, page_index)
        view = target.get_view()[1]
        from_bottom = view[1] if len(view) == 3 else view[0] if len(view) == 1 else None
        y = math.nan if from_bottom is None else page_heights[page_index] - from_bottom
        bookmarks.append(Bookmark(title, entry.level + 1, page_index, y if math.isfinite(y) else None))
    return bookmarks


def _page_height(document: Any, page_index: int) -> float:
    pdfium = require("pypdfium2", "files")
    try:
        return float(document.get_page_size(page_index)[1])
    except pdfium.PdfiumError:  # the page is broken
        return math.nan


def _parse_pages(content: bytes, document: Any, **options: Any) -> list[PrintedPage]:
    """Return all pages; a page that liteparse cannot read is empty."""
    liteparse = require("liteparse", "files")
    n_pages = min(len(document), _MOST_PAGES)
    options |= {"ocr_enabled": False, "image_mode": "off", "quiet": True, "max_pages": n_pages}
    options |= {"extract_text_metadata": True, "extract_annotations": True, "extract_form_fields": True}
    parser = liteparse.LiteParse(continue_on_page_error=True, **options)
    pages: dict[int, PrintedPage] = {}
    n_characters = 0
    superscripts = SuperscriptReader(document)
    try:
        for batch in parser.parse_batches(content, _BATCH_PAGES):
            n_pages = max(n_pages, min(batch.total_pages, _MOST_PAGES))
            for page in batch.result.pages:
                n_characters += sum(len(item.text) for item in page.text_items)
                pages[page.page_num] = _printed_page(page, document, superscripts)
            _check_size(n_characters, len(content))
    except liteparse.ParseError as cause:
        raise _broken_file(cause) from cause
    return [pages.get(number) or PrintedPage([], str(number), is_broken=True) for number in range(1, n_pages + 1)]


def _check_size(n_characters: int, n_bytes: int) -> None:
    try:
        limits.check_extracted(n_characters, n_bytes)
    except InvalidInput as problem:
        raise InvalidInput(f"cannot be read as PDF: {problem}.") from problem


def _printed_page(page: Any, document: Any, superscripts: SuperscriptReader) -> PrintedPage:
    """Return the rows of a page; text at another angle than most of it follows below."""
    items = page.text_items[:_MOST_RUNS]
    texts = [
        join_spaced_letters(item.text, item.char_codes) if is_letter_spaced(item.text) else item.text for item in items
    ]
    texts = split_superscripts(texts, superscripts.read(page.page_num - 1, texts))
    runs_by_angle: dict[int, list[TextRun]] = {}
    n_characters: Counter[int] = Counter()
    for item, text in zip(items, texts, strict=True):
        angle = round(item.rotation) % 360
        n_characters[angle] += len(text)
        box = item.x, item.y, item.width, item.height
        if angle % 90:  # the box of a diagonal stamp is not as high as its letters
            box = item.x, item.y, item.width, min(item.height, item.font_size or item.height)
        run = make_text_run(text, box, item.font_name or "", item.font_weight or 0, angle)
        runs_by_angle.setdefault(angle, []).append(run)
    main_angle = n_characters.most_common(1)[0][0] if n_characters else 0
    upright = remove_check_marks(runs_by_angle.pop(0, []), page)
    rows = layout_rows(upright)
    for _, runs in sorted(runs_by_angle.items()):
        offset = max((row.bottom for row in rows), default=0.0) + _BELOW - min(run.y for run in runs)
        rows += layout_rows([replace(run, y=run.y + offset) for run in runs])
    return PrintedPage(
        rows,
        (page.page_label or str(page.page_num))[:_LONGEST_LABEL],
        main_angle if main_angle % 90 == 0 else 0,
        is_shortened=len(page.text_items) > _MOST_RUNS,
        annotations=tuple(read_notes(page, upright, document)),
    )


def _copy_pages(document: Any) -> bytes:
    """Return the file with its pages alone: bookmarks that form a circle crash liteparse."""
    pdfium = require("pypdfium2", "files")
    copy, saved = pdfium.PdfDocument.new(), BytesIO()
    try:
        copy.import_pages(document)
        copy.save(saved)
    except pdfium.PdfiumError as cause:
        raise _broken_file(cause) from cause
    return saved.getvalue()
