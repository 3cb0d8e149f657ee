"""Pages of a text: where each begins."""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from drillrank.errors import InvalidInput
from drillrank.limits import read_json


@dataclass(frozen=True, slots=True)
class Pages:
    """Where the pages of a text begin.

    Attributes:
        starts: Offset of each page's first character in the text, rising.
        numbers: Of each page, rising; the first page of a file is 1.
        labels: What is printed on each page, or its number.

    >>> pages = Pages((0, 40, 90), (1, 2, 3), ("i", "ii", "1"))
    >>> pages.between(10, 90), pages.between(90, 95)
    ((1, 2), (3, 3))
    """

    starts: tuple[int, ...]
    numbers: tuple[int, ...]
    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.starts or not len(self.starts) == len(self.numbers) == len(self.labels):
            raise InvalidInput("Pages are a start, a number and a label each, and there is at least one.")
        for name, values in (("starts", self.starts), ("numbers", self.numbers)):
            if any(after < before for before, after in pairwise(values)):
                raise InvalidInput(f"The {name} of pages must rise; they are {values!r:.100}.")

    def between(self, start: int, end: int) -> tuple[int, int]:
        """Numbers of the first and last page of a span; text before the first page counts as the first page's."""
        first, last = self._places(start, end)
        return self.numbers[first], self.numbers[last]

    def label(self, number: int) -> str:
        """What is printed on a page."""
        return self.labels[bisect_left(self.numbers, number)]

    def within(self, start: int, end: int) -> Pages:
        """The pages of a span."""
        first, last = self._places(start, end)
        part = slice(first, last + 1)
        return Pages(self.starts[part], self.numbers[part], self.labels[part])

    def _places(self, start: int, end: int) -> tuple[int, int]:
        first = max(bisect_right(self.starts, start) - 1, 0)
        return first, max(bisect_left(self.starts, max(end, start + 1)) - 1, first)

    def as_json(self) -> str:
        """A string for metadata, which any store takes.

        >>> Pages((0, 40), (1, 2), ("i", "ii")).as_json()
        '[[0,1,"i"],[40,2,"ii"]]'
        """
        return json.dumps(
            list(zip(self.starts, self.numbers, self.labels, strict=True)), ensure_ascii=False, separators=(",", ":")
        )

    @classmethod
    def of(cls, marks: Iterable[tuple[int, int, str]]) -> Pages:
        """From start, number and label of each page."""
        return cls(*zip(*marks, strict=True))

    @classmethod
    def from_json(cls, text: object) -> Pages | None:
        """What `as_json` wrote; None where it is something else.

        >>> Pages.from_json('[[0,1,"i"],[40,2,"ii"]]').numbers, Pages.from_json("pp. 3")
        ((1, 2), None)
        """
        if not isinstance(text, str):
            return None
        try:
            marks = read_json(text, "The list of pages")
            return cls.of([(int(start), int(number), str(label)) for start, number, label in marks])
        except (ValueError, TypeError):
            return None


def joined_pages(texts: Iterable[tuple[str, int | None]]) -> tuple[str, Pages | None]:
    r"""Texts with blank lines between them, and the pages that they begin on.

    Args:
        texts: Each with its page's number, if that is known; one that is not above those before it does not count.

    >>> joined_pages([("One", 1), ("two", None), ("three", 2)])
    ('One\n\ntwo\n\nthree', Pages(starts=(0, 10), numbers=(1, 2), labels=('1', '2')))
    """
    parts: list[str] = []
    marks: list[tuple[int, int, str]] = []
    at = 0
    for text, number in texts:
        if number is not None and (not marks or number > marks[-1][1]):
            marks.append((at, number, str(number)))
        parts.append(text)
        at += len(text) + 2
    return "\n\n".join(parts), Pages.of(marks) if marks else None


def page_range(pages: tuple[int, int]) -> str:
    """First and last page, as a citation has them.

    >>> page_range((3, 3)), page_range((3, 5))
    ('p. 3', 'pp. 3–5')
    """
    first, last = pages
    return f"p. {first}" if first == last else f"pp. {first}–{last}"
