"""How a token budget is shared among the documents of a prompt, and how much of a text fits into one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from drillrank.errors import InvalidInput

_GUESSES = 4  # then the search halves what is left


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
    if total is not None:
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


def longest(over: Callable[[int], int], fits: int, most: int, guess: int) -> int:
    """A size that fits, and that uses its limit up or does not fit with one more.

    Lengths of texts cut to a size mostly grow with it, but need not. Whatever they do, the search ends after
    `_GUESSES` + log2(most - fits) + 1 tries.

    Args:
        over: By how many tokens a size exceeds its limit; below 0 where there is room.
        fits: A size that fits, not tried.
        most: The largest size that is wanted.
        guess: The size to try first; the others follow from what it is over.

    >>> longest(lambda size: size - 7, 0, 100, guess=50)
    7
    >>> longest(lambda size: 4 * -(-size // 4) - 6, 0, 100, guess=6)  # four tokens for a character, so eight are over
    4
    """
    too_long, tries = most + 1, 0
    while too_long - fits > 1:
        size = min(max(guess, fits + 1), too_long - 1) if tries < _GUESSES else (fits + too_long) // 2
        tries += 1
        excess = over(size)
        if excess > 0:
            too_long = size
        else:
            fits = size
        if excess == 0:
            break
        guess = size - excess
    return fits
