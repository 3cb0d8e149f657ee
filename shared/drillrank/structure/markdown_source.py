"""Preparation of a Markdown text: front matter, and what a CommonMark parser must not take for blocks.

Formulas between `$$` would become headings or lists, and lines nested too deep would take quadratic time. Both are
replaced by other characters of the same number, so that all offsets stay.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from drillrank.structure.cutting import LINE_END, line_starts
from drillrank.text import without_surrogates

# Below a line that is nested deeper, each line would take time that grows with the depth.
_TOO_DEEP = re.compile(
    r"(?<![^\r\n])((?:[ \t]*(?:[-+*](?=[ \t])|>|\d{1,9}[.)](?=[ \t]))){50}[ \t]*|[ \t]{200,})([-+*>]|\d{1,9}[.)])"
)
_ODD_LINE_END = re.compile(r"\r(?!\n)")
# Lines of metadata at the left margin: a key, an item, a comment, or a bracket or quote of a value.
_YAML_KEY = re.compile(r"""[^\s#\-?:,\[\]{}&*!|>'"%@`].*?:(?:\s|$)|["'].*?["']\s*:(?:\s|$)|\{[{%]""")
_YAML_LINE = re.compile(rf"""{_YAML_KEY.pattern}|[-?}}\]{{\[&*!%<"'#]""")
_TOML_LINE = re.compile(r"""[\w.\-"' ]+=|[\[\]}}"'#]""")
_LINE_PREFIX = " \t>-+*0123456789.)"
_FENCES = ("```", "~~~")
_ATX_HEADING = re.compile(r"[ \t]{0,3}#{1,6}(?:\s|$)")
_MARGIN = re.compile(r"[ \t]*")
_QUOTE_MARGIN = re.compile(r"[ \t>]*")
_NOT_SPACE = re.compile(r"\S")
_CLOSINGS = re.compile(r"\$\$|\\\]|\\end\{[^{}\n]{1,30}\}")
_FORMULA_SIGNS = ("$$", "\\[", "\\begin{")


class MarkdownSource(NamedTuple):
    """Text of a document as the parser gets it.

    Attributes:
        start: Offset of the parsed text in the document, behind its front matter.
        has_front_matter: True if the document has front matter.
        text: The parsed text, which has as many characters as the document from `start`.
    """

    start: int
    has_front_matter: bool
    text: str


def prepare_markdown(text: str) -> MarkdownSource:
    """Skip the front matter and mask what is not meant as blocks."""
    end = find_front_matter_end(text)
    start = end or int(text.startswith("\ufeff"))
    source = without_surrogates(_ODD_LINE_END.sub("\n", text[start:]))
    source = _TOO_DEEP.sub(lambda line: line[1] + "x" * len(line[2]), _mask_formulas(source))
    return MarkdownSource(start, end > 0, source)


def find_front_matter_end(text: str) -> int:
    r"""Return the offset behind the front matter: YAML, TOML or JSON at the top. 0 if there is none.

    >>> find_front_matter_end("---\ntitle: Sea\n---\n\nDeep."), find_front_matter_end("---\n\nA rule.\n\n---\n")
    (18, 0)
    """
    head = text.lstrip("\ufeff\r\n")
    start = len(text) - len(head)
    if head.startswith("{"):
        return _find_json_end(text, start)
    fence = head[:3]
    if fence not in ("---", "+++"):
        return 0
    ends = (fence, "...") if fence == "---" else (fence,)
    line_pattern, first_pattern = (_YAML_LINE, _YAML_KEY) if fence == "---" else (_TOML_LINE, _TOML_LINE)
    is_first, has_key = True, False
    for line_start, line in _lines(text, start):
        line = line.rstrip()
        if is_first:
            if line != fence:
                return 0
            is_first = False
            has_no_lines = True
        elif line in ends:
            return line_start + len(line) if has_key or has_no_lines else 0
        elif not line and has_no_lines:
            return 0  # a blank line behind a rule
        else:
            has_no_lines = False
            if line and line[0] not in " \t#" and not (line_pattern if has_key else first_pattern).match(line):
                return 0
            has_key = has_key or bool(line and line[0] not in " \t#")
    return 0


def _lines(text: str, start: int) -> Iterator[tuple[int, str]]:
    """Yield the offset and the text of each line."""
    for end in LINE_END.finditer(text, start):
        yield start, text[start : end.start()]
        start = end.end()
    yield start, text[start:]


def _find_json_end(text: str, start: int) -> int:
    try:
        value, end = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return 0
    line_end = LINE_END.search(text, end)
    rest = text[end : line_end.start() if line_end else len(text)]
    return end if isinstance(value, dict) and value and not rest.strip() else 0


def _mask_formulas(source: str) -> str:
    """Replace the signs in lines of formulas by letters, outside of code. Blank lines and margins stay."""
    if not any(sign in source for sign in _FORMULA_SIGNS):
        return source
    starts = line_starts(source)
    lines = [source[start:end] for start, end in pairwise(starts)]
    lines_by_closing: dict[str, list[int]] = defaultdict(list)
    for index, line in enumerate(lines):
        for closing in _CLOSINGS.findall(line):
            lines_by_closing[closing].append(index)
    # No formula goes on behind a heading or a fence.
    stops = [i for i, line in enumerate(lines) if _ATX_HEADING.match(line) or line.lstrip().startswith(_FENCES)]
    fence = ""
    index = 0
    while index < len(lines):
        line = lines[index].strip(_LINE_PREFIX + "\r\n")
        if line.startswith(_FENCES) or fence:
            fence = _next_fence(line, fence)
        elif closing := _closing_sign(line):
            last = _first_after(lines_by_closing[closing], index)
            if last is not None and last < (_first_after(stops, index) or len(lines)):
                margin = _QUOTE_MARGIN if lines[index].lstrip().startswith(">") else _MARGIN
                lines[index + 1 : last] = [_mask_line(inner, margin) for inner in lines[index + 1 : last]]
                before, sign, behind = lines[last].partition(closing)
                lines[last] = _mask_line(before, margin) + sign + behind
                index = last
        index += 1
    return "".join(lines)


def _mask_line(line: str, margin: re.Pattern[str]) -> str:
    match = margin.match(line)
    end = match.end() if match else 0
    return line[:end] + _NOT_SPACE.sub("x", line[end:])


def _next_fence(line: str, fence: str) -> str:
    """Return the fence of the code that is open behind a line; empty if none is."""
    if not fence:
        return line[: len(line) - len(line.lstrip(line[0]))]
    return "" if line.startswith(fence) and not line.strip(fence[0]).strip() else fence


def _closing_sign(line: str) -> str:
    """Return what ends the formula that a line begins and does not end; empty if there is none."""
    if line.startswith("$$"):
        return "" if "$$" in line[2:] else "$$"
    if line.startswith("\\["):
        return "" if "\\]" in line else "\\]"
    if line.startswith("\\begin{"):
        name = line[7:].partition("}")[0][:30]
        return "" if "\\end{" in line else f"\\end{{{name}}}"
    if line.endswith("$$") and "`" not in line:
        return "$$" if line.count("$$") % 2 else ""
    return ""


def _first_after(indices: list[int], index: int) -> int | None:
    """Return the first of the rising indices that is greater than an index; None if there is none."""
    position = bisect_right(indices, index)
    return indices[position] if position < len(indices) else None
