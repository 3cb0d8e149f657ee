"""Batches by token budget, and what to do when one does not fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from drillrank.errors import DrillrankError


class OutOfMemory(DrillrankError, MemoryError):
    """A single item does not fit into the device's memory."""


def by_length(
    lengths: Sequence[int], budget: int, targets: Sequence[int] | None = None, target_budget: int = 0
) -> Iterator[list[int]]:
    """Positions in batches of similar length, longest first.

    Args:
        lengths: Tokens of each item.
        budget: Tokens of a batch after padding; a longer item is a batch of its own.
        targets: Target tokens of each item, each of which needs a row of logits; None if these do not count here.
        target_budget: Target tokens of a batch.

    >>> list(by_length([3, 9, 4, 4], budget=8))
    [[1], [2, 3], [0]]
    >>> list(by_length([4, 4], budget=8, targets=[5, 5], target_budget=9))
    [[0], [1]]
    """
    targets = targets or [0] * len(lengths)
    batch: list[int] = []
    rows = 0
    for position in sorted(range(len(lengths)), key=lambda position: -lengths[position]):
        too_long = batch and lengths[batch[0]] * (len(batch) + 1) > budget
        if too_long or (batch and rows + targets[position] > target_budget):
            yield batch
            batch, rows = [], 0
        batch.append(position)
        rows += targets[position]
    if batch:
        yield batch


def in_halves(run: Callable[[list[int]], None], batch: list[int]) -> None:
    """Run a batch; when the memory does not suffice, its two halves.

    Raises:
        OutOfMemory: a single item does not fit.
    """
    try:
        run(batch)
    except (MemoryError, RuntimeError) as error:
        if not _is_out_of_memory(error):
            raise
        if len(batch) == 1:
            raise OutOfMemory(
                "One prompt alone does not fit into memory: lower max_length, or use a smaller model or dtype."
            ) from error
    else:
        return
    middle = len(batch) // 2  # outside the handler, so that the failed attempt's tensors are free
    in_halves(run, batch[:middle])
    in_halves(run, batch[middle:])


def _is_out_of_memory(error: Exception) -> bool:
    text = str(error).lower()
    return isinstance(error, MemoryError) or "out of memory" in text or "can't allocate memory" in text
