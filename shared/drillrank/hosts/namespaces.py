"""Namespaces: two tenants, or two collections, may have documents of one id without overwriting each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drillrank.errors import InvalidInput
from drillrank.passages import stable_uuid


def check_namespace(namespace: str | None, key: str | None) -> None:
    """Reject a namespace that is no name, and one that is said twice.

    Raises:
        InvalidInput: see above.
    """
    if namespace is not None and key is not None:
        raise InvalidInput("A namespace is given as namespace or read from the metadata under namespace_key, not both.")
    for name, value in (("namespace", namespace), ("namespace_key", key)):
        if value is not None and not (isinstance(value, str) and value.strip()):
            raise InvalidInput(f"{name} is a string that is not blank, or None; not {value!r:.200}.")


def namespace_of(
    metadata: Mapping[str, Any], document: str, *, namespace: str | None = None, key: str | None = None
) -> str | None:
    """The namespace of a document: the one given, or what its metadata hold under the key.

    Args:
        metadata: Of the document.
        document: What an error calls it.
        namespace: Of all documents.
        key: Of the metadata.

    Raises:
        InvalidInput: the document has no string or number under the key, or a blank one.

    >>> namespace_of({"tenant": "a"}, "guide.md", key="tenant")
    'a'
    """
    if key is None:
        return namespace
    value = metadata.get(key)
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise InvalidInput(
            f"Document {document!r:.200} has {value!r:.200} under {key!r:.200}, its namespace_key: a name is needed "
            "there, so that no two namespaces are mixed."
        )
    return str(value)


def in_namespace(document_id: str, namespace: str | None) -> str:
    """What tells a document from all others of all namespaces; its id, where it is in none.

    >>> in_namespace("guide.md", None)
    'guide.md'
    >>> in_namespace("guide.md", "a") == in_namespace("guide.md", "b")
    False
    """
    return document_id if namespace is None else stable_uuid("namespace", namespace, document_id)
