"""Headings above a chunk, as other splitters write them into its metadata."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from drillrank.structure import parse_document

_LEVEL = re.compile(r"(?:h|header|heading)[\s_-]*([1-6])", re.IGNORECASE)
_LONGEST = 2_000  # characters of a path of headings


def headings_by_level(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """The headings that stand under keys such as `h1` and `Header 2`, from the root.

    >>> headings_by_level({"Header 2": "Fish", "Header 1": "Life in the *sea*", "source": "sea.md"})
    ('Life in the sea', 'Fish')
    """
    found = [(match.group(1), value) for key, value in metadata.items() if (match := _LEVEL.fullmatch(str(key)))]
    levels = {level: value for level, value in found if isinstance(value, str) and value.strip()}
    return tuple(_read(levels[level]) for level in sorted(levels))


def headings_of_path(path: object) -> tuple[str, ...]:
    """The headings of a path that begins and ends with its separator.

    >>> headings_of_path("/Life in the sea/Fish/"), headings_of_path("/")
    (('Life in the sea', 'Fish'), ())
    """
    if not isinstance(path, str) or not 0 < len(path) <= _LONGEST:
        return ()
    begin = re.match(r"\W*", path)
    for length in range(min(len(begin.group()) if begin else 0, len(path) // 2), 0, -1):
        separator = path[:length]
        if path.endswith(separator):
            return tuple(_read(part) for part in path[length:-length].split(separator) if part.strip())
    return ()


@lru_cache(maxsize=4096)
def _read(heading: str) -> str:
    """A heading as a reader sees it, which is how those in texts are named."""
    sections = parse_document(f"# {' '.join(heading.split())}", "markdown").sections()
    return sections[0].heading or heading
