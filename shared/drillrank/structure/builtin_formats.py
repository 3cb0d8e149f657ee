"""The formats that drillrank reads itself, registered as a third party would register them.

The endings of their files and their media types are in `formats.tsv` of `drillrank.data`.
"""

from __future__ import annotations

from typing import Any

from drillrank.data import read_rows
from drillrank.lazy import LazyFunction
from drillrank.structure.code import scan_code
from drillrank.structure.formats import Format, Scanner, register_format, registered_formats

_NAMES = {name: (suffixes.split(), types.split()) for name, suffixes, types in read_rows("formats.tsv")}


def _lazy(module: str, name: str) -> LazyFunction:
    """Return a scanner or converter. Its module is loaded at the first call, because a question needs few of them."""
    return LazyFunction(f"drillrank.structure.{module}:{name}")


def _register(name: str, scan: Scanner, **options: Any) -> None:
    register_format(name, *_NAMES[name], scan, **options)


def _register_converted(name: str, convert: LazyFunction, **options: Any) -> None:
    """Register a format whose files are converted to Markdown."""
    register_format(name, *_NAMES[name], "markdown", convert=convert, **options)


_register("markdown", _lazy("markdown", "scan_markdown_or_plain"))
_register("html", _lazy("html", "scan_html"))
_register("latex", _lazy("latex", "scan_latex"))
_register("text", _lazy("plain", "scan_plain"))
_register_converted(
    "pdf",
    _lazy("pdf", "convert_pdf"),
    signature=b"%PDF-",
    convert_after_crash=_lazy("pdf", "convert_pdf_pages_alone"),
)
_register_converted("docx", _lazy("docx", "convert_docx"))
_register_converted("pptx", _lazy("pptx", "convert_pptx"))
_register_converted("epub", _lazy("epub", "convert_epub"))
_register_converted("odt", _lazy("odt", "convert_odt"))
_register("rst", _lazy("rst", "scan_rst"))
_register("code", scan_code)
_register_converted("spreadsheet", _lazy("spreadsheet", "convert_spreadsheet"))
_register_converted("notebook", _lazy("notebook", "convert_notebook"))
_register_converted("rtf", _lazy("rtf", "convert_rtf"), signature=b"{\\rtf")
_register_converted("eml", _lazy("mail", "convert_eml"))
_register_converted("mbox", _lazy("mail", "convert_mbox"))
_register("csv", _lazy("delimited", "scan_csv"))
_register("tsv", _lazy("delimited", "scan_tsv"))
_register("json", _lazy("json_text", "scan_json"))
_register("jsonl", _lazy("json_text", "scan_json_lines"))
_register("yaml", _lazy("yaml_text", "scan_yaml"))

_BUILTIN = frozenset(registered_formats())


def is_builtin(file_format: Format) -> bool:
    """Return True if drillrank registered the format itself, so that every worker process knows it."""
    return file_format in _BUILTIN
