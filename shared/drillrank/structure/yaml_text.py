"""YAML: values with the path of their keys, and exact spans in the text.

A scanner of lines: it constructs no objects and follows no aliases, so nothing expands. It reads indented keys and
lists. Values that go on over several lines, in quotes, brackets or blocks, are kept as they are written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import pairwise

from drillrank.structure.cutting import line_starts
from drillrank.structure.keyed import KEY_CHARACTERS, MAX_ENTRIES, Entry, Key, arrange
from drillrank.structure.plain import scan_plain
from drillrank.structure.scan import Scan

_DASHES = re.compile(r"(?:-[ \t]+)*(?:-[ \t]*$)?")
_QUOTED_KEY = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|\'[^\']*(?:\'\'[^\']*)*\'')
_ANCHOR_OR_TAG = re.compile(r"[&!][^\s]*(?:[ \t]+[&!][^\s]*)?[ \t]*(?:#.*)?$|#.*$")
_BLOCK_SCALAR = re.compile(r"(?:[&!][^\s]*[ \t]+)?[|>][-+\d]{0,3}[ \t]*(?:#.*)?$")
_DOCUMENT_MARK = re.compile(r"(?:---|\.\.\.)(?=\s|$)")
_NOT_A_KEY = frozenset("#&*!|>%@`[]{},?")
_CHARACTERS_PER_ENTRY = 1_000  # of a long value: it is cut at a line's end
_MAX_LEVELS = 1_000


@dataclass(slots=True)
class _Level:
    """Key or list around the next line.

    Attributes:
        rank: Twice the column; one more for a list, which may stand below its key in the same column.
        key: The key, or the position in the list.
        n_items: Number of items of the list so far.
    """

    rank: int
    key: Key
    n_items: int = 0


def scan_yaml(text: str) -> Scan:
    r"""Find the values of a YAML text.

    >>> [block.rendering for block in scan_yaml("services:\n  web:\n    image: nginx\ntags:\n- a\n- b\n").blocks]
    ['services > web > image: nginx\ntags[0]: a\ntags[1]: b']
    """
    entries = _YamlReader(text).read()
    if len(entries) > MAX_ENTRIES:
        warning = f"The YAML text has more than {MAX_ENTRIES:,} values. It is read as plain text."
        return replace(scan_plain(text), warnings=(warning,))
    return arrange(text, entries)


class _YamlReader:
    """Reads lines and collects entries."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = [*pairwise(line_starts(text))]
        self._entries: list[Entry] = []
        self._levels: list[_Level] = []
        self._index = 0  # of the next line
        self._comments: list[tuple[int, str]] = []  # that belong to the next line: offset and text

    def read(self) -> list[Entry]:
        """Return an entry for each value, and for each comment or other line."""
        while self._index < len(self._lines) and len(self._entries) <= MAX_ENTRIES:
            start, end = self._lines[self._index]
            self._index += 1
            line = self._text[start:end].rstrip()
            if start == 0:
                line = line.removeprefix("\ufeff")
                start = end - len(self._text[start:end].removeprefix("\ufeff"))
            content = line.lstrip(" \t")
            if not content and not self._levels:
                self._add_comments(None, -1)  # a license, for example
            elif content:
                self._read_line(content, start + len(line) - len(content), len(line) - len(content))
        self._add_comments(None, -1)
        return self._entries

    def _read_line(self, content: str, start: int, column: int) -> None:
        """Read a line that is not blank: a mark between documents, a comment, list items, a key and its value."""
        if column == 0 and _DOCUMENT_MARK.match(content):
            self._levels.clear()
            content = content[3:].strip()
            if not content:
                return
            start += 3
        if content.startswith("#"):
            self._comments.append((start, content))
            return
        dashes = _DASHES.match(content)
        assert dashes is not None
        for dash in re.finditer("-", dashes[0]):
            self._enter_item(2 * (column + dash.start()) + 1, start + dash.start())
        parent_column = column + max(dashes[0].rfind("-"), 0)
        column, start, content = column + dashes.end(), start + dashes.end(), content[dashes.end() :]
        label_end = find_key_end(content)
        if label_end < 0:
            key = self._innermost_key(2 * column)
            self._add_comments(key, start)
            if content or not self._has_children(parent_column, allows_list=False):
                self._add_value(start, key, content, start, parent_column)
            return
        value = content[label_end + 1 :].strip()
        value_start = start + len(content) - len(value)
        has_comments = bool(self._comments)
        key = self._enter_key(2 * column, _unquote(content[:label_end].rstrip()), start)
        if has_comments:  # the comments take the line of the key if the key becomes a heading
            start = value_start if value else start + label_end
        if value and not _ANCHOR_OR_TAG.match(value):
            self._add_value(start, key, value, value_start, column)
        elif value or len(key.label) > KEY_CHARACTERS or not self._has_children(column, allows_list=True):
            self._add(start, key, value, value_start if value else value_start - 1)

    def _enter_item(self, rank: int, start: int) -> None:
        """Begin the next item of a list."""
        self._leave(rank, itself=False)
        n_items = 0
        if self._levels and self._levels[-1].rank == rank:
            n_items = self._levels.pop().n_items
        key = self._new_key(f"[{n_items}]", start)
        self._levels.append(_Level(rank, key, n_items + 1))

    def _enter_key(self, rank: int, label: str, start: int) -> Key:
        """Begin a key of an object."""
        self._leave(rank, itself=True)
        key = self._new_key(label, start)
        self._levels.append(_Level(rank, key))
        return key

    def _leave(self, rank: int, *, itself: bool) -> None:
        while self._levels and self._levels[-1].rank > rank - itself:
            self._levels.pop()

    def _new_key(self, label: str, start: int) -> Key:
        parent = self._levels[-1].key if self._levels else None
        if len(self._levels) >= _MAX_LEVELS:
            self._levels.pop()
        depth = 0 if parent is None else parent.depth + 1
        key = Key(parent, label, self._comments[0][0] if self._comments else start, depth)
        self._add_comments(key, start)
        return key

    def _add_comments(self, key: Key | None, start: int) -> None:
        """Add the comments above a line, which describe its key."""
        if self._comments:
            text = "\n".join(comment for _, comment in self._comments)
            self._entries.append(Entry(self._comments[0][0], key, text, start, is_comment=True))
            self._comments.clear()

    def _innermost_key(self, rank: int) -> Key | None:
        """Return the key around a line that begins in a column."""
        return next((level.key for level in reversed(self._levels) if level.rank < rank), None)

    def _has_children(self, column: int, *, allows_list: bool) -> bool:
        """Return True if the next line belongs to the key or item in a column."""
        for start, end in self._lines[self._index : self._index + 100]:
            line = self._text[start:end].rstrip()
            content = line.lstrip(" \t")
            if content and not content.startswith("#"):
                indent = len(line) - len(content)
                return indent > column or (allows_list and indent == column and content.startswith(("- ", "-\n")))
        return False

    def _add_value(self, start: int, key: Key | None, value: str, value_start: int, column: int) -> None:
        """Add a value with the lines that continue it: those with a larger indent than its key."""
        is_block = _BLOCK_SCALAR.match(value) is not None
        pieces = [] if is_block else [value]
        n_characters = len(value)
        is_open_bracket = value.startswith(("[", "{"))
        while self._index < len(self._lines):
            line_start, line_end = self._lines[self._index]
            line = self._text[line_start:line_end].rstrip()
            content = line.lstrip(" \t")
            closes = is_open_bracket and content.startswith(("]", "}"))
            if content and len(line) - len(content) <= column and not closes:
                break
            if not content and not is_block and not self._continues_below(column):
                break
            if n_characters + len(content) > _CHARACTERS_PER_ENTRY and pieces:
                self._add(start, key, "\n".join(pieces), value_start)
                start = value_start = line_start + len(line) - len(content)
                pieces, n_characters = [], 0
            if content or pieces:
                pieces.append(content)
            n_characters += len(content)
            self._index += 1
        text = "\n".join(pieces).strip()
        self._add(start, key, text or value * is_block, value_start)

    def _continues_below(self, column: int) -> bool:
        """Return True if the next line with text continues a value; blank lines in a row are looked through once."""
        index = self._index
        while index < len(self._lines) and not self._text[slice(*self._lines[index])].strip():
            index += 1
        if index == len(self._lines):
            self._index = index
            return False
        line = self._text[slice(*self._lines[index])]
        if len(line) - len(line.lstrip(" \t")) <= column:
            self._index = index
            return False
        self._index = index - 1  # the last blank line, which is kept
        return True

    def _add(self, start: int, key: Key | None, value: str, value_start: int = -1) -> None:
        self._entries.append(Entry(start, key, _unquote(value), value_start))


def find_key_end(content: str) -> int:
    """Return the offset of the colon after a key; -1 if a line has no key.

    >>> find_key_end("image: nginx:1.2"), find_key_end('"a: b": c'), find_key_end("http://x"), find_key_end("# a: b")
    (5, 6, -1, -1)
    """
    if content[:1] in _NOT_A_KEY and not content.startswith("? "):
        return -1
    quoted = _QUOTED_KEY.match(content)
    if content[:1] in ("'", '"'):
        rest = content[quoted.end() :].lstrip(" \t") if quoted else ""
        end = len(content) - len(rest)
        return end if rest == ":" or rest.startswith((": ", ":\t")) else -1
    comment = content.find(" #")
    key_part = content if comment < 0 else content[:comment].rstrip()
    end = min((index for mark in (": ", ":\t") if (index := key_part.find(mark)) >= 0), default=-1)
    return end if end >= 0 or not key_part.endswith(":") else len(key_part) - 1


def _unquote(text: str) -> str:
    """Remove the quotation marks around a short text without escapes."""
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return text[1:-1] if is_quoted and text[0] not in text[1:-1] and "\\" not in text else text
