"""Metadata keys: whatever drillrank writes into a record begins with `drillrank_`, and no user's key is touched.

Inside the package the names are bare: `result_metadata` takes them out of a record's metadata, `with_result_metadata`
puts them there. What the hosts themselves have a name for (`start_index`, a score) is written under that name by the
adapters.
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
    """The metadata key of a name of ours.

    >>> prefixed("view")
    'drillrank_view'
    """
    return PREFIX + name


def result_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What drillrank wrote into a record, by bare names; a user's own `view` or `section_id` means nothing.

    >>> result_metadata({"drillrank_view": "raw", "view": "of the lake"})
    {'view': 'raw'}
    >>> result_metadata({"view": "raw", "section_id": "7"})
    {}
    >>> result_metadata({"drillrank_start": 12.0})
    {'start': 12}
    """
    found = {key[len(PREFIX) :]: value for key, value in metadata.items() if key.startswith(PREFIX)}
    for name in _COUNTS:
        if isinstance(found.get(name), float):
            found[name] = count(found[name])
    return found


def count(value: object) -> int | None:
    """A whole number, also one that a store keeps with a fraction of zero, as Pinecone does; None of anything else.

    >>> count(3), count(3.0), count(3.5), count("3")
    (3, 3, None, None)
    """
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) else None


def user_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record's metadata without what drillrank wrote, except the format of the text, which parsers need.

    >>> user_metadata({"drillrank_view": "raw", "view": "of the lake", "drillrank_format": "csv"})
    {'view': 'of the lake', 'drillrank_format': 'csv'}
    """
    return {key: value for key, value in metadata.items() if not key.startswith(PREFIX) or key == FORMAT_KEY}


def with_result_metadata(metadata: Mapping[str, Any], **names: Any) -> dict[str, Any]:
    """A copy of the metadata with these names of ours; None takes one out.

    >>> with_result_metadata({"view": "of the lake", "drillrank_part": 2}, view="raw", part=None)
    {'view': 'of the lake', 'drillrank_view': 'raw'}
    """
    written = {**metadata, **{prefixed(name): value for name, value in names.items()}}
    return {key: value for key, value in written.items() if not (key.startswith(PREFIX) and value is None)}


def is_section(metadata: Mapping[str, Any]) -> bool:
    """Whether the record is a view of a section that drillrank cut.

    >>> is_section({"drillrank_view": "raw", "drillrank_section_id": "7"}), is_section({"view": "raw"})
    (True, False)
    """
    found = result_metadata(metadata)
    return found.get("view") in VIEWS and "section_id" in found


def in_views(metadata: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The metadata as they may be on the views of one section; of another record its own alone.

    A retriever that searches one view is no filter against the section that it leads to.

    >>> [form["drillrank_view"] for form in in_views({"drillrank_view": "raw", "drillrank_section_id": "7"})]
    ['raw', 'keywords', 'summary']
    """
    if not is_section(metadata):
        return [metadata]
    return [{**metadata, prefixed("view"): view} for view in VIEWS]


def check_keys(**keys: str) -> None:
    """Refuse metadata keys that are no strings.

    Raises:
        InvalidInput: names the first one.
    """
    for name, key in keys.items():
        if not isinstance(key, str) or not key:
            raise InvalidInput(f"{name} is a metadata key, a string that is not empty; not {key!r:.200}.")


RANKING_NOTES = ("cut_tokens", "nothing_matched")
"""Names in a ranking's details that are worth a note, where they hold anything but 0 or False."""

_COST = ("prompt_tokens", "completion_tokens", "llm_calls", "tokens_estimated")
_OF_PATHS = ("path", "path_score", "missing")
_OF_EVIDENCE = ("section_score", "also_in", "version", "other_versions", "found", "confidence")
_BEST_PARAGRAPH = ("best_paragraph", "best_start", "best_end")

RANKING_KEYS = frozenset(
    map(
        prefixed,
        (*RANKING_NOTES, *_OF_PATHS, *_OF_EVIDENCE, *_BEST_PARAGRAPH, "problems", "explanation", *_COST),
    )
)
"""What an earlier ranking may have left: not how a result was found (`matched_views`), nor who wrote it (`origin`)."""


def added_metadata(details: Mapping[str, Any]) -> dict[str, Any]:
    """The notes of one result: metadata keys with the prefix `drillrank_`.

    Args:
        details: `Ranked.details`.

    >>> added_metadata({"tokens": 5, "cut_tokens": 12})
    {'drillrank_cut_tokens': 12}
    >>> added_metadata({"tokens": 5, "cut_tokens": 0})
    {}
    """
    return {prefixed(name): details[name] for name in RANKING_NOTES if details.get(name)}


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
    names: dict[str, Any] = {"path": " > ".join(ids), "path_score": score}
    if "missing" in details:
        names |= {"missing": " | ".join(details["missing"]), **details.get("usage", {})}
    if "problems" in details:
        names["problems"] = "; ".join(details["problems"])
    return with_result_metadata({}, **names)


def copy_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return a deep copy of metadata.

    Raises:
        InvalidInput: The metadata are nested too deeply.
    """
    try:
        return deepcopy(dict(metadata))
    except RecursionError as cause:
        raise InvalidInput("Metadata of a record are nested too deeply. Store deep values as strings.") from cause


def with_notes(metadata: Mapping[str, Any], details: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of the metadata with the notes of this ranking, and without those that an earlier one left.

    >>> with_notes({"page": 3, "path": "a/b", "drillrank_path": "x > y", "drillrank_cut_tokens": 12}, {"cut_tokens": 0})
    {'page': 3, 'path': 'a/b'}
    >>> with_notes({"drillrank_problems": "no answer", "drillrank_llm_calls": 2, "drillrank_view": "raw"}, {})
    {'drillrank_view': 'raw'}
    """
    return copy_metadata({key: value for key, value in metadata.items() if key not in RANKING_KEYS}) | added_metadata(
        details
    )
