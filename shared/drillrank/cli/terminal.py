"""Output to the terminal. No text of a document, a name or a question reaches it as a command to the terminal."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.progress import Progress
from rich.segment import Segment

from drillrank.explanation.terms import CONTROL

EXCERPT_CHARACTERS = 110


class Terminal(Console):
    """Console that shows control characters as �, except those of rich itself, which moves the cursor of a bar."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, emoji=False, **options)  # :x: is text

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of a renderable."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else CONTROL.sub("�", text), style, control)

    def on_broken_pipe(self) -> None:
        """Let the command end with the exit status of a closed output."""
        raise BrokenPipeError


console = Terminal()


def make_streams_writable() -> None:
    """Let a closed stream discard its output, and one without Unicode show ? for the characters that it lacks."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115  # it stays open until the process ends
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def print_problem(color: str, problem: object, details: Sequence[str] = ()) -> None:
    """Print a line to standard error, with the details indented on the lines below it."""
    out = Terminal(stderr=True)
    out.print(f"[{color}]drillrank:[/{color}] {escape(_join_lines(problem))}", soft_wrap=True)
    for detail in details:
        out.print(f"   {escape(_join_lines(detail))}", soft_wrap=True)


def _join_lines(problem: object) -> str:
    return " ".join(str(problem).split())


@contextmanager
def progress(name: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar on standard error while the block runs. The block calls `(n_done, n_total)` to move it."""
    stderr = Terminal(stderr=True)
    with Progress(console=stderr, transient=True, disable=not stderr.is_terminal) as bars:
        task = bars.add_task(name, total=None)
        yield lambda n_done, n_total: bars.update(task, completed=n_done, total=n_total)


def print_json(record: object) -> None:
    """Print a line of JSON in ASCII, which any locale can show and which contains no command to a terminal."""
    sys.stdout.write(json.dumps(record).replace("\x7f", "\\u007f") + "\n")


def one_line(name: object) -> str:
    r"""Return a name as markup on one line.

    >>> one_line("a[b]\nc.md")
    'a\\[b]�c.md'
    """
    return escape(re.sub(r"[\t\n]", "�", str(name)))


def count_of(number: int, thing: str) -> str:
    """Return a number and the thing that it counts.

    >>> count_of(1, "file"), count_of(2_000, "file")
    ('1 file', '2,000 files')
    """
    return f"{number:,} {thing}{'s' * (number != 1)}"


def shorten(text: str, length: int = EXCERPT_CHARACTERS) -> str:
    """Return the beginning of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[: length - 1]}…"
