"""Expand retrieved sections: join each with the sections around it."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, Literal, TypeVar

from drillrank.errors import check_positive
from drillrank.settings import check_one_of
from drillrank.structure import breadcrumb
from drillrank.structure.pages import Pages
from drillrank.structure.stored_chunks import DocumentName, StoredChunk
from drillrank.text import Tokens, token_counter
from drillrank.views.merging import MergedSection

Expansion = Literal["neighbours", "parent"]
RecordT = TypeVar("RecordT")

MAX_EXPANDED_TOKENS = 2048
_MAX_GAP = 8  # characters of white space that a chunker dropped between two neighbors


Direction = Literal["next_id", "previous_id"]
_Position = tuple[Direction, DocumentName, int | None]


@dataclass(frozen=True)
class ExpandedSection(Generic[RecordT]):
    """Section that was found, perhaps joined with the sections around it.

    Attributes:
        chunk: The section, or the joined sections as one chunk.
        merged: The section that was found, with its score and ranks.
        expanded_from: Id of the section that was found. None if nothing was joined to it.
        members: The joined sections, in the order of the document. Empty if nothing was joined.
    """

    chunk: StoredChunk[RecordT]
    merged: MergedSection
    expanded_from: str | None = None
    members: tuple[StoredChunk[RecordT], ...] = ()


@dataclass(frozen=True)
class SectionExpander:
    r"""Joins each section that was found with the sections around it, so that no section is in two results.

    With `"parent"`, the result is the section around the one that was found: its parent with all subsections. A section
    without a parent is expanded to its own subsections. If that has more than `max_tokens` tokens, the result is the
    section that was found, with as many sections before and after it as fit. Sections that were found below the same
    parent are one result, at the rank of the best one.

    With `"neighbours"`, the result is the section with the previous and the next one, up to `max_tokens`. Sections that
    were found stay results of their own.

    Only contiguous sections are joined. A missing section ends the text before or after it. The result is the text of
    the source between `start` and `end`, if the sections' texts are.

    Args:
        expand: `"parent"` or `"neighbours"`.
        max_tokens: Largest number of tokens of a result. A larger section is returned alone.
        separator: Separator of the headings in paths.
        tokens: Counter of `max_tokens`: see `drillrank.text.token_counter`.

    Raises:
        InvalidInput: An argument is invalid.

    >>> chunks = [
    ...     StoredChunk(None, id_, text, ("", "trees"), view="raw", path=path, start=start, end=start + len(text))
    ...     for id_, text, path, start in [
    ...         ("1", "# Trees\n\n", "Trees", 0),
    ...         ("2", "## Oak\n\nTall.\n\n", "Trees > Oak", 9),
    ...         ("3", "## Elm\n\nRare.\n", "Trees > Elm", 24),
    ...     ]
    ... ]
    >>> found = [MergedSection("3", 0.03, {"raw": 1}), MergedSection("2", 0.02, {"raw": 2})]
    >>> [result] = SectionExpander("parent").expand_sections(found, {chunk.id: chunk for chunk in chunks})
    >>> result.chunk.text, result.chunk.id, result.expanded_from
    ('# Trees\n\n## Oak\n\nTall.\n\n## Elm\n\nRare.\n', '1', '3')
    """

    expand: Expansion
    max_tokens: int = MAX_EXPANDED_TOKENS
    separator: str = " > "
    tokens: Tokens = None

    def __post_init__(self) -> None:
        check_one_of(Expansion, expand=self.expand)
        check_positive(max_tokens=self.max_tokens)
        token_counter(self.tokens)

    @property
    def link_names(self) -> tuple[str, ...]:
        """Names of a section's links to the sections that it may be joined with."""
        return ("previous_id", "next_id", *(("parent_id",) if self.expand == "parent" else ()))

    def expand_sections(
        self, sections: Sequence[MergedSection], raw_by_id: Mapping[str, StoredChunk[RecordT]]
    ) -> list[ExpandedSection[RecordT]]:
        """Return the results, best first.

        Args:
            sections: Sections that were found, best first.
            raw_by_id: Raw chunks of these and of the sections around them. Missing ones are not joined.
        """
        neighbors = _Neighbors(raw_by_id)
        used_ids = {section.section_id for section in sections} if self.expand == "neighbours" else set()
        results: list[ExpandedSection[RecordT]] = []
        for section in sections:
            chunk = raw_by_id[section.section_id]
            path: str | None = None
            if self.expand == "parent":
                if chunk.id in used_ids:  # a better result contains it
                    continue
                path = self._find_surrounding_path(chunk, raw_by_id)
            members = self._grow(chunk, path, neighbors, used_ids)
            used_ids |= {member.id for member in members}
            results.append(self._join(section, chunk, members, path))
        return results

    def _find_surrounding_path(self, chunk: StoredChunk[RecordT], raw_by_id: Mapping[str, StoredChunk[RecordT]]) -> str:
        """Return the path of the parent, or of the section itself if it has no parent."""
        parent = raw_by_id.get(chunk.links.get("parent_id", ""))
        if parent is not None:
            return self._path(parent)
        # A heading without text of its own has no chunk, but its subsections have it in their paths.
        path = self._path(chunk)
        parent_path, separator, _ = path.rpartition(self.separator)
        return parent_path if separator else path

    def _grow(
        self, chunk: StoredChunk[RecordT], path: str | None, neighbors: _Neighbors[RecordT], used_ids: Collection[str]
    ) -> Sequence[StoredChunk[RecordT]]:
        """Return the chunk with contiguous sections around it, in the order of the document, as many as fit.

        Args:
            chunk: The section that was found.
            path: Path of the section that limits the result. None: one section on each side.
            neighbors: Sections of the document.
            used_ids: Ids of sections in other results.
        """
        count = token_counter(self.tokens)
        members = deque([chunk])
        n_tokens = count(chunk.text)
        directions: list[Direction] = ["next_id", "previous_id"]
        while directions:
            for direction in tuple(directions):
                neighbor = neighbors.find(members[-1] if direction == "next_id" else members[0], direction)
                is_wanted = (
                    neighbor is not None
                    and neighbor.id not in used_ids
                    and (path is None or self._is_within(neighbor, path))
                )
                if neighbor is None or not is_wanted or n_tokens + count(neighbor.text) > self.max_tokens:
                    directions.remove(direction)
                    continue
                n_tokens += count(neighbor.text)
                members.append(neighbor) if direction == "next_id" else members.appendleft(neighbor)
            if path is None:
                break
        return members

    def _is_within(self, chunk: StoredChunk[RecordT], path: str) -> bool:
        """Return True if the chunk belongs to the section with this path, or to a section below it."""
        chunk_path = self._path(chunk)
        return path in ("", chunk_path) or chunk_path.startswith(path + self.separator)

    def _path(self, chunk: StoredChunk[RecordT]) -> str:
        return chunk.path if isinstance(chunk.path, str) else breadcrumb(chunk.path, self.separator)

    def _join(
        self,
        section: MergedSection,
        chunk: StoredChunk[RecordT],
        members: Sequence[StoredChunk[RecordT]],
        path: str | None,
    ) -> ExpandedSection[RecordT]:
        """Join sections to one chunk. Its record is the parent's if the text begins with it, or else the found one."""
        if len(members) == 1:
            return ExpandedSection(chunk, section)
        first, last = members[0], members[-1]
        text = _join_texts(members)
        joined = replace(
            first if path is not None and self._path(first) == path else chunk,
            text=text,
            view_text=text,
            path=chunk.path if path is None else path,
            start=first.start,
            end=last.end,
            pages=_join_pages(members),
        )
        return ExpandedSection(joined, section, chunk.id, tuple(members))


class _Neighbors(Generic[RecordT]):
    """Sections before and after a section of the same document.

    Args:
        raw_by_id: Raw chunks by id.
    """

    def __init__(self, raw_by_id: Mapping[str, StoredChunk[RecordT]]) -> None:
        self._raw_by_id = raw_by_id

    def find(self, chunk: StoredChunk[RecordT], direction: Direction) -> StoredChunk[RecordT] | None:
        """Return the section that continues a section, or that it continues. None if it is not known."""
        if chunk.view != "raw":  # a chunk of another splitter
            return None
        id_ = chunk.links.get(direction)
        if chunk.links.keys().isdisjoint(("next_id", "previous_id")):
            id_ = self._id_by_position.get(_position(chunk, direction))
        neighbor = self._raw_by_id.get(id_ or "")
        if neighbor is None or neighbor.view != "raw":
            return None
        pair = (chunk, neighbor) if direction == "next_id" else (neighbor, chunk)
        return neighbor if _are_contiguous(*pair) else None

    @cached_property
    def _id_by_position(self) -> dict[_Position, str]:
        """Ids of the sections that begin or end at an offset, for stores without links between neighbors."""
        directions: tuple[Direction, ...] = ("next_id", "previous_id")
        return {
            (direction, chunk.document, offset): chunk.id
            for chunk in self._raw_by_id.values()
            for direction, offset in zip(directions, (chunk.start, chunk.end), strict=True)
            if offset is not None
        }


def _position(chunk: StoredChunk[Any], direction: Direction) -> _Position:
    return direction, chunk.document, chunk.end if direction == "next_id" else chunk.start


def _are_contiguous(previous: StoredChunk[Any], following: StoredChunk[Any]) -> bool:
    """Return True if nothing but white space is between two sections, as far as their offsets are known."""
    if previous.document != following.document:
        return False
    if previous.start is None or previous.end is None or following.start is None:
        return True  # they are linked
    return previous.start <= following.start <= previous.end + _MAX_GAP


def _join_texts(chunks: Sequence[StoredChunk[Any]]) -> str:
    r"""Return the text of contiguous sections.

    If the sections' texts are the source, so is the result, with line breaks for white space between two sections.
    Rendered texts are separated by blank lines.
    """
    text = ""
    for previous, chunk in zip((None, *chunks), chunks, strict=False):
        if previous is None:
            text = chunk.text
            continue
        if previous.has_exact_offsets:
            separator = "\n" * max((chunk.start or 0) - (previous.end or 0), 0)
        else:
            separator = "" if text[-1:].isspace() else "\n\n"
        text += separator + _without_repeated_header(chunk, text)
    return text


def _without_repeated_header(chunk: StoredChunk[Any], text: str) -> str:
    """Return the text of a section without the table header that it repeats from the text before it."""
    if chunk.start is None or chunk.end is None:
        return chunk.text
    header = chunk.text[: max(len(chunk.text) - (chunk.end - chunk.start), 0)]
    return chunk.text[len(header) :] if header in text else chunk.text


def _join_pages(chunks: Sequence[StoredChunk[Any]]) -> Pages | None:
    """Return the pages of contiguous sections."""
    marks: list[tuple[int, int, str]] = []
    for chunk in chunks:
        pages = chunk.pages
        for start, number, label in zip(pages.starts, pages.numbers, pages.labels, strict=True) if pages else ():
            if not marks:
                marks.append((start, number, label))
            elif number > marks[-1][1]:  # a page that is new begins in this section
                marks.append((max(start, chunk.start or 0), number, label))
    return Pages.of(marks) if marks else None
