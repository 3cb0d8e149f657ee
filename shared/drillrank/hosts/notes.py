"""Notes: what a ranking tells a host's user about one result, as metadata of the node or document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Names in a ranking's details that are worth a note, where they hold anything but 0 or False.
_NOTES = {name: f"drillrank_{name}" for name in ("cut_tokens", "nothing_matched")}


def notes(details: Mapping[str, Any]) -> dict[str, Any]:
    """The notes of one result: metadata keys with the prefix `drillrank_`.

    Args:
        details: `Ranked.details`.

    >>> notes({"tokens": 5, "cut_tokens": 12})
    {'drillrank_cut_tokens': 12}
    >>> notes({"tokens": 5, "cut_tokens": 0})
    {}
    """
    return {key: details[name] for name, key in _NOTES.items() if details.get(name)}


def noted(metadata: Mapping[str, Any], details: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of the metadata with the notes of this ranking, and without those that an earlier one left.

    >>> noted({"page": 3, "drillrank_cut_tokens": 12}, {"cut_tokens": 0})
    {'page': 3}
    """
    own = _NOTES.values()
    return {key: value for key, value in metadata.items() if key not in own} | notes(details)
