"""Superscripts of a PDF: exponents and marks of notes, which liteparse joins to the number or word before them.

liteparse gives no sizes of single letters. PDFium does: a superscript is smaller than the letter before it, and higher.
"""

from __future__ import annotations

import ctypes
import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from drillrank.errors import require

_MOST_OBJECTS = 1_500  # text objects of a page that are compared; pages that print letter by letter have more
_MOST_GLUED_OBJECTS = 20_000  # the same, if a number is joined to a word or to another number
_MOST_LARGE_PAGES = 3  # after which only pages with such a number are compared
_MOST_MARKS = 500  # superscripts of a page
_SMALLER = 0.85  # times the size of the letter before it
_HIGHER, _MUCH_HIGHER = 0.12, 0.8  # rise of the baseline, in sizes of the letter before it
_CONTEXT = 12  # letters before a superscript by which it is found in the text of the page
_MARK = re.compile(r"[+\-\u2212\u2013]?\d{1,3}(?:,\d{1,2}){0,3}|[a-z*†‡]")
_MAY_BE_GLUED = re.compile(r"[^\W\d_]{3}[.,;:!?)\]”’\"]?\d{1,2}(?![\w,.])|%\d|\d,\d{4,}")
_SPACES = re.compile(r"\s+")


class Superscript(NamedTuple):
    """Superscript of a page, with the letters before it without spaces."""

    before: str
    text: str


def split_superscripts(texts: Sequence[str], superscripts: Sequence[Superscript]) -> list[str]:
    """Return the texts of a page with "^" before each superscript.

    >>> split_superscripts(["Profit was 105 units", "in 1005"], [Superscript("was10", "5")])
    ['Profit was 10^5 units', 'in 1005']
    """
    compact_texts = [_SPACES.sub("", text) for text in texts]
    starts = list(accumulate((len(text) + 1 for text in compact_texts), initial=0))
    page = "\n".join(compact_texts)
    cuts: dict[int, list[int]] = {}
    offset = 0
    for superscript in superscripts:
        needle = superscript.before + superscript.text
        offset = page.find(needle, offset)
        if offset < 0:
            offset = page.find(needle)
        if offset < 0:
            offset = 0
            continue
        cut = offset + len(superscript.before)
        text_index = bisect_right(starts, cut) - 1
        cuts.setdefault(text_index, []).append(cut - starts[text_index])
        offset = cut
    return [_insert_carets(text, cuts.get(index, ())) for index, text in enumerate(texts)]


def _insert_carets(text: str, cuts: Sequence[int]) -> str:
    """Insert "^" at offsets that count no spaces, unless a space is there, too."""
    if not cuts:
        return text
    letters: list[str] = []
    n_letters, offsets = 0, set(cuts)
    for sign in text:
        if not sign.isspace():
            if n_letters in offsets and letters and not letters[-1].isspace():
                letters.append("^")
            n_letters += 1
        letters.append(sign)
    return "".join(letters)


class SuperscriptReader:
    """Reader of the superscripts of a file.

    Pages that print letter by letter take long to compare. After some of them, only pages are compared whose text
    shows a number that is joined to a word or to another number.

    Args:
        document: File as a document of PDFium's.
    """

    def __init__(self, document: Any) -> None:
        self._document = document
        self._n_large_pages = 0

    def read(self, page_index: int, texts: Sequence[str]) -> list[Superscript]:
        """Return the superscripts of a page that follow a letter or digit without a space, in the order of the file.

        Args:
            page_index: Index of the page, starting at 0.
            texts: Texts of the page as liteparse gives them.
        """
        pdfium = require("pypdfium2.raw", "files")

        may_be_glued = any(map(_MAY_BE_GLUED.search, texts))
        if not may_be_glued and self._n_large_pages >= _MOST_LARGE_PAGES:
            return []
        page = pdfium.FPDF_LoadPage(self._document, page_index)
        if not page:
            return []
        try:
            n_objects = pdfium.FPDFPage_CountObjects(page)
            self._n_large_pages += n_objects > _MOST_OBJECTS
            if n_objects > (_MOST_GLUED_OBJECTS if may_be_glued else _MOST_OBJECTS):
                return []
            points = _find_raised_objects(page, n_objects)
            return _read_marks(page, points[:_MOST_MARKS]) if points else []
        finally:
            pdfium.FPDF_ClosePage(page)


def _read_marks(page: Any, points: Sequence[tuple[float, float]]) -> list[Superscript]:
    pdfium = require("pypdfium2.raw", "files")

    text_page = pdfium.FPDFText_LoadPage(page)
    try:
        marks = [_read_superscript(text_page, x, y) for x, y in points]
    finally:
        pdfium.FPDFText_ClosePage(text_page)
    return [mark for mark in marks if mark is not None]


def _find_raised_objects(page: Any, n_objects: int) -> list[tuple[float, float]]:
    """Return a point inside each text object that is smaller than the one before it, and higher."""
    pdfium = require("pypdfium2.raw", "files")

    points: list[tuple[float, float]] = []
    size_value, matrix = ctypes.c_float(), pdfium.FS_MATRIX()
    edges = [ctypes.c_float() for _ in range(4)]
    last_size, last_baseline = 0.0, 0.0
    for index in range(n_objects):
        item = pdfium.FPDFPage_GetObject(page, index)
        if pdfium.FPDFPageObj_GetType(item) != pdfium.FPDF_PAGEOBJ_TEXT:
            continue
        pdfium.FPDFTextObj_GetFontSize(item, size_value)
        pdfium.FPDFPageObj_GetMatrix(item, matrix)
        size, baseline = abs(size_value.value * matrix.d), matrix.f
        rise = baseline - last_baseline
        if size < _SMALLER * last_size and _HIGHER * last_size < rise < _MUCH_HIGHER * last_size:
            pdfium.FPDFPageObj_GetBounds(item, *edges)
            x, bottom, right, top = (edge.value for edge in edges)
            points.append((x + min((right - x) / 2, size / 4), (bottom + top) / 2))
        else:  # a second superscript is compared with the text before the first
            last_size, last_baseline = size, baseline
    return points


def _read_superscript(text_page: Any, x: float, y: float) -> Superscript | None:
    """Return the superscript at a point, or None if the letters there are not one."""
    pdfium = require("pypdfium2.raw", "files")

    nearest = pdfium.FPDFText_GetCharIndexAtPos(text_page, x, y, 1.0, 1.0)
    # The letter before it may overlap its box.
    candidates = [index for index in (nearest, nearest + 1) if nearest >= 0 and index >= 1]
    index = next((index for index in candidates if _rise(text_page, index) > 0), None)
    if index is None:
        return None
    start = max(index - 2 * _CONTEXT, 0)
    buffer = (ctypes.c_ushort * (2 * _CONTEXT + 16))()
    n_units = pdfium.FPDFText_GetText(text_page, start, index - start + 8, buffer)
    text = bytes(buffer)[: 2 * max(n_units - 1, 0)].decode("utf-16-le", "replace")
    before, behind = text[: index - start], text[index - start :]
    baseline = _baseline(text_page, index)
    is_glued = before[-1:].isalnum() or before[-1:] in tuple('.,;:!?%)]”’"')
    n_raised = 0
    while n_raised < len(behind) and abs(_baseline(text_page, index + n_raised) - baseline) < 0.1:
        n_raised += 1
    mark = _MARK.fullmatch(behind[:n_raised].strip())
    if not is_glued or mark is None or (mark[0].isalpha() and not before[-1:].isdigit()):
        return None
    line = before.replace("\r", "\n").rpartition("\n")[2]
    return Superscript(_SPACES.sub("", line)[-_CONTEXT:], mark[0])


def _rise(text_page: Any, index: int) -> float:
    return _baseline(text_page, index) - _baseline(text_page, index - 1)


def _baseline(text_page: Any, index: int) -> float:
    pdfium = require("pypdfium2.raw", "files")

    x, y = ctypes.c_double(), ctypes.c_double()
    pdfium.FPDFText_GetCharOrigin(text_page, index, x, y)
    return y.value
