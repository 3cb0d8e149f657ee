"""Explanations on request of whoever calls a component, whatever its option `explain` says.

A comparison asks every question without explanations, so that they cost nothing where time is taken, and later a few of
them again, with explanations. What is called may be a chain with a component of ours somewhere in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from drillrank.explanation.reasons import Explanation
from drillrank.explanation.summands import TreeNode


@dataclass
class Request:
    """What is asked of all components that are called, and what they answer.

    Attributes:
        wanted: Whether they are to explain.
        understood: Whether one of them can.
        reasons: Explanations by the id of what is explained, where the host's results have no place for them.
        tree: Of a drill-down.
    """

    wanted: bool
    understood: bool = False
    reasons: dict[str, Explanation] = field(default_factory=dict)
    tree: tuple[TreeNode, ...] = ()


_request: ContextVar[Request | None] = ContextVar("drillrank_explanations", default=None)


@contextmanager
def explanations_requested(wanted: bool) -> Iterator[Request]:
    """Components that are called in the block explain, or do not.

    >>> with explanations_requested(True) as request:
    ...     explains(False)
    True
    >>> request.understood, explains(False)
    (True, False)
    """
    request = Request(wanted)
    token = _request.set(request)
    try:
        yield request
    finally:
        _request.reset(token)


def explains(option: bool) -> bool:
    """Whether a component explains: as it was asked to, else as its option says."""
    request = _request.get()
    if request is None:
        return option
    request.understood = True
    return request.wanted


def answer_request(reasons: Mapping[str, Explanation], tree: Sequence[TreeNode]) -> None:
    """Hand explanations to whoever asked for them, if anybody did."""
    request = _request.get()
    if request is not None:
        request.reasons.update(reasons)
        request.tree = tuple(tree) or request.tree
