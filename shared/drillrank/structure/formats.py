"""The registry of file formats: which suffixes and media types belong to a format, and who reads it.

Text formats have a scanner alone: it finds blocks and headings in the text. Other formats also have a converter, which
turns the bytes of a file into text that the scanner then reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from drillrank.errors import InvalidInput
from drillrank.structure.packages import PACKAGE_FORMATS, find_package_format
from drillrank.structure.pages import Pages
from drillrank.structure.scan import Scan

_HEAD_BYTES = 1024  # in which a signature may follow white space


class ConvertedText(NamedTuple):
    """Text of a file that is not plain text.

    Attributes:
        text: The text; spans of the document point into it.
        pages: Where its pages begin, or None if the format has no pages.
        warnings: What could not be read, one sentence each. The reader puts the file's name before them.
    """

    text: str
    pages: Pages | None = None
    warnings: tuple[str, ...] = ()


Scanner = Callable[[str], Scan]
"""Function from a text to its blocks and headings."""

Converter = Callable[[bytes], ConvertedText]
"""Function from the bytes of a file to its text. It raises `InvalidInput` with a message that continues the file's
name, such as "is encrypted: save a copy without a password first."."""


@dataclass(frozen=True, slots=True)
class Format:
    """File format that drillrank reads.

    Attributes:
        name: Name, such as `"html"`; what `parse_document(format=...)` takes.
        suffixes: Lower-case endings of file names, with their dot, or whole names such as "makefile".
        media_types: Lower-case media types, such as `"text/html"`.
        scan: Finds the blocks and headings of a text.
        convert: Turns the bytes of a file into text; None for text formats.
        text_format: Name of the format that reads the text: this one, or "markdown" for most converted files.
        signature: First bytes by which a file of this format is known whatever its name; empty if there are none.
        convert_after_crash: Converter that is tried if `convert` crashed its process; None if there is none.
    """

    name: str
    suffixes: tuple[str, ...]
    media_types: tuple[str, ...]
    scan: Scanner
    convert: Converter | None = None
    text_format: str = ""
    signature: bytes = b""
    convert_after_crash: Converter | None = None


_format_by_name: dict[str, Format] = {}
_format_by_suffix: dict[str, Format] = {}
_format_by_media_type: dict[str, Format] = {}


def register_format(
    name: str,
    suffixes: Iterable[str],
    media_types: Iterable[str],
    scan: Scanner | str,
    *,
    convert: Converter | None = None,
    signature: bytes = b"",
    convert_after_crash: Converter | None = None,
) -> None:
    r"""Add a file format, or replace one of the same name.

    `read_document`, `parse_document`, `drillrank ask` and the other readers of files know the format from then on.

    Args:
        name: Name of the format.
        suffixes: Endings of file names, such as `".adoc"`, or whole names, such as `"Makefile"`.
        media_types: Media types, such as `"text/asciidoc"`.
        scan: Function from a text to a `Scan`, or the name of a registered format that reads the text.
        convert: Function from the bytes of a file to `ConvertedText`, for files that are not plain text. It runs in
            a worker process with limits if the worker can import it by its module and name. A lambda, or a function of
            a notebook, runs in this process, without limits.
        signature: First bytes by which a file is known whatever its name.
        convert_after_crash: Converter that is tried if `convert` crashed its process.

    Raises:
        InvalidInput: The name is empty or `"auto"`, a suffix is empty, or `scan` names no registered format.

    Example:
        >>> from drillrank.structure import Block, Heading, Scan, parse_document
        >>> def scan_outline(text):
        ...     'Read lines that begin with "*" as headings.'
        ...     blocks, headings, start = [], {}, 0
        ...     for line in text.splitlines(keepends=True):
        ...         end = start + len(line.rstrip())
        ...         if line.startswith("*"):
        ...             blocks.append(Block("heading", start, end))
        ...             headings[start] = Heading(1, line.strip("* \n"))
        ...         elif line.strip():
        ...             blocks.append(Block("paragraph", start, end))
        ...         start += len(line)
        ...     return Scan(blocks, headings)
        >>> register_format("outline", [".outline"], ["text/x-outline"], scan_outline)
        >>> [section.path for section in parse_document("* Sea\nDeep.\n", "outline").sections()]
        [('Sea',)]
    """
    if not name or name == "auto":
        raise InvalidInput(f"name must be the name of a format, other than 'auto', got {name!r:.200}.")
    suffixes = tuple(suffix.lower() for suffix in suffixes)
    for suffix in suffixes:
        if not suffix.strip("."):
            raise InvalidInput(f"A suffix must be an ending such as '.md' or a whole name, got {suffix!r:.200}.")
    text_format = name
    if isinstance(scan, str):
        text_format, scan = scan, find_format(scan).scan
    new = Format(
        name,
        suffixes,
        tuple(media_type.lower() for media_type in media_types),
        scan,
        convert,
        text_format,
        signature,
        convert_after_crash,
    )
    for registry in (_format_by_suffix, _format_by_media_type):  # a replaced format is gone as a whole
        for key in [key for key, file_format in registry.items() if file_format.name == name]:
            del registry[key]
    _format_by_name[name] = new
    _format_by_suffix.update(dict.fromkeys(new.suffixes, new))
    _format_by_media_type.update(dict.fromkeys(new.media_types, new))


def find_format(name: str) -> Format:
    """Return the format of a name.

    Raises:
        InvalidInput: No format has this name.
    """
    if not isinstance(name, str) or name not in _format_by_name:
        raise InvalidInput(f"Unknown format {name!r:.200}. Choose one of: auto, {', '.join(_format_by_name)}.")
    return _format_by_name[name]


def find_format_by_file_name(name: str) -> Format | None:
    """Return the format of files with this name, such as "notes.md" or "Makefile"; None if there is none."""
    last_part = re.split(r"[/\\]", name.lower())[-1]
    suffix = f".{last_part.rpartition('.')[2]}" if "." in last_part else ""
    return _format_by_suffix.get(last_part) or _format_by_suffix.get(suffix)


def find_format_by_media_type(media_type: str) -> Format | None:
    """Return the format of a media type without parameters; None if there is none."""
    return _format_by_media_type.get(media_type.lower())


def find_format_of_file(name: str, content: bytes) -> Format | None:
    """Return the format of a file by its content, or else by its name; None if neither is known.

    Office files are recognized whatever their names, unless another format is registered for the name's ending.
    """
    named = find_format_by_file_name(name)
    if named is None or named.convert is None or named.name in PACKAGE_FORMATS:
        package = _format_by_name.get(find_package_format(content) or "")
        if package is not None and package.convert is not None:
            return package
    return _find_format_by_signature(content[:_HEAD_BYTES]) or named


def _find_format_by_signature(head: bytes) -> Format | None:
    """Return the format whose signature the first bytes of a file have; None if there is none."""
    head = head.lstrip()
    with_signature = (file_format for file_format in registered_formats() if file_format.signature)
    return next((file_format for file_format in with_signature if head.startswith(file_format.signature)), None)


def registered_formats() -> list[Format]:
    """All formats, in the order in which they were registered."""
    return list(_format_by_name.values())
