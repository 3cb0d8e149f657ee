"""JSON, JSON Lines and GeoJSON: values with the path of their keys, and exact spans in the text.

The standard library's reader tells no offsets, so a scanner reads tokens one after the other. Comments and commas at
the end of a list are accepted. What is not JSON is read as plain text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from drillrank import limits
from drillrank.structure.keyed import KEY_CHARACTERS, MAX_ENTRIES, Entry, Key, arrange
from drillrank.structure.plain import scan_plain
from drillrank.structure.scan import Scan

_TOKEN = re.compile(
    r"[\s\ufeff]*(?:"
    r"(?P<mark>[\[\]{},:])"
    r'|(?P<string>"[^"\\\r\n]*(?:\\.[^"\\\r\n]*)*")'
    r"|(?P<comment>//[^\r\n]*|/\*[^*]*(?:\*+[^*/][^*]*)*\*+/)"
    r"|(?P<word>[^\s\[\]{},:\"/]+)"
    r"|(?P<end>\Z))",
    re.DOTALL,
)
_WORD = re.compile(r"-?(?:\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|Infinity)|NaN|true|false|null")
_LINE = re.compile(r"[^\r\n]+")
_SHARED_CHARACTERS = 1_000  # scalars of a list share a line up to this length


def scan_json(text: str) -> Scan:
    r"""Find the values of a JSON text.

    >>> [block.rendering for block in scan_json('{"license": "MIT", "keywords": ["a", "b"]}').blocks]
    ['license: MIT\nkeywords: a, b']
    """
    try:
        return arrange(text, list(_read_values(text, 0, len(text))))
    except _NotJson as problem:
        warning = f"The text is named as JSON but is not valid JSON ({problem}). It is read as plain text."
        return replace(scan_plain(text), warnings=(warning,) if text.strip() else ())


def scan_json_lines(text: str) -> Scan:
    r"""Find the values of JSON Lines. A line that is not JSON is kept as text.

    >>> [block.rendering for block in scan_json_lines('{"a": 1}\n{"a": 2}\n').blocks]
    ['[0] > a: 1\n[1] > a: 2']
    """
    entries: list[Entry] = []
    n_broken = 0
    for number, line in enumerate(line for line in _LINE.finditer(text) if line[0].strip("\ufeff \t")):
        start = line.start() + len(line[0]) - len(line[0].lstrip())
        key = Key(None, f"[{number}]", start, 0)
        try:
            entries += _read_values(text, start, line.end(), key, len(entries))
        except _NotJson:
            n_broken += 1
            entries.append(Entry(start, key, line[0].strip()))
    warning = f"{n_broken:,} line(s) of JSON Lines are not valid JSON. They are read as plain text."
    return replace(arrange(text, entries), warnings=(warning,) if n_broken else ())


class _NotJson(Exception):
    """The text is not JSON; the message says why."""


@dataclass(slots=True)
class _Container:
    """Object or list that is being read.

    Attributes:
        key: Its own key; None at the top.
        is_object: True for an object.
        start: Offset of its bracket.
        n_items: Number of its values so far.
        next_key: Key of the value that comes next, of an object.
        needs_comma: True after a value.
    """

    key: Key | None
    is_object: bool
    start: int
    n_items: int = 0
    next_key: Key | None = None
    needs_comma: bool = False


class _JsonReader:
    """Reads tokens and collects entries."""

    def __init__(self, key: Key | None, n_entries: int) -> None:
        self.entries: list[Entry] = []
        self._n_entries = n_entries
        self._root = _Container(key, False, 0)
        self._containers = [self._root]
        self._list_line: list[str] = []  # scalars of a list that share an entry
        self._list_start = 0
        self._list_size = 0

    def read_mark(self, mark: str, start: int) -> None:
        """Read a bracket, comma or colon."""
        container = self._containers[-1]
        if mark in "[{":
            key = self._take_key(start, is_container=True)
            self._end_list_line()
            if key and len(key.label) > KEY_CHARACTERS:
                self._append(Entry(key.start, key, "", start))
            self._containers.append(_Container(key, mark == "{", start))
            if len(self._containers) > limits.JSON_DEPTH:
                raise _NotJson("nested too deeply")
        elif mark in "]}":
            if container is self._root or container.is_object != (mark == "}") or container.next_key:
                raise _NotJson("brackets do not match")
            self._end_list_line()
            self._containers.pop()
            if not container.n_items:
                key_start = container.key.start if container.key else container.start
                value = "{}" if container.is_object else "[]"
                self._append(Entry(key_start, container.key, value, container.start))
        elif mark == ",":
            container.needs_comma = False
        elif container.next_key is None or not container.is_object or container.needs_comma:
            raise _NotJson("a colon without a key")
        else:
            container.needs_comma = True  # the value may come

    def read_scalar(self, value: str, start: int, *, is_string: bool) -> None:
        """Read a string, number or word: a key of an object, or a value."""
        container = self._containers[-1]
        if container.is_object and container.next_key is None:
            if not is_string or container.needs_comma:
                raise _NotJson("a key is missing")
            container.next_key = Key(container.key, value, start, _depth_below(container.key))
            return
        if container.is_object or container is self._root:
            key = self._take_key(start, is_container=False)
            self._append(Entry(key.start if key and container.is_object else start, key, value, start))
        else:
            self._take_key(start, is_container=False)
            self._add_to_list_line(value, start)

    def add_comment(self, comment: str, start: int) -> None:
        """Keep a comment as a line."""
        self._end_list_line()
        self._append(Entry(start, self._containers[-1].key, comment, is_comment=True))

    def finish(self) -> list[Entry]:
        """Return all entries."""
        if len(self._containers) > 1:
            raise _NotJson("a bracket is not closed")
        return self.entries

    def _take_key(self, start: int, *, is_container: bool) -> Key | None:
        """Return the key of the value that begins, and note that the value is there."""
        container = self._containers[-1]
        if container.is_object:
            if container.next_key is None or not container.needs_comma:
                raise _NotJson("a key is missing")
            key: Key | None = container.next_key
            container.next_key = None
        elif container is self._root:
            key = container.key
        else:
            if container.needs_comma:
                raise _NotJson("a comma is missing")
            label = f"[{container.n_items}]"
            key = Key(container.key, label, start, _depth_below(container.key)) if is_container else None
            container.needs_comma = True
        container.n_items += 1
        return key

    def _add_to_list_line(self, value: str, start: int) -> None:
        if not self._list_line:
            self._list_start = start
        self._list_line.append(value)
        self._list_size += len(value)
        if self._list_size > _SHARED_CHARACTERS:
            self._end_list_line()

    def _end_list_line(self) -> None:
        if self._list_line:
            key = self._containers[-1].key
            is_first = not self.entries or self.entries[-1].key is not key
            start = key.start if key and is_first and key.start < self._list_start else self._list_start
            self._append(Entry(start, key, ", ".join(self._list_line), self._list_start))
            self._list_line, self._list_size = [], 0

    def _append(self, entry: Entry) -> None:
        self.entries.append(entry)
        if self._n_entries + len(self.entries) > MAX_ENTRIES:
            raise _NotJson(f"more than {MAX_ENTRIES:,} values")


def _read_values(text: str, start: int, end: int, key: Key | None = None, n_entries: int = 0) -> Iterator[Entry]:
    """Yield the values between two offsets of a text."""
    reader = _JsonReader(key, n_entries)
    offset = start
    while offset < end:
        token = _TOKEN.match(text, offset, end)
        if token is None:
            raise _NotJson("an unexpected character")
        offset, kind = token.end(), token.lastgroup
        if kind == "mark":
            reader.read_mark(token["mark"], token.start("mark"))
        elif kind == "string":
            reader.read_scalar(_decode_string(token["string"]), token.start("string"), is_string=True)
        elif kind == "comment":
            reader.add_comment(token["comment"], token.start("comment"))
        elif kind == "word":
            if not _WORD.fullmatch(token["word"]):
                raise _NotJson("an unknown word")
            reader.read_scalar(token["word"], token.start("word"), is_string=False)
        else:
            break
    yield from reader.finish()


def _decode_string(token: str) -> str:
    """Return the content of a string. One with wrong escapes is kept as it is written."""
    if "\\" not in token:
        return token[1:-1]
    try:
        return str(json.loads(token, strict=False))
    except ValueError:
        return token[1:-1]


def _depth_below(key: Key | None) -> int:
    return 0 if key is None else key.depth + 1
