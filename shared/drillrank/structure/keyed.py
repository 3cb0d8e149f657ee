"""Keyed text: values under a path of keys, as JSON and YAML have them, become sections and readable blocks.

A scanner yields one `Entry` for each value. Keys of large objects become headings; values become lines such as
"dependencies > left-pad: 1.3.0", packed into blocks that do not tear small objects apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from drillrank.structure.scan import Scan, VisibleBlock, tile_visible_blocks

CHARACTERS_PER_BLOCK = 1_200
MAX_ENTRIES = 2_000_000
"""Number of values in one file; each takes about 200 bytes."""
_MAX_HEADINGS_PER_OBJECT = 200
_MAX_HEADING_DEPTH = 4
_MAX_GROUP_DEPTH = 8
KEY_CHARACTERS = 100
"""Length of a key in a path. Scanners show longer keys in full, in a line of their own."""
_PATH_CHARACTERS = 300
# Paths are repeated with every value, so a file of many short values would grow. Beyond this size, only the last key
# is shown.
_PATHS_CHARACTERS = 2_000_000
_PATHS_CHARACTERS_PER_CHARACTER = 4


@dataclass(frozen=True, slots=True, eq=False)
class Key:
    """Key of an object, or position in a list.

    Attributes:
        parent: Key of the object or list around it; None at the top.
        label: The key, or the position such as "[2]", starting at 0.
        start: Offset of its first character in the text.
        depth: Number of keys above it.
    """

    parent: Key | None
    label: str
    start: int
    depth: int

    @property
    def is_position(self) -> bool:
        """True for a position in a list."""
        return self.label.startswith("[") and self.label.endswith("]")


class Entry(NamedTuple):
    """Value with its key.

    Attributes:
        start: Offset of its first character, that of its key included.
        key: Innermost key; None at the top.
        value: Readable text; scalars of one list may share an entry.
        value_start: Offset of the value, if its key may be a heading; -1 if the value begins at `start`.
        is_comment: True if the text is shown without its path.
    """

    start: int
    key: Key | None
    value: str
    value_start: int = -1
    is_comment: bool = False


def arrange(text: str, entries: Sequence[Entry]) -> Scan:
    """Arrange values into headings and blocks."""
    return tile_visible_blocks(text, list(_Arrangement(text, entries).list_blocks()))


def show_path(key: Key | None) -> str:
    """Return the keys from the top to this one; of long paths, the end.

    >>> show_path(Key(Key(Key(None, "users", 0, 0), "[2]", 0, 1), "name", 0, 2))
    'users[2] > name'
    """
    labels: list[str] = []
    n_characters = 0
    while key is not None and n_characters < _PATH_CHARACTERS:
        labels.append(key.label[:KEY_CHARACTERS])
        n_characters += len(labels[-1])
        key = key.parent
    path = ["..."] if key is not None else []
    for label in reversed(labels):
        path.append(label if label.startswith("[") or not path else f" > {label}")
    return "".join(path)


class _Arrangement:
    """Entries of a text, the path of each, and their sizes."""

    def __init__(self, text: str, entries: Sequence[Entry]) -> None:
        self._entries = entries
        room = _PATHS_CHARACTERS + _PATHS_CHARACTERS_PER_CHARACTER * len(text)
        self._lines: list[str] = []
        shown_keys: set[Key] = set()  # long ones, which are shown in full once
        for entry in entries:
            if entry.is_comment:
                path = ""
            elif entry.key and len(entry.key.label) > KEY_CHARACTERS and entry.key not in shown_keys:
                shown_keys.add(entry.key)
                path = f"{show_path(entry.key)}{entry.key.label[KEY_CHARACTERS:]}"
            elif room > 0:
                path = show_path(entry.key)
            else:
                path = entry.key.label[:KEY_CHARACTERS] if entry.key else ""
            line = f"{path}: {entry.value}" if path and entry.value else path or entry.value
            room -= len(line)
            self._lines.append(line)
        self._sizes = [0, *accumulate(len(line) + 1 for line in self._lines)]

    def list_blocks(self) -> Iterator[VisibleBlock]:
        """Yield headings and blocks in order."""
        yield from self._arrange_object(0, len(self._entries), 0)

    def _size(self, start: int, end: int) -> int:
        return self._sizes[end] - self._sizes[start]

    def _groups(self, start: int, end: int, depth: int) -> list[tuple[Key | None, int, int]]:
        """Group entries by their key at a depth: the key, the first entry and the end of each group."""
        groups: list[tuple[Key | None, int, int]] = []
        for index in range(start, end):
            key = self._entries[index].key
            while key is not None and key.depth > depth:
                key = key.parent
            if key is not None and key.depth < depth:
                key = None
            if groups and key is not None and groups[-1][0] is key:
                groups[-1] = (key, groups[-1][1], index + 1)
            else:
                groups.append((key, index, index + 1))
        return groups

    def _arrange_object(self, start: int, end: int, depth: int) -> Iterator[VisibleBlock]:
        """Yield an object: a heading for each key from the first one with values of its own on, or blocks alone."""
        groups = self._groups(start, end, depth)
        first_container = next((index for index, group in enumerate(groups) if self._is_section(*group)), None)
        too_many = len(groups) > _MAX_HEADINGS_PER_OBJECT or depth >= _MAX_HEADING_DEPTH
        if first_container is None or too_many or self._size(start, end) <= CHARACTERS_PER_BLOCK:
            yield from self._pack(start, end, depth)
            return
        yield from self._pack(start, groups[first_container][1], depth)
        for key, first, last in groups[first_container:]:
            blocks = self._arrange_object(first, last, depth + 1)
            if key is not None:
                yield VisibleBlock(key.start, "heading", key.label, depth + 1)
                block = next(blocks)
                if block.start == key.start:  # the heading takes the key
                    block = block._replace(start=max(self._entries[first].value_start, key.start))
                yield block
            yield from blocks

    def _is_section(self, key: Key | None, start: int, end: int) -> bool:
        """Return True if a group is an object or list under a key."""
        innermost = self._entries[start].key
        return key is not None and not key.is_position and (end - start > 1 or innermost is not key)

    def _pack(self, start: int, end: int, depth: int) -> Iterator[VisibleBlock]:
        """Yield blocks of lines; what belongs to one key stays together if it fits."""
        block_start = start
        for group_start, group_end in self._pieces(start, end, depth):
            if group_start > block_start and self._size(block_start, group_end) > CHARACTERS_PER_BLOCK:
                yield self._block(block_start, group_start)
                block_start = group_start
        if block_start < end:
            yield self._block(block_start, end)

    def _pieces(self, start: int, end: int, depth: int) -> Iterator[tuple[int, int]]:
        """Yield groups that fit into a block; larger ones in parts."""
        for _, first, last in self._groups(start, end, depth):
            if last - first == 1 or self._size(first, last) <= CHARACTERS_PER_BLOCK:
                yield first, last
            elif depth < _MAX_GROUP_DEPTH:
                yield from self._pieces(first, last, depth + 1)
            else:
                yield from ((index, index + 1) for index in range(first, last))

    def _block(self, start: int, end: int) -> VisibleBlock:
        return VisibleBlock(self._entries[start].start, "list", "\n".join(self._lines[start:end]))
