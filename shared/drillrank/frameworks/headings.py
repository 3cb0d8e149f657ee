"""Read the headings above a chunk from the metadata that the splitters of both frameworks write."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from drillrank.structure import parse_document
from drillrank.structure.stored_chunks import HeadingPath

_LEVEL = re.compile(r"(?:h|header|heading)[\s_-]*([1-6])", re.IGNORECASE)
_MAX_PATH = 2_000  # characters of a path of headings


def headings_by_level(metadata: Mapping[str, Any]) -> HeadingPath:
    """Return the headings under keys such as `h1` and `Header 2`, from the root.

    >>> headings_by_level({"Header 2": "Fish", "Header 1": "Life in the *sea*", "source": "sea.md"})
    ('Life in the sea', 'Fish')
    """
    matches = [(match.group(1), value) for key, value in metadata.items() if (match := _LEVEL.fullmatch(str(key)))]
    heading_by_level = {level: value for level, value in matches if isinstance(value, str) and value.strip()}
    return tuple(_remove_markup(heading_by_level[level]) for level in sorted(heading_by_level))


def headings_of_path(path: object) -> HeadingPath:
    """Return the headings of a path that begins and ends with its separator.

    >>> headings_of_path("/Life in the sea/Fish/"), headings_of_path("/")
    (('Life in the sea', 'Fish'), ())
    """
    if not isinstance(path, str) or not 0 < len(path) <= _MAX_PATH:
        return ()
    match = re.match(r"\W*", path)
    for length in range(min(len(match.group()) if match else 0, len(path) // 2), 0, -1):
        separator = path[:length]
        if path.endswith(separator):
            return tuple(_remove_markup(part) for part in path[length:-length].split(separator) if part.strip())
    return ()


@lru_cache(maxsize=4096)
def _remove_markup(heading: str) -> str:
    """Return a heading as the parser names it in texts."""
    sections = parse_document(f"# {' '.join(heading.split())}", "markdown").sections()
    return sections[0].heading or heading
