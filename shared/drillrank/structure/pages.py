"""Pages of a text: their offsets, numbers and labels."""

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
    """Offsets, numbers and labels of the pages of a text.

    Attributes:
        starts: Offset of the first character of each page, rising.
        numbers: Number of each page, rising; the first page of a file is 1.
        labels: Label printed on each page, or its number.

    >>> pages = Pages((0, 40, 90), (1, 2, 3), ("i", "ii", "1"))
    >>> pages.between(10, 90), pages.between(90, 95)
    ((1, 2), (3, 3))
    """

    starts: tuple[int, ...]
    numbers: tuple[int, ...]
    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.starts or not len(self.starts) == len(self.numbers) == len(self.labels):
            sizes = f"{len(self.starts)}, {len(self.numbers)} and {len(self.labels)}"
            raise InvalidInput(f"starts, numbers and labels must be equally long and not empty, got {sizes} of them.")
        for name, values in (("starts", self.starts), ("numbers", self.numbers)):
            if any(after < before for before, after in pairwise(values)):
                raise InvalidInput(f"{name} must not decrease, got {values!r:.100}. Give the pages in order.")

    def between(self, start: int, end: int) -> tuple[int, int]:
        """Return the numbers of the first and last page of a span. Text before page 1 counts as page 1."""
        first, last = self._page_indices(start, end)
        return self.numbers[first], self.numbers[last]

    def label(self, number: int) -> str:
        """Return the label of the page with this number."""
        return self.labels[bisect_left(self.numbers, number)]

    def within(self, start: int, end: int) -> Pages:
        """Return the pages of a span."""
        first, last = self._page_indices(start, end)
        part = slice(first, last + 1)
        return Pages(self.starts[part], self.numbers[part], self.labels[part])

    def _page_indices(self, start: int, end: int) -> tuple[int, int]:
        first = max(bisect_right(self.starts, start) - 1, 0)
        return first, max(bisect_left(self.starts, max(end, start + 1)) - 1, first)

    def as_json(self) -> str:
        """Serialize to a string for metadata, which every store accepts.

        >>> Pages((0, 40), (1, 2), ("i", "ii")).as_json()
        '[[0,1,"i"],[40,2,"ii"]]'
        """
        return json.dumps(
            list(zip(self.starts, self.numbers, self.labels, strict=True)), ensure_ascii=False, separators=(",", ":")
        )

    @classmethod
    def of(cls, marks: Iterable[tuple[int, int, str]]) -> Pages:
        """Build from the start, number and label of each page."""
        return cls(*zip(*marks, strict=True))

    @classmethod
    def from_json(cls, text: object) -> Pages | None:
        """Read what `as_json` wrote; return None if the value is something else.

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


def join_pages(texts: Iterable[tuple[str, int | None]]) -> tuple[str, Pages | None]:
    r"""Join texts with blank lines, and return the result with the pages that they begin on.

    Args:
        texts: Texts, each with the number of its page or None. A number that is not above all before it is ignored.

    >>> join_pages([("One", 1), ("two", None), ("three", 2)])
    ('One\n\ntwo\n\nthree', Pages(starts=(0, 10), numbers=(1, 2), labels=('1', '2')))
    """
    parts: list[str] = []
    marks: list[tuple[int, int, str]] = []
    start = 0
    for text, number in texts:
        if number is not None and (not marks or number > marks[-1][1]):
            marks.append((start, number, str(number)))
        parts.append(text)
        start += len(text) + 2
    return "\n\n".join(parts), Pages.of(marks) if marks else None


def page_range(pages: tuple[int, int]) -> str:
    """Format the first and last page as in a citation.

    >>> page_range((3, 3)), page_range((3, 5))
    ('p. 3', 'pp. 3–5')
    """
    first, last = pages
    return f"p. {first}" if first == last else f"pp. {first}–{last}"
