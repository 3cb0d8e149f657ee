"""One class for whatever a store, a splitter or a loader returns: a document, a section of one, or any other chunk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from drillrank.structure.pages import Pages

HeadingPath = tuple[str, ...]
"""Headings from the root of a document."""

DocumentName = tuple[str, str]
"""Namespace and id of a document. The namespace is empty if there is none."""

ChunkKind = Literal["section", "chunk", "document"]
"""Origin of a chunk: a section that drillrank cut, a chunk of another splitter, or a whole document."""

Where = Mapping[str, str | tuple[str, ...]]
"""Metadata values by key. A record must have the value, or one of the values of a tuple."""

VIEW_KEY, SECTION_KEY = "drillrank_view", "drillrank_section_id"
"""Metadata keys of a section's view and id, by which components search and look up sections."""

RecordT = TypeVar("RecordT")


def matches(metadata: Mapping[str, Any], where: Where) -> bool:
    """Return True if metadata have the values of all keys.

    >>> matches({"view": "raw", "page": 3}, {"view": ("raw", "summary")}), matches({}, {"view": "raw"})
    (True, False)
    """
    for key, value in where.items():  # a loop, because stores are searched with it
        stored = metadata.get(key)
        if not (stored in value if isinstance(value, tuple) else stored == value):
            return False
    return True


@dataclass(frozen=True, slots=True)
class StoredChunk(Generic[RecordT]):
    """A record of a store, splitter or loader, with its position in a document.

    A section that drillrank cut may be stored in several views (raw text, keywords, summary). Each view is a chunk with
    the section's id.

    Attributes:
        record: The record of the framework, unchanged.
        id: Id of the section, or of the record if drillrank did not cut it.
        text: Text of the source that the chunk has. For keywords and summaries it is empty, unless they carry the text
            of their section.
        document: Namespace and id of the document.
        kind: Origin of the chunk.
        view: View of the section: `"raw"`, `"keywords"` or `"summary"`. None if drillrank did not cut the chunk.
        view_text: Text of the view as it is stored. It equals `text` for raw sections and other chunks.
        path: Headings from the root: joined to one string, as drillrank stores them, or as a tuple.
        is_below_path: True if the headings of the path are all above the chunk, so that it never begins with one.
        start: Offset of the first character in the document. None if it is not known.
        end: Offset just after the last character, likewise.
        page: Page of the chunk if the offsets of a document count from each page.
        aliases: Other ids by which chunks may name this document.
        metadata: Metadata of the user.
        pages: Pages of the chunk, with offsets in the document.
        is_joined: True if the chunk was joined from pages.
        links: Ids of neighboring sections, under `parent_id`, `previous_id` and `next_id`.
        siblings: Metadata by which a store finds all records of the document. None if this record is all of it.
        score: Score in the search that returned the record. None if no search did, or it returned no scores.
        vector: Embedding of the record, if the store returned it.
    """

    record: RecordT
    id: str
    text: str
    document: DocumentName
    kind: ChunkKind = "document"
    view: str | None = None
    view_text: str = ""
    path: str | HeadingPath = ()
    is_below_path: bool = False
    start: int | None = None
    end: int | None = None
    page: int | str | None = None
    aliases: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    pages: Pages | None = None
    is_joined: bool = False
    links: Mapping[str, str] = field(default_factory=dict)
    siblings: Where | None = None
    score: float | None = None
    vector: Sequence[float] | None = None

    @property
    def is_raw(self) -> bool:
        """True if the record is the section itself, or a chunk without views."""
        return self.view in (None, "raw")

    @property
    def has_no_position(self) -> bool:
        """True if the record does not say where it is in a larger document."""
        return self.kind != "section" and self.start is None and not self.path

    @property
    def may_be_whole(self) -> bool:
        """True if the chunk may be all of its document: the document has the chunk's id or one of its aliases."""
        return self.has_no_position and (self.kind == "document" or bool(self.aliases))

    @property
    def has_exact_offsets(self) -> bool:
        """True if the offset of each character in the document is known."""
        start, end = self.start, self.end
        return start is not None and start >= 0 and (end is None or end - start == len(self.text))

    def matches(self, where: Where) -> bool:
        """Return True if the record has these metadata values, as `RecordStore.search` and `find` compare them.

        Apart from the metadata of the user, a record has the values in `siblings`, and a view of a section has the
        name of the view and the id of the section.

        >>> StoredChunk(None, "1", "A text.", ("", "a"), metadata={"tenant": "a"}).matches({"tenant": ("a", "b")})
        True
        """
        values = {**self.metadata, **(self.siblings or {})}
        if self.view is not None:
            values |= {VIEW_KEY: self.view, SECTION_KEY: self.id}
        return matches(values, where)
