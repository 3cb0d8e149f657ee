"""Pages of one file: join documents that are pages, and describe the pages of a result in metadata.

The loaders of the frameworks write `page`, `page_number` or `page_label`. A section or paragraph has the same keys,
with the values of the page on which it begins. In addition it has `drillrank_first_page` and `drillrank_last_page`,
starting at 1, and, if these differ, `drillrank_pages`: offset in the document, number and label of each page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from drillrank.frameworks.metadata import count, prefixed, with_result_metadata
from drillrank.structure import Pages
from drillrank.structure.read import FORMAT_KEY

PAGE_KEYS = ("page", "page_number", "page_label")
"""Keys under which loaders write the index, the number and the printed label of a page."""

PAGE_NAMES = ("first_page", "last_page", "pages")
"""Names, without prefix, under which drillrank writes the pages of a record."""

_FILE_KEYS = ("file_path", "source", "file_name")
_MAX_DIGITS = 9
_FIRST_VALUES = {"page": 0, "page_number": 1}  # of the first page: LangChain's loaders count `page` from 0

TextWithMetadata = tuple[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class JoinedPages:
    """Document that was joined from pages, or a document that is not a page.

    Attributes:
        page_indices: Indices of its pages in the input.
        text: Texts of the pages with a blank line between two of them, or a line break if a sentence continues.
        pages: Offset, number and label of each page; None if the document has no pages.
    """

    page_indices: tuple[int, ...]
    text: str
    pages: Pages | None


def join_pages(documents: Iterable[TextWithMetadata], may_be_page: Sequence[bool] | None = None) -> list[JoinedPages]:
    r"""Join neighbors that are pages of one file.

    Two neighbors are pages of one file if their metadata name the same file and rising pages, and agree in all other
    keys. If two neighbors are on one page, a splitter has cut the pages, and they stay as they are.

    Args:
        documents: Text and metadata of each document.
        may_be_page: True for each document that may be a page, False for others, such as parts of a page. None if all
            may be pages.

    >>> pages = [("A", {"source": "a.pdf", "page": 0}), ("B", {"source": "a.pdf", "page": 1}), ("C", {})]
    >>> [(joined.page_indices, joined.text) for joined in join_pages(pages)]
    [((0, 1), 'A\n\nB'), ((2,), 'C')]
    """
    listed = [(text, _with_page_number(metadata)) for text, metadata in documents]
    may_be_page = [True] * len(listed) if may_be_page is None else may_be_page
    n_documents_by_file = Counter(_file_names(metadata) for _, metadata in listed)
    return [
        _join(
            listed,
            group,
            is_whole_file=may_be_page[group[0]] and n_documents_by_file[_file_names(listed[group[0]][1])] == len(group),
        )
        for group in _group_pages([metadata for _, metadata in listed], may_be_page)
    ]


def _group_pages(metadata: Sequence[Mapping[str, Any]], may_be_page: Sequence[bool]) -> list[list[int]]:
    """Return the indices of the documents, grouped by file where they are whole pages."""
    groups: list[list[int]] = []
    for index, page_metadata in enumerate(metadata):
        if groups and all(may_be_page[index - 1 : index + 1]) and _is_next_page(metadata[index - 1], page_metadata):
            groups[-1].append(index)
        else:
            groups.append([index])
    # Equal metadata on both sides of a border: a splitter cut a page there.
    is_cut = [metadata[before[-1]] == metadata[after[0]] for before, after in pairwise(groups)]
    borders = pairwise([False, *is_cut, False])
    return [
        part
        for group, cuts in zip(groups, borders, strict=False)  # without groups there is one border
        for part in ([[index] for index in group] if any(cuts) else [group])
    ]


def _join(documents: Sequence[TextWithMetadata], group: Sequence[int], *, is_whole_file: bool) -> JoinedPages:
    if len(group) == 1:
        text, metadata = documents[group[0]]
        pages = Pages.from_json(metadata.get(prefixed("pages")))
        if pages is None and is_whole_file:
            pages = _only_page(metadata)
        return JoinedPages(tuple(group), text, pages)
    texts: list[str] = []
    marks: list[tuple[int, int, str]] = []
    length = 0
    for position, index in enumerate(group, start=1):
        text, metadata = documents[index]
        if texts:
            texts.append("\n" if _continues(texts[-1], text) else "\n\n")
            length += len(texts[-1])
        number = _page_number(metadata)
        if number is None:  # labels do not state it, but pages come in order and none is missing
            number = position
        marks.append((length, number, str(metadata.get("page_label", number))))
        texts.append(text)
        length += len(text)
    return JoinedPages(tuple(group), "".join(texts), Pages.of(marks))


def _file_names(metadata: Mapping[str, Any]) -> tuple[str | None, ...]:
    """Return the names of the file that a page belongs to, by key."""
    return tuple(name if isinstance(name := metadata.get(key), str) else None for key in _FILE_KEYS)


def _only_page(metadata: Mapping[str, Any]) -> Pages | None:
    """Return the page of a file of which there is one page; None if its number or the file is unknown."""
    number = _page_number(metadata)
    if number is None and metadata.get("page_label") == "1":
        number = 1
    if number is None or not any(_file_names(metadata)):
        return None
    return Pages((0,), (number,), (str(metadata.get("page_label", number)),))


def _is_next_page(before: Mapping[str, Any], metadata: Mapping[str, Any]) -> bool:
    """Return True if a document is a later page of the file that the document before it belongs to."""
    if before.keys() != metadata.keys() or prefixed("pages") in metadata or "start_index" in metadata:
        return False
    file_keys = {key for key in _FILE_KEYS if isinstance(metadata.get(key), str) and metadata[key] == before[key]}
    if not file_keys or any(before[key] != metadata[key] for key in metadata.keys() - {*PAGE_KEYS}):
        return False
    numbers = [(count(before[key]), count(metadata[key])) for key in _FIRST_VALUES if key in metadata]
    if known_numbers := [(last, current) for last, current in numbers if current is not None]:
        return all(last is not None and last < current for last, current in known_numbers)
    last_label, label = str(before.get("page_label", "")), str(metadata.get("page_label", ""))
    last_number, number = _decimal(last_label), _decimal(label)
    if last_number is not None and number is not None:
        follows_preface = label == "1" and file_keys != {"file_name"}  # two files may have one name
        return last_number < number or follows_preface
    return bool(label) and last_label != label


def _decimal(label: object) -> int | None:
    """Return the number that a label is; None if it is something else, or has too many digits for a page."""
    is_number = isinstance(label, str) and label.isdecimal() and len(label) <= _MAX_DIGITS
    return int(label) if is_number else None  # type: ignore[call-overload]


def _page_in_source(metadata: Mapping[str, Any]) -> int | None:
    """Return the page number that LlamaIndex's `PyMuPDFReader` writes as `source`; None if `source` is a name."""
    if not {"file_path", "total_pages"} <= metadata.keys():
        return None
    return _decimal(metadata.get("source"))


def _with_page_number(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return metadata in which `page_number` replaces a page number in `source`."""
    number = _page_in_source(metadata)
    if number is None:
        return metadata
    return {"page_number": number, **{key: value for key, value in metadata.items() if key != "source"}}


def _page_number(metadata: Mapping[str, Any]) -> int | None:
    """Return the number of a page, starting at 1; None if the metadata do not state it."""
    for key, first_value in _FIRST_VALUES.items():
        if (number := count(metadata.get(key))) is not None:
            return number + 1 - first_value
    return None


def _continues(before: str, text: str) -> bool:
    """Return True if a sentence continues on the next page."""
    before, text = before.rstrip(), text.lstrip()
    return text[:1].islower() and (before[-1:].isalpha() or before[-1:] == ",")


def read_pages(metadata: Mapping[str, Any]) -> Pages | None:
    """Return the pages that a record's metadata state, with offsets in the document; None if there are none.

    >>> read_pages({"drillrank_first_page": 3, "drillrank_last_page": 3, "page_label": "iii"}).label(3)
    'iii'
    """
    if marks := metadata.get(prefixed("pages")):
        pages = Pages.from_json(marks)
        if pages is not None:
            return pages
    first_page = count(metadata.get(prefixed("first_page")))
    return None if first_page is None else Pages((0,), (first_page,), (str(metadata.get("page_label", first_page)),))


def with_pages_of_span(
    metadata: Mapping[str, Any], pages: Pages | None, start: int | None, end: int | None
) -> dict[str, Any]:
    """Return a copy of metadata with the pages of a span.

    Args:
        metadata: Metadata of the record that contains the span, or of the first page of its document. Those of a file
            that drillrank read have no page, so that the span gets `page_label`, and LangChain's `page`, too.
        pages: Pages of that record or document; None if it has none.
        start: Offset of the span in the document; None if unknown, so that the span may be on any of the pages.
        end: Offset just after the span; None likewise.

    >>> metadata = {"page": 2, "page_label": "iii"}
    >>> with_pages_of_span(metadata, Pages((0, 9), (3, 4), ("iii", "iv")), 12, 15)
    {'page': 3, 'page_label': 'iv', 'drillrank_first_page': 4, 'drillrank_last_page': 4}
    """
    if pages is None:
        return dict(metadata)
    span_pages = pages if start is None or end is None else pages.within(start, end)
    first_page, last_page = span_pages.numbers[0], span_pages.numbers[-1]
    described = dict(metadata)
    for key in _FIRST_VALUES:
        if (number := count(described.get(key))) is not None:
            described[key] = number + first_page - pages.numbers[0]
    if _page_in_source(metadata) is not None:
        described["source"] = str(first_page)
    is_file = FORMAT_KEY in metadata  # which is on no single page itself
    if is_file and start is not None and "total_pages" in metadata:
        described["page"] = first_page - 1 + _FIRST_VALUES["page"]
    if "page_label" in described or (is_file and start is not None):
        described["page_label"] = span_pages.labels[0]
    marks = span_pages.as_json() if first_page < last_page else None
    return with_result_metadata(described, first_page=first_page, last_page=last_page, pages=marks)


def without_page_keys(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata that all pages of a file share."""
    return {key: value for key, value in _with_page_number(metadata).items() if key not in PAGE_KEYS}
