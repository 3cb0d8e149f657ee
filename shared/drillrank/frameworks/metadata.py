"""Metadata keys of drillrank. They begin with `drillrank_`, and a user's own keys are never changed.

Inside the package the names have no prefix: `result_metadata` reads them from a record's metadata, and
`with_result_metadata` writes them. If the framework has a name for a value (`start_index`, a score), the adapters write
it under that name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from types import MappingProxyType
from typing import Any

from drillrank.errors import InvalidInput
from drillrank.explanation import Explanation
from drillrank.structure.read import FORMAT_KEY
from drillrank.views import VIEWS

PREFIX = "drillrank_"

_COUNTS = ("start", "end", "first_page", "last_page", "section_level")


def prefixed(name: str) -> str:
    """Return the metadata key of a name.

    >>> prefixed("view")
    'drillrank_view'
    """
    return PREFIX + name


def result_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata that drillrank wrote into a record, by name. A user's own `view` or `section_id` is not read.

    >>> result_metadata({"drillrank_view": "raw", "view": "of the lake"})
    {'view': 'raw'}
    >>> result_metadata({"view": "raw", "section_id": "7"})
    {}
    >>> result_metadata({"drillrank_start": 12.0})
    {'start': 12}
    """
    values = {key[len(PREFIX) :]: value for key, value in metadata.items() if key.startswith(PREFIX)}
    for name in _COUNTS:
        if isinstance(values.get(name), float):
            values[name] = count(values[name])
    return values


def count(value: object) -> int | None:
    """Return a whole number as an integer, also if a store keeps it as a float, as Pinecone does. Else return None.

    >>> count(3), count(3.0), count(3.5), count("3")
    (3, 3, None, None)
    """
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) else None


def user_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record's metadata without the keys of drillrank, except the format of the text, which parsers need.

    >>> user_metadata({"drillrank_view": "raw", "view": "of the lake", "drillrank_format": "csv"})
    {'view': 'of the lake', 'drillrank_format': 'csv'}
    """
    return {key: value for key, value in metadata.items() if not key.startswith(PREFIX) or key == FORMAT_KEY}


def with_result_metadata(metadata: Mapping[str, Any], **names: Any) -> dict[str, Any]:
    """Return a copy of the metadata with these names, prefixed. A value of None removes its key.

    >>> with_result_metadata({"view": "of the lake", "drillrank_part": 2}, view="raw", part=None)
    {'view': 'of the lake', 'drillrank_view': 'raw'}
    """
    written = {**metadata, **{prefixed(name): value for name, value in names.items()}}
    return {key: value for key, value in written.items() if not (key.startswith(PREFIX) and value is None)}


def is_section(metadata: Mapping[str, Any]) -> bool:
    """Return True if the record is a view of a section that drillrank made.

    >>> is_section({"drillrank_view": "raw", "drillrank_section_id": "7"}), is_section({"view": "raw"})
    (True, False)
    """
    return prefixed("section_id") in metadata and metadata.get(prefixed("view")) in VIEWS


def list_view_metadata(metadata: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the metadata of each view of the record's section, or the metadata alone if it is not a section.

    A retriever that searches one view must not hide the section that its results lead to.

    >>> views = list_view_metadata({"drillrank_view": "raw", "drillrank_section_id": "7"})
    >>> [view["drillrank_view"] for view in views]
    ['raw', 'keywords', 'summary']
    """
    if not is_section(metadata):
        return [metadata]
    return [{**metadata, prefixed("view"): view} for view in VIEWS]


def check_keys(**keys: str) -> None:
    """Refuse metadata keys that are not strings, or that are empty.

    Raises:
        InvalidInput: A key is not. The message names the first such argument.
    """
    for name, key in keys.items():
        if not isinstance(key, str) or not key:
            raise InvalidInput(f"{name} must be a metadata key, a string that is not empty, got {key!r:.200}.")


RANKING_NOTES = ("cut_tokens", "nothing_matched")
"""Names in a ranking's details that become metadata of a result, unless the value is 0 or False."""

_COSTS = ("prompt_tokens", "completion_tokens", "llm_calls", "tokens_estimated")
_PATH_NAMES = ("path", "path_score", "missing")
_EVIDENCE_NAMES = ("section_score", "also_in", "version", "other_versions", "found", "confidence")
_BEST_PARAGRAPH_NAMES = ("best_paragraph", "best_start", "best_end")

RANKING_KEYS = frozenset(
    map(
        prefixed,
        (*RANKING_NOTES, *_PATH_NAMES, *_EVIDENCE_NAMES, *_BEST_PARAGRAPH_NAMES, "problems", "explanation", *_COSTS),
    )
)
"""Keys that an earlier ranking may have written. Views (`matched_views`) and the author (`origin`) stay."""


def describe_details(details: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a result for the notable details of its ranking.

    Args:
        details: `Ranked.details`.

    >>> describe_details({"tokens": 5, "cut_tokens": 12})
    {'drillrank_cut_tokens': 12}
    >>> describe_details({"tokens": 5, "cut_tokens": 0})
    {}
    """
    return {prefixed(name): details[name] for name in RANKING_NOTES if details.get(name)}


def describe_explanation(explanation: Explanation | None) -> dict[str, Any]:
    """Return the metadata for the explanation of a result. They are empty without an explanation."""
    return {} if explanation is None else {prefixed("explanation"): explanation.to_dict()}


def describe_path(
    ids: Iterable[str], score: float, details: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any]:
    """Return the metadata for a result of a path search: the ids of its best path, joined by " > ", and their score.

    The metadata contain the notable details of the ranking, too. With an LLM, they contain the missing information that
    it named, the costs and problems of its calls.

    >>> describe_path(["film", "holm"], -3.5)
    {'drillrank_path': 'film > holm', 'drillrank_path_score': -3.5}
    >>> describe_path(["holm"], -3.5, {"missing": ("Ada Holm", "Esbjerg")})["drillrank_missing"]
    'Ada Holm | Esbjerg'
    """
    names: dict[str, Any] = {"path": " > ".join(ids), "path_score": score}
    names |= {name: details[name] for name in RANKING_NOTES if details.get(name)}
    if "missing" in details:
        names |= {"missing": " | ".join(details["missing"]), **details.get("usage", {})}
    if "problems" in details:
        names["problems"] = "; ".join(details["problems"])
    return {PREFIX + name: value for name, value in names.items()}


def copy_metadata(metadata: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return a deep copy of metadata, or a shallow one if they are nested too deeply."""
    try:
        return deepcopy(dict(metadata))
    except RecursionError:
        return dict(metadata)


def without_ranking(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of the metadata without those of an earlier ranking.

    >>> without_ranking({"page": 3, "path": "a/b", "drillrank_path": "x > y", "drillrank_cut_tokens": 12})
    {'page': 3, 'path': 'a/b'}
    >>> without_ranking({"drillrank_problems": "no answer", "drillrank_llm_calls": 2, "drillrank_view": "raw"})
    {'drillrank_view': 'raw'}
    """
    return copy_metadata({key: value for key, value in metadata.items() if key not in RANKING_KEYS})
