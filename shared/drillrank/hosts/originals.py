"""Where the chunks of a splitter stand in the document that they were cut from, if its text is at hand."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import cached_property

from drillrank.drilldown.covered_text import HeadingPath
from drillrank.structure import Document, breadcrumb, parse_document

_PARAGRAPHS = "  \n"  # stands between the paragraphs of LangChain's splitter along headings
_OCCURRENCES = 64  # of a text that is there more than once, so many are looked at

Place = tuple[int, int, int]
"""Start and end in the original, and the offset in the chunk of what stands there."""


class Original:
    r"""A document's text, in which chunks are looked for, in the order in which they were cut if that is known.

    Splitters strip and replace white space, and leave out what cannot be printed; where a chunk differs from the
    original in that, the parts of it that are the same, letter by letter, have places of their own.

    Args:
        text: The document.
        metadata: As `parse_document` takes it.

    >>> original = Original("# Sea\n\nIt is\n  deep. It is deep.")
    >>> original.places("It is\ndeep.")
    [(7, 13, 0), (15, 20, 6)]
    >>> original.places("It is deep."), original.places("It is blue.")
    ([(21, 32, 0)], [])
    """

    def __init__(self, text: str, metadata: Mapping[str, object] | None = None) -> None:
        self.text = text
        self._metadata = metadata
        self._cursor = 0
        self._taken: dict[str, int] = {}

    def places(self, chunk: str, near: int | None = None, path: HeadingPath = ()) -> list[Place]:
        """Where a chunk stands; empty if it is not there.

        Args:
            chunk: Its text.
            near: Where it is said to stand.
            path: The headings above it, as it names them: tells equal texts apart.
        """
        if not chunk:
            return []
        if near is not None and near >= 0 and self.text.startswith(chunk, near):
            return self._found(chunk, near)
        taken = self._taken.get(chunk)
        at = self._chosen(self.text, chunk, self._cursor if taken is None else taken + 1, path)
        return self._found(chunk, at) if at >= 0 else self._alike(chunk, path) or self._in_parts(chunk, path)

    def holds(self, text: str) -> bool:
        """Whether a text stands here, white space apart: in the source, or in what a reader sees of it."""
        if text in self.text:
            return True
        wanted = "".join(map(text.__getitem__, _visible(text)))
        return wanted in self._squeezed or wanted in self._read

    def _found(self, chunk: str, at: int) -> list[Place]:
        self._cursor = at
        self._taken[chunk] = at
        return [(at, at + len(chunk), 0)]

    def _chosen(self, text: str, wanted: str, after: int, path: HeadingPath, places: Sequence[int] = ()) -> int:
        """Of several occurrences the first from there on, or another one if the headings above it are the right ones.

        Args:
            text: The original, or what is visible of it.
            wanted: What is looked for.
            after: Where to begin; what stands before is looked at last.
            path: Headings.
            places: Offsets in the original of the characters of the text, if it is not that.
        """
        first = text.find(wanted, after)
        if first < 0:
            first = text.find(wanted)
        at = first
        for _ in range(_OCCURRENCES if path and first >= 0 else 0):
            if self._under(places[at] if places else at, path):
                return at
            at = text.find(wanted, at + 1)
            if at < 0:  # from the beginning
                at = text.find(wanted)
            if at == first:
                break
        return first

    def _under(self, at: int, path: HeadingPath) -> bool:
        """Whether an offset lies below these headings, others between them or not."""
        section = self.parsed.sections()[max(bisect_right(self._starts, at) - 1, 0)]
        above = iter([breadcrumb([heading]) for heading in section.path])
        return all(breadcrumb([heading]) in above for heading in path)

    @cached_property
    def parsed(self) -> Document:
        """The document's structure."""
        return parse_document(self.text, metadata=self._metadata)

    @cached_property
    def _starts(self) -> list[int]:
        return [section.start for section in self.parsed.sections()]

    @cached_property
    def _places(self) -> list[int]:
        return _visible(self.text)

    @cached_property
    def _squeezed(self) -> str:
        return "".join(map(self.text.__getitem__, self._places))

    @cached_property
    def _read(self) -> str:
        read = "".join(map(self.parsed.readable, self.parsed.sections()))
        return "".join(map(read.__getitem__, _visible(read)))

    def _in_parts(self, chunk: str, path: HeadingPath) -> list[Place]:
        """The paragraphs of a chunk in which a heading between two of them was left out."""
        paragraphs = chunk.split(_PARAGRAPHS)
        if len(paragraphs) == 1:
            return []
        places: list[Place] = []
        inside = 0
        for paragraph in paragraphs:
            found = self.places(paragraph, path=path)
            if not found and paragraph.strip():
                return []
            places += [(start, end, at + inside) for start, end, at in found]
            inside += len(paragraph) + len(_PARAGRAPHS)
        return places

    def _alike(self, chunk: str, path: HeadingPath) -> list[Place]:
        """The parts of a chunk that is here but for white space."""
        inside = _visible(chunk)
        wanted = "".join(map(chunk.__getitem__, inside))
        after = bisect_right(self._places, self._cursor)
        at = self._chosen(self._squeezed, wanted, after, path, self._places) if wanted else -1
        if at < 0:
            return []
        outside = self._places[at : at + len(inside)]
        self._cursor = outside[0]
        places = []
        first = 0
        for last in range(len(inside)):
            goes_on = last + 1 < len(inside) and (
                chunk[inside[last] : inside[last + 1]] == self.text[outside[last] : outside[last + 1]]
            )
            if not goes_on:
                spaces = chunk[inside[last] + 1 : inside[last + 1]] if last + 1 < len(inside) else ""
                shared = 1 + _shared(spaces, self.text[outside[last] + 1 : outside[last] + 1 + len(spaces)])
                places.append((outside[first], outside[last] + shared, inside[first]))
                first = last + 1
        return places


def _visible(text: str) -> list[int]:
    return [at for at, sign in enumerate(text) if not sign.isspace() and sign.isprintable()]


def _shared(one: str, other: str) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
