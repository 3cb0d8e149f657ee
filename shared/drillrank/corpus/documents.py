"""What becomes of a document that is added: its id, a key of its content, and rows of its passages."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from drillrank.errors import InvalidInput
from drillrank.passages import Passage, counted_title
from drillrank.structure import Document, breadcrumb, file_key, read_document
from drillrank.structure.document import document_to_json
from drillrank.text import check_surrogates, without_surrogates

Content = Passage | Document | os.PathLike[str]
Row = tuple[str, int, str | None, str, str, str, str]
"""Of a passage: id, digest of the titled text, name, title, text, links, metadata."""
BEGINNING = 1000  # characters of a document by which it may be meant


class Prepared(NamedTuple):
    """A document as it is written.

    Attributes:
        id: Of the document.
        key: Of its content.
        parse: None for a passage.
        rows: Its passages; None for a file that is known and was not parsed.
        sections: The number of each passage's page, or of its section, little-endian uint32.
        paged: Whether the document has pages.
        beginning: Its first characters, as a reader sees them.
    """

    id: str
    key: bytes
    parse: bytes | None = None
    rows: list[Row] | None = None
    sections: bytes = b""
    paged: bool = False
    beginning: str = ""


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
        return Prepared(id_ or content.id, _digest(repr(row)), None, [row], bytes(4), beginning=row[4][:BEGINNING])
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
    rows, parse = list(map(_row, _paragraphs(id_, content))), zlib.compress(saved.encode(), 1)
    return Prepared(id_, key, parse, rows, _section_numbers(content), content.pages is not None, _beginning(content))


def _paragraphs(id_: str, document: Document) -> Iterator[Passage]:
    """Text as a reader sees it, under the path of its headings."""
    for section, block in document.paragraphs():
        place = {"document": id_, "section_path": section.path, "start": block.start, "end": block.end}
        if pages := document.page_numbers(block.start, block.end):
            place["pages"] = pages
        title = breadcrumb(section.path)
        yield Passage(document.readable(block), id=f"{id_}:{block.start}", title=title, metadata=place)


def _section_numbers(document: Document) -> bytes:
    """The page of each paragraph, or its section."""
    known: dict[object, int] = {}
    numbers = []
    for section, block in document.paragraphs():
        pages = document.page_numbers(block.start, block.end)
        numbers.append(known.setdefault(pages[0] if pages else section, len(known)))
    return np.array(numbers, dtype="<u4").tobytes()


def _beginning(document: Document) -> str:
    """Headings and texts."""
    pieces: list[str] = []
    left = BEGINNING
    last: object = None
    for section, block in document.paragraphs():
        pieces += [section.heading] if section is not last else []
        pieces.append(document.readable(block)[:BEGINNING])
        last, left = section, left - len(pieces[-1])
        if left <= 0:
            break
    return " ".join(pieces)[:BEGINNING]


def _row(passage: Passage) -> Row:
    check_surrogates(passage.id, f"The id {passage.id!r:.200}")
    try:
        metadata = json.dumps(dict(passage.metadata))
    except (TypeError, ValueError, RecursionError) as cause:
        raise InvalidInput(f"The metadata of passage {passage.id!r:.200} are nothing for JSON: {cause}.") from cause
    clean = Passage(without_surrogates(passage.text), passage.id, without_surrogates(passage.title))
    digest = int.from_bytes(_digest(clean.titled_text)[:8], "big", signed=True)
    name = " ".join(counted_title(clean)) or None
    return clean.id, digest, name, clean.title, clean.text, json.dumps(passage.links), metadata


def _digest(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=20).digest()
