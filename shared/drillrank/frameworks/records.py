"""Stored records as the core sees them: what they hold of which document, whoever cut it, and where it stands.

Those that this project cut are sections (`StoredChunk[Any]`), looked up beside what a search found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby
from typing import Any, Generic, TypeVar

from drillrank.drilldown.covered_text import CoveredText, HeldSpan
from drillrank.drilldown.rebuilding import SourceText
from drillrank.drilldown.stored_chunks import StoredChunk as SectionText
from drillrank.structure import parse_document
from drillrank.structure.stored_chunks import DocumentName, StoredChunk

_LEVEL = re.compile(r"(?:h|header|heading)[\s_-]*([1-6])", re.IGNORECASE)
_LONGEST = 2_000  # characters of a path of headings


def headings_by_level(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """The headings that stand under keys such as `h1` and `Header 2`, from the root.

    >>> headings_by_level({"Header 2": "Fish", "Header 1": "Life in the *sea*", "source": "sea.md"})
    ('Life in the sea', 'Fish')
    """
    found = [(match.group(1), value) for key, value in metadata.items() if (match := _LEVEL.fullmatch(str(key)))]
    levels = {level: value for level, value in found if isinstance(value, str) and value.strip()}
    return tuple(_read(levels[level]) for level in sorted(levels))


def headings_of_path(path: object) -> tuple[str, ...]:
    """The headings of a path that begins and ends with its separator.

    >>> headings_of_path("/Life in the sea/Fish/"), headings_of_path("/")
    (('Life in the sea', 'Fish'), ())
    """
    if not isinstance(path, str) or not 0 < len(path) <= _LONGEST:
        return ()
    begin = re.match(r"\W*", path)
    for length in range(min(len(begin.group()) if begin else 0, len(path) // 2), 0, -1):
        separator = path[:length]
        if path.endswith(separator):
            return tuple(_read(part) for part in path[length:-length].split(separator) if part.strip())
    return ()


@lru_cache(maxsize=4096)
def _read(heading: str) -> str:
    """A heading as a reader sees it, which is how those in texts are named."""
    sections = parse_document(f"# {' '.join(heading.split())}", "markdown").sections()
    return sections[0].heading or heading


Record = TypeVar("Record")


class StoredDocument(Generic[Record]):
    """The records of one document.

    Args:
        name: Of the document.
        chunks: Its records; one of each id is taken, rather than a view of it.
        original: The record that is all of it, if it is at hand and holds what they hold: gives structure and offsets.
        whole: Whether what no chunk holds of the original may be read, too.
        apart: Whether there are records of the same name that cannot be of the same document.
    """

    def __init__(
        self,
        name: DocumentName,
        chunks: Iterable[StoredChunk[Record]],
        original: StoredChunk[Record] | None = None,
        *,
        whole: bool = False,
        apart: bool = False,
    ) -> None:
        self.apart = apart
        self.chunks = distinct(chunks)
        only = self.chunks[0]
        itself = len(self.chunks) == 1 and only.may_be_whole and only.aliases  # and not a chunk of what it names
        self.name = (name[0], only.aliases[0]) if itself else name
        self.original, self._whole = original, whole

    def contradicts_itself(self) -> bool:
        """Whether two records claim the same place with different texts: of two versions, or of two owners."""
        if self.original is not None:
            return False
        if any(chunk.kind == "section" for chunk in self.chunks):
            return _sections_overlap(self.chunks)
        cut_again = any(chunk.is_below_path for chunk in self.chunks)  # then offsets may count from what was cut again
        return not cut_again and not all(map(_agree, _by_page(self.chunks)))

    def material(self) -> SourceText:
        """For the core; a chunk is named by its number, what none holds of an original by the next one."""
        if self.original is not None:
            return [self._covered(self.original)]
        if any(chunk.kind == "section" for chunk in self.chunks):
            return [
                SectionText(
                    one.text, one.path if isinstance(one.path, str) else "", one.start or 0, one.end, one.metadata
                )
                for one in self.chunks
            ]
        if len(self.chunks) == 1 and self.chunks[0].may_be_whole:
            return [SectionText(self.chunks[0].text, metadata=self.chunks[0].metadata)]
        number = {id(chunk): location for location, chunk in enumerate(self.chunks)}
        groups = [group for page in _by_page(self.chunks) for group in _runs(page)]
        format = "auto"
        if len(groups) > 1:
            texts = "\n\n".join(chunk.text for chunk in self.chunks)
            headed = any(chunk.path for chunk in self.chunks)
            format = "markdown" if headed else parse_document(texts, metadata=self.chunks[0].metadata).format
        return [_joined(group, number, format) for group in groups]

    def lacks_offsets(self) -> bool:
        """Whether it has chunks of which nobody knows where in the document they stand."""
        return any(isinstance(stored, CoveredText) and not stored.shifts for stored in self.material())

    def _covered(self, original: StoredChunk[Record]) -> CoveredText:
        headings = frozenset(heading for chunk in self.chunks if chunk.path for heading in chunk.path)
        return CoveredText(
            original.text,
            tuple(held_spans(original.text, self.chunks) or ()),
            ((0, 0),),
            named=headings,
            original=True,
            rest_chunk=len(self.chunks) if self._whole else None,
            metadata=(original if self._whole else self.chunks[0]).metadata,
        )


def held_spans(text: str, chunks: Sequence[StoredChunk[Any]]) -> list[HeldSpan] | None:
    """Where chunks stand in the text that they were cut from, word for word; None if one does not stand there.

    >>> [(span.start, span.end) for span in held_spans("A fox. A hen.", [StoredChunk(0, "1", "A hen.", ("", "a"))])]
    [(7, 13)]
    """
    spans: list[HeldSpan] = []
    after = 0
    for location in sorted(range(len(chunks)), key=lambda location: chunks[location].start or 0):
        chunk = chunks[location]
        start_agrees = chunk.start is not None and chunk.start >= 0 and text.startswith(chunk.text, chunk.start)
        at = chunk.start or 0 if start_agrees else text.find(chunk.text, after)
        at = text.find(chunk.text) if at < 0 else at
        if at < 0:
            return None
        spans.append(HeldSpan(at, at + len(chunk.text), location))
        after = at + 1
    return sorted(spans, key=lambda span: span.start)


def distinct(chunks: Iterable[StoredChunk[Record]]) -> list[StoredChunk[Record]]:
    """Each record once; a view only where what it is a view of is not there."""
    listed = list(chunks)
    if any(chunk.kind != "section" and chunk.path and chunk.start is None for chunk in listed):
        # Splitters that name headings know no offsets: those of the others count from what one made, too.
        listed = [chunk if chunk.start is None else replace(chunk, start=None, end=None) for chunk in listed]
    raw = {chunk.id for chunk in listed if chunk.is_raw}
    found = {(one.id, one.text): one for one in reversed(listed) if one.is_raw or one.id not in raw}
    return list(reversed(found.values()))


def _sections_overlap(sections: Sequence[StoredChunk[Any]]) -> bool:
    """Sections tile their document, whoever joins or cuts them; ends that are not known say nothing."""
    end, last = -1, None
    for section in sorted(sections, key=lambda section: section.start or 0):
        start = section.start or 0
        if start < end or (last is not None and start == (last.start or 0) and section.text != last.text):
            return True
        end, last = max(end, section.end or 0), section
    return False


def _by_page(chunks: Sequence[StoredChunk[Any]]) -> list[list[StoredChunk[Any]]]:
    pages: dict[int | str | None, list[StoredChunk[Any]]] = {}
    for chunk in sorted(chunks, key=lambda chunk: chunk.page if isinstance(chunk.page, int) else -1):
        pages.setdefault(chunk.page, []).append(chunk)
    return list(pages.values())


def _placed(chunks: Iterable[StoredChunk[Any]]) -> list[StoredChunk[Any]]:
    return sorted((chunk for chunk in chunks if chunk.has_exact_offsets), key=lambda chunk: chunk.start or 0)


def _agree(chunks: Sequence[StoredChunk[Any]]) -> bool:
    """Whether all that claim a place say the same there."""
    furthest: StoredChunk[Any] | None = None
    for chunk in _placed(chunks):
        if furthest is not None:
            rest = furthest.text[(chunk.start or 0) - (furthest.start or 0) :]
            if rest[: len(chunk.text)] != chunk.text[: len(rest)]:
                return False
            if len(rest) >= len(chunk.text):
                continue
        furthest = chunk
    return True


def _runs(page: list[StoredChunk[Any]]) -> list[list[StoredChunk[Any]]]:
    """Chunks that are joined, neighbours under the same headings; of whose place nothing is known, each alone."""
    placed = _placed(page) if _agree(page) else []
    known = set(map(id, placed))
    runs = [list(group) for _, group in groupby(placed, key=lambda chunk: chunk.path)]
    return runs + [[chunk] for chunk in page if id(chunk) not in known]


def _joined(group: Sequence[StoredChunk[Any]], number: Mapping[int, int], format: str) -> CoveredText:
    """Chunks joined where they continue each other; what stands between two others is not known.

    Args:
        group: Under the same headings, in order.
        number: Of each chunk, by its identity.
        format: Of the document.
    """
    first = group[0]
    texts: list[str] = []
    spans: list[HeldSpan] = []
    shifts: list[tuple[int, int]] = []
    written = end = 0  # characters of the joined text; where its last run ends in the document
    for chunk in group:
        start = chunk.start or 0
        if not spans or start > end:
            texts.append("\n\n" if texts else "")
            written += len(texts[-1])
            shifts.append((written, start - written))
            end = start
        at = written - (end - start)
        texts.append(chunk.text[end - start :])
        spans.append(HeldSpan(at, at + len(chunk.text), number[id(chunk)]))
        written += len(texts[-1])
        end = max(end, start + len(chunk.text))
    known = first.has_exact_offsets or (
        first.has_no_place and first.page is not None
    )  # of a page its beginning is known
    headings = first.path if isinstance(first.path, tuple) else ()
    return CoveredText(
        "".join(texts),
        tuple(spans),
        tuple(shifts) if known else (),
        headings,
        first.is_below_path,
        breaks=bool(headings)
        and not first.is_below_path
        and not known,  # LangChain's mark the ends of paragraphs by two spaces
        format=format,
        metadata=first.metadata,
    )
