"""Metadata keys: whatever drillrank writes into a record begins with `drillrank_`, and no user's key is touched.

Inside the package the names are bare: `own` takes them out of a record's metadata, `with_own` puts them there. What the
hosts themselves have a name for (`start_index`, a score) is written under that name by the adapters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drillrank.errors import InvalidInput
from drillrank.views import VIEWS

PREFIX = "drillrank_"

_COUNTS = ("start", "end", "first_page", "last_page", "section_level")


def prefixed(name: str) -> str:
    """The metadata key of a name of ours.

    >>> prefixed("view")
    'drillrank_view'
    """
    return PREFIX + name


def own(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What drillrank wrote into a record, by bare names; a user's own `view` or `section_id` means nothing.

    >>> own({"drillrank_view": "raw", "view": "of the lake"})
    {'view': 'raw'}
    >>> own({"view": "raw", "section_id": "7"})
    {}
    >>> own({"drillrank_start": 12.0})
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


def theirs(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """A record's metadata without what drillrank wrote.

    >>> theirs({"drillrank_view": "raw", "view": "of the lake"})
    {'view': 'of the lake'}
    """
    return {key: value for key, value in metadata.items() if not key.startswith(PREFIX)}


def with_own(metadata: Mapping[str, Any], **names: Any) -> dict[str, Any]:
    """A copy of the metadata with these names of ours; None takes one out.

    >>> with_own({"view": "of the lake", "drillrank_part": 2}, view="raw", part=None)
    {'view': 'of the lake', 'drillrank_view': 'raw'}
    """
    written = {**metadata, **{prefixed(name): value for name, value in names.items()}}
    return {key: value for key, value in written.items() if not (key.startswith(PREFIX) and value is None)}


def is_section(metadata: Mapping[str, Any]) -> bool:
    """Whether the record is a view of a section that drillrank cut.

    >>> is_section({"drillrank_view": "raw", "drillrank_section_id": "7"}), is_section({"view": "raw"})
    (True, False)
    """
    found = own(metadata)
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
