"""Batches by token budget, and what to do when one does not fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np

from drillrank.errors import DrillrankError

_STEPS = 32  # batches whose fixed costs are those of a full batch's tokens


class OutOfMemory(DrillrankError, MemoryError):
    """A single item does not fit into the device's memory."""


def by_length(
    lengths: Sequence[int], budget: int, targets: Sequence[int] | None = None, target_budget: int = 0
) -> Iterator[list[int]]:
    """Positions in batches of similar length, longest first, so divided that the least is computed.

    A batch costs its tokens after padding, and as much as `budget / 32` tokens for being one more: the steps that a
    model takes whatever it is given.

    Args:
        lengths: Tokens of each item.
        budget: Tokens of a batch after padding; a longer item is a batch of its own.
        targets: Target tokens of each item, each of which needs a row of logits; None if these do not count here.
        target_budget: Target tokens of a batch.

    >>> list(by_length([3, 9, 4, 4], budget=8))
    [[1], [2, 3], [0]]
    >>> list(by_length([4, 4], budget=8, targets=[5, 5], target_budget=9))
    [[0], [1]]
    >>> list(by_length([100, 20, 98, 22], budget=1000))
    [[0, 2], [3, 1]]
    """
    order = sorted(range(len(lengths)), key=lambda position: -lengths[position])
    rows = np.cumsum([0, *(targets[position] for position in order)]) if targets else np.zeros(len(order) + 1)
    # The least cost of all that stands before each place, and where its last batch begins.
    costs, begins = np.full(len(order) + 1, np.inf), np.zeros(len(order) + 1, dtype=int)
    costs[0] = 0.0
    for first, position in enumerate(order):
        fitting = int(np.searchsorted(rows, rows[first] + target_budget, side="right")) - 1 - first
        most = max(1, min(fitting, budget // max(lengths[position], 1)))
        ends = slice(first + 1, first + most + 1)
        with_batch = costs[first] + budget / _STEPS + lengths[position] * np.arange(1, len(costs[ends]) + 1)
        begins[ends][with_batch < costs[ends]] = first
        costs[ends] = np.minimum(costs[ends], with_batch)
    cuts = [len(order)]
    while cuts[-1]:
        cuts.append(int(begins[cuts[-1]]))
    for end, first in reversed(list(pairwise(cuts))):
        yield order[first:end]


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
