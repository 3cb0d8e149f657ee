"""The entry points: a text or a file, in a named or guessed format, becomes a document."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

from drillrank.errors import InvalidInput, warn
from drillrank.files import opened
from drillrank.structure.cutting import paragraphs
from drillrank.structure.document import Document, Scan, assemble
from drillrank.structure.html import scan_html
from drillrank.structure.latex import scan_latex
from drillrank.structure.markdown import scan_markdown
from drillrank.structure.office import ENDINGS, convert
from drillrank.structure.pages import Pages
from drillrank.structure.plain import scan_plain

PARSER_VERSION = 2
"""Raised with every change of what any parser makes of a text or a file: what was parsed before is parsed anew."""

FORMATS = "PDF, DOCX, PPTX, EPUB, Markdown, HTML, LaTeX or plain text"

_FORMATS = {
    "markdown": "text/markdown text/x-markdown md markdown mdown mkd",
    "html": "text/html application/xhtml+xml html htm xhtml",
    "latex": "application/x-tex application/x-latex text/x-tex tex latex ltx",
    "text": "text/plain txt text",
}
_NAMED = {name: format for format, names in _FORMATS.items() for name in names.split()}
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

_NO_LATIN = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_CHARSET = re.compile(
    rb"""<(?:meta\b[^<>]{0,200}?\bcharset|\?xml\b[^<>]{0,200}?\bencoding)\s*=\s*["']?\s*([\w.:-]{1,40})""",
    re.IGNORECASE,
)
_BOMS = {codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32"}  # before those of UTF-16, which begin alike
_BOMS |= {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_HEAD = 1024  # bytes
_CHUNK = 1 << 20  # bytes


def _scan_markdown(text: str) -> Scan:
    """Markdown; where it has no heading, paragraphs that are headings in plain text are so here."""
    scan = scan_markdown(text)
    if scan.headings:
        return scan
    plain = scan_plain(text)
    found = {(block.start, block.end) for block in plain.blocks if block.kind == "heading"}
    blocks = [
        replace(block, kind="heading")
        if block.kind in ("paragraph", "list") and (block.start, block.end) in found
        else block
        for block in scan.blocks
    ]
    return Scan(blocks, plain.headings, scan.marks)


_SCANNERS: dict[str, Callable[[str], Scan]] = {
    "markdown": _scan_markdown,
    "html": scan_html,
    "latex": scan_latex,
    "text": scan_plain,
}


def parse_document(text: str, format: str = "auto", *, metadata: Mapping[str, object] | None = None) -> Document:
    r"""Parse a text into sections and blocks with exact spans.

    The content-aware chunks of MC-indexing (section 3.2) and the sections of D3 (section 3) both start here.

    Args:
        text: The document. Offsets count characters of this string, which is kept unchanged.
        format: `"markdown"` (CommonMark with tables and YAML front matter), `"html"`, `"latex"`, `"text"` (underlined
            and numbered headings, paragraphs between blank lines or told by where lines of prose end) or `"auto"`.
        metadata: What else is known of the document. With `"auto"`, a media type (`file_type`, `content_type`) or the
            ending of a file name (`file_name`, `file_path`, `source`, `url`) decides, unless HTML or LaTeX is named
            and the text holds no markup. Without either, the text decides: HTML or LaTeX if it begins like a page or
            a source of these, then Markdown if it has a heading, a fence, a table or front matter, then HTML if it is
            a fragment, else plain text.

    Returns:
        The document. Its sections tile the text. Text before the first heading is a section with an empty path and
        level 0; white space there belongs to the first section. A text of white space only is one section
        without blocks, and an empty text has no sections.

    Raises:
        InvalidInput: `text` is no string, `format` is unknown, or `metadata` is no mapping.

    >>> document = parse_document("Intro.\n\n# Methods\n\n## Data *used*\n\nA table.\n")
    >>> [(section.path, section.start, section.end) for section in document.sections()]
    [((), 0, 8), (('Methods',), 8, 19), (('Methods', 'Data used'), 19, 44)]
    >>> page = parse_document("<h1>Foxes</h1><p>They <b>hunt</b>.</p><nav>Home</nav>")
    >>> page.format, page.readable(page.sections()[0])
    ('html', 'Foxes\n\nThey hunt.')
    """
    if not isinstance(text, str):
        raise InvalidInput(f"The text to parse must be a str, not {type(text).__name__}. Decode or convert it first.")
    formats = ("auto", *_SCANNERS)
    if format not in formats:
        raise InvalidInput(f"Unknown format {format!r:.200}. Choose one of: {', '.join(formats)}.")
    if metadata is not None and not isinstance(metadata, Mapping):
        raise InvalidInput(f"metadata must map names to values, not be a {type(metadata).__name__}.")
    if format == "auto":
        named = named_format(metadata or {})
        if named is None or _contradicts(text, named):
            format, scan = _guess(text, metadata or {})
            return assemble(text, scan, format)
        format = named
    return assemble(text, _SCANNERS[format](text), format)


def _guess(text: str, metadata: Mapping[str, object]) -> tuple[str, Scan]:
    """Format and scan of a text whose format nobody names."""
    format = "html" if _is_html_page(text) else "latex" if _is_latex(text) else ""
    if not format:
        scan = _scan_markdown(text)
        if scan.marks and not _marks_by_chance(text, scan.marks, metadata):
            return "markdown", scan
        format = "html" if _is_html_fragment(text) else "text"
    return format, _SCANNERS[format](text)


def read_document(path: str | os.PathLike[str]) -> Document:
    r"""Read a file as a document with its section tree.

    What is no text is written as Markdown first, which is then the document's text: all offsets count its characters.
    A PDF's document has `pages`; of a presentation the slides are the pages.

    Args:
        path: A PDF (with the extra `pdf`), a DOCX file (with the extra `office`), a PPTX file, an EPUB, or a text in
            one of the formats that `parse_document` knows, in UTF-8, in UTF-16 or UTF-32 with its mark, or HTML in
            what it declares.

    Raises:
        InvalidInput: the file cannot be opened, is broken or encrypted, is a scan without text, is of another kind, or
            holds more than `drillrank.limits` allow; the message names it.
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
        is_pdf = path.suffix.lower() == ".pdf" or content.lstrip().startswith(b"%PDF-")
        content += b"" if is_pdf else file.read()
    pages: Pages | None
    if is_pdf:
        from drillrank.structure.pdf import read_pdf

        text, pages = read_pdf(path)
    elif (ending := path.suffix.lower()) in ENDINGS:
        text, pages = convert(content, ending, str(path))
    else:
        return parse_document(_decoded(content, path), metadata={"file_name": path.name})
    return replace(parse_document(text, "markdown"), pages=pages)


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


def _decoded(content: bytes, path: Path) -> str:
    encoding = next((name for mark, name in _BOMS.items() if content.startswith(mark)), "utf-8-sig")
    if encoding == "utf-8-sig" and b"\0" in content:
        raise InvalidInput(f"{path} is no text: give {FORMATS}.")
    stated = _stated(content, path)
    if encoding == "utf-8-sig" and stated and b"\x1b" in content:  # in seven bits, as ISO-2022-JP is
        encoding = stated
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        if encoding == "utf-8-sig" and stated:
            return content.decode(stated, errors="replace")
        if encoding == "utf-8-sig" and _NO_LATIN.search(content):
            raise InvalidInput(f"{path} is no text: give {FORMATS}.") from None
        name = encoding.upper().removesuffix("-SIG")
        warn(f"{path} is not {name}: unreadable bytes are shown as \ufffd.")
        return content.decode(encoding, errors="replace")


def _stated(content: bytes, path: Path) -> str:
    """The encoding that a page declares, as browsers read it; an empty string where it declares none."""
    found = _CHARSET.search(content[:_HEAD]) if named_format({"file_name": path.name}) in ("html", None) else None
    try:
        name = codecs.lookup(found[1].decode()).name if found else ""
    except LookupError:
        return ""
    return "cp1252" if name in ("iso8859-1", "ascii") else name


def named_format(metadata: Mapping[str, object]) -> str | None:
    """The format that a document's metadata name, by media type or by the ending of a file name or address.

    >>> named_format({"file_type": "text/html; charset=utf-8"}), named_format({"source": "a/paper.tex"})
    ('html', 'latex')
    """
    types = [str(metadata.get(key, "")).partition(";")[0].strip().lower() for key in _TYPE_KEYS]
    endings = [name.lower().rpartition(".")[2] for name in _names(metadata) if "." in name]
    return next((_NAMED[name] for name in [*types, *endings] if name in _NAMED), None)


def _names(metadata: Mapping[str, object]) -> list[str]:
    """Names, and addresses without what follows "?" or "#"."""
    names = (str(metadata.get(key) or "") for key in _NAME_KEYS)
    return [re.split(r"[?#]", name, maxsplit=1)[0] if "://" in name else name for name in names]


def document_name(metadata: Mapping[str, object]) -> str | None:
    """What a reader knows a document by: its title, else the last part of its file name or address.

    >>> document_name({"source": "https://example.org/a/paper.html?page=2"}), document_name({"title": " A paper "})
    ('paper.html', 'A paper')
    """
    title = metadata.get("title")
    if isinstance(title, str) and title.strip():
        return title.strip()
    lasts = (re.split(r"[/\\]", name.strip(" /\\"))[-1] for name in _names(metadata))
    return next(filter(None, lasts), None)


def _marks_by_chance(text: str, marks: int, metadata: Mapping[str, object]) -> bool:
    """Whether a loader has taken the text out of a PDF, and a "#" or a row of dashes now and then is the PDF's own.

    >>> _marks_by_chance("..." * 10_000, 2, {"source": "report.pdf"}), _marks_by_chance("...", 1, {"source": "a.pdf"})
    (True, False)
    """
    return len(text) > marks * _CHARACTERS_A_MARK and any(name.lower().endswith(".pdf") for name in _names(metadata))


def _contradicts(text: str, format: str) -> bool:
    """Whether the text lacks every sign of a format with markup: a loader has converted it to plain text."""
    return (format == "html" and not _HTML_TAG.search(text)) or (format == "latex" and "\\" not in text)


def _is_html_page(text: str) -> bool:
    """Whether the text begins like a page; Markdown with HTML in it does not."""
    text = text.removeprefix(_BOM)
    if not text.lstrip().startswith("<"):
        return False
    prologue = _HTML_PROLOGUE.match(text)
    return prologue is not None and _HTML_PAGE.match(text, prologue.end()) is not None


def _is_html_fragment(text: str) -> bool:
    """Whether the text begins with a block's tag, and ends with a tag or has one at the start of every paragraph."""
    text = text.removeprefix(_BOM).strip()
    if "</" not in text or not _HTML_FRAGMENT.match(text):
        return False
    return text.endswith(">") or all(text.startswith("<", start) for start, _ in paragraphs(text))


def _is_latex(text: str) -> bool:
    """Whether the first line that is no comment is a command, and a document, environment or section begins."""
    for line in text.removeprefix(_BOM).splitlines():
        if line.strip() and not line.lstrip().startswith("%"):
            return line.lstrip().startswith("\\") and _LATEX.search(text) is not None
    return False
