"""What stands around a section that was found: its neighbours, or its parent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, get_args

from drillrank.errors import InvalidInput
from drillrank.views.merging import MergedSection

Expansion = Literal["neighbours", "parent"]


def expanded(
    found: Sequence[MergedSection], around: Callable[[str], Iterable[str]]
) -> list[tuple[MergedSection, str | None]]:
    """Each section found, and after it those around it, with its score; no section twice.

    Args:
        found: Sections by falling score.
        around: From a section id to those of the sections around it.

    Returns:
        Sections, and for those that were not found the id of the one that they stand around.

    >>> found = [MergedSection("b", 0.03, {"raw": 1}), MergedSection("c", 0.02, {"raw": 2})]
    >>> [(section.section_id, origin) for section, origin in expanded(found, {"b": "ac", "c": "bd"}.get)]
    [('b', None), ('a', 'b'), ('c', None), ('d', 'c')]
    """
    seen = {section.section_id for section in found}
    result: list[tuple[MergedSection, str | None]] = []
    for section in found:
        result.append((section, None))
        for neighbour in around(section.section_id):
            if neighbour not in seen:
                seen.add(neighbour)
                result.append((MergedSection(neighbour, section.score, {}), section.section_id))
    return result


def check_expansion(expand: Expansion | None) -> None:
    """Reject an unknown expansion.

    Raises:
        InvalidInput: see above.
    """
    if expand is not None and expand not in get_args(Expansion):
        raise InvalidInput(f"expand is None or one of {get_args(Expansion)}; not {expand!r}.")
