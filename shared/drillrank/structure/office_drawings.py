"""Charts and diagrams of office files as rows of cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from xml.etree.ElementTree import Element

from drillrank.structure.office_archive import OfficeArchive, Relation, descendants, outermost, parse_count
from drillrank.structure.office_text import on_one_line

_CHART_KINDS = frozenset({"chart", "chartEx"})
_DIAGRAM_KIND = "diagramData"

Rows = list[list[str]]


def referenced_drawing(archive: OfficeArchive, relations: Mapping[str, Relation], reference: Element) -> Rows:
    """Return the rows of the chart or diagram to which an element `chart` or `relIds` refers, or none."""
    relation = relations.get(reference.get("r:id") or reference.get("r:dm") or reference.get("id") or "")
    if relation is None or (relation.kind not in _CHART_KINDS and relation.kind != _DIAGRAM_KIND):
        archive.problems["charts and diagrams"] += 1
        return []
    tree = archive.try_read_tree(relation.name, "charts and diagrams")
    if tree is None:
        return []
    return list(_chart_rows(tree) if relation.kind in _CHART_KINDS else _diagram_rows(tree))


def drawing_text(element: Element) -> str:
    """Return all text below an element of a drawing, on one line."""
    texts = descendants(element, "t", "br", "tab", "p")
    return on_one_line("".join(text.text or "" if text.tag == "t" else " " for text in texts))


def _chart_rows(chart: Element) -> Iterator[list[str]]:
    """Yield the titles, a row of categories, and a row of values for each series."""
    yield from ([text] for text in map(drawing_text, outermost(chart, "title")) if text)
    categories: list[str] = []
    for series in outermost(chart, "ser"):
        cells = {part.tag: _chart_values(part) for part in series}
        series_categories = cells.get("cat", cells.get("xVal", []))
        if series_categories and series_categories != categories:
            categories = series_categories
            yield ["", *categories]
        yield [" ".join(cells.get("tx", [])), *cells.get("val", cells.get("yVal", []))]


def _chart_values(part: Element) -> list[str]:
    """Return the values of a series by their index, so that missing ones keep their column."""
    points = list(outermost(part, "pt"))
    if not points:
        return [value.text or "" for value in outermost(part, "v")]
    texts = [next((value.text or "" for value in outermost(point, "v")), "") for point in points]
    indices = [parse_count(point.get("idx"), -1) for point in points]
    if sorted(set(indices)) != indices or indices[0] < 0 or indices[-1] >= 2 * len(points) + 100:
        return texts
    text_by_index = dict(zip(indices, texts, strict=True))
    return [text_by_index.get(index, "") for index in range(indices[-1] + 1)]


def _diagram_rows(data: Element) -> Iterator[list[str]]:
    yield from ([text] for text in map(drawing_text, outermost(data, "p")) if text)
