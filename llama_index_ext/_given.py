"""What was given in the place of something else, said before it is used."""

from __future__ import annotations

from collections.abc import Iterable

from drillrank.errors import InvalidInput


def check_retriever(component: object, retriever: object) -> None:
    """Refuse what does not retrieve, such as an index.

    Raises:
        InvalidInput: says what to pass.

    >>> check_retriever("PromptRankRetriever", [])
    Traceback (most recent call last):
    ...
    drillrank.errors.InvalidInput: str asks a retriever, and a list is none: of an index, pass index.as_retriever().
    """
    if not callable(getattr(retriever, "retrieve", None)):
        raise InvalidInput(
            f"{type(component).__name__} asks a retriever, and a {type(retriever).__name__} is none: of an index, pass "
            "index.as_retriever()."
        )


def check_nodes(component: object, name: str, given: object) -> None:
    """Refuse what is no list of nodes, such as an index.

    Raises:
        InvalidInput: says where an index goes.
    """
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidInput(
            f"{type(component).__name__}: {name} is a list of nodes or documents, and a {type(given).__name__} is "
            "none: an index or a retriever is given as source=."
        )
