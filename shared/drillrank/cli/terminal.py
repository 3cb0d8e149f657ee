"""What reaches the terminal: nothing that it would obey, whatever a document, a name or a question holds."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.progress import Progress
from rich.segment import Segment

from drillrank.explanation.terms import CONTROL

EXCERPT = 110


class Terminal(Console):
    """Shows control characters as �, whatever they come from, but for rich itself, which moves the cursor of a bar."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, emoji=False, **options)  # :x: is text

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The segments of a renderable."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else CONTROL.sub("�", text), style, control)

    def on_broken_pipe(self) -> None:
        """Whoever closed the output is told by the exit status of the command."""
        raise BrokenPipeError


console = Terminal()


def make_writable() -> None:
    """A stream that is closed swallows what it gets, one without Unicode shows ? in place of what it lacks."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115  # open to the end
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def tell(color: str, problem: object) -> None:
    """A line on standard error."""
    Terminal(stderr=True).print(
        f"[{color}]drillrank:[/{color}] {escape(' '.join(str(problem).split()))}", soft_wrap=True
    )


@contextmanager
def progress(name: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error while the block runs; it is told how much is done, and of how much."""
    console = Terminal(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as shown:
        bar = shown.add_task(name, total=None)
        yield lambda done, whole: shown.update(bar, completed=done, total=whole)


def print_json(record: object) -> None:
    """A line of JSON on standard output, in ASCII: any locale can show it, and no terminal obeys it."""
    sys.stdout.write(json.dumps(record).replace("\x7f", "\\u007f") + "\n")


def one_line(name: object) -> str:
    r"""A name as it is shown in markup, on one line.

    >>> one_line("a[b]\nc.md")
    'a\\[b]�c.md'
    """
    return escape(re.sub(r"[\t\n]", "�", str(name)))


def counted(number: int, thing: str) -> str:
    """A number of things.

    >>> counted(1, "file"), counted(2_000, "file")
    ('1 file', '2,000 files')
    """
    return f"{number:,} {thing}{'s' * (number != 1)}"


def excerpt(text: str, length: int = EXCERPT) -> str:
    """The beginning of a text, on one line."""
    flat = " ".join(text.split())
    return flat if len(flat) <= length else f"{flat[: length - 1]}…"
