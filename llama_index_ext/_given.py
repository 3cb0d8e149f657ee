"""What was given in the place of something else, said before it is used."""

from __future__ import annotations

from collections.abc import Iterable

from llama_index.core.schema import BaseNode

from drillrank.errors import InvalidInput


def check_retriever(component: object, retriever: object) -> None:
    """Refuse what does not retrieve, such as an index.

    Raises:
        InvalidInput: says what to pass.

    >>> check_retriever("PromptRankRetriever", [])
    Traceback (most recent call last):
    ...
    drillrank.errors.InvalidInput: str: source, a retriever, and a list is none: of an index, pass index.as_retriever().
    """
    if not callable(getattr(retriever, "retrieve", None)):
        raise InvalidInput(
            f"{type(component).__name__}: source, a retriever, and a {type(retriever).__name__} is none: of an index, "
            "pass index.as_retriever()."
        )


def checked_nodes(component: object, given: object) -> list[BaseNode]:
    """The nodes that a component is given, in a list of its own.

    Raises:
        InvalidInput: it is no list of nodes: says where an index goes.
    """
    if not isinstance(given, Iterable) or isinstance(given, str | BaseNode):
        raise InvalidInput(
            f"{type(component).__name__}: documents is a list of nodes or documents, and a {type(given).__name__} is "
            "none: an index or a retriever is given as source=."
        )
    nodes = list(given)
    for node in nodes:
        if not isinstance(node, BaseNode):
            raise InvalidInput(
                f"{type(component).__name__}: there is a {type(node).__name__} among the documents, {node!r:.100}; "
                "each is a Document or a node."
            )
    return nodes
