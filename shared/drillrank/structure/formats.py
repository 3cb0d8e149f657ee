"""Which format a text has, told by its metadata or its first signs."""

from __future__ import annotations

import re
from collections.abc import Mapping

from drillrank.structure.lines import paragraphs

_BY_TYPE = {
    "text/markdown": "markdown",
    "text/x-markdown": "markdown",
    "text/html": "html",
    "application/xhtml+xml": "html",
    "application/x-tex": "latex",
    "application/x-latex": "latex",
    "text/x-tex": "latex",
    "text/plain": "text",
}
_BY_ENDING = {
    "md": "markdown",
    "markdown": "markdown",
    "mdown": "markdown",
    "mkd": "markdown",
    "html": "html",
    "htm": "html",
    "xhtml": "html",
    "tex": "latex",
    "latex": "latex",
    "ltx": "latex",
    "txt": "text",
    "text": "text",
}
# As the readers of LlamaIndex and the loaders of LangChain call them.
_TYPE_KEYS = ("file_type", "content_type", "mime_type", "filetype")
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
_CHARACTERS_A_MARK = 10_000  # where a converter wrote Markdown: it marks headings, tables and code more often than that


def named_format(metadata: Mapping[str, object]) -> str | None:
    """The format that a document's metadata name, by media type or by the ending of a file name or address.

    >>> named_format({"file_type": "text/html; charset=utf-8"}), named_format({"source": "a/paper.tex"})
    ('html', 'latex')
    """
    for key in _TYPE_KEYS:
        media_type = str(metadata.get(key, "")).partition(";")[0].strip().lower()
        if media_type in _BY_TYPE:
            return _BY_TYPE[media_type]
    for key in _NAME_KEYS:
        name = re.split(r"[?#]", str(metadata.get(key, "")), maxsplit=1)[0]
        ending = name.rpartition(".")[2].lower()
        if "." in name and ending in _BY_ENDING:
            return _BY_ENDING[ending]
    return None


def document_name(metadata: Mapping[str, object]) -> str | None:
    """What a reader knows a document by: its title, else the last part of its file name or address.

    >>> document_name({"source": "https://example.org/a/paper.html?page=2"}), document_name({"title": " A paper "})
    ('paper.html', 'A paper')
    """
    title = metadata.get("title")
    if isinstance(title, str) and title.strip():
        return title.strip()
    for key in _NAME_KEYS:
        where = str(metadata.get(key) or "")
        if "://" in where:
            where = re.split(r"[?#]", where, maxsplit=1)[0]
        if last := re.split(r"[/\\]", where.strip(" /\\"))[-1]:
            return last
    return None


def marks_by_chance(text: str, marks: int, metadata: Mapping[str, object]) -> bool:
    """Whether a loader has taken the text out of a PDF, and a "#" or a row of dashes now and then is the PDF's own.

    >>> marks_by_chance("..." * 10_000, 2, {"source": "report.pdf"}), marks_by_chance("...", 1, {"source": "a.pdf"})
    (True, False)
    """
    names = (re.split(r"[?#]", str(metadata.get(key, "")), maxsplit=1)[0] for key in _NAME_KEYS)
    return len(text) > marks * _CHARACTERS_A_MARK and any(name.lower().endswith(".pdf") for name in names)


def contradicts(text: str, format: str) -> bool:
    """Whether the text lacks every sign of a format with markup: a loader has converted it to plain text."""
    return (format == "html" and not _HTML_TAG.search(text)) or (format == "latex" and "\\" not in text)


def is_html_page(text: str) -> bool:
    """Whether the text begins like a page; Markdown with HTML in it does not."""
    text = text.removeprefix(_BOM)
    if not text.lstrip().startswith("<"):
        return False
    prologue = _HTML_PROLOGUE.match(text)
    return prologue is not None and _HTML_PAGE.match(text, prologue.end()) is not None


def is_html_fragment(text: str) -> bool:
    """Whether the text begins with a block's tag, and ends with a tag or has one at the start of every paragraph."""
    text = text.removeprefix(_BOM).strip()
    if "</" not in text or not _HTML_FRAGMENT.match(text):
        return False
    return text.endswith(">") or all(text.startswith("<", start) for start, _ in paragraphs(text))


def is_latex(text: str) -> bool:
    """Whether the first line that is no comment is a command, and a document, environment or section begins."""
    for line in text.removeprefix(_BOM).splitlines():
        if line.strip() and not line.lstrip().startswith("%"):
            return line.lstrip().startswith("\\") and _LATEX.search(text) is not None
    return False
