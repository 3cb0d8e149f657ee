"""Events of a framework, and the check that each start has an end."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Literal, NamedTuple

from drillrank.testing.results import expect


class Event(NamedTuple):
    """An event that a framework sent while a component worked.

    Attributes:
        kind: Part of the work. A framework that reports an error in place of an end has `"error"`.
        text: Content of the event, as text.
    """

    kind: Literal["start", "end", "error", "other"]
    text: str = ""


def check_events(
    listen: Callable[[], AbstractContextManager[list[Event]]],
    succeed: Callable[[], object],
    fail: Callable[[], object] | None,
) -> None:
    """Check that each start event has an end event or an error event.

    Args:
        listen: Function that returns a context manager, whose list receives the events.
        succeed: Call that returns.
        fail: Call that raises an error. None for no such call.
    """
    with listen() as events:
        succeed()
    kinds = [event.kind for event in events]
    n_starts, n_ends, n_errors = (kinds.count(kind) for kind in ("start", "end", "error"))
    expect(
        n_starts == n_ends >= 1 and not n_errors,
        f"A call that succeeded sent {n_starts} start, {n_ends} end and {n_errors} error events. Send an end for each "
        "start.",
    )
    if fail is None:
        return
    with listen() as events:
        try:
            fail()
        except Exception as error:
            expect(str(error), "An error has no message. Say what was wrong and what to do.")
    kinds = [event.kind for event in events]
    n_starts, n_ends, n_errors = (kinds.count(kind) for kind in ("start", "end", "error"))
    expect(
        n_starts <= n_ends + n_errors,
        f"A call that failed sent {n_starts} start, {n_ends} end and {n_errors} error events. Send an end or an error "
        "for each start, in a finally clause.",
    )
