"""The entry point: a text in a named or guessed format becomes a document."""

from __future__ import annotations

from collections.abc import Callable

from drillrank.errors import InvalidInput
from drillrank.structure.document import Document
from drillrank.structure.markdown import scan_markdown
from drillrank.structure.plain import scan_plain
from drillrank.structure.scan import Scan, assemble

# In the order in which `auto` tries them; plain text is always evident.
_SCANNERS: dict[str, Callable[[str], Scan]] = {"markdown": scan_markdown, "text": scan_plain}


def parse_document(text: str, format: str = "auto") -> Document:
    r"""Parse a text into sections and blocks with exact spans.

    The content-aware chunks of MC-indexing (section 3.2) and the sections of D3 (section 3) both start here.

    Args:
        text: The document. Offsets count characters of this string, which is kept unchanged.
        format: `"markdown"` (CommonMark with tables and YAML front matter), `"text"` (paragraphs between blank lines,
            no sections) or `"auto"`: Markdown if the text has a heading, a fence, a table or front matter, else
            plain text.

    Returns:
        The document. Its sections tile the text. Text before the first heading is a section with an empty path and
        level 0; white space there belongs to the first section. A text of white space only is one section
        without blocks, and an empty text has no sections.

    Raises:
        InvalidInput: `text` is no string, or `format` is unknown.

    >>> document = parse_document("Intro.\n\n# Methods\n\n## Data *used*\n\nA table.\n")
    >>> [(section.path, section.start, section.end) for section in document.sections()]
    [((), 0, 8), (('Methods',), 8, 19), (('Methods', 'Data used'), 19, 44)]
    """
    if not isinstance(text, str):
        raise InvalidInput(f"The text to parse must be a str, not {type(text).__name__}. Decode or convert it first.")
    formats = ("auto", *_SCANNERS)
    if format not in formats:
        raise InvalidInput(f"Unknown format {format!r}. Choose one of: {', '.join(formats)}.")
    for name, scanner in _SCANNERS.items():
        if format in (name, "auto"):
            scan = scanner(text)
            if format == name or scan.evident:
                break
    return assemble(text, scan)
