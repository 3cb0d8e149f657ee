"""Annotations and form fields of a PDF page, as labelled lines of text."""

from __future__ import annotations

import ctypes
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any, NamedTuple

from drillrank.errors import require
from drillrank.structure.pdf_text import TextRun

_MOST_ANNOTATIONS = 1_000  # of one page
_MOST_BESIDE = 300  # runs at the height of one annotation
_LONGEST = 20_000  # characters of one annotation
_NOT_SHOWN = ("link", "popup", "widget")  # a popup repeats its note, a widget is a form field
_PASSWORD_FLAG = 1 << 13


class PageNote(NamedTuple):
    """Annotation or form field.

    Attributes:
        text: Label and content, such as "Note: three years".
        x: Left edge.
        y: Upper edge.
    """

    text: str
    x: float
    y: float


class _PrintedText:
    """Runs of a page by their height.

    Args:
        runs: Runs in any order.
    """

    def __init__(self, runs: Sequence[TextRun]) -> None:
        self._runs = sorted(runs, key=lambda run: run.middle)
        self._middles = [run.middle for run in self._runs]

    def runs_beside(self, rect: Any) -> list[TextRun]:
        """Return the runs at the height of a box, at most `_MOST_BESIDE`."""
        start = bisect_left(self._middles, rect.y - 1)
        end = bisect_right(self._middles, rect.y + rect.height + 1)
        return self._runs[start : min(end, start + _MOST_BESIDE)]

    def shows(self, text: str, rect: Any) -> bool:
        """Return True if the page shows a text at the height of a box."""
        if rect is None:
            return False
        runs = sorted(self.runs_beside(rect), key=lambda run: (round(run.middle), run.x))
        return "".join(text.split()) in "".join(run.text.replace(" ", "") for run in runs)


def read_notes(page: Any, page_runs: Sequence[TextRun], document: Any) -> list[PageNote]:
    """Return the notes, text boxes and filled form fields of a page, from top to bottom.

    Args:
        page: Page of liteparse.
        page_runs: Text of the page. A text box or field whose text is printed there is not repeated.
        document: File as a document of PDFium's, for fields that the form of the file does not list.
    """
    raw_annotations = (page.annotations or ())[:_MOST_ANNOTATIONS]
    form_fields = (page.form_fields or ())[:_MOST_ANNOTATIONS]
    printed = _PrintedText(page_runs)
    labelled: list[PageNote] = []
    for annotation in raw_annotations:
        contents = _clean(annotation.contents)
        is_drawn = annotation.subtype != "text" and printed.shows(contents, annotation.rect)
        if contents and annotation.subtype not in _NOT_SHOWN and not is_drawn:
            label = "Text box" if annotation.subtype == "freetext" else "Note"
            labelled.append(_place_note(f"{label}: {contents}", annotation.rect))
    field_texts = [(_field_text(form_field, printed), form_field.rect) for form_field in form_fields]
    labelled += [_place_note(text, rect) for text, rect in field_texts if text]
    if sum(annotation.subtype == "widget" for annotation in raw_annotations) > len(form_fields):
        labelled += _read_unlisted_fields(document, page.page_num - 1)
    return sorted(set(labelled), key=lambda note: (note.y, note.x))


def _field_text(form_field: Any, printed: _PrintedText) -> str:
    """Return label and value of a form field; an empty string if it has no value, or the page shows it."""
    name = _clean(form_field.alternate_name) or _clean(form_field.name)
    value = _clean(form_field.value)
    if form_field.type == "checkbox":
        return f"Check box ({name}): {'checked' if form_field.checked else 'not checked'}"
    if form_field.type == "radio":
        return f"Form field ({name}): {value}" if form_field.checked else ""
    if form_field.type == "pushbutton" or not value or form_field.field_flags & _PASSWORD_FLAG:
        return ""
    return "" if printed.shows(value, form_field.rect) else f"Form field ({name}): {value}"


def remove_check_marks(runs: Sequence[TextRun], page: Any) -> list[TextRun]:
    """Return the runs without the marks inside check boxes and radio buttons: in their font, a check mark is a "4"."""
    boxes = [
        form_field.rect
        for form_field in (page.form_fields or ())[:_MOST_ANNOTATIONS]
        if form_field.type in ("checkbox", "radio") and form_field.rect is not None
    ]
    if not boxes:
        return list(runs)
    marks = _PrintedText([run for run in runs if len(run.text) == 1])
    removed = {
        id(run)
        for box in boxes
        for run in marks.runs_beside(box)
        if box.x - 1 <= run.x + run.width / 2 <= box.x + box.width + 1
    }
    return [run for run in runs if id(run) not in removed]


def _read_unlisted_fields(document: Any, page_index: int) -> list[PageNote]:
    """Return the filled text fields of a page of PDFium's: those that the form of the file does not list."""
    pdfium = require("pypdfium2.raw", "files")

    page = pdfium.FPDF_LoadPage(document, page_index)
    if not page:
        return []
    height = pdfium.FPDF_GetPageHeightF(page)
    labelled: list[PageNote] = []
    for index in range(min(pdfium.FPDFPage_GetAnnotCount(page), _MOST_ANNOTATIONS)):
        annotation = pdfium.FPDFPage_GetAnnot(page, index)
        if not annotation:
            continue
        value, rect = _read_string(annotation, b"V"), pdfium.FS_RECTF()
        if pdfium.FPDFAnnot_GetSubtype(annotation) == pdfium.FPDF_ANNOT_WIDGET and value:
            pdfium.FPDFAnnot_GetRect(annotation, rect)
            name = _read_string(annotation, b"TU") or _read_string(annotation, b"T")
            labelled.append(PageNote(f"Form field ({name}): {value}", rect.left, height - rect.top))
        pdfium.FPDFPage_CloseAnnot(annotation)
    pdfium.FPDF_ClosePage(page)
    return labelled


def _read_string(annotation: Any, key: bytes) -> str:
    pdfium = require("pypdfium2.raw", "files")

    n_bytes = pdfium.FPDFAnnot_GetStringValue(annotation, key, None, 0)
    if not 2 < n_bytes <= 2 * _LONGEST:
        return ""
    buffer = ctypes.create_string_buffer(n_bytes)
    pdfium.FPDFAnnot_GetStringValue(annotation, key, ctypes.cast(buffer, ctypes.POINTER(pdfium.FPDF_WCHAR)), n_bytes)
    return _clean(buffer.raw.decode("utf-16-le", "replace"))


def _clean(text: str | None) -> str:
    return " ".join((text or "").replace("\0", " ")[:_LONGEST].split())


def _place_note(text: str, rect: Any) -> PageNote:
    return PageNote(text, rect.x, rect.y) if rect is not None else PageNote(text, 0.0, 0.0)
