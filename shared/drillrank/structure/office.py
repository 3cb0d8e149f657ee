"""Word, PowerPoint and EPUB files as Markdown."""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any
from urllib.parse import unquote

from drillrank.errors import InvalidInput, require
from drillrank.structure.markdown_text import as_markdown, heading, prose, table
from drillrank.structure.pages import Pages
from drillrank.structure.parse import parse_document

Converted = tuple[str, Pages | None]
"""Markdown, and its pages: the slides of a presentation."""

_LARGEST = 500_000_000  # bytes of all parts of a file, unpacked
_ROOT_FILE = re.compile(r"""<rootfile\b[^>]*\bfull-path\s*=\s*["']([^"']+)""")
_TAG = re.compile(r"<(?:\w+:)?(item|itemref)\b([^>]*)>")
_ATTRIBUTE = re.compile(r"""([\w:-]+)\s*=\s*["']([^"']*)["']""")


def convert(content: bytes, ending: str) -> Converted:
    """The text of an office file.

    Args:
        content: Of the file.
        ending: Of its name, as in `CONVERTERS`.

    Raises:
        InvalidInput: the file is broken, protected by a password, or far larger unpacked than any document is.
        MissingExtra: the extra `office` is not installed.
    """
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            if sum(part.file_size for part in archive.infolist()) > _LARGEST:
                raise InvalidInput("it is too large when it is unpacked")
        return CONVERTERS[ending](content)
    except zipfile.BadZipFile as cause:
        raise InvalidInput("it is broken, or protected by a password") from cause


def _docx(content: bytes) -> Converted:
    page = require("mammoth", "office").convert_to_html(BytesIO(content), convert_image=_no_image).value
    return "\n\n".join(as_markdown(parse_document(page, "html"))), None


def _no_image(image: Any) -> list[Any]:  # noqa: ARG001  # mammoth's own would write all of it into the text
    return []


def _pptx(content: bytes) -> Converted:
    """Each slide is a section, and a page."""
    texts: list[str] = []
    marks: list[tuple[int, int, str]] = []
    length = 0
    for number, slide in enumerate(require("pptx", "office").Presentation(BytesIO(content)).slides, 1):
        text = "\n\n".join(_slide(slide, number))
        marks.append((length, number, str(number)))
        texts.append(text)
        length += len(text) + 2
    return "\n\n".join(texts), Pages.of(marks) if marks else None


def _slide(slide: Any, number: int) -> Iterator[str]:
    title = slide.shapes.title
    said = "" if title is None else title.text_frame.text.strip()
    yield heading(1, said or f"Slide {number}")
    for shape in slide.shapes:
        if title is not None and shape.shape_id == title.shape_id:
            continue
        if shape.has_text_frame:
            yield from (prose(text) for part in shape.text_frame.paragraphs if (text := " ".join(part.text.split())))
        if getattr(shape, "has_table", False):
            yield table([[" ".join(cell.text.split()) for cell in row.cells] for row in shape.table.rows])
    if slide.has_notes_slide and (notes := slide.notes_slide.notes_text_frame):
        yield from (prose(text) for part in notes.paragraphs if (text := " ".join(part.text.split())))


def _epub(content: bytes) -> Converted:
    """The chapters in the order in which a book is read."""
    with zipfile.ZipFile(BytesIO(content)) as book:
        root = _ROOT_FILE.search(_part(book, "META-INF/container.xml"))
        if root is None:
            raise InvalidInput("it does not say where its contents are")
        items: dict[str, str] = {}
        order: list[str] = []
        for kind, attributes in _TAG.findall(_part(book, root[1])):
            named = dict(_ATTRIBUTE.findall(attributes))
            if kind == "item":
                items[named.get("id", "")] = unquote(named.get("href", ""))
            else:
                order.append(named.get("idref", ""))
        folder = posixpath.dirname(root[1])
        names = [posixpath.normpath(posixpath.join(folder, items[id_])) for id_ in order if id_ in items]
        chapters = [_part(book, name) for name in names]
    return "\n\n".join(text for chapter in chapters for text in as_markdown(parse_document(chapter, "html"))), None


def _part(book: zipfile.ZipFile, name: str) -> str:
    try:
        return book.read(name).decode("utf-8-sig", errors="replace")
    except (KeyError, RuntimeError, NotImplementedError) as cause:  # not there, encrypted, packed in an unknown way
        raise InvalidInput(f"its part {name!r} cannot be read: {cause}") from cause


CONVERTERS: dict[str, Callable[[bytes], Converted]] = {".docx": _docx, ".pptx": _pptx, ".epub": _epub}
