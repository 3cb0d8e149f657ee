"""Bad input of measures."""

from __future__ import annotations

from drillrank.errors import InvalidInput


def check_collections(**collections: object) -> None:
    """Reject what is not a collection of items; a single string would be taken for its letters.

    Raises:
        InvalidInput: names the first one.
    """
    for name, given in collections.items():
        if isinstance(given, str | bytes) or not hasattr(given, "__iter__"):
            raise InvalidInput(f"{name} is a collection, such as a list; not {given!r:.80}. One item: [item].")


def check_all_strings(**collections: object) -> None:
    """As `check_collections`, and every item is a string."""
    check_collections(**collections)
    for name, given in collections.items():
        if not all(isinstance(item, str) for item in given):  # type: ignore[attr-defined]  # iterable, as just checked
            raise InvalidInput(f"{name} holds strings only.")
