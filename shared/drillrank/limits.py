"""Limits on untrusted input, in one place. Input beyond a limit causes an error or a warning about that input only.

Code reads each limit when it needs the limit. Thus `limits.FILE_BYTES = 10**9` changes a limit for the whole process
and its workers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from drillrank.errors import InvalidInput

FILE_BYTES = 100_000_000
"""Bytes of a file found in a folder or by a pattern, and of a stream. A file that the user names may have more."""

FOLDER_DEPTH = 100
"""Levels of folders within folders that are read."""

HEADING_DEPTH = 100
"""Levels of headings. Deeper headings stay in the text of the section above them."""

PATH_CHARACTERS = 1_000
"""Characters of a section's path. Each heading may take half of what the headings above it have left free."""

EXTRACTED_CHARACTERS = 100_000_000
"""Characters extracted from one file that is not text."""

EXTRACTED_PER_BYTE = 100
"""Characters extracted or unpacked from a file that is not text, per byte of the file, beyond one million."""

XML_DEPTH = 500
"""Levels of XML elements within each other."""

XML_ELEMENTS = 3_000_000
"""Elements and attributes of the XML of a Word, PowerPoint, OpenDocument or EPUB file."""

STORED_BYTES = 1 << 29
"""Bytes of a parsed document in a corpus, without compression."""

ANSWER_BYTES = 64_000_000
"""Bytes of a server's answer to one request."""

ANSWER_CONTAINERS = 2_000_000
"""Lists and objects in a server's answer. Python needs about 60 bytes of memory for an empty one."""

TARGET_TOKENS = 8_192
"""Tokens of a question or another scored text, for a neural model that does not state its own limit."""

JSON_DEPTH = 250
"""Levels of lists and objects of JSON within each other."""

READ_HERE_BYTES = 300_000
"""Bytes of text files that `drillrank ask` reads without a worker process, all together."""

PROCESS_SECONDS = 3.5
"""Processor time, in seconds, in which a worker process reads a file of any size."""

PROCESS_SECONDS_PER_MEGABYTE = 10.0
"""Processor time, in seconds, that a worker has in addition for each megabyte of a file."""

PROCESS_SECONDS_PER_PAGE = 0.1
"""Processor time, in seconds, that a worker has in addition for each page of a PDF."""

PAGE_BYTES = 4_000
"""A PDF gets the allowance of at most one page for this number of bytes."""

PROCESS_WAIT = 10.0
"""Time on the clock, in seconds, that a worker has for a file of any size on a machine that does other work."""

PROCESS_WAIT_PER_SECOND = 8.0
"""Time on the clock, in seconds, that a worker has in addition for each second of its processor time."""

PROCESS_START_SECONDS = 120.0
"""Time on the clock, in seconds, in which a worker must start and take over a file."""

PROCESS_IDLE_SECONDS = 60.0
"""Time, in seconds, after which a worker without work ends."""

PROCESS_BYTES = 400_000_000
"""Resident memory, in bytes, that a worker has for a file of any size. Only Linux enforces it."""

PROCESS_BYTES_PER_BYTE = 40
"""Resident memory, in bytes, that a worker has in addition for each byte of a file."""

PROCESS_BYTES_PER_PAGE = 1_000_000
"""Resident memory, in bytes, that a worker has in addition for each page of a PDF."""

PROCESS_BYTES_MOST = 3 << 30
"""Resident memory, in bytes, that a worker has for a file of the largest size."""

RESERVED_BYTES = 1_500_000_000
"""Memory, in bytes, that a worker may reserve without using it. PDFium reserves one gigabyte."""

PROCESS_IDLE_BYTES = 250_000_000
"""Resident memory, in bytes, above which a worker is replaced before the next file."""

PROCESS_FILES = 500
"""Files after which a worker is replaced."""

_ESCAPE_FREE_STRING = re.compile(r'"[^"]*"?')
_NOT_BRACKETS = re.compile(r"[^][{}]+")


def check_extracted(count: int, size: int) -> None:
    """Refuse a file that unpacks to far more than any document does, as Apache Tika does.

    Args:
        count: Characters or unpacked bytes so far.
        size: Size of the file in bytes.

    Raises:
        InvalidInput: The count is too large for a file of this size.

    >>> check_extracted(200_000_000, 10_000_000)
    Traceback (most recent call last):
    ...
    drillrank.errors.InvalidInput: it is too large when it is unpacked: more than 100000000 characters
    """
    max_count = min(1_000_000 + EXTRACTED_PER_BYTE * size, EXTRACTED_CHARACTERS)
    if count > max_count:
        raise InvalidInput(f"it is too large when it is unpacked: more than {max_count} characters")


def check_parts(parts: Iterable[str], size: int) -> Iterator[str]:
    """Yield the parts of a file's text, as long as they are within the limits together.

    Args:
        parts: The parts.
        size: Size of the file in bytes.

    Raises:
        InvalidInput: The parts are too long for a file of this size.

    >>> "".join(check_parts(["one ", "two"], 7))
    'one two'
    """
    n_characters = 0
    for part in parts:
        n_characters += len(part)
        check_extracted(n_characters, size)
        yield part


def read_json(text: str, what: str, most_containers: int | None = None) -> Any:
    """Return the value of JSON from elsewhere.

    Args:
        text: The JSON.
        what: Name of the text in an error message.
        most_containers: Number of lists and objects that the text may have; None for any number.

    Raises:
        InvalidInput: The text is not JSON, is deeper than `JSON_DEPTH`, or has too many lists and objects.

    >>> read_json('{"mu": [30]}', "The grid")
    {'mu': [30]}
    >>> read_json("[" * 100_000, "The grid")
    Traceback (most recent call last):
    ...
    drillrank.errors.InvalidInput: The grid is not JSON (nested too deeply): '[[[[[[[[[[[[[[[[[[[['.
    """
    try:
        _check_brackets(text, most_containers)
        return json.loads(text)
    except ValueError as problem:
        raise InvalidInput(f"{what} is not JSON ({problem}): {text[:20]!r}.") from problem
    except (MemoryError, RecursionError) as problem:
        raise InvalidInput(f"{what} cannot be read ({type(problem).__name__}): {text[:20]!r}.") from problem


def _check_brackets(text: str, most_containers: int | None) -> None:
    """Refuse JSON that is nested too deeply or has too many lists and objects.

    Raises:
        ValueError: The text is such JSON.
    """
    if text.count("[") + text.count("{") <= min(JSON_DEPTH, most_containers or JSON_DEPTH):
        return
    # Without escapes, the expression for strings takes linear time and little memory.
    strings_removed = _ESCAPE_FREE_STRING.sub("", text.replace("\\\\", "").replace('\\"', ""))
    n_containers = strings_removed.count("[") + strings_removed.count("{")
    if most_containers is not None and n_containers > most_containers:
        raise ValueError(f"more than {most_containers} lists and objects")
    depth = 0
    for bracket in _NOT_BRACKETS.sub("", strings_removed):
        depth += 1 if bracket in "[{" else -1
        if depth > JSON_DEPTH:
            raise ValueError("nested too deeply")
