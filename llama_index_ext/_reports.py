"""What the host's own events tell of an LLM call; its `predict` returns nothing but the text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.dispatcher import (  # type: ignore[attr-defined]
    active_instrument_tags,
    instrument_tags,
)
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.events.llm import LLMChatEndEvent, LLMCompletionEndEvent

from drillrank.hosts.models import reported_tokens
from drillrank.llm import Reply

STEP_TAG = "drillrank.step"


class Report:
    """What calls have cost, in the order of their ends."""

    def __init__(self) -> None:
        self.calls: list[tuple[int | None, int | None]] = []

    def answer(self, text: str) -> Reply:
        """The text with what it cost."""
        # A call that is made of another one ends later, and repeats the report of that one or has none.
        *_, last = (None, None), *(tokens for tokens in self.calls if tokens != (None, None))
        return Reply(text, prompt_tokens=last[0], completion_tokens=last[1])


_REPORT: ContextVar[Report | None] = ContextVar("drillrank_report", default=None)


class _Listener(BaseEventHandler):
    """Writes the ends of calls into the report of the step that they belong to."""

    @classmethod
    def class_name(cls) -> str:
        """Name used in serialisation."""
        return "drillrank.Listener"

    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        """Take note of one event."""
        report = _REPORT.get()
        if report is not None and isinstance(event, LLMChatEndEvent | LLMCompletionEndEvent) and event.response:
            report.calls.append(reported_tokens(event.response.raw, event.response.additional_kwargs))


get_dispatcher("llama_index.core.llms.callbacks").add_event_handler(_Listener())


@contextmanager
def step(name: str) -> Iterator[Report]:
    """Spans and events of the calls made inside are tagged with the step's name; their cost is in the report."""
    token = _REPORT.set(report := Report())
    try:
        with instrument_tags({**active_instrument_tags.get(), STEP_TAG: name}):
            yield report
    finally:
        _REPORT.reset(token)
