"""Docling: a `DoclingDocument`, its dictionary or JSON, or its Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from drillrank.errors import InvalidInput
from drillrank.structure.document import BlockKind, Document
from drillrank.structure.parsed.levels import rebuilt_levels
from drillrank.structure.parsed.parts import Part, as_mapping, document_of, page_number
from drillrank.structure.scan import Scan, assemble

_KINDS: dict[str, BlockKind] = {
    "title": "heading",
    "section_header": "heading",
    "list_item": "list",
    "code": "code",
}


def document_from_docling(given: object) -> Document:
    r"""Read what Docling has parsed.

    Running headers and footers are left out, cells of tables stand apart by ` | `. Docling gives most PDFs' headings
    one level: it is rebuilt from their numbering, or from titles that recur.

    Args:
        given: A `DoclingDocument`, what its `export_to_dict` returns, or that as JSON; or what `export_to_markdown`
            returns, which has no pages.

    Raises:
        InvalidInput: it is something else.

    >>> text = "## 1 Sea\n\nWide.\n\n## 1.1 Deep sea\n\nDark."
    >>> [section.path for section in document_from_docling(text).sections()]
    [('1 Sea',), ('1 Sea', '1.1 Deep sea')]
    """
    if isinstance(given, str) and not given.lstrip().startswith("{"):
        from drillrank.structure.markdown import scan_markdown

        scan = scan_markdown(given)
        return assemble(given, Scan(scan.blocks, rebuilt_levels(scan.headings)), "markdown")
    saved = as_mapping(given, "Docling")
    if not isinstance(saved.get("body"), Mapping):
        raise InvalidInput("This is no DoclingDocument: it has no body.")
    return document_of(_parts(saved, saved["body"]), rebuild=True)


def _parts(saved: Mapping[str, Any], root: Mapping[str, Any]) -> Iterator[Part]:
    """What stands below the root, in reading order, each item once."""
    waiting, seen = _children(saved, root)[::-1], set[int]()
    while waiting:
        item = waiting.pop()
        if id(item) in seen or item.get("content_layer", "body") != "body":
            continue
        seen.add(id(item))
        waiting += _children(saved, item)[::-1]
        label = str(item.get("label", ""))
        page = next((page_number(place.get("page_no")) for place in _listed(item.get("prov"))), None)
        if label in ("table", "document_index"):
            yield Part("table", _table(item.get("data")), page=page)
        elif label not in ("page_header", "page_footer") and isinstance(item.get("text"), str):
            level = item.get("level")
            level = level + 1 if label == "section_header" and isinstance(level, int) and level > 0 else 1
            marker = f"{item['marker']} " if label == "list_item" and item.get("marker") else ""
            yield Part(_KINDS.get(label, "paragraph"), marker + item["text"], level, page)


def _children(saved: Mapping[str, Any], node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = (_resolved(saved, child) for child in _listed(node.get("children")))
    return [item for item in found if item is not None]


def _resolved(saved: Mapping[str, Any], child: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The item that a reference such as `#/texts/3` names."""
    reference = child.get("$ref") or child.get("cref")
    if not isinstance(reference, str):
        return None
    _, _, path = reference.partition("#/")
    kind, _, number = path.partition("/")
    items = _listed(saved.get(kind))
    # A number that is too long for `int` names nothing.
    return items[int(number)] if number.isdecimal() and len(number) < 10 and int(number) < len(items) else None


def _table(data: object) -> str:
    """Rows on lines of their own, cells apart; a cell over several columns or rows stands at its first place."""
    rows: dict[int, list[tuple[int, str]]] = {}
    for cell in _listed(data.get("table_cells") if isinstance(data, Mapping) else None):
        row, column = cell.get("start_row_offset_idx"), cell.get("start_col_offset_idx")
        if isinstance(row, int) and isinstance(column, int):
            rows.setdefault(row, []).append((column, " ".join(str(cell.get("text") or "").split())))
    return "\n".join(" | ".join(text for _, text in sorted(rows[row])) for row in sorted(rows))


def _listed(value: object) -> Sequence[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list | tuple) else []
