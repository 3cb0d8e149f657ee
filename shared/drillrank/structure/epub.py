"""EPUB books as Markdown: the chapters in the order in which the book is read."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from drillrank.errors import InvalidInput
from drillrank.structure.encodings import decode_text
from drillrank.structure.formats import ConvertedText
from drillrank.structure.markdown import html_as_markdown
from drillrank.structure.office_archive import (
    OfficeArchive,
    UnreadablePart,
    convert_office,
    descendants,
    join_part_name,
)

_MAX_FALLBACKS = 10
_TAG_COST = 4  # elements of XML whose reading takes as long as one tag of HTML
_CHAPTER_TYPES = ("html", "oeb1")
_PAGE_TYPES = (*_CHAPTER_TYPES, "xml", "svg")  # of which a word is in the media type of a chapter


def convert_epub(content: bytes) -> ConvertedText:
    """Convert an EPUB book to Markdown.

    Raises:
        InvalidInput: The book is broken, protected, or passes a limit; the message continues its name.
    """
    return convert_office(content, "EPUB", lambda archive: ("\n\n".join(_read_book(archive)), None))


class _Item(NamedTuple):
    """File of a book: its name, its media type, and the id of its fallback for readers that do not know this type."""

    name: str
    media_type: str
    fallback: str


_MISSING_ITEM = _Item("", "", "")


def _read_book(archive: OfficeArchive) -> Iterator[str]:
    for name in _chapter_names(archive):
        try:
            page = _decode_chapter(archive.read(name))
        except UnreadablePart:
            archive.problems["chapters"] += 1
            continue
        archive.count_elements(_TAG_COST * page.count("<"))
        for text in html_as_markdown(page, is_xhtml=True):
            yield archive.count_written(text)


def _chapter_names(archive: OfficeArchive) -> Iterator[str]:
    """Yield the names of the chapters in their order; files that are not pages are replaced by their fallbacks."""
    main = _package_name(archive)
    folder = posixpath.dirname(main)
    package = archive.read_tree(main)
    items = {
        item.get("id", ""): _Item(
            join_part_name(folder, item.get("href", "")), item.get("media-type", ""), item.get("fallback", "")
        )
        for item in descendants(package, "item")
    }
    protected = _protected_names(archive)
    id_by_name = {item.name: id_ for id_, item in items.items()}
    order = [reference.get("idref", "") for reference in descendants(package, "itemref")]
    order = [id_ if id_ in items else id_by_name.get(join_part_name(folder, id_), id_) for id_ in order]
    if not any(id_ in items for id_ in order):  # a book that names no order has that of its list of files
        order += [id_ for id_, item in items.items() if any(word in item.media_type for word in _CHAPTER_TYPES)]
    for id_ in order:
        item = _page_item(items.get(id_, _MISSING_ITEM), items)
        if item is None:
            continue
        if item.name.lower() in protected:
            archive.problems["chapters that are protected against copying"] += 1
        else:
            yield item.name


def _package_name(archive: OfficeArchive) -> str:
    """Return the name of the part that lists the contents: by the container, or else by its ending.

    Raises:
        InvalidInput: No part lists the contents.
    """
    container = archive.try_read_tree("META-INF/container.xml", "containers")
    roots = () if container is None else descendants(container, "rootfile")
    names = [join_part_name("", root.get("full-path", "")) for root in roots]
    names += [name for name in archive.part_names() if name.endswith(".opf")]
    main = next((name for name in names if name in archive), None)
    if main is None:
        raise InvalidInput("its container does not say where its contents are")
    return main


def _page_item(item: _Item, items: Mapping[str, _Item]) -> _Item | None:
    """Return the item, or the first of its fallbacks that is a page; None if there is none, as for pictures."""
    for _ in range(_MAX_FALLBACKS):
        if not item.media_type or any(word in item.media_type for word in _PAGE_TYPES):
            return item
        if item.fallback not in items:
            return None
        item = items[item.fallback]
    return None


def _protected_names(archive: OfficeArchive) -> set[str]:
    """Return the names of the parts that are encrypted, in lower case."""
    name = "META-INF/encryption.xml"
    tree = archive.try_read_tree(name) if name in archive else None
    references = () if tree is None else descendants(tree, "CipherReference")
    return {join_part_name("", reference.get("URI", "")).lower() for reference in references}


def _decode_chapter(content: bytes) -> str:
    """Return the text of a chapter in the encoding that its first bytes or its XML declaration name."""
    for marker, encoding in ((b"<\0", "utf-16-le"), (b"\0<", "utf-16-be")):
        if content.startswith(marker):
            return content.decode(encoding, errors="replace")
    try:
        return decode_text(content, may_declare=True)[0]
    except InvalidInput as problem:
        raise UnreadablePart(str(problem)) from problem
