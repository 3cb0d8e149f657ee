"""The formats that drillrank reads itself, registered as a third party would register them."""

from __future__ import annotations

from drillrank.lazy import LazyFunction
from drillrank.structure.code import CODE_MEDIA_TYPES, CODE_SUFFIXES, scan_code
from drillrank.structure.formats import Format, register_format, registered_formats


def _lazy(module: str, name: str) -> LazyFunction:
    """Return a scanner or converter. Its module is loaded at the first call, because a question needs few of them."""
    return LazyFunction(f"drillrank.structure.{module}:{name}")


_OPEN_XML = "application/vnd.openxmlformats-officedocument"

register_format(
    "markdown",
    [".md", ".markdown", ".mdown", ".mkd"],
    ["text/markdown", "text/x-markdown"],
    _lazy("markdown", "scan_markdown_or_plain"),
)
register_format("html", [".html", ".htm", ".xhtml"], ["text/html", "application/xhtml+xml"], _lazy("html", "scan_html"))
register_format(
    "latex",
    [".tex", ".latex", ".ltx"],
    ["application/x-tex", "application/x-latex", "text/x-tex"],
    _lazy("latex", "scan_latex"),
)
register_format("text", [".txt", ".text"], ["text/plain"], _lazy("plain", "scan_plain"))
register_format(
    "pdf",
    [".pdf"],
    ["application/pdf"],
    "markdown",
    convert=_lazy("pdf", "convert_pdf"),
    signature=b"%PDF-",
    convert_after_crash=_lazy("pdf", "convert_pdf_pages_alone"),
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
    convert=_lazy("docx", "convert_docx"),
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
    convert=_lazy("pptx", "convert_pptx"),
)
register_format("epub", [".epub"], ["application/epub+zip"], "markdown", convert=_lazy("epub", "convert_epub"))
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
    convert=_lazy("odt", "convert_odt"),
)
register_format("rst", [".rst", ".rest"], ["text/x-rst", "text/prs.fallenstein.rst"], _lazy("rst", "scan_rst"))
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
    convert=_lazy("spreadsheet", "convert_spreadsheet"),
)
register_format(
    "notebook", [".ipynb"], ["application/x-ipynb+json"], "markdown", convert=_lazy("notebook", "convert_notebook")
)
register_format(
    "rtf",
    [".rtf"],
    ["application/rtf", "text/rtf"],
    "markdown",
    convert=_lazy("rtf", "convert_rtf"),
    signature=b"{\\rtf",
)
register_format("eml", [".eml"], ["message/rfc822"], "markdown", convert=_lazy("mail", "convert_eml"))
register_format("mbox", [".mbox"], ["application/mbox"], "markdown", convert=_lazy("mail", "convert_mbox"))
register_format("csv", [".csv"], ["text/csv"], _lazy("delimited", "scan_csv"))
register_format("tsv", [".tsv", ".tab"], ["text/tab-separated-values"], _lazy("delimited", "scan_tsv"))
register_format(
    "json",
    [".json", ".geojson", ".jsonld"],
    ["application/json", "application/geo+json"],
    _lazy("json_text", "scan_json"),
)
register_format(
    "jsonl", [".jsonl", ".ndjson"], ["application/jsonl", "application/x-ndjson"], _lazy("json_text", "scan_json_lines")
)
register_format(
    "yaml", [".yaml", ".yml"], ["application/yaml", "application/x-yaml", "text/yaml"], _lazy("yaml_text", "scan_yaml")
)

_BUILTIN = frozenset(registered_formats())


def is_builtin(file_format: Format) -> bool:
    """Return True if drillrank registered the format itself, so that every worker process knows it."""
    return file_format in _BUILTIN
