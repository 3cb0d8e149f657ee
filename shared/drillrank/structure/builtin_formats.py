"""The formats that drillrank reads itself, registered as a third party would register them."""

from __future__ import annotations

from drillrank.structure.code import CODE_MEDIA_TYPES, CODE_SUFFIXES, scan_code
from drillrank.structure.formats import register_format
from drillrank.structure.html import scan_html
from drillrank.structure.latex import scan_latex
from drillrank.structure.markdown import scan_markdown_or_plain
from drillrank.structure.office import convert_docx, convert_epub, convert_pptx
from drillrank.structure.pdf import convert_pdf, convert_pdf_pages_alone
from drillrank.structure.plain import scan_plain
from drillrank.structure.rst import scan_rst

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
register_format("docx", [".docx"], [f"{_OPEN_XML}.wordprocessingml.document"], "markdown", convert=convert_docx)
register_format("pptx", [".pptx"], [f"{_OPEN_XML}.presentationml.presentation"], "markdown", convert=convert_pptx)
register_format("epub", [".epub"], ["application/epub+zip"], "markdown", convert=convert_epub)
register_format("rst", [".rst", ".rest"], ["text/x-rst", "text/prs.fallenstein.rst"], scan_rst)
register_format("code", CODE_SUFFIXES, CODE_MEDIA_TYPES, scan_code)
