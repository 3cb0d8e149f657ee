"""The formats that drillrank reads itself, registered as a third party would register them."""

from __future__ import annotations

from drillrank.structure.code import CODE_MEDIA_TYPES, CODE_SUFFIXES, scan_code
from drillrank.structure.docx import convert_docx
from drillrank.structure.epub import convert_epub
from drillrank.structure.formats import register_format
from drillrank.structure.html import scan_html
from drillrank.structure.latex import scan_latex
from drillrank.structure.markdown import scan_markdown_or_plain
from drillrank.structure.pdf import convert_pdf, convert_pdf_pages_alone
from drillrank.structure.plain import scan_plain
from drillrank.structure.rst import scan_rst
from drillrank.structure.pptx import convert_pptx

_OPEN_XML = "application/vnd.openxmlformats-officedocument"

register_format(
    "markdown", [".md", ".markdown", ".mdown", ".mkd"], ["text/markdown", "text/x-markdown"], scan_markdown_or_plain
)
register_format("html", [".html", ".htm", ".xhtml"], ["text/html", "application/xhtml+xml"], scan_html)
register_format(
    "latex", [".tex", ".latex", ".ltx"], ["application/x-tex", "application/x-latex", "text/x-tex"], scan_latex
)
register_format("text", [".txt", ".text"], ["text/plain"], scan_plain)
register_format(
    "pdf",
    [".pdf"],
    ["application/pdf"],
    "markdown",
    convert=convert_pdf,
    signature=b"%PDF-",
    convert_after_crash=convert_pdf_pages_alone,
)
register_format(
    "docx",
    [".docx", ".docm", ".dotx", ".dotm"],
    [
        f"{_OPEN_XML}.wordprocessingml.document",
        f"{_OPEN_XML}.wordprocessingml.template",
        "application/vnd.ms-word.document.macroenabled.12",
        "application/vnd.ms-word.template.macroenabled.12",
    ],
    "markdown",
    convert=convert_docx,
)
register_format(
    "pptx",
    [".pptx", ".pptm", ".ppsx", ".ppsm", ".potx", ".potm"],
    [
        f"{_OPEN_XML}.presentationml.presentation",
        f"{_OPEN_XML}.presentationml.slideshow",
        f"{_OPEN_XML}.presentationml.template",
        "application/vnd.ms-powerpoint.presentation.macroenabled.12",
        "application/vnd.ms-powerpoint.slideshow.macroenabled.12",
    ],
    "markdown",
    convert=convert_pptx,
)
register_format("epub", [".epub"], ["application/epub+zip"], "markdown", convert=convert_epub)
register_format("rst", [".rst", ".rest"], ["text/x-rst", "text/prs.fallenstein.rst"], scan_rst)
register_format("code", CODE_SUFFIXES, CODE_MEDIA_TYPES, scan_code)
