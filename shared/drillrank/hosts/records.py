"""Stored records as the core sees them: what they hold of which document, whoever cut it, and where it stands."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, Generic, Literal, TypeVar

from drillrank.drilldown.covered_text import CoveredText, HeadingPath, HeldSpan
from drillrank.drilldown.rebuilding import Material, StoredChunk
from drillrank.structure import Document, Pages, breadcrumb, parse_document

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


Record = TypeVar("Record")
Kind = Literal["section", "chunk", "document"]
Name = tuple[str, str]
"""Namespace and id of a document; the namespace is empty where there is none."""


@dataclass(frozen=True, slots=True)
class ChunkRecord(Generic[Record]):
    """One stored record.

    Attributes:
        record: The host's node or document.
        id: What tells it from all others.
        text: Its text, as in the source; of a view of a section, what that view carries of the section's text.
        document: What it is a part of.
        kind: A section that drillrank cut, a chunk of another splitter, or a whole document.
        raw: Whether it is the section itself and not a view of it.
        path: Headings from the root: joined, as drillrank writes them, or apart.
        above: Whether these are never the heading that the text begins with.
        start: Offset of its first character in the document; None if that is not known.
        end: Offset just behind its last character; None likewise.
        order: Where it stands among those of the same path, if no offset says so.
        page: Of a document whose pages have offsets of their own.
        aliases: Other ids under which chunks name the document.
        metadata: The user's.
        pages: That it is on, in offsets of the document.
    """

    record: Record
    id: str
    text: str
    document: Name
    kind: Kind = "document"
    raw: bool = True
    path: str | HeadingPath = ()
    above: bool = False
    start: int | None = None
    end: int | None = None
    order: int | None = None
    page: int | str | None = None
    aliases: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    pages: Pages | None = None

    @property
    def is_bare(self) -> bool:
        """Whether it says nothing of where it stands in anything larger."""
        return self.kind != "section" and self.start is None and self.order is None and not self.path

    @property
    def is_whole(self) -> bool:
        """Whether it may be all of its document: the document's id is its own, or one under which it is known."""
        return self.is_bare and (self.kind == "document" or bool(self.aliases))

    @property
    def headings(self) -> HeadingPath:
        """The headings that another splitter named."""
        return self.path if isinstance(self.path, tuple) else ()

    @property
    def span(self) -> tuple[int, int] | None:
        """Where its text stands in the document, letter by letter; None if that is not known."""
        if self.start is None or self.start < 0 or (self.end is not None and self.end - self.start != len(self.text)):
            return None
        return self.start, self.start + len(self.text)


class StoredDocument(Generic[Record]):
    """The records of one document.

    Args:
        name: Of the document.
        chunks: Its records; one of each id is taken, rather than a view of it.
        original: What the chunks were cut from, if it is at hand and true to them: lends structure and offsets.
        whole: The record that is all of the original, where what no chunk holds of it may be read, too.
        apart: Whether there are records of the same name that cannot be of the same document.
    """

    def __init__(
        self,
        name: Name,
        chunks: Iterable[ChunkRecord[Record]],
        original: Located | None = None,
        whole: ChunkRecord[Record] | None = None,
        *,
        apart: bool = False,
    ) -> None:
        self.apart = apart
        self.chunks = _distinct(chunks)
        only = self.chunks[0]
        itself = len(self.chunks) == 1 and only.is_whole and only.aliases  # and not a chunk of what it names
        self.name = (name[0], only.aliases[0]) if itself else name
        self._original = original
        self._whole = whole

    def chunk(self, number: int) -> ChunkRecord[Record]:
        """The record with the number that `material` gave it."""
        if number < len(self.chunks):
            return self.chunks[number]
        assert self._whole is not None
        return self._whole

    def contradicts_itself(self) -> bool:
        """Whether two records claim the same place with different texts: of two versions, or of two owners."""
        if self._original is not None:
            return False
        if any(chunk.kind == "section" for chunk in self.chunks):
            return _sections_overlap(self.chunks)
        cut_again = any(chunk.above for chunk in self.chunks)  # then offsets may count from what was cut again
        return not cut_again and any(_disagree(chunks) for chunks in _by_page(self.chunks).values())

    def lacks_offsets(self) -> bool:
        """Whether it has chunks of which nobody knows where in the document they stand."""
        return any(isinstance(stored, CoveredText) and not stored.shifts for stored in self.material())

    def material(self) -> Material:
        """For the core; numbers of chunks are what `chunk` takes."""
        if self._original is not None:
            return [self._covered_of(self._original)]
        if any(chunk.kind == "section" for chunk in self.chunks):
            return [_stored_chunk(chunk) for chunk in self.chunks]
        if len(self.chunks) == 1 and self.chunks[0].is_whole:
            return [StoredChunk(chunk.text, metadata=chunk.metadata) for chunk in self.chunks]
        number = {id(chunk): place for place, chunk in enumerate(self.chunks)}
        marked = any(chunk.headings and not chunk.above for chunk in self.chunks)
        groups: list[tuple[list[ChunkRecord[Record]], bool]] = []
        for chunks in _by_page(self.chunks).values():
            whole_page = len(chunks) == 1 and chunks[0].is_bare and chunks[0].page is not None
            exact = whole_page or not _disagree(chunks)
            groups += [(group, exact) for group in ([chunks] if whole_page else _grouped(chunks, exact))]
        format = _format(self.chunks) if len(groups) > 1 else "auto"
        return [_joined(group, number, format, exact, marked) for group, exact in groups]

    def _covered_of(self, original: Located) -> CoveredText:
        held_spans = [HeldSpan(start, end, place) for place, spans in enumerate(original.spans) for start, end in spans]
        return CoveredText(
            original.text,
            tuple(sorted(held_spans, key=lambda held_span: held_span.start)),
            ((0, 0),),
            named=frozenset(heading for chunk in self.chunks for heading in chunk.headings),
            original=True,
            whole=len(self.chunks) if self._whole is not None else None,
            metadata=(self._whole or self.chunks[0]).metadata,
        )


@dataclass(frozen=True, slots=True)
class Located:
    """A document's text, and where in it its chunks stand.

    Attributes:
        text: The original.
        spans: Of each chunk what of it stands there, letter by letter.
    """

    text: str
    spans: Sequence[Sequence[tuple[int, int]]]


def located(original: ChunkRecord[Any], chunks: Iterable[ChunkRecord[Any]]) -> Located | None:
    """Where chunks stand in their original, or None if one does not: then the original is another version of it."""
    text = Original(original.text, original.metadata)
    listed = _distinct(chunks)
    spans: list[list[tuple[int, int]]] = [[] for _ in listed]
    for place in sorted(range(len(listed)), key=lambda place: _rank(listed[place])):
        chunk = listed[place]
        found = text.places(chunk.text, chunk.start, chunk.headings)
        if chunk.text.strip() and not found and not (chunk.kind == "section" and text.holds(chunk.text)):
            return None
        spans[place] = [(start, end) for start, end, _ in found]
    return Located(original.text, spans)


def _distinct(chunks: Iterable[ChunkRecord[Record]]) -> list[ChunkRecord[Record]]:
    """Each record once; a view only where what it is a view of is not there."""
    chunks = _without_false_offsets(list(chunks))
    raw = {chunk.id for chunk in chunks if chunk.raw}
    found = {(c.id, c.text): c for c in reversed(chunks) if c.raw or c.id not in raw}
    return list(reversed(found.values()))


def _without_false_offsets(chunks: list[ChunkRecord[Record]]) -> list[ChunkRecord[Record]]:
    """Splitters that name headings know no offsets: where one did, the others' count from what it made, too."""
    if not any(chunk.order is not None for chunk in chunks):
        return chunks
    return [chunk if chunk.start is None else replace(chunk, start=None, order=chunk.start) for chunk in chunks]


def _stored_chunk(section: ChunkRecord[Any]) -> StoredChunk:
    path = section.path if isinstance(section.path, str) else ""
    return StoredChunk(section.text, path, section.start or 0, section.end, section.metadata)


def _sections_overlap(sections: Sequence[ChunkRecord[Any]]) -> bool:
    """Sections tile their document, whoever joins or cuts them; ends that are not known say nothing."""
    end, last = -1, None
    for section in sorted(sections, key=lambda section: section.start or 0):
        start = section.start or 0
        if start < end or (last is not None and start == (last.start or 0) and section.text != last.text):
            return True
        end, last = max(end, section.end or 0), section
    return False


def _by_page(chunks: Sequence[ChunkRecord[Any]]) -> dict[int | str | None, list[ChunkRecord[Any]]]:
    pages: dict[int | str | None, list[ChunkRecord[Any]]] = {}
    for chunk in sorted(chunks, key=lambda chunk: chunk.page if isinstance(chunk.page, int) else -1):
        pages.setdefault(chunk.page, []).append(chunk)
    return pages


def _rank(chunk: ChunkRecord[Any]) -> tuple[bool, int]:
    """Chunks of which the place is not known come last, as they were given."""
    at = chunk.order if chunk.span is None else chunk.start
    return at is None, at or 0


def _disagree(chunks: Sequence[ChunkRecord[Any]]) -> bool:
    """Whether two chunks have different texts for the same place."""
    furthest: ChunkRecord[Any] | None = None
    for chunk in sorted((chunk for chunk in chunks if chunk.span is not None), key=_rank):
        if furthest is not None and not _agree(furthest, chunk):
            return True
        furthest = _further(furthest, chunk)
    return False


def _agree(before: ChunkRecord[Any], chunk: ChunkRecord[Any]) -> bool:
    (first, end), (start, _) = _place(before), _place(chunk)
    return before.text[start - first : start - first + len(chunk.text)] == chunk.text[: max(end - start, 0)]


def _place(chunk: ChunkRecord[Any]) -> tuple[int, int]:
    """Its span, or where it stands in the section that was cut again."""
    if chunk.span is not None:
        return chunk.span
    return chunk.order or 0, (chunk.order or 0) + len(chunk.text)


def _further(before: ChunkRecord[Any] | None, chunk: ChunkRecord[Any]) -> ChunkRecord[Any]:
    return chunk if before is None or _place(chunk)[1] > _place(before)[1] else before


def _grouped(chunks: Sequence[ChunkRecord[Any]], exact: bool) -> list[list[ChunkRecord[Any]]]:
    """Chunks that may be joined: neighbours under the same headings; of whose place nothing is known, each alone."""
    known = sorted((chunk for chunk in chunks if exact and chunk.span is not None), key=_rank)
    groups: list[list[ChunkRecord[Any]]] = []
    for chunk in known:
        if groups and groups[-1][-1].path == chunk.path:
            groups[-1].append(chunk)
        else:
            groups.append([chunk])
    cut_again: dict[str | HeadingPath, list[ChunkRecord[Any]]] = {}
    placed = set(map(id, known))
    for chunk in chunks:
        if id(chunk) in placed:
            continue
        if chunk.order is not None and chunk.path:
            if chunk.path not in cut_again:
                groups.append(cut_again.setdefault(chunk.path, []))
            cut_again[chunk.path].append(chunk)
        else:
            groups.append([chunk])
    return [joined for group in groups for joined in _apart_where_they_differ(group)]


def _apart_where_they_differ(group: list[ChunkRecord[Any]]) -> list[list[ChunkRecord[Any]]]:
    """The chunks of a section by their order, each alone if they cannot be of one section."""
    group = sorted(group, key=_rank)
    furthest: ChunkRecord[Any] | None = None
    for chunk in group:
        if furthest is not None and not _agree(furthest, chunk):
            return [[chunk] for chunk in group]
        furthest = _further(furthest, chunk)
    return [group]


def _format(chunks: Sequence[ChunkRecord[Any]]) -> str:
    """What all chunks of a document are parsed as."""
    if any(chunk.headings for chunk in chunks):
        return "markdown"
    return parse_document("\n\n".join(chunk.text for chunk in chunks), metadata=chunks[0].metadata).format


def _joined(
    group: Sequence[ChunkRecord[Any]], number: Mapping[int, int], format: str, exact: bool, marked: bool
) -> CoveredText:
    """Chunks joined where they continue each other; what stands between two others is not known.

    Args:
        group: Under the same headings, in order.
        number: Of each chunk, by its identity.
        format: Of the document.
        exact: Whether offsets are those in the document.
        marked: Whether chunks that have none mark the ends of paragraphs by two spaces.
    """
    texts: list[str] = []
    held_spans: list[HeldSpan] = []
    shifts: list[tuple[int, int]] = []
    written = 0  # characters of the joined text
    end = 0  # of the last run, in the document
    for chunk in group:
        start, _ = _place(chunk)
        if not held_spans or start > end:
            texts.append("\n\n" if texts else "")
            written += len(texts[-1])
            shifts.append((written, start - written))
            end = start
        at = written - (end - start)
        texts.append(chunk.text[end - start :])
        held_spans.append(HeldSpan(at, at + len(chunk.text), number[id(chunk)]))
        written += len(texts[-1])
        end = max(end, start + len(chunk.text))
    first = group[0]
    shifts_known = exact and (first.span is not None or (first.is_bare and first.page is not None))
    return CoveredText(
        "".join(texts),
        tuple(held_spans),
        tuple(shifts) if shifts_known else (),
        first.headings,
        first.above,
        breaks=marked and not shifts_known,
        format=format,
        metadata=first.metadata,
    )
