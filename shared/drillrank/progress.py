"""Progress bars on standard error, which appear only on request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

OnProgress = Callable[[int, int], object]
"""Callback that receives the number of steps done and the number of all steps."""


@contextmanager
def progress_bar(show: bool, label: str) -> Iterator[tuple[Callable[[int], object], Callable[[int], object]]]:
    """Show a progress bar while the block runs.

    Yields two functions. The first one sets the number of all steps, the second one adds steps that are done.

    Args:
        show: Whether to show the bar. Otherwise both functions do nothing.
        label: Text next to the bar.

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
