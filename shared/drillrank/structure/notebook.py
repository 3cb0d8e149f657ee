"""Jupyter notebooks: Markdown cells as they are, code cells and their outputs as fenced code.

Reads nbformat 3 and 4 with the standard library. Images and widgets of outputs are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from drillrank import limits
from drillrank.errors import InvalidInput
from drillrank.limits import read_json
from drillrank.structure.encodings import decode_text
from drillrank.structure.formats import ConvertedText
from drillrank.structure.markdown import heading, html_as_markdown, with_closed_fence

_ANSI_ESCAPE = re.compile(r"\x1b(?:\[[0-?]{0,100}[ -/]{0,10}[@-~]|\][^\x07\x1b]{0,1000}(?:\x07|\x1b\\)|[@-Z\\^_])")
_CARRIAGE_RETURN = re.compile(r"(?<![^\r\n])[^\r\n]*\r(?!\n)")  # progress bars overwrite their line
_BACKTICKS = re.compile(r"`{3,}")
_EMBEDDED_FILE = re.compile(r"\bdata:[\w.+/-]{1,60};base64,[A-Za-z0-9+/=]*")
_MAX_HTML_CHARACTERS = 200_000  # larger tables are read from their plain text
_LANGUAGE = re.compile(r"[\w+#.-]{1,30}")
_TEXT_KEYS_OF_VERSION_3 = {
    "text/plain": "text",
    "text/html": "html",
    "text/markdown": "markdown",
    "text/latex": "latex",
}


def convert_notebook(content: bytes) -> ConvertedText:
    """Convert a notebook to Markdown.

    Raises:
        InvalidInput: The file is not a notebook; the message continues its name.
    """
    try:
        text, warnings = decode_text(content, may_declare=False)
        notebook = read_json(text, "The notebook")
    except InvalidInput as problem:
        raise InvalidInput("cannot be read as a notebook: it is not valid JSON.") from problem
    except RecursionError as problem:
        raise InvalidInput("cannot be read as a notebook: it is nested too deeply.") from problem
    cells = _list_cells(notebook)
    language = _find_language(notebook)
    parts = (part for cell in cells for part in _convert_cell(cell, language))
    return ConvertedText("\n\n".join(limits.check_parts(parts, len(content))), None, warnings)


def _list_cells(notebook: Any) -> list[dict[str, Any]]:
    """Return the cells of a notebook; those of version 3 lie in worksheets."""
    if not isinstance(notebook, dict) or not ("cells" in notebook or "worksheets" in notebook):
        raise InvalidInput("cannot be read as a notebook: it has no cells.")
    sheets = [notebook, *_dicts(notebook.get("worksheets"))]
    return [cell for sheet in sheets for cell in _dicts(sheet.get("cells"))]


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _find_language(notebook: dict[str, Any]) -> str:
    """Return the name of the notebook's programming language; an empty string if it is not known."""
    metadata = notebook.get("metadata")
    for key in ("language_info", "kernelspec"):
        details = metadata.get(key) if isinstance(metadata, dict) else None
        name = details.get("name" if key == "language_info" else "language") if isinstance(details, dict) else None
        if isinstance(name, str) and _LANGUAGE.fullmatch(name):
            return name
    return ""


def _convert_cell(cell: dict[str, Any], language: str) -> Iterator[str]:
    """Yield the Markdown of a cell's source and outputs."""
    kind = cell.get("cell_type")
    source = _join_lines(cell.get("source", cell.get("input")))
    if kind == "heading":  # of version 3
        level = cell.get("level")
        yield heading(level if isinstance(level, int) and level > 0 else 1, source)
    elif kind == "code":
        cell_language = cell.get("language")
        if source.strip():
            yield fence(source, cell_language if isinstance(cell_language, str) and not language else language)
        for output in _dicts(cell.get("outputs")):
            yield from _convert_output(output)
    elif source.strip():
        yield with_closed_fence(_EMBEDDED_FILE.sub("", source).strip("\n"))


def _convert_output(output: dict[str, Any]) -> Iterator[str]:
    """Yield the Markdown of an output: a stream, a result or an error."""
    kind = output.get("output_type")
    if kind == "stream":
        yield from _fence_text(_join_lines(output.get("text")))
    elif kind in ("error", "pyerr"):
        name, value = (_join_lines(output.get(key)) for key in ("ename", "evalue"))
        traceback = _plain_text("\n".join(_texts(output.get("traceback"))))
        yield from _fence_text(traceback if value in traceback and traceback else f"{traceback}\n{name}: {value}")
    else:
        data = output.get("data")
        if isinstance(data, dict):
            yield from _convert_data({str(key): _join_lines(value) for key, value in data.items()})
        else:
            texts = {media: _join_lines(output.get(key)) for media, key in _TEXT_KEYS_OF_VERSION_3.items()}
            yield from _convert_data(texts)


def _convert_data(text_by_media_type: dict[str, str]) -> Iterator[str]:
    """Yield the Markdown of a result: its HTML if that has text, else Markdown, plain text or LaTeX."""
    html = text_by_media_type.get("text/html", "")
    plain = text_by_media_type.get("text/plain", "")
    if html.strip() and len(html) <= _MAX_HTML_CHARACTERS:
        parts = [part for part in html_as_markdown(html) if part.strip()]
        if parts:
            yield from parts
            return
    markdown = text_by_media_type.get("text/markdown", "")
    if markdown.strip():
        yield with_closed_fence(_EMBEDDED_FILE.sub("", markdown).strip("\n"))
    elif plain.strip():
        yield from _fence_text(plain)
    else:
        yield from _fence_text(text_by_media_type.get("text/latex", "") or html)


def _texts(value: Any) -> Sequence[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _join_lines(value: Any) -> str:
    """Return a text that is stored as a string or as a list of lines."""
    return value if isinstance(value, str) else "".join(_texts(value))


def _plain_text(text: str) -> str:
    r"""Remove colors and what a terminal overwrites.

    >>> _plain_text("\x1b[31mred\x1b[0m 10%\r20%\n")
    '20%\n'
    """
    return _CARRIAGE_RETURN.sub("", _ANSI_ESCAPE.sub("", text).replace("\r\n", "\n")).replace("\x1b", "")


def _fence_text(text: str) -> Iterator[str]:
    text = _plain_text(text)
    if text.strip():
        yield fence(text)


def fence(text: str, language: str = "") -> str:
    r"""Return a fenced code block whose fence is longer than any inside.

    >>> print(fence("a\n```\nb", "python"))
    ````python
    a
    ```
    b
    ````
    """
    longest = max((len(match[0]) for match in _BACKTICKS.finditer(text)), default=2)
    marks = "`" * (longest + 1)
    return f"{marks}{language}\n{text.strip(chr(10))}\n{marks}"
