"""How much of others' input is taken, in one place: what passes a limit is an error or a warning for that one input.

They are read when they are needed: `limits.FILE_BYTES = 10**9` raises one for the whole process.
"""

from __future__ import annotations

import json
import re
from itertools import accumulate
from typing import Any

from drillrank.errors import InvalidInput

FILE_BYTES = 100_000_000
"""Bytes of a file found in a folder or by a pattern, and of a stream; a file that the user names may have more."""

FOLDER_DEPTH = 100
"""Folders within folders that are read."""

HEADING_DEPTH = 100
"""Headings above each other; deeper ones stay in the text of the section above them."""

PATH_CHARACTERS = 1_000
"""Characters of a section's path: a heading has at most half of what those above it leave."""

EXTRACTED_CHARACTERS = 100_000_000
"""Characters read out of one file that is no text."""

EXTRACTED_PER_BYTE = 100
"""Characters read out of such a file, or unpacked from it, for each of its bytes, beyond one million."""

XML_DEPTH = 500
"""Elements within each other, of XML."""

XML_ELEMENTS = 3_000_000
"""Elements and attributes of an office file."""

STORED_BYTES = 1 << 29
"""Bytes of a parsed document that a corpus holds, without compression."""

ANSWER_BYTES = 64_000_000
"""Bytes of a server's answer to one request."""

TARGET_TOKENS = 8_192
"""Tokens of a question, or what else is scored, for a neural model that does not say how many it can write."""

JSON_DEPTH = 250
"""Lists and objects of JSON within each other."""

_JSON_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)  # without its end, too, or time is quadratic


def check_extracted(count: int, size: int) -> None:
    """Refuse a file that becomes far larger than any document does, as Apache Tika does.

    Args:
        count: Characters, or unpacked bytes, so far.
        size: Bytes of the file.

    Raises:
        InvalidInput: they are too many for a file of this size.

    >>> check_extracted(200_000_000, 10_000_000)
    Traceback (most recent call last):
    ...
    drillrank.errors.InvalidInput: it is too large when it is unpacked: more than 100000000 characters
    """
    most = min(1_000_000 + EXTRACTED_PER_BYTE * size, EXTRACTED_CHARACTERS)
    if count > most:
        raise InvalidInput(f"it is too large when it is unpacked: more than {most} characters")


def read_json(text: str, what: str) -> Any:
    """The value of JSON that somebody else wrote.

    Args:
        text: The JSON.
        what: What the error calls it.

    Raises:
        InvalidInput: it is no JSON, or deeper than `JSON_DEPTH`.

    >>> read_json('{"mu": [30]}', "The grid")
    {'mu': [30]}
    >>> read_json("[" * 100_000, "The grid")
    Traceback (most recent call last):
    ...
    drillrank.errors.InvalidInput: The grid is no JSON (nested too deeply): '[[[[[[[[[[[[[[[[[[[['.
    """
    brackets = re.findall(r"[][{}]", _JSON_STRING.sub("", text))
    depth = max(accumulate(1 if bracket in "[{" else -1 for bracket in brackets), default=0)
    try:
        if depth > JSON_DEPTH:
            raise ValueError("nested too deeply")
        return json.loads(text)
    except ValueError as problem:
        raise InvalidInput(f"{what} is no JSON ({problem}): {text[:20]!r}.") from problem
