"""Notes: what a ranking tells a host's user about one result, as metadata of the node or document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from types import MappingProxyType
from typing import Any

from drillrank.explanation import Explanation
from drillrank.hosts.keys import prefixed, with_own

# Names in a ranking's details that are worth a note, where they hold anything but 0 or False.
_NOTES = {name: prefixed(name) for name in ("cut_tokens", "nothing_matched")}
# What an earlier ranking may have left beside them. How a result was found (`matched_views`), and by whom it was
# written (`origin`), is no ranking's to forget.
_COST = ("prompt_tokens", "completion_tokens", "llm_calls", "tokens_estimated")
_OF_A_RANKING = frozenset(
    [
        *_NOTES.values(),
        *map(prefixed, ("path", "path_score", "section_score", "missing", "problems", "explanation", *_COST)),
    ]
)


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


def reasons(explanation: Explanation | None) -> dict[str, Any]:
    """Why a result stands where it stands, as metadata; nothing where nobody asked."""
    return {} if explanation is None else {prefixed("explanation"): explanation.to_dict()}


def path_notes(ids: Iterable[str], score: float, details: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    """The notes of a path search: the ids of a result's best path, joined by " > ", and the path's score.

    Where an LLM was asked, also what it named as missing, what its calls cost, and what went wrong with them.

    >>> path_notes(["film", "holm"], -3.5)
    {'drillrank_path': 'film > holm', 'drillrank_path_score': -3.5}
    >>> path_notes(["holm"], -3.5, {"missing": ("Ada Holm", "Esbjerg")})["drillrank_missing"]
    'Ada Holm | Esbjerg'
    """
    told: dict[str, Any] = {"path": " > ".join(ids), "path_score": score}
    if "missing" in details:
        told |= {"missing": " | ".join(details["missing"]), **details.get("usage", {})}
    if "problems" in details:
        told["problems"] = "; ".join(details["problems"])
    return with_own({}, **told)


def noted(metadata: Mapping[str, Any], details: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of the metadata with the notes of this ranking, and without those that an earlier one left.

    >>> noted({"page": 3, "path": "a/b", "drillrank_path": "x > y", "drillrank_cut_tokens": 12}, {"cut_tokens": 0})
    {'page': 3, 'path': 'a/b'}
    >>> noted({"drillrank_problems": "documents: no answer", "drillrank_llm_calls": 2, "drillrank_view": "raw"}, {})
    {'drillrank_view': 'raw'}
    """
    return deepcopy({key: value for key, value in metadata.items() if key not in _OF_A_RANKING}) | notes(details)
