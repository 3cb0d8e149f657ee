"""A bar for what lasts: on standard error, and only where it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

OnProgress = Callable[[int, int], object]
"""Function that gets the number of items that are done, and the number of all."""


@contextmanager
def progress_bar(show: bool, label: str) -> Iterator[tuple[Callable[[int], object], Callable[[int], object]]]:
    """A bar while the block runs: a function that is given how much there is to do, and one for what has been done.

    >>> with progress_bar(False, "Reading") as (expect, advance):
    ...     expect(2), advance(1), advance(1)
    (None, None, None)
    """
    if not show:
        yield (lambda _: None), (lambda _: None)
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task(label, total=0)
        yield lambda total: progress.update(task, total=total), lambda done: progress.advance(task, done)
