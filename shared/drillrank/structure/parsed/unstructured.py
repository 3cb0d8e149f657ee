"""unstructured: the elements that its `partition` functions return, or their dictionaries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from drillrank.errors import InvalidInput
from drillrank.structure.document import BlockKind, Document
from drillrank.structure.parse import parse_document
from drillrank.structure.parsed.parts import Part, as_mapping, document_of, page_number

_KINDS: dict[str, BlockKind] = {"Title": "heading", "ListItem": "list", "Table": "table", "CodeSnippet": "code"}
_LEFT_OUT = {"Header", "Footer", "PageNumber", "PageBreak"}


def document_from_unstructured(elements: Iterable[object]) -> Document:
    """Read elements of unstructured.

    A title is one level below the title that its `parent_id` names, else as deep as its `category_depth` says. Running
    headers and footers and page numbers are left out; a table is read from `text_as_html`, where it has that.

    Args:
        elements: Elements, or dictionaries as `to_dict` returns them, in reading order.

    Raises:
        InvalidInput: one is neither.

    >>> elements = [
    ...     {"type": "Title", "element_id": "a", "text": "Sea", "metadata": {"page_number": 1}},
    ...     {"type": "Title", "element_id": "b", "text": "Whales", "metadata": {"parent_id": "a", "page_number": 2}},
    ...     {"type": "NarrativeText", "text": "They sing.", "metadata": {"parent_id": "b", "page_number": 2}},
    ... ]
    >>> document = document_from_unstructured(elements)
    >>> [(section.path, document.page_numbers(section.start, section.end)) for section in document.sections()]
    [(('Sea',), (1, 1)), (('Sea', 'Whales'), (2, 2))]
    """
    if isinstance(elements, str | Mapping) or not isinstance(elements, Iterable):
        raise InvalidInput(f"Expected a list of elements of unstructured, not a {type(elements).__name__}.")
    parts: list[Part] = []
    levels: dict[object, int] = {}  # of titles, by id
    for given in elements:
        element = as_mapping(given, "unstructured")
        category, metadata = element.get("type") or element.get("category"), element.get("metadata")
        if not isinstance(category, str) or not isinstance(element.get("text"), str | None):
            raise InvalidInput("This is no element of unstructured: it has no type, or its text is no string.")
        if category in _LEFT_OUT:
            continue
        more: Mapping[str, Any] = metadata if isinstance(metadata, Mapping) else {}
        level = 1
        if category == "Title":
            depth = page_number(more.get("category_depth")) or 0
            level = levels.get(str(more.get("parent_id")), depth) + 1
            levels[str(element.get("element_id"))] = level
        text = element.get("text") or ""
        if category == "Table" and isinstance(more.get("text_as_html"), str):
            text = _table(more["text_as_html"]) or text
        parts.append(Part(_KINDS.get(category, "paragraph"), text, level, page_number(more.get("page_number"))))
    return document_of(parts, rebuild=True)


def _table(html: str) -> str:
    """Rows on lines of their own, cells apart."""
    table = parse_document(html, "html")
    return "\n".join(table.readable(section) for section in table.sections()).strip()
