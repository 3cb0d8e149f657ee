"""What becomes of a document that is added: its id, a key of its content, and rows of its passages."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b

from drillrank.errors import InvalidInput
from drillrank.passages import Passage, counted_title
from drillrank.structure import Document, breadcrumb, file_key, read_document
from drillrank.structure.document import document_to_json
from drillrank.text import check_surrogates, without_surrogates

Content = Passage | Document | os.PathLike[str]
Row = tuple[str, int, str | None, str, str, str, str]
"""Of a passage: id, digest of the titled text, name, title, text, links, metadata."""
Prepared = tuple[str, bytes, bytes | None, list[Row] | None]
"""Of a document: id, key, parse (None for a passage), passages (None for a file that is known and was not parsed)."""


def prepared(content: Content, id_: str | None, known: Callable[[Iterable[tuple[str, bytes]]], set[str]]) -> Prepared:
    """A document as it is written; a file is parsed if it is not known by its id and key.

    Raises:
        DrillrankError: it cannot be read or written.
    """
    if isinstance(content, Passage):
        row = _row(content)
        return id_ or content.id, _digest(repr(row)), None, [row]
    key = None
    if isinstance(content, os.PathLike):
        path, id_, key = content, id_ or str(content), file_key(content)
        if known([(id_, key)]):
            return id_, key, None, None
        content = read_document(path)
        if file_key(path) != key:
            raise InvalidInput(f"{path} was changed while it was read: try again.")
    if not isinstance(content, Document):
        raise InvalidInput(f"A document is a passage, a parsed document or a file (a Path), not {content!r:.200}.")
    saved = document_to_json(content)
    key = key or _digest(saved)
    id_ = id_ or key.hex()
    return id_, key, zlib.compress(saved.encode(), 1), list(map(_row, _paragraphs(id_, content)))


def _paragraphs(id_: str, document: Document) -> Iterator[Passage]:
    """Text as a reader sees it, under the path of its headings."""
    for section, block in document.paragraphs():
        place = {"document": id_, "section_path": section.path, "start": block.start, "end": block.end}
        if pages := document.page_numbers(block.start, block.end):
            place["pages"] = pages
        title = breadcrumb(section.path)
        yield Passage(document.readable(block), id=f"{id_}:{block.start}", title=title, metadata=place)


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
