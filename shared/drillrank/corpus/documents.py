"""What becomes of a document that is added: its id, a key of its content, its passages, and what stands above these."""

from __future__ import annotations

import json
import os
import zlib
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
from drillrank.structure.passages import cut_passages
from drillrank.text import check_surrogates, without_surrogates
from drillrank.text_digests import text_digests

Content = Passage | Document | os.PathLike[str]
Row = tuple[str, int, str, str, str, str]
"""Of a passage: id, digest of the titled text, title, text, links, metadata."""
Unit = Literal["paragraph", "passage"]
"""Unit of evidence: a paragraph, as in the paper, or a passage of `drillrank.structure.passages`."""
BEGINNING = 1000  # characters of a document by which it may be meant


class Above(NamedTuple):
    """What stands above the passages of a document.

    Attributes:
        headings: Of each section: the place of its first passage, the path of its headings as text, and what is left
            out of it because it names the whole document.
        beginning: The document's first characters, headings included, as a reader sees them.
        paged: Whether the document has pages.
        guessed: Whether nothing marks its headings.
    """

    headings: Sequence[tuple[int, str, str]] = ()
    beginning: str = ""
    paged: bool = False
    guessed: bool = False


class Prepared(NamedTuple):
    """A document as it is written.

    Attributes:
        id: Of the document.
        key: Of its content.
        parse: None for a passage.
        rows: Its passages; None for a file that is known and was not parsed.
        above: What stands above them.
        pages: The number of each passage's page, or of its section; little-endian uint32.
        sections: The place of the first passage of the section; as `pages`.
        digests: The `text_digests` of its passages; little-endian int64.
    """

    id: str
    key: bytes
    parse: bytes | None = None
    rows: Sequence[Row] | None = None
    above: Above = Above()
    pages: bytes = b""
    sections: bytes = b""
    digests: bytes = b""


def prepared(
    content: Content | Prepared, id_: str | None, known: Callable[[Iterable[tuple[str, bytes]]], set[str]]
) -> Prepared:
    """A document as it is written; a file is parsed if it is not known by its id and key.

    Raises:
        DrillrankError: it cannot be read or written.
    """
    if isinstance(content, Prepared):
        return content
    if isinstance(content, Passage):
        row = _row(content)
        above = Above([(0, row[2], "")], beginning([row[2], row[3]]))
        numbers = _numbers([0])
        return Prepared(
            id_ or content.id, _digest(repr(row)), None, [row], above, numbers, numbers, _digests([content])
        )
    key = None
    if isinstance(content, os.PathLike):
        path, id_, key = content, id_ or str(content), file_key(content)
        if known([(id_, key)]):
            return Prepared(id_, key)
        content = read_document(path)
        if file_key(path) != key:
            raise InvalidInput(f"{path} was changed while it was read: try again.")
    if not isinstance(content, Document):
        raise InvalidInput(f"A document is a passage, a parsed document or a file (a Path), not {content!r:.200}.")
    saved = document_to_json(content)
    key = key or _digest(saved)
    id_ = id_ or key.hex()
    shown, sections = [], []
    for section, _, passage in paragraphs(content, id_):
        shown.append(passage)
        sections.append(section)
    titled = has_title([section.path for section in dict.fromkeys(sections)])
    firsts: dict[Section, int] = {}
    first_of = [firsts.setdefault(section, location) for location, section in enumerate(sections)]
    apart = {location: split_title(section.path, titled) for section, location in firsts.items()}
    headings = [(location, _joined(section_path), _joined(title)) for location, (section_path, title) in apart.items()]
    pages = [passage.metadata.get("pages", (section,))[0] for passage, section in zip(shown, sections, strict=True)]
    known_pages: dict[object, int] = {}
    begins = beginning(pieces((section.path, passage.text) for passage, section in zip(shown, sections, strict=True)))
    guessed = any(section.confidence < 1 for section in content.sections())
    return Prepared(
        id_,
        key,
        zlib.compress(saved.encode(), 1),
        list(map(_row, shown)),
        Above(headings, begins, content.pages is not None, guessed),
        _numbers(known_pages.setdefault(page, len(known_pages)) for page in pages),
        _numbers(first_of),
        _digests(shown),
    )


def paragraphs(
    document: Document, id_: int | str, unit: Unit = "paragraph"
) -> Iterator[tuple[Section, Passage, Passage]]:
    """Yield each unit of evidence: its section, the unit with the text of the source, and with readable text.

    Long paragraphs come in parts (`drillrank.structure.cutting`). The metadata hold `document`, its id, `section_path`,
    `start` and `end`, and `pages`, numbers of the first and last, where the document has pages.
    """
    if unit == "passage":
        yield from _passages(document, id_)
        return
    for section, block in document.paragraphs():
        location: dict[str, Any] = {
            "document": id_,
            "section_path": section.path,
            "start": block.start,
            "end": block.end,
        }
        if pages := document.page_numbers(block.start, block.end):
            location["pages"] = pages
        title, shown = breadcrumb(section.path), document.readable(block)
        passage = Passage(document.slice(block), id=f"{id_}:{block.start}", title=title, metadata=location)
        for source, readable in split_long_paragraph(
            passage, passage if shown == passage.text else replace(passage, text=shown)
        ):
            yield section, source, readable


def _passages(document: Document, id_: int | str) -> Iterator[tuple[Section, Passage, Passage]]:
    """Yield the passages of a document in the shape of `paragraphs`; the title has every heading of the passage.

    Parts of one block with markup have equal spans. `part` in their metadata distinguishes them.
    """
    n_by_start: Counter[int] = Counter()
    for passage in cut_passages(document):
        metadata: dict[str, Any] = {
            "document": id_,
            "section_path": passage.section_path,
            "start": passage.start,
            "end": passage.end,
        }
        if passage.pages:
            metadata["pages"] = passage.pages
        passage_id = f"{id_}:{passage.start}"
        if number := n_by_start[passage.start]:
            passage_id, metadata["part"] = f"{passage_id}:{number}", str(number)
        n_by_start[passage.start] += 1
        source_text = document.text[passage.start : passage.end]
        source = Passage(source_text, id=passage_id, title=passage.title, metadata=metadata)
        yield passage.sections[0], source, replace(source, text=passage.text)


def split_title(path: Sequence[str], titled: bool) -> tuple[Sequence[str], Sequence[str]]:
    """The headings of a path that tell its section apart; and the title above them that names the whole document.

    >>> split_title(["Kettle", "Care"], titled=True), split_title(["Kettle"], titled=True)
    ((['Care'], ['Kettle']), (['Kettle'], []))
    """
    return (path[1:], path[:1]) if titled and len(path) > 1 else (path, path[:0])


def pieces(paragraphs: Iterable[tuple[Sequence[str], str]]) -> Iterator[str]:
    """Headings and texts of a document in order, each heading once, given paths of headings and texts.

    >>> list(pieces([((), "Hello."), (("A", "B"), "One."), (("A", "B"), "Two."), (("A", "C"), "Three.")]))
    ['Hello.', 'A', 'B', 'One.', 'Two.', 'C', 'Three.']
    """
    seen: set[Sequence[str]] = {()}
    last: Sequence[str] = ()
    for path, text in paragraphs:
        if path != last:
            above = [path[:depth] for depth in range(1, len(path) + 1)]
            yield from (heading[-1] for heading in above if heading not in seen)
            seen.update(above)
            last = path
        yield text


def beginning(pieces: Iterable[str], most: int = BEGINNING) -> str:
    """The first pieces of a document, up to so many characters.

    >>> beginning(["One", "Two", "Three"], 6)
    'One Two'
    """
    shown: list[str] = []
    for piece in pieces:
        shown.append(piece[:most])
        most -= len(piece)
        if most <= 0:
            break
    return _joined(shown)


def plain(text: str) -> str:
    r"""A text but for white space and capital letters.

    >>> plain("Net  Sales\n5")
    'net sales 5'
    """
    return " ".join(text.split()).casefold()


def _row(passage: Passage) -> Row:
    check_surrogates(passage.id, f"The id {passage.id!r:.200}")
    try:
        metadata = json.dumps(dict(passage.metadata))
    except (TypeError, ValueError, RecursionError) as cause:
        raise InvalidInput(f"The metadata of passage {passage.id!r:.200} are nothing for JSON: {cause}.") from cause
    clean = Passage(without_surrogates(passage.text), passage.id, without_surrogates(passage.title))
    digest = _int_digest(clean.titled_text)
    return clean.id, digest, clean.title, clean.text, json.dumps(passage.links), metadata


def _joined(texts: Iterable[str]) -> str:
    return without_surrogates(" ".join(texts))


def _numbers(numbers: Iterable[int]) -> bytes:
    return np.fromiter(numbers, dtype="<u4").tobytes()


def _digests(passages: Iterable[Passage]) -> bytes:
    return np.fromiter(text_digests(passage.text for passage in passages), dtype="<i8").tobytes()


def _int_digest(text: str) -> int:
    return int.from_bytes(_digest(text)[:8], "big", signed=True)


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=20).digest()
