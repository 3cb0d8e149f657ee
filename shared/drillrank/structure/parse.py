"""The entry point: a text in a named or guessed format becomes a document."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from drillrank.errors import InvalidInput, check_positive
from drillrank.structure.document import Document
from drillrank.structure.formats import (
    contradicts,
    is_html_fragment,
    is_html_page,
    is_latex,
    marks_by_chance,
    named_format,
)
from drillrank.structure.html import scan_html
from drillrank.structure.latex import scan_latex
from drillrank.structure.plain import scan_plain
from drillrank.structure.scan import Scan, assemble

PARSER_VERSION = 1
"""Raised with every change of what any parser makes of a text or a file: what was parsed before is parsed anew."""


def scan_markdown(text: str) -> Scan:
    """Scan with CommonMark's parser, which is loaded at the first use: it takes as long as the rest of the package."""
    from drillrank.structure import markdown

    scan = markdown.scan_markdown(text)
    return scan if scan.headings else _with_plain_headings(text, scan)


def _with_plain_headings(text: str, scan: Scan) -> Scan:
    """Flat Markdown: paragraphs that are headings in plain text are so here."""
    plain = scan_plain(text)
    spans = [(block.start, block.end) for block in plain.blocks if block.kind == "heading"]
    named = dict(zip(spans, zip(plain.headings, plain.confidences, strict=True), strict=True))
    found = [
        named.get((block.start, block.end)) if block.kind in ("paragraph", "list") else None for block in scan.blocks
    ]
    blocks = [
        block if heading is None else replace(block, kind="heading")
        for block, heading in zip(scan.blocks, found, strict=True)
    ]
    chosen = [heading for heading in found if heading is not None]
    headings, confidences = [heading for heading, _ in chosen], [confidence for _, confidence in chosen]
    return replace(scan, blocks=blocks, headings=headings, confidences=confidences)


_SCANNERS: dict[str, Callable[[str], Scan]] = {
    "markdown": scan_markdown,
    "html": scan_html,
    "latex": scan_latex,
    "text": scan_plain,
}


def parse_document(
    text: str,
    format: str = "auto",
    *,
    metadata: Mapping[str, object] | None = None,
    max_depth: int | None = None,
) -> Document:
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
        max_depth: The longest path, at most `limits.HEADING_DEPTH`. Deeper headings stay in the text of the section
            above them, as paragraphs.

    Returns:
        The document. Its sections tile the text. Text before the first heading is a section with an empty path and
        level 0; white space there belongs to the first section. A text of white space only is one section
        without blocks, and an empty text has no sections.

    Raises:
        InvalidInput: `text` is no string, `format` is unknown, `metadata` is no mapping, or `max_depth` is below 1.

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
    if max_depth is not None:
        check_positive(max_depth=max_depth)
    if format == "auto":
        named = named_format(metadata or {})
        if named is None or contradicts(text, named):
            format, scan = _guess(text, metadata or {})
            return assemble(text, scan, format, max_depth)
        format = named
    return assemble(text, _SCANNERS[format](text), format, max_depth)


def _guess(text: str, metadata: Mapping[str, object]) -> tuple[str, Scan]:
    """Format and scan of a text whose format nobody names."""
    format = "html" if is_html_page(text) else "latex" if is_latex(text) else ""
    if not format:
        scan = scan_markdown(text)
        if scan.marks and not marks_by_chance(text, scan.marks, metadata):
            return "markdown", scan
        format = "html" if is_html_fragment(text) else "text"
    return format, _SCANNERS[format](text)
