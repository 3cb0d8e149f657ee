"""Documents that are stored in chunks: their section tree, put together again from what the chunks carry.

Chunks of ours carry their section's path and place (`StoredChunk`). Those of other splitters are spans of a text
(`CoveredText`), and no paragraph says more than they hold.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from operator import attrgetter, itemgetter
from typing import Any

from drillrank.drilldown.d3 import D3
from drillrank.drilldown.outline import OutlineSection, outline
from drillrank.drilldown.prepared import PreparedDocuments
from drillrank.drilldown.versions import Date, find_dates
from drillrank.passages import Passage
from drillrank.structure import breadcrumb, parse_document
from drillrank.structure.document import Block
from drillrank.structure.read import document_name

HeadingPath = tuple[str, ...]
_LINE_BREAK = re.compile(r"  \n")
_NEIGHBOURS = 8  # overlapping spans that are looked at for one that holds a whole paragraph
_BLANK_LINES = re.compile(r"\n\s*\n")
_SHORT = 200  # characters of a value that identifies a document
_TECHNICAL = re.compile(
    r"^_|drillrank|(?:^|_)ids?$|page|size|type|date|hash|producer|creator|mime|total|format|encoding|start|end|language"
)
# Of the document; and of its file, the weakest (LlamaIndex's readers, LangChain's of PDF files).
_DATES: tuple[str, ...] = ("effective_date", "date", "publication_date", "published", "updated")
_DATES += ("last_modified_date", "last_modified", "moddate", "creation_date", "creationdate")
SourceText = Sequence["StoredChunk"] | Sequence["CoveredText"]
"""What is stored of one document: its chunks, sections or all of it; or texts of which chunks hold spans."""


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A document, a section of one, or a part of a section, as it is stored.

    Attributes:
        text: The source, or what a reader sees of it.
        path: Headings from the root, joined; empty for a whole document.
        start: Offset in the document of its first character.
        end: Offset just after its last one, by which a rendering is told from the source; None where it is the source.
        metadata: What is known of the document, as for `parse_document`.
    """

    text: str
    path: str = ""
    start: int = 0
    end: int | None = None
    metadata: Mapping[str, object] = field(default_factory=dict, hash=False)


def rebuilt(documents: Sequence[SourceText], separator: str = " > ") -> list[OutlineSection]:
    r"""The sections of documents, each given by its chunks in any order: what `D3.prepare` takes.

    Parts of one section are joined before they are read, so that no paragraph stays cut. Where chunks are missing, the
    outline lacks their sections and no others. Paragraphs have exact offsets; those of a chunk that is not the source,
    but a rendering of it, have the chunk's span and are told apart by `part` in their metadata. `chunk` there is the
    number of the chunk in which a paragraph begins. What other splitters cut is given as covered text.

    Args:
        documents: The chunks of each document, one that is there twice counts once; or its covered texts.
        separator: Between the headings of a chunk's path.

    >>> chunks = [StoredChunk("## Fish\n\nCod.\n\nTuna.", "Sea > Fish", 14), StoredChunk("# Sea\n\nDeep.\n", "Sea")]
    >>> [(s.passage.title, [p.metadata["start"] for p in s.paragraphs]) for s in rebuilt([chunks])]
    [('Sea', [7]), ('Sea > Fish', [23, 29])]
    """
    return [section for number, stored in enumerate(documents) for section in _sections(number, stored, separator)]


def _sections(number: int, stored: SourceText, separator: str) -> list[OutlineSection]:
    chunks = [chunk for chunk in stored if isinstance(chunk, StoredChunk)]
    covered = [text for text in stored if isinstance(text, CoveredText)]
    sections = _Rebuilding(number, separator).of(chunks) if chunks else []
    for group, text in enumerate(covered):
        sections += covered_sections(number, f"{group}:" if len(covered) > 1 else "", text)
    return sections


def prepared_again(d3: D3, documents: Sequence[SourceText], separator: str = " > ") -> PreparedDocuments:
    r"""What `D3.retrieve` takes, of documents given by what is stored of them; arguments as for `rebuilt`.

    >>> from drillrank import D3
    >>> ready = prepared_again(D3(), [[StoredChunk("# Sea\n\nDeep.")]])
    >>> [item.passage.text for item in D3().retrieve("How deep is the sea?", ready)]
    ['Deep.']
    """
    about = [stored[0].metadata if stored else {} for stored in documents]
    names = list(map(document_name, about))
    known: dict[int | str, str] = {
        at: name if names.count(name) == 1 else f"{name} ({at + 1})" for at, name in enumerate(names) if name
    }
    sections = rebuilt(documents, separator)
    ready = d3.prepare(sections, list(map(identifying_words, about)), list(map(document_date, about)))
    ready.versions.names = {**ready.versions.names, **known}  # what a result calls the others
    return replace(ready, names=known)


def identifying_words(metadata: Mapping[str, object]) -> str:
    """What metadata say by which a question may mean their document: names, titles, companies, years.

    Of paths and addresses the last two parts; no dates of files, no numbers of pages, no ids.

    >>> identifying_words({"file_path": "/home/reports/3M/2018.pdf", "company": "3M", "file_size": 9, "page": 3})
    '3M 2018.pdf 3M'
    """
    words = []
    for key, value in metadata.items():
        text = str(value)
        if isinstance(value, str | int) and 0 < len(text) <= _SHORT and not _TECHNICAL.search(key.lower()):
            words += re.split(r"[/\\]", text.rstrip("/\\"))[-2:]
    return " ".join(words)


def document_date(metadata: Mapping[str, object]) -> Date | None:
    """When a document is of, by its metadata: a date of its own before those that readers of files write.

    >>> document_date({"last_modified_date": "2024-05-01", "date": "June 2023"}), document_date({"date": "soon"})
    ((2023, 6), None)
    """
    for key in _DATES:
        value = metadata.get(key)
        if isinstance(value, date):
            return value.year, value.month, value.day
        if found := find_dates(str(value)):
            return found[0]
    return None


class _Rebuilding:
    """One document's chunks become sections."""

    def __init__(self, number: int, separator: str) -> None:
        self._number = number
        self._separator = separator
        self._members: list[tuple[int, int]] = []  # of the run at hand: where each chunk begins, and its place
        self._paths: dict[str, HeadingPath] = {}  # by their joined form, which may hold the separator in a heading

    def of(self, chunks: Sequence[StoredChunk]) -> list[OutlineSection]:
        distinct: dict[tuple[int, str, str], int] = {}
        for location, chunk in enumerate(chunks):
            distinct.setdefault((chunk.start, chunk.path, chunk.text), location)
        order = sorted(distinct.values(), key=lambda location: chunks[location].start)
        places = iter(order)
        groups = _runs([chunks[location] for location in order])
        runs = list(map(_joined_run, groups))
        texts = "\n\n".join(run.text for run in runs)
        format = parse_document(texts, metadata=runs[0].metadata).format if len(runs) > 1 else "auto"
        sections: list[OutlineSection] = []
        end = -1
        for run, group in zip(runs, groups, strict=True):
            self._members = [(chunk.start, next(places)) for chunk in group]
            found = self._sections(run, format)
            if found and sections and run.start == end and _only_above(sections[-1], found[0]):
                sections.pop()
            sections += found
            end = _end(run)
        return sections

    def _sections(self, run: StoredChunk, format: str) -> list[OutlineSection]:
        if not _is_source(run):
            return self._rendered(run)
        document = parse_document(run.text, format, metadata=run.metadata)
        for section in document.sections():  # those without paragraphs, too: others may lie below
            path = self._path(run.path, section.path)
            self._paths.setdefault(breadcrumb(path, self._separator), path)
        return [self._moved(section, run) for section in self._without_heading(outline([document]), run.path)]

    def _without_heading(self, sections: list[OutlineSection], stored: str) -> list[OutlineSection]:
        """Without the first paragraph if it is the chunk's own heading, which only the whole document shows as one."""
        first = sections[0].paragraphs[0] if sections and not sections[0].passage.title else None
        if first is None or not f"{self._separator}{stored}".endswith(
            self._separator + breadcrumb([first.text], self._separator)
        ):
            return sections
        top = replace(sections[0], paragraphs=sections[0].paragraphs[1:], readable=sections[0].readable[1:])
        return [top, *sections[1:]] if top.paragraphs else sections[1:]

    def _moved(self, section: OutlineSection, run: StoredChunk) -> OutlineSection:
        """A section of a chunk, as a section of the document."""
        path = self._path(run.path, section.passage.metadata["section_path"])

        def moved(passage: Passage) -> Passage:
            location: dict[str, Any] = {"document": self._number, "section_path": path}
            location |= {key: passage.metadata[key] + run.start for key in ("start", "end") if key in passage.metadata}
            start = int(passage.id.rpartition(":")[2]) + run.start
            location["chunk"] = self._members[bisect_right(self._members, start, key=itemgetter(0)) - 1][1]
            return replace(passage, id=f"{self._number}:{start}", title=breadcrumb(path), metadata=location)

        return OutlineSection(
            moved(section.passage), tuple(map(moved, section.paragraphs)), tuple(map(moved, section.readable))
        )

    def _rendered(self, run: StoredChunk) -> list[OutlineSection]:
        """A chunk whose offsets tell where it is, but not where its paragraphs are."""
        path = self._above(run.path)
        blocks = [block.strip("\n") for block in _BLANK_LINES.split(run.text) if block.strip()]
        if blocks and path and breadcrumb([blocks[0]]) == breadcrumb(path[-1:]):
            blocks = blocks[1:]
        if not blocks:
            return []
        location = {"document": self._number, "section_path": path, "chunk": self._members[0][1]}
        title = breadcrumb(path)
        span = {"start": run.start, "end": _end(run)}
        paragraphs = tuple(
            Passage(
                block, id=f"{self._number}:{run.start}:{part}", title=title, metadata={**location, **span, "part": part}
            )
            for part, block in enumerate(blocks)
        )
        passage = Passage("\n\n".join(blocks), id=f"{self._number}:{run.start}", title=title, metadata=location)
        return [OutlineSection(passage, paragraphs, paragraphs)]

    def _path(self, stored: str, inside: HeadingPath) -> HeadingPath:
        """The full path of a section inside a chunk: the chunk's path may end with the section's own heading."""
        heading = breadcrumb(inside[:1], self._separator)
        if inside and stored == heading:
            return inside
        if inside and stored.endswith(self._separator + heading):
            stored = stored[: -len(self._separator + heading)]
        return (*self._above(stored), *inside)

    def _above(self, stored: str) -> HeadingPath:
        return self._paths.get(stored) or tuple(filter(None, stored.split(self._separator)))


def _only_above(section: OutlineSection, after: OutlineSection) -> bool:
    """Whether a section holds nothing but its heading, which stands above the next section."""
    depth = len(section.path)
    return not section.passage.text and len(after.path) > depth and after.path[:depth] == section.path


def _is_source(chunk: StoredChunk) -> bool:
    return len(chunk.text) == _end(chunk) - chunk.start


def _end(chunk: StoredChunk) -> int:
    return chunk.start + len(chunk.text) if chunk.end is None else chunk.end


def _runs(chunks: Sequence[StoredChunk]) -> list[list[StoredChunk]]:
    """The chunks, neighbouring parts of one section together."""
    groups: list[list[StoredChunk]] = []
    for chunk in chunks:
        if groups and _continues(groups[-1][-1], chunk):
            groups[-1].append(chunk)
        else:
            groups.append([chunk])
    return groups


def _joined_run(group: Sequence[StoredChunk]) -> StoredChunk:
    """Pieces that continue each other as one; each text is copied once, however many there are."""
    if len(group) == 1:
        return group[0]
    return replace(group[0], text="".join(part.text for part in group), end=group[-1].end)


def _continues(before: StoredChunk, chunk: StoredChunk) -> bool:
    """Whether a chunk goes on where the one before it ends, in the same section, and both are the source."""
    both = _is_source(before) and _is_source(chunk)
    return both and chunk.path == before.path and _end(before) == chunk.start


# Chunks of other splitters


@dataclass(frozen=True, slots=True)
class HeldSpan:
    """What a stored chunk holds of a text.

    Attributes:
        start: Offset in the text.
        end: Offset just after it.
        chunk: Number of the chunk among those of its document.
    """

    start: int
    end: int
    chunk: int


@dataclass(frozen=True)
class CoveredText:
    r"""A text, and the spans of it that stored chunks hold.

    Attributes:
        text: Chunks joined where they continue each other, with a blank line where what stands between them is not
            known; or the original that they were cut from.
        held_spans: What chunks hold of it, rising by start; they may overlap.
        shifts: By offset in the text from which on it holds, what added to it gives the offset in the document; empty
            where that is not known.
        path: Headings above the text, as its chunks name them; the last may be the heading that it begins with.
        above: Whether the last is never that heading.
        named: Headings that chunks of an original name, and that may be shown though no chunk holds them.
        original: Whether the text is the original. Then headings that no chunk holds or names are not shown.
        whole: Number of the chunk that is all of the text; what no other holds is its.
        breaks: Whether lines with two spaces at the end are the ends of paragraphs.
        format: As `parse_document` takes it.
        metadata: Likewise.
    """

    text: str
    held_spans: tuple[HeldSpan, ...]
    shifts: tuple[tuple[int, int], ...] = ()
    path: HeadingPath = ()
    above: bool = False
    named: frozenset[str] = frozenset()
    original: bool = False
    whole: int | None = None
    breaks: bool = False
    format: str = "auto"
    metadata: Mapping[str, object] = field(default_factory=dict, hash=False)

    @cached_property
    def _gapless_spans(self) -> list[tuple[int, int]]:
        """Spans that are held without a gap; white space of an original between two chunks is none."""
        if self.whole is not None:
            return [(0, len(self.text))]
        gapless: list[tuple[int, int]] = []
        last = -1
        for held_span in self.held_spans:
            if gapless and (held_span.start <= gapless[-1][1] or self._only_space(gapless[-1][1], held_span, last)):
                gapless[-1] = gapless[-1][0], max(gapless[-1][1], held_span.end)
            else:
                gapless.append((held_span.start, held_span.end))
            last = held_span.chunk
        return gapless

    def _only_space(self, end: int, held_span: HeldSpan, last: int) -> bool:
        return self.original and held_span.chunk != last and self.text[end : held_span.start].isspace()

    def held_of(self, block: Block) -> Iterator[tuple[int, int]]:
        """The spans of a block that are held, without white space around them."""
        at = max(bisect_right(self._gapless_spans, block.start, key=itemgetter(0)) - 1, 0)
        for start, end in self._gapless_spans[at:]:
            if start >= block.end:
                return
            start, end = max(start, block.start), min(end, block.end)
            inside = self.text[start:end]
            if inside.strip():
                whole = (start, end) == (block.start, block.end)
                lead = 0 if whole else len(inside) - len(inside.lstrip())
                yield start + lead, start + len(inside if whole else inside.rstrip())

    def held_span_of(self, start: int, end: int) -> HeldSpan:
        """What holds a span, or else its beginning."""
        at = bisect_right(self.held_spans, start, key=attrgetter("start")) - 1
        around = range(at, max(at - _NEIGHBOURS, -1), -1)
        for position in around:
            if self.held_spans[position].end >= end:
                return self.held_spans[position]
        if self.whole is not None:
            return HeldSpan(0, len(self.text), self.whole)
        return next((self.held_spans[p] for p in around if self.held_spans[p].end > start), self.held_spans[max(at, 0)])

    def offset(self, at: int) -> int | None:
        """The offset in the document of an offset in the text."""
        if not self.shifts:
            return None
        return at + self.shifts[bisect_right(self.shifts, at, key=itemgetter(0)) - 1][1]


def covered_sections(number: int, group: str, covered: CoveredText) -> list[OutlineSection]:
    r"""The sections of a text, with the paragraphs that its chunks hold.

    Metadata of a paragraph are `document`, `section_path`, `chunk` (the chunk that holds it), and `start` and `end` in
    the document; where these are not known, `part`, its offset in the chunk.

    Args:
        number: Of the document.
        group: What tells this text from the document's others; empty if it is the only one.
        covered: The text and what is held of it.

    >>> text = "# Sea\n\nIt is deep.\n\n"
    >>> spans = HeldSpan(0, 18, 0), HeldSpan(20, 29, 1)
    >>> [sea] = covered_sections(0, "", CoveredText(text + "And blue.", spans, ((0, 0), (20, 80))))
    >>> [(p.text, p.metadata["chunk"], p.metadata["start"]) for p in sea.paragraphs]
    [('It is deep.', 0, 7), ('And blue.', 1, 100)]
    """
    shape = _LINE_BREAK.sub("\n\n\n", covered.text) if covered.breaks else covered.text
    document = parse_document(shape, covered.format, metadata=covered.metadata)
    shown: set[HeadingPath] = set()
    sections = []
    for section in document.sections():
        blocks = document.blocks(section)
        headings = [block for block in blocks if block.kind == "heading"]
        hidden = covered.original and not any(any(covered.held_of(heading)) for heading in headings)
        if section.path and (not hidden or section.heading in covered.named):
            shown.add(section.path)
        inside = tuple(
            heading
            for depth, heading in enumerate(section.path, start=1)
            if not covered.original or section.path[:depth] in shown or heading in covered.named
        )
        path = _joined_path(covered, inside)
        location = {"document": number, "section_path": path}
        title = breadcrumb(path)
        paragraphs, readable = [], []
        for block in blocks[len(headings) :]:
            for start, end in covered.held_of(block):
                passage = _passage(covered, start, end, f"{number}:{group}", title, location)
                rendered = block.rendering if (start, end) == (block.start, block.end) else None
                seen = passage.text if rendered is None else rendered
                if seen.strip():
                    paragraphs.append(passage)
                    readable.append(passage if seen == passage.text else replace(passage, text=seen))
        if paragraphs:
            text = "\n\n".join(passage.text for passage in readable)
            section_passage = Passage(text, id=f"{number}:{group}{section.start}", title=title, metadata=location)
            sections.append(OutlineSection(section_passage, tuple(paragraphs), tuple(readable)))
    return sections


def _joined_path(covered: CoveredText, inside: HeadingPath) -> HeadingPath:
    path = covered.path
    if path and inside and not covered.above and breadcrumb(path[-1:]) == breadcrumb(inside[:1]):
        path = path[:-1]
    return (*path, *inside)


def _passage(
    covered: CoveredText, start: int, end: int, prefix: str, title: str, location: Mapping[str, Any]
) -> Passage:
    held_span = covered.held_span_of(start, end)
    offset = covered.offset(start)
    where: dict[str, Any] = {"chunk": held_span.chunk}
    if offset is None:
        where["part"] = str(start - held_span.start)
    else:
        where |= {"start": offset, "end": offset + end - start}
    id_ = f"{prefix}{start if offset is None else offset}"
    return Passage(covered.text[start:end], id=id_, title=title, metadata={**location, **where})
