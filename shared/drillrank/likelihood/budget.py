"""How a token budget is shared among the documents of a prompt."""

from __future__ import annotations

from collections.abc import Sequence

from drillrank.errors import InvalidInput


def allot(lengths: Sequence[int], limits: Sequence[int | None], total: int | None) -> list[int]:
    """Tokens that each document may keep: its own limit first, then the longest ones give way.

    Args:
        lengths: Tokens of each document.
        limits: Limit of each document, or None.
        total: Limit of all documents together, or None.

    Returns:
        One number per document, at most its length; the documents that remain longest are equally long.

    Raises:
        InvalidInput: a document that has text would keep nothing of it.

    >>> allot([300, 50, 90], [230, 230, 230], 200)
    [75, 50, 75]
    >>> allot([300, 50, 90], [230, 230, 230], None)
    [230, 50, 90]
    """
    kept = [
        length if limit is None else max(0, min(length, limit)) for length, limit in zip(lengths, limits, strict=True)
    ]
    if total is not None and sum(kept) > total:
        left, waiting = max(total, 0), len(kept)
        for position in sorted(range(len(kept)), key=kept.__getitem__):  # what short ones leave goes to longer ones
            kept[position] = min(kept[position], left // waiting)
            left -= kept[position]
            waiting -= 1
    for position, (length, keep) in enumerate(zip(lengths, kept, strict=True)):
        if length and not keep:
            raise InvalidInput(
                f"Nothing would be left of document {position + 1} of {len(lengths)} ({length} tokens) within the "
                "budget: allow more tokens for the prompt or the document, or shorten the instruction or the "
                "demonstrations."
            )
    return kept
