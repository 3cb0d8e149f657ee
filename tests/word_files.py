"""A small writer of Word files: paragraphs, headings and tables, as bytes."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence

_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"

Table = Sequence[Sequence[str]]
Paragraph = tuple[str, int]
"""Text, and its level as a heading; 0 is none."""


def word_file(parts: Sequence[Paragraph | Table]) -> bytes:
    """A file of these paragraphs and tables."""
    body = "".join(_paragraph(*part) if isinstance(part, tuple) else _table(part) for part in parts)
    styles = "".join(
        f'<w:style w:type="paragraph" w:styleId="Heading{level}"><w:name w:val="heading {level}"/></w:style>'
        for level in range(1, 7)
    )
    content = {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types">'
        f'<Override PartName="/word/document.xml" ContentType="{_TYPE}"/></Types>',
        "_rels/.rels": _relation("word/document.xml", "officeDocument"),
        "word/_rels/document.xml.rels": _relation("styles.xml", "styles"),
        "word/styles.xml": f'<w:styles xmlns:w="{_WORD}">{styles}</w:styles>',
        "word/document.xml": f'<w:document xmlns:w="{_WORD}"><w:body>{body}</w:body></w:document>',
    }
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in content.items():
            archive.writestr(name, text)
    return file.getvalue()


def _paragraph(text: str, level: int = 0) -> str:
    properties = f'<w:pPr><w:pStyle w:val="Heading{level}"/></w:pPr>' if level else ""
    return f"<w:p>{properties}<w:r><w:t>{text}</w:t></w:r></w:p>"


def _table(rows: Table) -> str:
    cells = (f"<w:tr>{''.join(f'<w:tc>{_paragraph(cell)}</w:tc>' for cell in row)}</w:tr>" for row in rows)
    return f"<w:tbl>{''.join(cells)}</w:tbl>"


def _relation(target: str, kind: str) -> str:
    one = f'<Relationship Id="a" Type="{_OFFICE}/{kind}" Target="{target}"/>'
    return f'<Relationships xmlns="{_PACKAGE}/relationships">{one}</Relationships>'
