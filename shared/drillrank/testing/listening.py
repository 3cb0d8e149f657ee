"""Texts that leave a component: results, events, logs, warnings and errors."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from drillrank.errors import DrillrankError

_EXCERPT = 150  # characters before a leaked mark


class Utterance(NamedTuple):
    """A text that a component put out.

    Attributes:
        channel: Origin of the text, such as `"warning"`.
        text: The text.
    """

    channel: str
    text: str


@dataclass
class Heard:
    """All texts that a component put out while it worked.

    Attributes:
        results: Texts of results.
        utterances: Other texts.
    """

    results: list[str] = field(default_factory=list)
    utterances: list[Utterance] = field(default_factory=list)

    def note(self, channel: str, *objects: object) -> None:
        """Note strings, or the `repr` of other objects.

        Args:
            channel: Origin of the objects.
            *objects: Objects that a component put out.
        """
        self.utterances += [Utterance(channel, one if isinstance(one, str) else repr(one)) for one in objects]

    def everything(self) -> list[Utterance]:
        """Return all texts, results included."""
        return [*(Utterance("result", text) for text in self.results), *self.utterances]

    def on_channels(self, *prefixes: str) -> list[str]:
        """Return the texts of all channels whose names begin with one of these prefixes."""
        return [text for channel, text in self.everything() if channel.startswith(prefixes)]

    def excerpts(self, marks: set[str]) -> list[str]:
        """Return at most four excerpts around marks, with their channels."""
        excerpts = [
            f"{channel}: ...{text[max(0, text.index(mark) - _EXCERPT) : text.index(mark) + 60]}..."
            for channel, text in self.everything()
            for mark in sorted(marks)
            if mark in text
        ]
        return excerpts[:4]


class _LogHandler(logging.Handler):
    def __init__(self, heard: Heard, ignored_loggers: Sequence[str]) -> None:
        super().__init__(logging.DEBUG)
        self._heard, self._ignored_loggers = heard, tuple(ignored_loggers)

    def emit(self, record: logging.LogRecord) -> None:
        if not record.name.startswith(self._ignored_loggers):
            level = "log" if record.levelno >= logging.INFO else "debug log"
            self._heard.note(f"{level} of {record.name}", record.getMessage())


@contextmanager
def listening(*ignored_loggers: str) -> Iterator[Heard]:
    """Note log records of all levels, warnings, and errors of drillrank, which are not raised.

    Args:
        *ignored_loggers: Prefixes of loggers whose records are not the component's.
    """
    heard = Heard()
    root, handler = logging.getLogger(), _LogHandler(heard, ("asyncio", *ignored_loggers))
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                yield heard
            except DrillrankError as error:
                heard.note("error", str(error), *map(str, error.args))
            heard.note("warning", *(str(warning.message) for warning in caught))
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
