"""The formats that drillrank reads itself, registered as a third party would register them."""

from __future__ import annotations

from drillrank.structure.code import CODE_MEDIA_TYPES, CODE_SUFFIXES, scan_code
from drillrank.structure.delimited import scan_csv, scan_tsv
from drillrank.structure.docx import convert_docx
from drillrank.structure.epub import convert_epub
from drillrank.structure.formats import Format, register_format, registered_formats
from drillrank.structure.html import scan_html
from drillrank.structure.json_text import scan_json, scan_json_lines
from drillrank.structure.latex import scan_latex
from drillrank.structure.mail import convert_eml, convert_mbox
from drillrank.structure.markdown import scan_markdown_or_plain
from drillrank.structure.notebook import convert_notebook
from drillrank.structure.odt import convert_odt
from drillrank.structure.pdf import convert_pdf, convert_pdf_pages_alone
from drillrank.structure.plain import scan_plain
from drillrank.structure.pptx import convert_pptx
from drillrank.structure.rst import scan_rst
from drillrank.structure.rtf import convert_rtf
from drillrank.structure.spreadsheet import convert_spreadsheet
from drillrank.structure.yaml_text import scan_yaml

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
register_format(
    "odt",
    [".odt", ".ott", ".odp", ".otp"],
    [
        "application/vnd.oasis.opendocument.text",
        "application/vnd.oasis.opendocument.text-template",
        "application/vnd.oasis.opendocument.presentation",
        "application/vnd.oasis.opendocument.presentation-template",
    ],
    "markdown",
    convert=convert_odt,
)
register_format("rst", [".rst", ".rest"], ["text/x-rst", "text/prs.fallenstein.rst"], scan_rst)
register_format("code", CODE_SUFFIXES, CODE_MEDIA_TYPES, scan_code)
register_format(
    "spreadsheet",
    [".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"],
    [
        f"{_OPEN_XML}.spreadsheetml.sheet",
        "application/vnd.ms-excel",
        "application/vnd.ms-excel.sheet.macroenabled.12",
        "application/vnd.ms-excel.sheet.binary.macroenabled.12",
        "application/vnd.oasis.opendocument.spreadsheet",
    ],
    "markdown",
    convert=convert_spreadsheet,
)
register_format("notebook", [".ipynb"], ["application/x-ipynb+json"], "markdown", convert=convert_notebook)
register_format("rtf", [".rtf"], ["application/rtf", "text/rtf"], "markdown", convert=convert_rtf, signature=b"{\\rtf")
register_format("eml", [".eml"], ["message/rfc822"], "markdown", convert=convert_eml)
register_format("mbox", [".mbox"], ["application/mbox"], "markdown", convert=convert_mbox)
register_format("csv", [".csv"], ["text/csv"], scan_csv)
register_format("tsv", [".tsv", ".tab"], ["text/tab-separated-values"], scan_tsv)
register_format("json", [".json", ".geojson", ".jsonld"], ["application/json", "application/geo+json"], scan_json)
register_format("jsonl", [".jsonl", ".ndjson"], ["application/jsonl", "application/x-ndjson"], scan_json_lines)
register_format("yaml", [".yaml", ".yml"], ["application/yaml", "application/x-yaml", "text/yaml"], scan_yaml)

_BUILTIN = frozenset(registered_formats())


def is_builtin(file_format: Format) -> bool:
    """Return True if drillrank registered the format itself, so that every worker process knows it."""
    return file_format in _BUILTIN
