"""Stored records as the core sees them: what they hold of which document, whoever cut it, and where it stands.

Those that this project cut are sections (`StoredSection`), looked up beside what a search found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import groupby
from typing import Any, Generic, Literal, TypeVar

from drillrank.drilldown.covered_text import CoveredText, HeldSpan
from drillrank.drilldown.rebuilding import SourceText
from drillrank.drilldown.stored_chunks import HeadingPath, StoredChunk
from drillrank.errors import InvalidInput, warn
from drillrank.frameworks.metadata import is_section, prefixed, result_metadata
from drillrank.llm import LookupRequest, Requests
from drillrank.structure import Pages, parse_document
from drillrank.views import Expansion

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
        page: Of a document whose pages have offsets of their own.
        aliases: Other ids under which chunks name the document.
        metadata: The user's.
        pages: That it is on, in offsets of the document.
        joined: Whether it was put together from pages.
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
    page: int | str | None = None
    aliases: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    pages: Pages | None = None
    joined: bool = False

    @property
    def is_bare(self) -> bool:
        """Whether it says nothing of where it stands in anything larger."""
        return self.kind != "section" and self.start is None and not self.path

    @property
    def is_whole(self) -> bool:
        """Whether it may be all of its document: the document's id is its own, or one under which it is known."""
        return self.is_bare and (self.kind == "document" or bool(self.aliases))

    @property
    def is_placed(self) -> bool:
        """Whether it is known where its text stands in the document, letter by letter."""
        start, end = self.start, self.end
        return start is not None and start >= 0 and (end is None or end - start == len(self.text))


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
        name: Name,
        chunks: Iterable[ChunkRecord[Record]],
        original: ChunkRecord[Record] | None = None,
        *,
        whole: bool = False,
        apart: bool = False,
    ) -> None:
        self.apart = apart
        self.chunks = distinct(chunks)
        only = self.chunks[0]
        itself = len(self.chunks) == 1 and only.is_whole and only.aliases  # and not a chunk of what it names
        self.name = (name[0], only.aliases[0]) if itself else name
        self.original, self._whole = original, whole

    def contradicts_itself(self) -> bool:
        """Whether two records claim the same place with different texts: of two versions, or of two owners."""
        if self.original is not None:
            return False
        if any(chunk.kind == "section" for chunk in self.chunks):
            return _sections_overlap(self.chunks)
        cut_again = any(chunk.above for chunk in self.chunks)  # then offsets may count from what was cut again
        return not cut_again and not all(map(_agree, _by_page(self.chunks)))

    def material(self) -> SourceText:
        """For the core; a chunk is named by its number, what none holds of an original by the next one."""
        if self.original is not None:
            return [self._covered(self.original)]
        if any(chunk.kind == "section" for chunk in self.chunks):
            return [
                StoredChunk(
                    one.text, one.path if isinstance(one.path, str) else "", one.start or 0, one.end, one.metadata
                )
                for one in self.chunks
            ]
        if len(self.chunks) == 1 and self.chunks[0].is_whole:
            return [StoredChunk(self.chunks[0].text, metadata=self.chunks[0].metadata)]
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

    def _covered(self, original: ChunkRecord[Record]) -> CoveredText:
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


def held_spans(text: str, chunks: Sequence[ChunkRecord[Any]]) -> list[HeldSpan] | None:
    """Where chunks stand in the text that they were cut from, word for word; None if one does not stand there.

    >>> [(span.start, span.end) for span in held_spans("A fox. A hen.", [ChunkRecord(0, "1", "A hen.", ("", "a"))])]
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


def distinct(chunks: Iterable[ChunkRecord[Record]]) -> list[ChunkRecord[Record]]:
    """Each record once; a view only where what it is a view of is not there."""
    listed = list(chunks)
    if any(chunk.kind != "section" and chunk.path and chunk.start is None for chunk in listed):
        # Splitters that name headings know no offsets: those of the others count from what one made, too.
        listed = [chunk if chunk.start is None else replace(chunk, start=None, end=None) for chunk in listed]
    raw = {chunk.id for chunk in listed if chunk.raw}
    found = {(one.id, one.text): one for one in reversed(listed) if one.raw or one.id not in raw}
    return list(reversed(found.values()))


def _sections_overlap(sections: Sequence[ChunkRecord[Any]]) -> bool:
    """Sections tile their document, whoever joins or cuts them; ends that are not known say nothing."""
    end, last = -1, None
    for section in sorted(sections, key=lambda section: section.start or 0):
        start = section.start or 0
        if start < end or (last is not None and start == (last.start or 0) and section.text != last.text):
            return True
        end, last = max(end, section.end or 0), section
    return False


def _by_page(chunks: Sequence[ChunkRecord[Any]]) -> list[list[ChunkRecord[Any]]]:
    pages: dict[int | str | None, list[ChunkRecord[Any]]] = {}
    for chunk in sorted(chunks, key=lambda chunk: chunk.page if isinstance(chunk.page, int) else -1):
        pages.setdefault(chunk.page, []).append(chunk)
    return list(pages.values())


def _placed(chunks: Iterable[ChunkRecord[Any]]) -> list[ChunkRecord[Any]]:
    return sorted((chunk for chunk in chunks if chunk.is_placed), key=lambda chunk: chunk.start or 0)


def _agree(chunks: Sequence[ChunkRecord[Any]]) -> bool:
    """Whether all that claim a place say the same there."""
    furthest: ChunkRecord[Any] | None = None
    for chunk in _placed(chunks):
        if furthest is not None:
            rest = furthest.text[(chunk.start or 0) - (furthest.start or 0) :]
            if rest[: len(chunk.text)] != chunk.text[: len(rest)]:
                return False
            if len(rest) >= len(chunk.text):
                continue
        furthest = chunk
    return True


def _runs(page: list[ChunkRecord[Any]]) -> list[list[ChunkRecord[Any]]]:
    """Chunks that are joined, neighbours under the same headings; of whose place nothing is known, each alone."""
    placed = _placed(page) if _agree(page) else []
    known = set(map(id, placed))
    runs = [list(group) for _, group in groupby(placed, key=lambda chunk: chunk.path)]
    return runs + [[chunk] for chunk in page if id(chunk) not in known]


def _joined(group: Sequence[ChunkRecord[Any]], number: Mapping[int, int], format: str) -> CoveredText:
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
    known = first.is_placed or (first.is_bare and first.page is not None)  # of a page its beginning is known
    headings = first.path if isinstance(first.path, tuple) else ()
    return CoveredText(
        "".join(texts),
        tuple(spans),
        tuple(shifts) if known else (),
        headings,
        first.above,
        breaks=bool(headings)
        and not first.above
        and not known,  # LangChain's mark the ends of paragraphs by two spaces
        format=format,
        metadata=first.metadata,
    )


AROUND: dict[Expansion | None, tuple[str, ...]] = {
    None: (),
    "parent": ("parent_id",),
    "neighbours": ("previous_id", "next_id"),
}
"""The names under which a section has the ids of those around it."""


@dataclass(frozen=True, slots=True)
class StoredSection:
    """What is read of a host's record.

    Attributes:
        record: The host's own.
        section_id: Of the section; of a chunk that another splitter made, its own id.
        view: Which view of the section it is; None for another splitter's chunk.
        document: Namespace, or nothing, and id of the document that it is a piece of; None if it does not say so.
        text: Of the view; of the raw one the section's own, without context.
        around: Ids of the sections around it, by name.
    """

    record: Any
    section_id: str
    view: str | None
    document: tuple[str, str] | None
    text: str
    around: Mapping[str, str]

    @property
    def is_raw(self) -> bool:
        """Whether its text is what retrieval returns."""
        return self.view in (None, "raw")


def stored_section(
    record: Any,
    metadata: Mapping[str, Any],
    text: str,
    *,
    id: str,
    document: str | None = None,
    around: Mapping[str, str | None] | None = None,
) -> StoredSection:
    """Read a record.

    Args:
        record: The host's.
        metadata: Its metadata.
        text: Of the view.
        id: Its id in the store.
        document: Of the document that it is a piece of, where the metadata do not tell.
        around: Where the host has its own links between sections.

    >>> stored_section("record", {"drillrank_section_id": "7", "drillrank_view": "raw"}, "Tall.", id="1").section_id
    '7'
    >>> stored_section("record", {"view": "of the lake"}, "Tall.", id="1").section_id
    '1'
    """
    ours = is_section(metadata)
    names = result_metadata(metadata) if ours else {}
    source = names.get("source_id", document)
    links = around if around is not None else {name: names.get(name) for name in sum(AROUND.values(), ())}
    return StoredSection(
        record=record,
        section_id=str(names["section_id"]) if ours else id,
        view=names["view"] if ours else None,
        document=None if source is None else (str(names.get("namespace") or ""), str(source)),
        text=text,
        around={name: str(link) for name, link in links.items() if link is not None},
    )


def raw_sections(sections: Iterable[StoredSection]) -> dict[str, StoredSection]:
    """Those that retrieval returns, by id.

    Args:
        sections: Given ones that may be seen.

    Raises:
        InvalidInput: two of them have one id and say different things.
    """
    raw: dict[str, StoredSection] = {}
    for section in sections:
        if section.is_raw and raw.setdefault(section.section_id, section).text != section.text:
            raise InvalidInput(
                f"Two of the documents are section {section.section_id!r:.200} with different texts, as of two "
                "versions or of two documents under one id: give documents ids of their own or a namespace, or a "
                "filter that shows one of them."
            )
    return raw


Read = Callable[[Any], StoredSection]
"""Reads a host's record, or hit."""


def raw_records(ids: Iterable[str], read: Read) -> Requests[tuple[dict[str, StoredSection], bool]]:
    """Raw records by section id, and whether the store could be asked; where it has ids of its own, by metadata.

    Args:
        ids: Of sections.
        read: Reads a host's record.
    """
    ids = dict.fromkeys(ids)
    [answer] = yield [LookupRequest(tuple(ids))]
    fetched = at_hand(map(read, answer or ()), ids)
    left = tuple(id_ for id_ in ids if id_ not in fetched)
    if not left:
        return fetched, True
    [by_metadata] = yield [LookupRequest(where={prefixed("section_id"): left, prefixed("view"): "raw"})]
    fetched |= at_hand(map(read, by_metadata or ()), set(left))
    return fetched, not (answer is None and by_metadata is None)


def at_hand(found: Iterable[StoredSection], ids: Collection[str] | None = None) -> dict[str, StoredSection]:
    """The first raw record of each section among those found, by section id; of these ids alone, if there are some."""
    raw = [section for section in found if section.is_raw and (ids is None or section.section_id in ids)]
    return {section.section_id: section for section in reversed(raw)}


def deduplicate_sections(
    hits: Sequence[Any], read: Read, fallbacks: Mapping[str, Any], *, sure: bool
) -> Requests[tuple[list[Any], list[str]]]:
    """Hits of a retriever that knows no views: each section once, where its first view stands, by its raw record.

    Args:
        hits: Best first.
        read: Reads one.
        fallbacks: Records by section id that stand in where no store can be asked.
        sure: Whether the store that is asked is that of the hits, so that what it does not have is gone.

    Returns:
        Records, best first; and the ids of sections whose raw record is gone. Where that cannot be known, a section's
        best hit stands for it.
    """
    sections = [read(hit) for hit in hits]
    known = at_hand(sections)
    wanted = [s.section_id for s in sections if s.view is not None and s.section_id not in known]
    fetched, store_answers = (yield from raw_records(wanted, read)) if wanted else ({}, False)
    known |= fetched
    records: list[Any] = []
    missing: list[str] = []
    seen: set[str] = set()
    for section in sections:
        id_ = section.section_id
        if section.view is None:
            records.append(section.record)
        elif id_ not in seen and id_ not in known and store_answers and sure:
            missing.append(id_)
        elif id_ not in seen:
            records.append(known[id_].record if id_ in known else fallbacks.get(id_, section.record))
        seen |= {id_} if section.view is not None else set()
    return records, missing


def check_searched(component: Any) -> None:
    """Refuse a component that has nothing to search.

    Raises:
        InvalidInput: says what to give.
    """
    if component.source is None and not component.documents:
        raise InvalidInput(f"{type(component).__name__} has nothing to search: give it documents, or a source.")


def warn_missing(component: str, ids: Sequence[str], where: str = "is no longer in the store") -> None:
    """Warn of sections that are left out.

    Args:
        component: That warns.
        ids: Of the sections; nothing is said of none.
        where: What is the matter with their raw records.
    """
    if ids:
        warn(
            f"{component}: the raw record of {len(ids)} sections, found by keywords or summary, {where}; for example "
            f"{ids[0]!r:.200}. They are left out."
        )
