"""Documents as the corpus writes them: an id, a key of the content, passages, and the context of these."""

from __future__ import annotations

import json
import os
import zlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any, Literal, NamedTuple

import numpy as np

from drillrank.errors import InvalidInput
from drillrank.passages import Passage
from drillrank.structure import Document, Section, breadcrumb, file_key, read_document
from drillrank.structure.cutting import split_long_paragraph
from drillrank.structure.document import document_to_json, has_title
from drillrank.structure.hyperlinks import Hyperlink, find_hyperlinks
from drillrank.structure.passages import cut_passages
from drillrank.text import check_surrogates, without_surrogates
from drillrank.text_digests import text_digests

Content = Passage | Document | os.PathLike[str]
"""Content of a document: one passage, a parsed document, or a file."""
DocumentRow = tuple[str, int, str, str, str, str]
"""Row of a passage: its id, a digest of the titled text, title, text, links, metadata."""
SectionPaths = Sequence[tuple[str, ...]]
"""Paths of headings of all sections in a passage."""
Unit = Literal["paragraph", "passage"]
"""Unit of evidence: a paragraph, as in the paper, or a passage of `drillrank.structure.passages`."""
DEFAULT_UNIT: Unit = "passage"
CUT_VERSION = 4  # of the rules by which documents are cut, here and in `drillrank.structure`
BEGINNING = 1000  # characters that a question may take from the beginning of a document to refer to it


class DocumentContext(NamedTuple):
    """Text above the passages of a document.

    Attributes:
        headings: For each run of passages with the same headings, the index of its first passage, the headings as one
            text, and the heading left out of that text because it names the whole document.
        beginning: First characters of the document with its headings, as a reader sees them.
    """

    headings: Sequence[tuple[int, str, str]] = ()
    beginning: str = ""


class PassageIndices(NamedTuple):
    """Indices of passages in their document, each as little-endian uint32.

    Attributes:
        pages: Index of each passage's page, or of its section if there are no pages.
        sections: Index of the first passage in each passage's section.
        headings: Index of the first passage with the headings of each passage.
    """

    pages: bytes = b""
    sections: bytes = b""
    headings: bytes = b""


class DocumentRecord(NamedTuple):
    """A document as the corpus writes it.

    Attributes:
        id: Id of the document.
        key: Key of the content.
        parse: Parsed document as compressed JSON. None for a document that is one passage.
        rows: The passages. None for a file that the corpus has already, which was not parsed.
        context: Text above the passages.
        has_pages: True if the document has pages.
        indices: Pages, sections and headings of the passages.
        digests: The `text_digests` of the passages; little-endian int64.
    """

    id: str
    key: bytes
    parse: bytes | None = None
    rows: Sequence[DocumentRow] | None = None
    context: DocumentContext = DocumentContext()
    has_pages: bool = False
    indices: PassageIndices = PassageIndices()
    digests: bytes = b""


def prepare_content(
    content: Content | DocumentRecord,
    id_: str | None,
    unit: Unit,
    mark_used: Callable[[Iterable[tuple[str, bytes]]], set[str]],
) -> DocumentRecord:
    """Return content as the corpus writes it. A file is parsed unless `mark_used` returns its id.

    Raises:
        DrillrankError: The content cannot be read or written.
    """
    if isinstance(content, DocumentRecord):
        return content
    if isinstance(content, Passage):
        return _prepare_passage(content, id_)
    if isinstance(content, os.PathLike):
        path, id_, key = content, id_ or str(content), file_key(content)
        if mark_used([(id_, key)]):
            return DocumentRecord(id_, key)
        document = read_document(path)
        if file_key(path) != key:
            raise InvalidInput(f"{path} was changed while it was read. Try again.")
        return prepare_document(document, id_, unit)._replace(key=key)
    if not isinstance(content, Document):
        raise InvalidInput(f"A document must be a Passage, a parsed document or a Path, not {content!r:.200}.")
    return prepare_document(content, id_, unit)


def _prepare_passage(passage: Passage, id_: str | None) -> DocumentRecord:
    row = _build_row(passage)
    title, text = row[2], row[3]
    context = DocumentContext([(0, title, "")], beginning([title, text]))
    indices = PassageIndices(*[_pack_indices([0])] * 3)
    return DocumentRecord(
        id_ or passage.id, _digest(repr(row)), None, [row], context, False, indices, _pack_digests([passage])
    )


def prepare_document(document: Document, id_: str | None = None, unit: Unit = "paragraph") -> DocumentRecord:
    """Return a parsed document as the corpus writes it. Without an id, the document has a hash of its content."""
    saved = document_to_json(document)
    key = _digest(saved)
    id_ = id_ or key.hex()
    sections, passages = [], []
    for section, _, passage in list_paragraphs(document, id_, unit):
        sections.append(section)
        passages.append(passage)
    first_of = _first_indices(sections)
    pages = [passage.metadata.get("pages", (section,))[0] for section, passage in zip(sections, passages, strict=True)]
    paths = list(map(section_paths, passages))
    headings_of = _first_indices(zip(first_of, paths, strict=True))
    distinct_paths = dict.fromkeys((first, path) for first, some in zip(first_of, paths, strict=True) for path in some)
    headings = _list_headings(headings_of, paths, has_title([path for _, path in distinct_paths]))
    beginning_texts = pieces((section.path, passage.text) for section, passage in zip(sections, passages, strict=True))
    return DocumentRecord(
        id_,
        key,
        zlib.compress(saved.encode(), 1),
        list(map(_build_row, passages)),
        DocumentContext(headings, beginning(beginning_texts)),
        document.pages is not None,
        PassageIndices(_pack_indices(_dense_indices(pages)), _pack_indices(first_of), _pack_indices(headings_of)),
        _pack_digests(passages),
    )


def _list_headings(
    headings_of: Sequence[int], paths: Sequence[SectionPaths], has_document_title: bool
) -> list[tuple[int, str, str]]:
    """Return the headings for `DocumentContext`, given the first passage with the same headings for each passage."""
    headings = []
    for first in dict.fromkeys(headings_of):
        names, titles = split_headings(paths[first], has_document_title)
        headings.append((first, _join(names), _join(titles)))
    return headings


def list_paragraphs(
    document: Document, id_: int | str, unit: Unit = "paragraph"
) -> Iterator[tuple[Section, Passage, Passage]]:
    """Yield each unit of evidence: its section, the unit with the text of the source, and with readable text.

    Long paragraphs are split (`drillrank.structure.cutting`). Metadata are `document`, its id, `section_path`, `start`
    and `end`, and `pages`, the numbers of the first and the last page, if the document has pages. Passages also have
    `paragraph_spans` (`structure.packing.ParagraphSpan`) and, if there are several, `section_paths`. Units with
    hyperlinks have `links`: the target and the text of each.
    """
    links = find_hyperlinks(document.text, document.format)
    if unit == "passage":
        yield from _list_passages(document, id_, links)
        return
    for section, block in document.paragraphs():
        metadata: dict[str, Any] = {
            "document": id_,
            "section_path": section.path,
            "start": block.start,
            "end": block.end,
        }
        if pages := document.page_numbers(block.start, block.end):
            metadata["pages"] = pages
        metadata |= _links_between(links, block.start, block.end)
        title, text = breadcrumb(section.path), document.readable(block)
        source = Passage(document.slice(block), id=f"{id_}:{block.start}", title=title, metadata=metadata)
        for part, readable in split_long_paragraph(
            source, source if text == source.text else replace(source, text=text)
        ):
            yield section, part, readable


def _links_between(links: Sequence[Hyperlink], start: int, end: int) -> dict[str, Any]:
    """Return the metadata of a unit with hyperlinks, given its span and the links of the document, in order."""
    first, last = (bisect_left(links, offset, key=lambda link: link.start) for offset in (start, end))
    return {"links": tuple((link.target, link.text) for link in links[first:last])} if last > first else {}


def _list_passages(
    document: Document, id_: int | str, links: Sequence[Hyperlink]
) -> Iterator[tuple[Section, Passage, Passage]]:
    """Yield the passages of a document in the shape of `list_paragraphs`. The title has every heading of the passage.

    Parts of one block with markup have equal spans. `part` in their metadata distinguishes them.
    """
    n_by_start: Counter[int] = Counter()
    for passage in cut_passages(document):
        metadata: dict[str, Any] = {
            "document": id_,
            "section_path": passage.section_path,
            "start": passage.start,
            "end": passage.end,
            "paragraph_spans": passage.paragraphs,
        }
        if passage.pages:
            metadata["pages"] = passage.pages
        if passage.headings and passage.headings != (passage.section_path,):
            metadata["section_paths"] = passage.headings
        metadata |= _links_between(links, passage.start, passage.end)
        passage_id = f"{id_}:{passage.start}"
        if number := n_by_start[passage.start]:
            passage_id, metadata["part"] = f"{passage_id}:{number}", str(number)
        n_by_start[passage.start] += 1
        source_text = document.text[passage.start : passage.end]
        source = Passage(source_text, id=passage_id, title=passage.title, metadata=metadata)
        yield passage.sections[0], source, replace(source, text=passage.text)


def section_paths(passage: Passage) -> SectionPaths:
    """Return the heading paths of all sections in a paragraph or passage of `list_paragraphs`."""
    paths: SectionPaths = passage.metadata.get("section_paths") or (passage.metadata["section_path"],)
    return paths


def split_headings(paths: SectionPaths, has_document_title: bool) -> tuple[list[str], list[str]]:
    """Split the headings of paths into those that distinguish sections and the one that names the whole document.

    Each heading counts once. A heading that names the document counts as the section's if there is no other.

    >>> split_headings([("Kettle", "Care"), ("Kettle", "Use")], True), split_headings([("Kettle",)], True)
    ((['Care', 'Use'], ['Kettle']), (['Kettle'], []))
    """
    prefixes = dict.fromkeys(path[:depth] for path in paths for depth in range(1, len(path) + 1))
    names = [prefix[-1] for prefix in prefixes if len(prefix) > 1]
    if has_document_title and names:
        return names, [prefix[-1] for prefix in prefixes if len(prefix) == 1]
    return [prefix[-1] for prefix in prefixes], []


def pieces(paragraphs: Iterable[tuple[Sequence[str], str]]) -> Iterator[str]:
    """Yield headings and texts of a document in order, each heading once.

    Args:
        paragraphs: Path of headings and text of each paragraph.

    >>> list(pieces([((), "Hello."), (("A", "B"), "One."), (("A", "B"), "Two."), (("A", "C"), "Three.")]))
    ['Hello.', 'A', 'B', 'One.', 'Two.', 'C', 'Three.']
    """
    seen: set[Sequence[str]] = {()}
    last: Sequence[str] = ()
    for path, text in paragraphs:
        if path != last:
            prefixes = [path[:depth] for depth in range(1, len(path) + 1)]
            yield from (prefix[-1] for prefix in prefixes if prefix not in seen)
            seen.update(prefixes)
            last = path
        yield text


def beginning(texts: Iterable[str], max_characters: int = BEGINNING) -> str:
    """Join the first texts, up to a number of characters.

    >>> beginning(["One", "Two", "Three"], 6)
    'One Two'
    """
    parts: list[str] = []
    for text in texts:
        parts.append(text[:max_characters])
        max_characters -= len(text)
        if max_characters <= 0:
            break
    return _join(parts)


def plain(text: str) -> str:
    r"""Return a text in lower case, with single spaces as white space.

    >>> plain("Net  Sales\n5")
    'net sales 5'
    """
    return " ".join(text.split()).casefold()


def _build_row(passage: Passage) -> DocumentRow:
    check_surrogates(passage.id, f"The id {passage.id!r:.200}")
    try:
        metadata = json.dumps(dict(passage.metadata))
    except (TypeError, ValueError, RecursionError) as cause:
        raise InvalidInput(
            f"The metadata of passage {passage.id!r:.200} cannot be written as JSON ({cause}). "
            "Use strings, numbers, lists and dictionaries."
        ) from cause
    clean = Passage(without_surrogates(passage.text), passage.id, without_surrogates(passage.title))
    digest = _int_digest(clean.titled_text)
    return clean.id, digest, clean.title, clean.text, json.dumps(passage.links), metadata


def _join(texts: Iterable[str]) -> str:
    return without_surrogates(" ".join(texts))


def _first_indices(values: Iterable[object]) -> list[int]:
    """Return, for each value, the index of the first value that is equal."""
    first_by_value: dict[object, int] = {}
    return [first_by_value.setdefault(value, index) for index, value in enumerate(values)]


def _dense_indices(values: Iterable[object]) -> list[int]:
    """Number the distinct values in order of appearance, and return the number of each value."""
    index_by_value: dict[object, int] = {}
    return [index_by_value.setdefault(value, len(index_by_value)) for value in values]


def _pack_indices(indices: Iterable[int]) -> bytes:
    return np.fromiter(indices, dtype="<u4").tobytes()


def _pack_digests(passages: Iterable[Passage]) -> bytes:
    return np.fromiter(text_digests(passage.text for passage in passages), dtype="<i8").tobytes()


def _int_digest(text: str) -> int:
    return int.from_bytes(_digest(text)[:8], "big", signed=True)


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=20).digest()
