"""Entry points: parse a text or read a file in a named or guessed format."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

import drillrank.structure.builtin_formats  # noqa: F401  (registers the formats)
from drillrank.errors import InvalidInput, warn
from drillrank.files import open_file
from drillrank.structure.cutting import find_paragraph_spans
from drillrank.structure.document import Document
from drillrank.structure.encodings import decode_text
from drillrank.structure.formats import (
    Format,
    find_format,
    find_format_by_file_name,
    find_format_by_media_type,
    find_format_of_file,
    registered_formats,
)
from drillrank.structure.isolation import convert_file
from drillrank.structure.scan import Scan, assemble
from drillrank.structure.unread_kinds import describe_unread

PARSER_VERSION = 3
"""Number to raise with every change of what any parser makes of a text or a file, so that caches parse it again."""

FORMAT_KEY = "drillrank_format"
"""Metadata key under which the readers for the frameworks write the name of a text's format."""

# Metadata keys that the readers of LlamaIndex and the loaders of LangChain use.
_MEDIA_TYPE_KEYS = ("file_type", "content_type", "mime_type", "filetype")
_NAME_KEYS = ("file_name", "filename", "file_path", "source", "url")

_HTML_PAGE = re.compile(r"<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)
_HTML_PROLOGUE = re.compile(r"(?:\s|<!--(?:(?!-->)[\s\S])*-->|<\?[^<>]*\?>)*")
_HTML_FRAGMENT = re.compile(
    r"<(?:article|blockquote|div|dl|h[1-6]|header|main|ol|p|pre|section|table|ul)\b[^<>]*>", re.IGNORECASE
)
_HTML_TAG = re.compile(r"</?[a-z][^<>]*>", re.IGNORECASE)
_LATEX = re.compile(
    r"^[ \t]*\\(?:documentclass|documentstyle|begin\s*\{"
    r"|(?:part|chapter|(?:sub){0,2}section|(?:sub)?paragraph)\*?\s*[\[{])",
    re.MULTILINE,
)
_BOM = "\ufeff"
_CHARACTERS_PER_MARK = 10_000  # a converter that writes Markdown marks headings, tables and code more often than that
_HEAD_BYTES = 1024
_CHUNK_BYTES = 1 << 20


def parse_document(text: str, format: str = "auto", *, metadata: Mapping[str, object] | None = None) -> Document:
    r"""Parse a text into sections and blocks with exact spans.

    The content-aware chunks of MC-indexing (section 3.2) and the sections of D3 (section 3) both start here.

    Args:
        text: The document. Offsets count characters of this string, which is kept unchanged.
        format: Name of a registered format, such as `"markdown"` (CommonMark with tables and front matter), `"html"`,
            `"latex"`, `"rst"`, `"csv"`, `"json"`, `"code"` or `"text"` (underlined and numbered headings); or `"auto"`.
        metadata: Metadata of the document. With `"auto"`, the name of a format (`drillrank_format`), a media type
            (`file_type`, `content_type`) or the ending of a file name (`file_name`, `file_path`, `source`, `url`)
            decides. A text without any markup is not read as HTML or LaTeX, even if its metadata say so, because a
            loader has removed the markup. If the metadata name no format, the text decides: HTML or LaTeX if it begins
            like one, then Markdown if it has a heading, a fence, a table or front matter, then HTML if it is a
            fragment, else plain text.

    Returns:
        The document. Its sections tile the text. Text before the first heading is a section with an empty path and
        level 0; white space there belongs to the first section. A text of white space only is one section
        without blocks, and an empty text has no sections.

    Raises:
        InvalidInput: `text` is not a string, `format` is unknown, or `metadata` is not a mapping.

    >>> document = parse_document("Intro.\n\n# Methods\n\n## Data *used*\n\nA table.\n")
    >>> [(section.path, section.start, section.end) for section in document.sections()]
    [((), 0, 8), (('Methods',), 8, 19), (('Methods', 'Data used'), 19, 44)]
    >>> page = parse_document("<h1>Foxes</h1><p>They <b>hunt</b>.</p><nav>Home</nav>")
    >>> page.format, page.readable(page.sections()[0])
    ('html', 'Foxes\n\nThey hunt.')
    """
    if not isinstance(text, str):
        raise InvalidInput(f"text must be a str, got a {type(text).__name__}. Decode or convert it first.")
    if metadata is not None and not isinstance(metadata, Mapping):
        raise InvalidInput(f"metadata must map names to values, got a {type(metadata).__name__}. Pass a dict.")
    metadata = metadata or {}
    if format != "auto":
        return _assemble(text, find_format(format), document_name(metadata))
    named = format_in_metadata(metadata)
    if named is not None and not _lacks_markup_of(text, named.text_format):
        return _assemble(text, named, document_name(metadata))
    guessed, scan = _guess(text, metadata)
    return assemble(text, scan, guessed.text_format)


def _assemble(text: str, file_format: Format, name: str | None) -> Document:
    scan = file_format.scan(text)
    for message in scan.warnings:
        warn(f"{name}: {message}" if name else message)
    return assemble(text, scan, file_format.text_format)


def _guess(text: str, metadata: Mapping[str, object]) -> tuple[Format, Scan]:
    """Return the format and the scan of a text whose format is not named."""
    name = "html" if _is_html_page(text) else "latex" if _is_latex(text) else ""
    if not name:
        markdown = find_format("markdown")
        scan = markdown.scan(text)
        if scan.marks and not _marks_by_chance(text, scan.marks, metadata):
            return markdown, scan
        name = "html" if _is_html_fragment(text) else "text"
    guessed = find_format(name)
    return guessed, guessed.scan(text)


def read_document(path: str | os.PathLike[str]) -> Document:
    r"""Read a file as a document with its section tree.

    Files that are not text, such as PDF or DOCX, are converted to Markdown first. The Markdown is the document's text,
    and all offsets count its characters. A PDF's document has `pages`; the slides of a presentation are its pages.

    Args:
        path: A file in one of the formats that `drillrank.structure.registered_formats` lists. The ending of its name
            or its first bytes decide which one. A file with an unknown ending is read as text.

    Raises:
        InvalidInput: The file cannot be opened, is broken or encrypted, is a scan without text, is of a kind that is
            not read, or exceeds one of `drillrank.limits`. The message names the file.
        MissingExtra: A library that reads this format is not installed.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "sea.md")
    ...     _ = file.write_text("# Sea\n\nDeep.")
    ...     read_document(file).sections()[0].path
    ('Sea',)
    """
    path = Path(path)
    with open_file(path) as file:
        content = file.read()
    return read_content(content, path)


def read_content(content: bytes, path: Path) -> Document:
    """Read the content of a file as a document; see `read_document`.

    Args:
        content: Content of the file.
        path: Path of the file, which need not exist: the ending of its name counts, and messages begin with it.
    """
    file_format = find_format_of_file(path.name, content)
    if file_format is not None and file_format.convert is not None:
        converted = convert_file(file_format, path, content)
        if not converted.text.strip():
            raise InvalidInput(f"{path} has no text.")
        for problem in converted.warnings:
            warn(f"{path}: {problem}")
        return replace(_assemble(converted.text, file_format, str(path)), pages=converted.pages)
    head = content[:_HEAD_BYTES]
    if reason := describe_unread("", head):
        raise InvalidInput(f"{path} {describe_unread(path.name, head) or reason}")
    try:
        text, problems = decode_text(content, may_declare=file_format is None or file_format.name == "html")
    except InvalidInput as problem:
        raise InvalidInput(f"{path} {describe_unread(path.name, head) or problem}") from None
    for message in problems:
        warn(f"{path} {message}")
    if file_format is not None and file_format.signature and content.lstrip().startswith(file_format.signature):
        return _assemble(text, file_format, path.name)
    return parse_document(text, metadata={"file_name": path.name})


def file_key(path: str | os.PathLike[str], folder: str | os.PathLike[str] | None = None) -> bytes:
    """Return a hash of all that `read_document` depends on: content, ending of the name, and version of the parsers.

    Args:
        path: Path of the file.
        folder: Folder that the file must be in; None for any place.

    Raises:
        InvalidInput: The file cannot be read.
    """
    hashed = _start_key(path)
    with open_file(path, folder) as file:
        while chunk := file.read(_CHUNK_BYTES):
            hashed.update(chunk)
    return hashed.digest()


def content_key(content: bytes, path: str | os.PathLike[str]) -> bytes:
    """Return the `file_key` of a file with this content."""
    hashed = _start_key(path)
    hashed.update(content)
    return hashed.digest()


def _start_key(path: str | os.PathLike[str]) -> blake2b:
    file_format = find_format_by_file_name(Path(path).name)
    name = file_format.name if file_format else ""
    return blake2b(
        f"{PARSER_VERSION} {Path(path).suffix.lower()} {name}\0".encode("utf-8", "surrogateescape"), digest_size=20
    )


def format_in_metadata(metadata: Mapping[str, object]) -> Format | None:
    """Return the text format that a document's metadata name: itself, its media type, or the ending of a name or URL.

    Formats that are converted, such as PDF, do not count: a loader has already taken the text out of the file.

    >>> format_in_metadata({"file_type": "text/html; charset=utf-8"}).name
    'html'
    >>> format_in_metadata({"source": "a/paper.tex"}).name
    'latex'
    """
    media_types = [str(metadata.get(key, "")).partition(";")[0].strip() for key in _MEDIA_TYPE_KEYS]
    by_media_type, by_name = (
        map(find_format_by_media_type, media_types),
        map(find_format_by_file_name, _names(metadata)),
    )
    text_formats = (one for one in [*by_media_type, *by_name] if one is not None and one.convert is None)
    format_name = metadata.get(FORMAT_KEY)
    of_text = (one for one in registered_formats() if one.name == one.text_format == format_name)
    return next(of_text, None) or next(text_formats, None)


def is_readable_name(name: str) -> bool:
    """Return True if the ending of a file name is that of a format that drillrank reads.

    >>> is_readable_name("report.PDF"), is_readable_name("picture.png")
    (True, False)
    """
    return find_format_by_file_name(name) is not None


def _names(metadata: Mapping[str, object]) -> list[str]:
    """Return the names and URLs in metadata, URLs without what follows "?" or "#"."""
    names = (str(metadata.get(key) or "") for key in _NAME_KEYS)
    return [re.split(r"[?#]", name, maxsplit=1)[0] if "://" in name else name for name in names]


def document_name(metadata: Mapping[str, object]) -> str | None:
    """Return the name of a document for readers: its title, else the last part of its file name or URL.

    >>> document_name({"source": "https://example.org/a/paper.html?page=2"}), document_name({"title": " A paper "})
    ('paper.html', 'A paper')
    """
    title = metadata.get("title")
    if isinstance(title, str) and title.strip():
        return title.strip()
    last_parts = (re.split(r"[/\\]", name.strip(" /\\"))[-1] for name in _names(metadata))
    return next(filter(None, last_parts), None)


def document_path(metadata: Mapping[str, object]) -> str | None:
    """Return the path or address of a document, to which links of other documents lead.

    >>> document_path({"file_name": "oak.md", "file_path": "trees/oak.md"}), document_path({"title": "Oaks"})
    ('trees/oak.md', None)
    """
    return max(filter(None, _names(metadata)), key=lambda name: len(re.split(r"[/\\]", name)), default=None)


def _marks_by_chance(text: str, marks: int, metadata: Mapping[str, object]) -> bool:
    """Return True if the text comes from a PDF by a loader, and its few "#" and rows of dashes are the PDF's own.

    >>> _marks_by_chance("..." * 10_000, 2, {"source": "report.pdf"}), _marks_by_chance("...", 1, {"source": "a.pdf"})
    (True, False)
    """
    return len(text) > marks * _CHARACTERS_PER_MARK and any(name.lower().endswith(".pdf") for name in _names(metadata))


def _lacks_markup_of(text: str, format: str) -> bool:
    """Return True if the text has no sign of a format with markup, because a loader converted it to plain text."""
    return (format == "html" and not _HTML_TAG.search(text)) or (format == "latex" and "\\" not in text)


def _is_html_page(text: str) -> bool:
    """Return True if the text begins like an HTML page; Markdown with HTML in it does not."""
    text = text.removeprefix(_BOM)
    if not text.lstrip().startswith("<"):
        return False
    prologue = _HTML_PROLOGUE.match(text)
    return prologue is not None and _HTML_PAGE.match(text, prologue.end()) is not None


def _is_html_fragment(text: str) -> bool:
    """Return True if the text begins with a block tag and ends with a tag, or every paragraph begins with a tag."""
    text = text.removeprefix(_BOM).strip()
    if "</" not in text or not _HTML_FRAGMENT.match(text):
        return False
    return text.endswith(">") or all(text.startswith("<", start) for start, _ in find_paragraph_spans(text))


def _is_latex(text: str) -> bool:
    """Return True if the first line of LaTeX (no comment) is a command, and a document or section begins."""
    for line in text.removeprefix(_BOM).splitlines():
        if line.strip() and not line.lstrip().startswith("%"):
            return line.lstrip().startswith("\\") and _LATEX.search(text) is not None
    return False
