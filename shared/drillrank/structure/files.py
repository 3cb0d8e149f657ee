"""Read a file, whatever it is written in, as a document."""

from __future__ import annotations

import codecs
import os
import re
import warnings
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

from drillrank.errors import DrillrankWarning, InvalidInput, MissingExtra
from drillrank.files import opened
from drillrank.structure.document import Document
from drillrank.structure.office import CONVERTERS, Converted, convert
from drillrank.structure.parse import PARSER_VERSION, parse_document

FORMATS = "PDF, DOCX, PPTX, EPUB, Markdown, HTML, LaTeX or plain text"
_NO_LATIN = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_BOMS = {codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32"}  # before those of UTF-16, which begin alike
_BOMS |= {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_PDF = b"%PDF-"
_HEAD = 1024  # bytes
_CHUNK = 1 << 20  # bytes


def read_document(path: str | os.PathLike[str], *, max_depth: int | None = None) -> Document:
    r"""Read a file as a document with its section tree.

    What is no text is written as Markdown first, which is then the document's text: all offsets count its characters.
    A PDF's document has `pages`; of a presentation the slides are the pages.

    Args:
        path: A PDF (with the extra `pdf`), a DOCX or PPTX file (with the extra `office`), an EPUB, or a text in one of
            the formats that `parse_document` knows, in UTF-8, or in UTF-16 or UTF-32 with its mark.
        max_depth: As for `parse_document`.

    Raises:
        InvalidInput: the file cannot be opened, is broken or encrypted, is a scan without text, or of another kind;
            the message names it.
        MissingExtra: what reads this kind of file is not installed.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "sea.md")
    ...     _ = file.write_text("# Sea\n\nDeep.")
    ...     read_document(file).sections()[0].path
    ('Sea',)
    """
    path = Path(path)
    with opened(path) as file:
        content = file.read(_HEAD)
        is_pdf = path.suffix.lower() == ".pdf" or content.lstrip().startswith(_PDF)
        content += b"" if is_pdf else file.read()
    if is_pdf:
        from drillrank.structure.pdf import read_pdf

        text, pages = read_pdf(path)
        return replace(parse_document(text, "markdown", max_depth=max_depth), pages=pages)
    if (ending := path.suffix.lower()) in CONVERTERS:
        text, slides = _converted(content, ending, path)
        return replace(parse_document(text, "markdown", max_depth=max_depth), pages=slides)
    return parse_document(_decoded(content, path), metadata={"file_name": path.name}, max_depth=max_depth)


def file_key(path: str | os.PathLike[str]) -> bytes:
    """A hash of all that `read_document` depends on: the content, the ending of the name, and the parsers' version.

    Raises:
        InvalidInput: the file cannot be read.
    """
    path = Path(path)
    hashed = blake2b(f"{PARSER_VERSION} {path.suffix.lower()}\0".encode("utf-8", "surrogateescape"), digest_size=20)
    with opened(path) as file:
        while chunk := file.read(_CHUNK):
            hashed.update(chunk)
    return hashed.digest()


def _converted(content: bytes, ending: str, path: Path) -> Converted:
    try:
        text, slides = convert(content, ending)
    except MissingExtra:
        raise
    except Exception as cause:  # the libraries raise whatever a broken file makes them stumble over
        raise InvalidInput(f"{path} cannot be read as {ending[1:].upper()}: {cause!s:.200}.") from cause
    if not text.strip():
        raise InvalidInput(f"{path} has no text.")
    return text, slides


def _decoded(content: bytes, path: Path) -> str:
    encoding = next((name for mark, name in _BOMS.items() if content.startswith(mark)), "utf-8-sig")
    if encoding == "utf-8-sig" and b"\0" in content:
        raise InvalidInput(f"{path} is no text: give {FORMATS}.")
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        if encoding == "utf-8-sig" and _NO_LATIN.search(content):
            raise InvalidInput(f"{path} is no text: give {FORMATS}.") from None
        name = encoding.upper().removesuffix("-SIG")
        warnings.warn(f"{path} is not {name}: unreadable bytes are shown as �.", DrillrankWarning, stacklevel=2)
        return content.decode(encoding, errors="replace")
