"""reStructuredText: sections, blocks and readable text of a source file.

docutils keeps no offsets of inline text and its work on nested tables is not bounded. Therefore a scanner goes through
the lines once. It knows titles, directives, literal blocks, tables, lists, comments and inline markup.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from drillrank.structure.cutting import line_starts
from drillrank.structure.document import BlockKind
from drillrank.structure.scan import Scan, VisibleBlock, tile_visible_blocks

_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1*")
_DIRECTIVE = re.compile(
    r"\.\.[ \t]{1,9}(?:\|(?P<substitution>[^|]{1,99})\|[ \t]{1,9})?(?P<name>[\w.+:-]{1,60}?)[ \t]?::(?=\s|$)"
)
_FOOTNOTE = re.compile(r"\.\.[ \t]{1,9}(?P<label>\[[^\]\s]{1,80}\])[ \t]{0,9}")
_EXPLICIT = re.compile(r"\.\.(?=\s|$)")
_ANONYMOUS_TARGET = re.compile(r"__[ \t]")
_OPTION = re.compile(r":(?P<name>[^:\s][^:]{0,60}):(?=\s|$)[ \t]*(?P<value>.*)")
_ITEM = re.compile(r"(?P<marker>[-*+•‣⁃]|\(?(?:\d{1,4}|#|[A-Za-z]|[ivxlcIVXLC]{1,7})[.)])(?:[ \t]+|$)")
_GRID_BORDER = re.compile(r"\+(?:[-=]+\+)+")
_SIMPLE_BORDER = re.compile(r"=+(?:[ \t]+=+)+")
_DOCTEST = re.compile(r">>>(?=\s|$)")
_LINE_BLOCK = re.compile(r"\|(?=\s|$)")

_CODE_DIRECTIVES = frozenset(
    {
        *("code", "code-block", "sourcecode", "parsed-literal", "literalinclude", "doctest", "testcode", "testoutput"),
        *("testsetup", "testcleanup", "prompt", "console", "ipython", "math", "productionlist", "graphviz", "digraph"),
        *("mermaid", "uml", "raw", "highlight-block", "jupyter-execute"),
    }
)
_HIDDEN_DIRECTIVES = frozenset(
    {"meta", "index", "contents", "sectnum", "highlight", "default-role", "role", "include", "only", "class"}
)
_HIDDEN_BODIES = frozenset({"meta", "index", "contents"})
_LABELS = {
    "seealso": "See also", "versionadded": "New in version", "versionchanged": "Changed in version",
    "deprecated": "Deprecated since version", "admonition": "", "topic": "", "sidebar": "", "rubric": "",
    "epigraph": "", "pull-quote": "", "centered": "",
    **{name: name.capitalize() for name in ("attention", "caution", "danger", "error", "hint", "important", "note",
                                            "tip", "warning", "todo")},
}  # fmt: skip
_VISIBLE_OPTIONS = frozenset({"alt", "caption", "header", "title"})

_INLINE = re.compile(
    r"""``(?P<literal>(?:[^`]|`(?!`)){1,2000}?)``(?!`)
      | (?::(?P<role>[\w.+:-]{1,60}):)?_?`(?P<text>[^`]{1,2000})`(?::[\w.+:-]{1,60}:)?_{0,2}
      | (?<![\w*])\*\*(?=[^\s*])(?P<strong>(?:[^*]|\*(?!\*)){1,2000})\*\*
      | (?<![\w*])\*(?=[^\s*])(?P<emphasis>[^*]{1,2000})\*(?!\w)
      | \|(?P<substitution>[^|\s](?:[^|\n]{0,98}[^|\s])?)\|_{0,2}
      | (?P<footnote>\[[^\]\s]{1,80}\])_
      | (?<!\w)(?P<reference>[^\W_](?:[\w.+-]{0,80}[^\W_])?)__?(?!\w)
      | \\(?P<escaped>[\s\S])""",
    re.VERBOSE,
)
_TARGET = re.compile(r"(?<!\s)\s*<[^<>]*>$")


class _Line(NamedTuple):
    """Line of the source.

    Attributes:
        start: Offset of its first character that is not white space.
        indent: Width of the white space before it; tabs end at multiples of 8.
        text: Text without white space around it; empty for a blank line.
        source: Line with tabs replaced and without white space at its end.
    """

    start: int
    indent: int
    text: str
    source: str


def scan_rst(text: str) -> Scan:
    r"""Find the blocks and headings of a reStructuredText source.

    >>> scan = scan_rst("Sea\n===\n\nIt is *deep*::\n\n    code\n")
    >>> [(block.kind, block.rendering) for block in scan.blocks]
    [('heading', 'Sea'), ('paragraph', 'It is deep:'), ('code', 'code')]
    """
    return tile_visible_blocks(text, _RstReader(text).read_blocks())


def _split_lines(text: str) -> list[_Line]:
    """Return the lines of a text."""
    lines: list[_Line] = []
    for start, end in pairwise(line_starts(text)):
        source = text[start:end].rstrip()
        content = source.lstrip()
        offset = start + len(source) - len(content)
        indent = len(source[: len(source) - len(content)].expandtabs(8))
        lines.append(_Line(offset, indent if content else 0, content, source.expandtabs(8)))
    return lines


class _RstReader:
    """Reader that goes through the lines once and collects the visible blocks."""

    def __init__(self, text: str) -> None:
        self._lines = _split_lines(text)
        self._blocks: list[VisibleBlock] = []
        self._unclosed_table = (-1, 0)  # index up to which no table of at least this indentation is closed
        self._level_by_style: dict[tuple[str, bool], int] = {}
        self._substitutions: dict[str, str] = {}
        for line in self._lines:
            match = _DIRECTIVE.match(line.text)
            if match and match["substitution"]:
                self._substitutions[match["substitution"].lower()] = line.text[match.end() :].strip()

    def read_blocks(self) -> list[VisibleBlock]:
        """Return the visible blocks in order."""
        index = 0
        while index < len(self._lines):
            index = self._read_block(index) if self._lines[index].text else index + 1
        return self._blocks

    def _read_block(self, index: int) -> int:
        """Read the block that begins at a line, and return the index of the line after it."""
        line = self._lines[index]
        for read in (self._read_title, self._read_explicit, self._read_table):
            end = read(index)
            if end > index:
                return end
        if _DOCTEST.match(line.text):
            return self._read_code(index, self._find_blank(index))
        if _LINE_BLOCK.match(line.text):
            end = self._find_blank(index)
            rows = [self._render(row.text.lstrip("| \t")) for row in self._lines[index:end]]
            self._add(line, "paragraph", "\n".join(rows))
            return end
        if self._is_item(index):
            return self._read_list(index)
        return self._read_paragraph(index)

    # --- Titles

    def _read_title(self, index: int) -> int:
        """Read a title with a line of signs below and perhaps above; skip a line of signs between paragraphs."""
        first, second, third = (self._line(index + offset) for offset in range(3))
        if first.indent:
            return index
        adornment = _ADORNMENT.fullmatch(first.text)
        if adornment and third.text and third.text[0] == adornment[1] and _ADORNMENT.fullmatch(third.text):
            is_title = second.text and not _ADORNMENT.fullmatch(second.text) and not _SIMPLE_BORDER.match(second.text)
            if is_title and _fits(second.text, first.text) and _fits(second.text, third.text):
                self._add_title(first, second.text, (adornment[1], True))
                return index + 3
        if adornment:
            return index + 1 if len(first.text) >= 4 and not second.text else index
        underline = _ADORNMENT.fullmatch(second.text)
        if underline and not second.indent and _fits(first.text, second.text) and not _EXPLICIT.match(first.text):
            self._add_title(first, first.text, (underline[1], False))
            return index + 2
        return index

    def _add_title(self, line: _Line, title: str, style: tuple[str, bool]) -> None:
        """Add a heading. Styles have levels in the order in which they occur."""
        level = self._level_by_style.setdefault(style, len(self._level_by_style) + 1)
        self._blocks.append(VisibleBlock(line.start, "heading", self._render(title), level))

    # --- Explicit markup: directives, footnotes, targets and comments

    def _read_explicit(self, index: int) -> int:
        """Read a directive or footnote, or skip a target or comment."""
        line = self._lines[index]
        if _ANONYMOUS_TARGET.match(line.text):
            return index + 1
        if not _EXPLICIT.match(line.text):
            return index
        if directive := _DIRECTIVE.match(line.text):
            if directive["substitution"]:
                return self._find_dedent(index)
            return self._read_directive(index, directive["name"].lower(), line.text[directive.end() :].strip())
        if footnote := _FOOTNOTE.match(line.text):
            end = self._find_blank(index)
            texts = [line.text[footnote.end() :], *(row.text for row in self._lines[index + 1 : end])]
            self._add(line, "paragraph", f"{footnote['label']} {self._render(' '.join(texts))}".strip())
            return end
        if line.text == ".." and not self._line(index + 1).text:  # an empty comment ends the block before it
            return index + 1
        return self._find_dedent(index)

    def _read_directive(self, index: int, name: str, argument: str) -> int:
        """Read the head of a directive, and its body if that is not text."""
        line, end = self._lines[index], self._find_dedent(index)
        base = name.rpartition(":")[2]
        body = index + 1
        argument_lines: list[str] = [argument] if argument else []
        options: list[str] = []
        while body < end and self._lines[body].text:
            option = _OPTION.match(self._lines[body].text)
            if option and option["name"].lower() in _VISIBLE_OPTIONS:
                options.append(option["value"])
            elif option is None and (base in _CODE_DIRECTIVES or not argument or options):
                break
            elif option is None:
                argument_lines.append(self._lines[body].text)
            body += 1
        if base in _HIDDEN_BODIES:
            return end
        if base in ("list-table", "csv-table"):
            self._add_directive_head(line, "table", " ".join(argument_lines))
            rows = self._read_csv(options, body, end) if base == "csv-table" else self._read_list_table(body, end)
            return self._add_table(line, rows, end)
        if base in _CODE_DIRECTIVES:
            is_content = base == "math" and argument
            self._add(line, "paragraph", " ".join([*options, *([argument] if is_content else ())]))
            return self._read_code(body, end)
        if base not in _HIDDEN_DIRECTIVES:
            self._add_directive_head(line, base, " ".join([*argument_lines, *options]))
        return body

    def _add_directive_head(self, line: _Line, name: str, argument: str) -> None:
        """Add the label of a directive, such as "Note:", and its argument."""
        label = _LABELS.get(name, "")
        text = self._render(argument) if name not in ("image", "figure") else argument
        separator = " " if name.startswith(("version", "deprecated")) else ": "
        self._add(line, "paragraph", separator.join(filter(None, (label, text))) + (":" if label and not text else ""))

    def _read_list_table(self, start: int, end: int) -> list[list[str]]:
        """Return the rows of a table that is written as a list of lists."""
        rows: list[list[str]] = []
        for line in self._lines[start:end]:
            text = line.text
            if text.startswith("* ") or text == "*":
                rows.append([])
                text = text[1:].lstrip()
            if text.startswith("- ") or text == "-":
                (rows or [[]])[-1].append(text[1:].strip())
            elif text and rows and rows[-1]:
                rows[-1][-1] = f"{rows[-1][-1]} {text}".strip()
        return rows

    def _read_csv(self, headers: list[str], start: int, end: int) -> list[list[str]]:
        """Return the rows of a table that is written as comma-separated values."""
        sources = [*headers, *(line.text for line in self._lines[start:end] if line.text)]
        try:
            rows = list(csv.reader(sources, skipinitialspace=True))
        except csv.Error:  # a field is too long
            rows = [[source] for source in sources]
        return rows

    # --- Tables

    def _read_table(self, index: int) -> int:
        """Read a grid table or a simple table."""
        line = self._lines[index]
        if _GRID_BORDER.fullmatch(line.text):
            end = index
            while self._line(end).text[:1] in ("+", "|"):
                end += 1
            return self._add_table(line, self._read_grid(index, end), end)
        if not _SIMPLE_BORDER.fullmatch(line.text):
            return index
        if index < self._unclosed_table[0] and line.indent >= self._unclosed_table[1]:
            return index
        n_borders, end = 0, index
        while end < len(self._lines) and (not self._lines[end].text or self._lines[end].indent >= line.indent):
            is_border = _SIMPLE_BORDER.fullmatch(self._lines[end].text) is not None
            n_borders += is_border
            end += 1
            if is_border and n_borders > 1 and not self._line(end).text:
                return self._add_table(line, self._read_simple_table(index, end), end)
        self._unclosed_table = (end, line.indent)
        return index

    def _add_table(self, line: _Line, rows: Iterable[Iterable[str]], end: int) -> int:
        """Add a table that begins at a line, and return its end."""
        self._add(line, "table", "\n".join(" | ".join(map(self._render, row)) for row in rows))
        return end

    def _read_grid(self, start: int, end: int) -> list[list[str]]:
        """Return the rows of a grid table."""
        rows: list[list[str]] = []
        cells: list[str] = []
        for line in self._lines[start:end]:
            if line.text[0] == "+" and set(line.text) <= set("+-= "):
                if any(cells):
                    rows.append(cells)
                cells = []
                continue
            parts = [part.strip() for part in line.text.strip("|+").split("|")]
            if len(parts) == len(cells):
                cells = [f"{cell} {part}".strip() for cell, part in zip(cells, parts, strict=True)]
            else:
                if any(cells):
                    rows.append(cells)
                cells = parts
        if any(cells):
            rows.append(cells)
        return rows

    def _read_simple_table(self, start: int, end: int) -> list[list[str]]:
        """Return the rows of a simple table. A line without a first cell continues the row before it."""
        border = self._lines[start].source
        begins = [match.start() for match in re.finditer("=+", border)]
        rows: list[list[str]] = []
        for line in self._lines[start + 1 : end]:
            if not line.text or set(line.text) <= set("=- "):
                continue
            bounds = [*begins[1:], len(line.source)]
            cells = [line.source[a:b].strip() for a, b in zip(begins, bounds, strict=True)]
            if cells[0] or not rows:
                rows.append(cells)
            else:
                rows[-1] = [f"{cell} {part}".strip() for cell, part in zip(rows[-1], cells, strict=True)]
        return rows

    # --- Text

    def _read_code(self, start: int, end: int) -> int:
        """Add lines as a block of code without their common indentation, and return their end."""
        lines = self._lines[start:end]
        visible = [line for line in lines if line.text]
        if visible:
            indent = min(line.indent for line in visible)
            self._add(visible[0], "code", "\n".join(line.source[indent:] for line in lines).strip("\n"))
        return end

    def _is_item(self, index: int) -> bool:
        """Return True if a list item begins here and not a sentence that begins with a letter or number."""
        match = _ITEM.match(self._lines[index].text)
        if match is None:
            return False
        if match["marker"] in "-*+•‣⁃" or not match["marker"][0].isalpha():
            return True
        return self._is_item_of_marker(index + 1) or not self._line(index + 1).text

    def _is_item_of_marker(self, index: int) -> bool:
        """Return True if a line has the marker of a list item or is indented as its text."""
        line = self._line(index)
        return _ITEM.match(line.text) is not None or line.indent > 0

    def _read_list(self, start: int) -> int:
        """Read a list with everything inside it as one block."""
        indent = self._lines[start].indent
        rows: list[str] = []
        numbers: dict[int, int] = {}
        index, is_after_blank, raw_indent = start, False, -1
        while index < len(self._lines):
            line = self._lines[index]
            if not line.text:
                is_after_blank = True
                index += 1
                continue
            item = _ITEM.match(line.text)
            if line.indent < indent or (line.indent == indent and not item and (is_after_blank or index == start)):
                break
            if raw_indent >= 0 and line.indent > raw_indent:
                rows.append(line.source[indent:])
            else:
                raw_indent = self._add_row(rows, numbers, line, item, (line.indent - indent) // 2, is_after_blank)
            is_after_blank = False
            index += 1
        self._add(self._lines[start], "list", "\n".join(filter(None, rows)))
        return index

    def _add_row(
        self,
        rows: list[str],
        numbers: dict[int, int],
        line: _Line,
        item: re.Match[str] | None,
        depth: int,
        is_after_blank: bool,
    ) -> int:
        """Add a line of a list. Return the indentation that a literal block after it exceeds, or -1."""
        text = line.text
        is_literal = text.endswith("::")
        if item:
            marker = item["marker"]
            if "#" in marker:
                numbers[depth] = numbers.get(depth, 0) + 1
                marker = marker.replace("#", str(numbers[depth]))
            elif marker in "-*+•‣⁃":
                marker = "-"
            rows.append(f"{'  ' * min(depth, 20)}{marker} {self._render(_end_literal(text[item.end() :]))}".rstrip())
        elif _EXPLICIT.match(text):
            directive = _DIRECTIVE.match(text)
            name = directive["name"].lower().rpartition(":")[2] if directive else ""
            label = _LABELS.get(name, "")
            argument = text[directive.end() :].strip() if directive and name not in _CODE_DIRECTIVES else ""
            rows.append(self._render(": ".join(filter(None, (label, argument)))))
            is_literal = name in _CODE_DIRECTIVES
        elif is_after_blank or not rows or not rows[-1]:
            rows.append("  " * min(depth, 20) + self._render(_end_literal(text)))
        else:
            rows[-1] = f"{rows[-1]} {self._render(_end_literal(text))}"
        return line.indent if is_literal else -1

    def _read_paragraph(self, start: int) -> int:
        """Read a paragraph, a field or a term with its definition, and the literal block after it."""
        line = self._lines[start]
        end = start + 1
        while self._line(end).text and not (_EXPLICIT.match(self._line(end).text) and self._line(end).indent == 0):
            end += 1
        lines = self._lines[start:end]
        rows = [[lines[0].text]]
        for before, current in pairwise(lines):
            is_new_row = current.indent > before.indent and len(rows) == 1 and len(rows[0]) == 1
            if (is_new_row and not _OPTION.match(before.text)) or _OPTION.match(current.text):
                rows.append([])
            rows[-1].append(current.text)
        is_literal = lines[-1].text.endswith("::")
        rows[-1][-1] = _end_literal(rows[-1][-1])
        self._add(line, "paragraph", "\n".join(filter(None, (self._render_field(" ".join(row)) for row in rows))))
        if not is_literal:
            return end
        body = end
        while body < len(self._lines) and not self._lines[body].text:
            body += 1
        return self._read_code(body, self._find_dedent(end - 1)) if self._line(body).indent > lines[-1].indent else end

    def _render_field(self, text: str) -> str:
        """Return the readable text of a paragraph or of a field such as ":Author: Ada"."""
        field = _OPTION.match(text)
        return f"{field['name']}: {self._render(field['value'])}".strip() if field else self._render(text)

    def _render(self, text: str) -> str:
        """Return a text without inline markup."""
        return _INLINE.sub(self._render_inline, text)

    def _render_inline(self, match: re.Match[str]) -> str:
        """Return the readable text of a piece of inline markup."""
        if match["substitution"]:
            return self._substitutions.get(match["substitution"].lower(), match["substitution"])
        if match["escaped"]:
            return match["escaped"].strip()
        if match["text"]:
            text = _TARGET.sub("", match["text"]) or match["text"].strip("<>")
            is_superscript = match["role"] in ("sup", "superscript") and text[:1].isdigit()
            return f"^{text}" if is_superscript else text.lstrip("~!") if match["role"] else text
        groups = ("literal", "strong", "emphasis", "footnote", "reference")
        return next(match[group] for group in groups if match[group])

    # --- Lines

    def _line(self, index: int) -> _Line:
        """Return a line; a blank one after the last."""
        return self._lines[index] if index < len(self._lines) else _Line(0, 0, "", "")

    def _find_blank(self, index: int) -> int:
        """Return the index of the next blank line."""
        while self._line(index).text:
            index += 1
        return index

    def _find_dedent(self, index: int) -> int:
        """Return the index after a line and all blank and deeper lines below it."""
        indent = self._lines[index].indent
        index += 1
        while index < len(self._lines) and (not self._lines[index].text or self._lines[index].indent > indent):
            index += 1
        return index

    def _add(self, line: _Line, kind: BlockKind, rendering: str) -> None:
        """Add a block that begins at a line, unless it shows nothing."""
        if not rendering.strip():
            return
        if self._blocks and self._blocks[-1].start == line.start:  # the head of a table and its rows
            rendering = f"{self._blocks.pop().rendering}\n{rendering}"
        self._blocks.append(VisibleBlock(line.start, kind, rendering))


def _fits(title: str, adornment: str) -> bool:
    """Return True if a line of signs is as long as a title or at least four signs long."""
    return len(adornment) >= min(len(title), 4) and title[:1] != ""


def _end_literal(text: str) -> str:
    """Return a text with "::" at its end replaced as the reader sees it."""
    if not text.endswith("::"):
        return text
    return text[:-2].rstrip() if len(text) == 2 or text[-3].isspace() else text[:-1]
