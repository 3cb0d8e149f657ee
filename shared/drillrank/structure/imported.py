"""Read documents that Docling, unstructured, LlamaParse or PageIndex parsed, with the structure that they found.

Nothing here imports those tools. Their objects are read by attribute, their dictionaries and JSON by key. Page numbers
are theirs. Tables become Markdown tables whose first row is the head.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any

from drillrank import limits
from drillrank.errors import InvalidInput
from drillrank.limits import read_json
from drillrank.structure.cutting import find_paragraph_spans
from drillrank.structure.document import Block, BlockKind, Document
from drillrank.structure.markdown import html_as_markdown, scan_markdown, table, with_closed_fence
from drillrank.structure.pages import join_pages
from drillrank.structure.plain import named_rank
from drillrank.structure.scan import Heading, Scan, assemble

_NUMBER = re.compile(r"(?P<number>\d{1,3}(?:\.\d{1,3})*)\.?[ \t]+\S")
_KIND_BY_DOCLING_LABEL: dict[str, BlockKind] = {
    "title": "heading",
    "section_header": "heading",
    "list_item": "list",
    "code": "code",
}
_KIND_BY_UNSTRUCTURED_CATEGORY: dict[str, BlockKind] = {"Title": "heading", "ListItem": "list", "CodeSnippet": "code"}
_REFERENCE = re.compile(r"(?:#/)?(?P<items>[^/]*)/(?P<number>\d{1,9})")
_UNSTRUCTURED_TABLES = {"Table", "TableChunk"}
_SKIPPED_CATEGORIES = {"Header", "Footer", "PageNumber", "PageBreak"}


@dataclass(frozen=True, slots=True)
class Part:
    """Piece of a document.

    Attributes:
        kind: Kind of block.
        text: Text without markup.
        level: Level of a heading, starting at 1.
        page: Number of the page on which it begins, or None if unknown.
    """

    kind: BlockKind
    text: str
    level: int = 1
    page: int | None = None


def build_document(parts: Iterable[Part], *, rebuild: bool = False) -> Document:
    r"""Build a document from its parts. Skip blank parts, and ignore page numbers that go back.

    Args:
        parts: Parts in reading order.
        rebuild: True to derive the levels of headings from their numbers if all headings have one level.

    >>> document = build_document([Part("heading", "Sea", page=1), Part("paragraph", "Deep.", page=2)])
    >>> document.text, document.page_numbers(0, 3), document.page_numbers(5, 10)
    ('Sea\n\nDeep.', (1, 1), (2, 2))
    """
    texts: list[tuple[str, int | None]] = []
    blocks: list[Block] = []
    heading_by_start: dict[int, Heading] = {}
    start = 0
    for part in parts:
        text = " ".join(part.text.split()) if part.kind == "heading" else part.text.strip()
        if not text:
            continue
        if part.kind == "heading":
            heading_by_start[start] = Heading(part.level, text)
        texts.append((text, part.page))
        blocks.append(Block(part.kind, start, start + len(text)))
        start += len(text) + 2
    text, pages = join_pages(texts)
    scan = Scan(blocks, rebuild_heading_levels(heading_by_start) if rebuild else heading_by_start)
    return replace(assemble(text, scan, "text"), pages=pages)


def to_mapping(output: object, tool: str) -> Mapping[str, Any]:
    """Convert JSON, a pydantic model or a dataclass of a tool to a mapping. A mapping is returned as it is.

    Raises:
        InvalidInput: `output` is none of these.
    """
    if isinstance(output, str):
        output = read_json(output, f"The output of {tool}")
    for name in ("export_to_dict", "to_dict", "model_dump"):
        if not isinstance(output, Mapping) and callable(export := getattr(output, name, None)):
            output = export(mode="json") if name == "model_dump" else export()
    if not isinstance(output, Mapping):
        raise InvalidInput(f"Expected output of {tool}, a mapping, got a {type(output).__name__}. Pass its dictionary.")
    return output


def page_number(value: object) -> int | None:
    """Return a page number, or None if the value is not one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def rebuild_heading_levels(heading_by_start: Mapping[int, Heading]) -> dict[int, Heading]:
    """Derive the levels of headings from their numbers if all have one level and at least two are numbered.

    The first heading may be above all others, as a title is. Between the first and the last numbered heading, a
    heading without a number is one level below the numbered heading before it. Other headings keep their level.

    Args:
        heading_by_start: Headings by the start of their blocks, in reading order.

    >>> titles = ["Abstract", "1 Data", "1.1 Units", "Kilograms", "2 Use"]
    >>> headings = {start: Heading(2, title) for start, title in enumerate(titles)}
    >>> [heading.level for heading in rebuild_heading_levels(headings).values()]
    [2, 2, 3, 4, 2]
    """
    rebuilt_headings = dict(heading_by_start)
    starts = list(heading_by_start)
    if len(starts) > 1 and heading_by_start[starts[0]].level < heading_by_start[starts[1]].level:
        starts = starts[1:]  # below the title
    depths = [_number_depth(heading_by_start[start].title) for start in starts]
    numbered_indices = [index for index, depth in enumerate(depths) if depth is not None]
    if len({heading_by_start[start].level for start in starts}) != 1 or len(numbered_indices) < 2:
        return rebuilt_headings
    ranked_depths = sorted({depth for depth in depths if depth is not None})
    rank = 0
    for index, (start, depth) in enumerate(zip(starts, depths, strict=True)):
        is_between = depth is None and numbered_indices[0] < index < numbered_indices[-1]
        rank = rank if depth is None else ranked_depths.index(depth)
        if depth is not None or is_between:
            heading = heading_by_start[start]
            rebuilt_headings[start] = heading._replace(level=heading.level + rank + is_between)
    return rebuilt_headings


def _number_depth(title: str) -> float | None:
    """Return the depth that the number of a heading shows. Parts and items are above "1", which is above "1.1"."""
    rank = named_rank(title)
    if rank is not None:
        return rank - 10.0
    match = _NUMBER.match(title)
    return float(match["number"].count(".")) if match else None


def document_from_docling(output: object) -> Document:
    r"""Read a document that Docling parsed.

    Running headers and footers are skipped. Docling gives the headings of most PDFs one level, so levels are derived
    from their numbers.

    Args:
        output: `DoclingDocument`, the dictionary of its `export_to_dict`, or that as JSON. The Markdown of its
            `export_to_markdown` works, too, but has no pages.

    Raises:
        InvalidInput: `output` is something else.

    >>> text = "## 1 Sea\n\nWide.\n\n## 1.1 Deep sea\n\nDark."
    >>> [section.path for section in document_from_docling(text).sections()]
    [('1 Sea',), ('1 Sea', '1.1 Deep sea')]
    """
    if isinstance(output, str) and not output.lstrip().startswith("{"):
        return _read_markdown(output)
    saved = to_mapping(output, "Docling")
    if not isinstance(saved.get("body"), Mapping):
        raise InvalidInput("Expected a DoclingDocument, got a mapping without `body`. Pass its `export_to_dict()`.")
    return build_document(_docling_parts(saved), rebuild=True)


def _docling_parts(saved: Mapping[str, Any]) -> Iterator[Part]:
    """Yield the items below the body in reading order, each once."""
    pending, visited = _children(saved, saved["body"]), set[int]()
    while pending:
        item = pending.pop()
        if id(item) in visited or item.get("content_layer", "body") != "body":
            continue
        visited.add(id(item))
        pending += _children(saved, item)
        label = str(item.get("label", ""))
        page = next((page_number(origin.get("page_no")) for origin in _mappings(item.get("prov"))), None)
        if label in ("table", "document_index"):
            yield Part("table", _docling_table(item.get("data")), page=page)
        elif label not in ("page_header", "page_footer") and isinstance(item.get("text"), str):
            yield _docling_text(item, label, page)
        graph = item.get("graph")
        form_cells = _mappings(graph.get("cells")) if isinstance(graph, Mapping) else []
        for note in [*_mappings(item.get("annotations")), *form_cells]:
            yield Part("paragraph", str(note.get("text") or ""), page=page)
            yield Part("table", _docling_table(note.get("chart_data")), page=page)


def _docling_text(item: Mapping[str, Any], label: str, page: int | None) -> Part:
    level = item.get("level")
    level = level + 1 if label == "section_header" and isinstance(level, int) and level > 0 else 1
    marker = f"{item['marker']} " if label == "list_item" and item.get("marker") else ""
    return Part(_KIND_BY_DOCLING_LABEL.get(label, "paragraph"), marker + item["text"], level, page)


def _children(saved: Mapping[str, Any], node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the items that a node refers to, such as `#/texts/3`, in reversed order."""
    children: list[Mapping[str, Any]] = []
    for child in _mappings(node.get("children")):
        reference = _REFERENCE.fullmatch(str(child.get("$ref") or child.get("cref")))
        items = saved.get(reference["items"]) if reference else None
        if reference and isinstance(items, list | tuple):
            index = int(reference["number"])
            children += _mappings(items[index : index + 1])
    return children[::-1]


def _docling_table(data: object) -> str:
    """Write a table as Markdown. A cell over several columns or rows appears in its first one."""
    cells_by_row: dict[int, list[tuple[int, str]]] = {}
    for cell in _mappings(data.get("table_cells") if isinstance(data, Mapping) else None):
        row, column = cell.get("start_row_offset_idx"), cell.get("start_col_offset_idx")
        if isinstance(row, int) and isinstance(column, int):
            cells_by_row.setdefault(row, []).append((column, " ".join(str(cell.get("text") or "").split())))
    rows = [[text for _, text in sorted(cells_by_row[row])] for row in sorted(cells_by_row)]
    return table(rows) if rows else ""


def _mappings(value: object) -> list[Mapping[str, Any]]:
    """Return the mappings in a list; an empty list for any other value."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list | tuple) else []


def document_from_unstructured(elements: Iterable[object]) -> Document:
    """Read elements of unstructured.

    A title is one level below the title that its `parent_id` names, or at its `category_depth` if there is none.
    Running headers, footers and page numbers are skipped. Tables are read from `text_as_html` if they have it.

    Args:
        elements: Elements, or dictionaries as `to_dict` returns them, in reading order.

    Raises:
        InvalidInput: `elements` is not a list, or one of them is neither.

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
        raise InvalidInput(
            f"Expected a list of elements of unstructured, got a {type(elements).__name__}. Pass the list."
        )
    parts: list[Part] = []
    level_by_id: dict[object, int] = {}
    for item in elements:
        element = to_mapping(item, "unstructured")
        category, metadata = element.get("type") or element.get("category"), element.get("metadata")
        if not isinstance(category, str) or not isinstance(element.get("text"), str | None):
            raise InvalidInput("An element of unstructured has no type, or its text is not a string. Pass `to_dict()`.")
        if category not in _SKIPPED_CATEGORIES:
            details = metadata if isinstance(metadata, Mapping) else {}
            parts.append(_unstructured_part(element, category, details, level_by_id))
    return build_document(parts, rebuild=True)


def _unstructured_part(
    element: Mapping[str, Any], category: str, details: Mapping[str, Any], level_by_id: dict[object, int]
) -> Part:
    """Convert an element, and record the level of a title."""
    level = 1
    if category == "Title":
        depth = page_number(details.get("category_depth")) or 0
        level = level_by_id.get(str(details.get("parent_id")), depth) + 1
        level_by_id[str(element.get("element_id"))] = level
    kind, text = _KIND_BY_UNSTRUCTURED_CATEGORY.get(category, "paragraph"), element.get("text") or ""
    html = str(details.get("text_as_html") or "") if category in _UNSTRUCTURED_TABLES else ""
    if markdown := "\n\n".join(html_as_markdown(html)):
        kind, text = "table", markdown
    return Part(kind, text, level, page_number(details.get("page_number")))


def document_from_llamaparse(output: object) -> Document:
    r"""Read a result of LlamaParse: the Markdown of its pages as one document, so sections run across pages.

    If all headings have one level, levels are derived from their numbers.

    Args:
        output: Result in JSON mode (`pages`, each with `page` and `md`), or a job's result with `markdown` expanded
            (`markdown.pages`, each with `page_number` and `markdown`), as object, dictionary or JSON. A list of pages
            works, too.

    Raises:
        InvalidInput: `output` is something else, or no page has Markdown.

    >>> document = document_from_llamaparse([{"page": 3, "md": "# Sea\n\nWide."}, {"page": 4, "md": "And deep."}])
    >>> document.text, [document.page_numbers(section.start, section.end) for section in document.sections()]
    ('# Sea\n\nWide.\n\nAnd deep.', [(3, 4)])
    """
    texts: list[tuple[str, int | None]] = []
    for page_index, page in enumerate(_find_list(output, "LlamaParse", "pages", "markdown"), start=1):
        saved = to_mapping(page, "LlamaParse")
        text = next((saved[key] for key in ("md", "markdown", "text") if saved.get(key)), None)
        if isinstance(text, str) and text.strip():
            number = page_number(saved.get("page", saved.get("page_number", page_index)))
            texts.append((with_closed_fence(text.strip("\r\n")), number))
    if not texts:
        raise InvalidInput("No page of this result has Markdown. Ask LlamaParse for Markdown.")
    text, pages = join_pages(texts)
    return replace(_read_markdown(text), pages=pages)


def _read_markdown(text: str) -> Document:
    """Parse Markdown, and derive the levels of its headings from their numbers if all have one level."""
    scan = scan_markdown(text)
    return assemble(text, Scan(scan.blocks, rebuild_heading_levels(scan.headings)), "markdown")


def _find_list(output: object, tool: str, *keys: str) -> Sequence[object]:
    """Return a list, or the list that a mapping has under one of the keys. A key may lead to a mapping with the first.

    Raises:
        InvalidInput: No key leads to a list.
    """
    if isinstance(output, str):
        output = read_json(output, f"The output of {tool}")
    if isinstance(output, list | tuple):
        return output
    saved = to_mapping(output, tool)
    for key in keys:
        value = saved.get(key)
        value = value.get(keys[0]) if isinstance(value, Mapping) else value
        if isinstance(value, list | tuple):
            return value
    raise InvalidInput(f"Expected output of {tool}, got a mapping that has no {keys[0]}. Pass the whole result.")


@dataclass(frozen=True)
class PageIndexTree:
    """Tree of PageIndex as a document, and as the outline for drilling down.

    Attributes:
        document: Document whose sections have the tree's titles and pages.
        by_text: Summary of each section that has one, by the section's text without its heading.
    """

    document: Document
    by_text: Mapping[str, str]

    def summaries(self, texts: Sequence[str], /) -> list[str]:
        """Return the tree's summaries, for D3's setting `summarizer`. A text without a summary is returned itself."""
        return [self.by_text.get(text, text) for text in texts]


@dataclass(frozen=True, slots=True)
class _Node:
    """Node of a PageIndex tree.

    Attributes:
        title: Title of the section.
        level: Level of the section, starting at 1.
        page: Number of its first page, or None if unknown.
        text: Its text with the texts of its children, or None if the tree has no texts.
        summary: Its summary; empty if it has none.
        child_texts: Texts of its children.
    """

    title: str
    level: int
    page: int | None
    text: str | None
    summary: str
    child_texts: tuple[str, ...]


def document_from_pageindex(tree: object, pages: Sequence[str] | None = None) -> PageIndexTree:
    """Read a tree of PageIndex with its titles, levels, pages and summaries.

    The text of a section is the node's `text` without the texts of its children. If a node has no text, the pages
    are divided at the titles. A title is searched on the page `start_index`; if it is not there, its section begins
    with that page.

    Args:
        tree: Output of PageIndex (`structure`), or the list of its nodes, or either as JSON.
        pages: Text of each page, first page first. Required if a node has no `text`.

    Raises:
        InvalidInput: `tree` is something else, or a node has neither a text nor a page in `pages`.

    >>> nodes = [{"title": "Sea", "start_index": 1, "end_index": 2, "summary": "On water.", "nodes": []}]
    >>> tree = document_from_pageindex({"structure": nodes}, pages=["Sea is wide.", "And deep."])
    >>> tree.document.text.split(), tree.summaries([tree.document.body(tree.document.sections()[0]).strip()])
    (['Sea', 'is', 'wide.', 'And', 'deep.'], ['On water.'])
    """
    single = [tree] if isinstance(tree, Mapping) and "title" in tree else tree
    nodes = list(_nodes(_find_list(single, "PageIndex", "structure", "result", "nodes"), 1))
    if all(node.text is not None for node in nodes):
        parts = [part for node in nodes for part in _parts_of_node(node)]
    else:
        parts = _parts_of_pages(nodes, pages or ())
    document = build_document(parts)
    bodies = [document.body(section).strip() for section in document.sections() if section.path]
    by_text = {body: node.summary for body, node in zip(bodies, nodes, strict=True) if body and node.summary}
    return PageIndexTree(document, by_text)


def _nodes(items: Sequence[object], level: int) -> Iterator[_Node]:
    """Yield all nodes in pre-order."""
    if level > limits.HEADING_DEPTH:
        raise InvalidInput(f"This tree of PageIndex is deeper than {limits.HEADING_DEPTH} levels. Pass a flatter one.")
    for item in items:
        saved = to_mapping(item, "PageIndex")
        title, children = saved.get("title"), saved.get("nodes") or []
        if not isinstance(title, str) or not title.strip() or not isinstance(children, list):
            raise InvalidInput("A node of this tree of PageIndex has no title, or its nodes are not a list. Add them.")
        page = page_number(saved.get("start_index", saved.get("page_index", saved.get("physical_index"))))
        summary = saved.get("summary") or saved.get("prefix_summary") or ""
        child_texts = tuple(child["text"] for child in _mappings(children) if isinstance(child.get("text"), str))
        text = saved.get("text")
        yield _Node(title, level, page, text if isinstance(text, str) else None, str(summary), child_texts)
        yield from _nodes(children, level + 1)


def _parts_of_node(node: _Node) -> list[Part]:
    """Return a node's heading, and the paragraphs of its text without its title and the texts of its children."""
    searched = SearchedText(node.text or "")
    text, body, start = searched.text, "", _end_of_title(searched.text, node.title)
    for child_text in node.child_texts:
        if span := searched.find(child_text, start):
            body, start = f"{body}{text[start : span[0]]}\n\n", span[1]
    body += text[start:]
    heading = Part("heading", node.title, node.level, node.page)
    return [
        heading,
        *(Part("paragraph", body[first:last], page=node.page) for first, last in find_paragraph_spans(body)),
    ]


class SearchedText:
    r"""Text in which other texts are found whatever their white space.

    >>> text = SearchedText("The deep\nsea is dark.")
    >>> text.find("deep sea", 2), text.find("The deep lake")
    ((4, 12), None)
    """

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def _offsets(self) -> list[int]:
        """Offset of each character that is not white space."""
        return [offset for offset, character in enumerate(self.text) if not character.isspace()]

    @cached_property
    def _without_spaces(self) -> str:
        return "".join(self.text.split())

    def find(self, part: str, start: int = 0) -> tuple[int, int] | None:
        """Return the span of a part from an offset on, or None. The exact part is preferred to other white space."""
        if not part.strip():
            return None
        first = self.text.find(part, start)
        if first >= 0:
            return first, first + len(part)
        squeezed = "".join(part.split())
        index = self._without_spaces.find(squeezed, bisect_left(self._offsets, start))
        return None if index < 0 else (self._offsets[index], self._offsets[index + len(squeezed) - 1] + 1)


def _parts_of_pages(nodes: Sequence[_Node], pages: Sequence[str]) -> list[Part]:
    """Divide the text of the pages at the titles of nodes, or at page starts. All text is kept once."""
    text = "\n\n".join(pages)
    page_starts = list(accumulate((len(page) + 2 for page in pages), initial=0))
    node_starts: list[int] = []
    for node in nodes:
        if node.page is None or not 1 <= node.page <= len(pages):
            raise InvalidInput(f"The node {node.title!r:.80} has no text: give the text of each page as pages.")
        begin = max(page_starts[node.page - 1], node_starts[-1] if node_starts else 0)
        end = max(page_starts[node.page], begin)
        on_own_line = _title_pattern(node.title, on_own_line=True).search(text, begin, end)
        match = on_own_line or _title_pattern(node.title).search(text, begin, end)
        node_starts.append(match.start() if match else begin)
    parts: list[Part] = []
    for section, start, end in zip([None, *nodes], [0, *node_starts], [*node_starts, len(text)], strict=True):
        if section is not None:
            parts.append(Part("heading", section.title, section.level, section.page))
            start = _end_of_title(text, section.title, start)
        for first, last in find_paragraph_spans(text[start:end]) if start < end else ():
            page = bisect_right(page_starts, start + first)
            parts.append(Part("paragraph", text[start + first : start + last], page=page))
    return parts


def _end_of_title(text: str, title: str, start: int = 0) -> int:
    """Return the offset after the title if the text begins with it at `start`, else `start`."""
    match = re.compile(rf"\s*(?:{_title_pattern(title).pattern})", re.IGNORECASE).match(text, start)
    return match.end() if match else start


def _title_pattern(title: str, *, on_own_line: bool = False) -> re.Pattern[str]:
    """Compile a pattern of a title as whole words, with any white space and an optional Markdown heading mark."""
    mark = r"(?:(?<![\w#])#+[ \t]+|(?<!\w))"  # a run of "#" is read from its first one only: linear time
    words = mark + r"\s+".join(map(re.escape, title.split())) + r"(?!\w)"
    return re.compile(rf"^[ \t]*{words}[ \t]*$" if on_own_line else words, re.IGNORECASE | re.MULTILINE)
