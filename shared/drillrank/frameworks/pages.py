"""Pages of one file, which hosts' loaders give as documents of their own: joined again, and which page is where.

What is said of pages stays in the hosts' own words: of `page`, `page_number` and `page_label` those that a loader wrote
are, on a section or paragraph, those of the page that it begins on. Beside them stand `drillrank_first_page` and
`drillrank_last_page`, from 1 on, and, where there are several, `drillrank_pages`: offset in the document, number and
label of each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from drillrank.frameworks.metadata import count, prefixed, with_result_metadata
from drillrank.structure import Document, Pages

KEYS = ("page", "page_number", "page_label")
"""The hosts' names for a page's place in its file, and for what is printed on it."""

PAGES = ("first_page", "last_page", "pages")
"""Our names for the pages of a record."""

_FILES = ("file_path", "source", "file_name")
_FIRST = {"page": 0}  # as LangChain's loaders count; others begin at 1


@dataclass(frozen=True, slots=True)
class Joined:
    """One document, put together from pages or as it was.

    Attributes:
        members: Positions of its pages among what was given.
        text: The pages', a blank line between two, or a line break where a sentence goes on.
        pages: Where each begins, also of one page alone; None of what has no pages.
    """

    members: tuple[int, ...]
    text: str
    pages: Pages | None


def joined(parts: Iterable[tuple[str, Mapping[str, Any]]]) -> list[Joined]:
    r"""Neighbours that are pages of one file become one document.

    They are if their metadata name the same file and pages that rise, and agree in all else. Where two neighbours are
    on one page, pages were cut already: these stay as they are. A page is the whole of a file if nothing else names it.

    Args:
        parts: Text and metadata of each document.

    >>> pages = [("A", {"source": "a.pdf", "page": 0}), ("B", {"source": "a.pdf", "page": 1}), ("C", {})]
    >>> [(one.members, one.text) for one in joined(pages)]
    [((0, 1), 'A\n\nB'), ((2,), 'C')]
    """
    listed = list(parts)
    groups: list[list[int]] = []
    for at, (_, metadata) in enumerate(listed):
        if groups and _follows(listed[groups[-1][-1]][1], metadata):
            groups[-1].append(at)
        else:
            groups.append([at])
    cut = {id(group) for pair in pairwise(groups) if listed[pair[0][-1]][1] == listed[pair[1][0]][1] for group in pair}
    runs = [run for group in groups for run in ([[at] for at in group] if id(group) in cut else [group])]
    files = Counter(_file(metadata) for _, metadata in listed)
    return [_joined(listed, run, whole=files[_file(listed[run[0]][1])] == len(run)) for run in runs]


def _joined(listed: Sequence[tuple[str, Mapping[str, Any]]], group: Sequence[int], whole: bool) -> Joined:
    if len(group) == 1:
        text, metadata = listed[group[0]]
        pages = Pages.from_json(metadata.get(prefixed("pages")))
        return Joined(tuple(group), text, _alone(metadata) if pages is None and whole else pages)
    texts: list[str] = []
    marks: list[tuple[int, int, str]] = []
    length = 0
    for location, at in enumerate(group):
        text, metadata = listed[at]
        if texts:
            texts.append("\n" if _goes_on(texts[-1], text) else "\n\n")
            length += len(texts[-1])
        number = _number(metadata)
        if number is None:  # labels do not tell it, but pages come in order and none is left out
            number = location + 1
        marks.append((length, number, str(metadata.get("page_label", number))))
        texts.append(text)
        length += len(text)
    return Joined(tuple(group), "".join(texts), Pages.of(marks))


def _file(metadata: Mapping[str, Any]) -> tuple[str | None, ...]:
    """The names of the file that a page is of."""
    return tuple(name if isinstance(name := metadata.get(key), str) else None for key in _FILES)


def _alone(metadata: Mapping[str, Any]) -> Pages | None:
    """Of a file that has one page."""
    number = _number(metadata)
    if number is None and metadata.get("page_label") == "1":
        number = 1
    if number is None or not any(_file(metadata)):
        return None
    return Pages((0,), (number,), (str(metadata.get("page_label", number)),))


def _follows(before: Mapping[str, Any], metadata: Mapping[str, Any]) -> bool:
    if before.keys() != metadata.keys() or prefixed("pages") in metadata or "start_index" in metadata:
        return False
    same = {key for key in _FILES if isinstance(metadata.get(key), str) and metadata[key] == before[key]}
    if not same:
        return False
    if any(before[key] != metadata[key] for key in metadata.keys() - {*KEYS}):
        return False
    counts = [(count(before[key]), count(metadata[key])) for key in ("page", "page_number") if key in metadata]
    if places := [(last, current) for last, current in counts if current is not None]:
        return all(last is not None and last < current for last, current in places)
    last, current = str(before.get("page_label", "")), str(metadata.get("page_label", ""))
    if last.isdecimal() and current.isdecimal():
        after_preface = current == "1" and same != {"file_name"}  # two files may have one name
        return int(last) < int(current) or after_preface
    return bool(current) and last != current


def _number(metadata: Mapping[str, Any]) -> int | None:
    """From 1 on."""
    for key in ("page", "page_number"):
        if (number := count(metadata.get(key))) is not None:
            return number + 1 - _FIRST.get(key, 1)
    return None


def _goes_on(before: str, text: str) -> bool:
    before, text = before.rstrip(), text.lstrip()
    return text[:1].islower() and (before[-1:].isalpha() or before[-1:] == ",")


def pages_of(metadata: Mapping[str, Any]) -> Pages | None:
    """What a record says of its pages, in offsets of its document.

    >>> pages_of({"drillrank_first_page": 3, "drillrank_last_page": 3, "page_label": "iii"}).label(3)
    'iii'
    """
    pages = Pages.from_json(metadata.get(prefixed("pages")))
    first = count(metadata.get(prefixed("first_page")))
    if pages is None and first is not None:
        return Pages((0,), (first,), (str(metadata.get("page_label", first)),))
    return pages


def at_pages(metadata: Mapping[str, Any], pages: Pages | None, start: int | None, end: int | None) -> dict[str, Any]:
    """The metadata of a span.

    Args:
        metadata: Of the record that it stands in, or of its document's first page.
        pages: Of that record or document.
        start: Offset in the document; None if that is not known: then it may be on any of the pages.
        end: Offset behind it.

    >>> metadata = {"page": 2, "page_label": "iii"}
    >>> at_pages(metadata, Pages((0, 9), (3, 4), ("iii", "iv")), 12, 15)
    {'page': 3, 'page_label': 'iv', 'drillrank_first_page': 4, 'drillrank_last_page': 4}
    """
    if pages is None:
        return dict(metadata)
    there = pages if start is None or end is None else pages.within(start, end)
    first, last = there.numbers[0], there.numbers[-1]
    found = dict(metadata)
    for key in ("page", "page_number"):
        if (number := count(found.get(key))) is not None:
            found[key] = number + first - pages.numbers[0]
    if "page_label" in found:
        found["page_label"] = there.labels[0]
    marks = there.as_json() if first < last else None
    return with_result_metadata(found, first_page=first, last_page=last, pages=marks)


def without_page(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata that all pages of a file share."""
    return {key: value for key, value in metadata.items() if key not in KEYS}


def file_metadata(document: Document, path: str) -> dict[str, Any]:
    """Metadata for a host's document that holds all of a file that `read_document` read.

    >>> file_metadata(Document("A", (), (), pages=Pages((0,), (1,), ("i",))), "a.pdf")
    {'source': 'a.pdf', 'page': 0, 'page_label': 'i', 'drillrank_pages': '[[0,1,"i"]]'}
    """
    pages = document.pages
    if pages is None:
        return {"source": path}
    return {"source": path, "page": 0, "page_label": pages.labels[0], prefixed("pages"): pages.as_json()}
