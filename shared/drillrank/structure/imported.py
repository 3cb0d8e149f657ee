"""Documents that Docling, unstructured, LlamaParse or PageIndex have parsed, with the structure that they found.

Nothing here imports those tools: their objects, dictionaries and JSON are read by what they hold. Pages are theirs.
Tables are written as Markdown has them, with the first row as head.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from drillrank import limits
from drillrank.errors import InvalidInput
from drillrank.limits import read_json
from drillrank.structure.cutting import find_paragraph_spans
from drillrank.structure.document import Block, BlockKind, Document
from drillrank.structure.html import scan_html
from drillrank.structure.markdown import as_markdown, scan_markdown, table, with_closed_fence
from drillrank.structure.pages import join_pages
from drillrank.structure.plain import named_rank
from drillrank.structure.scan import Heading, Scan, assemble

_NUMBER = re.compile(r"(?P<number>\d{1,3}(?:\.\d{1,3})*)\.?[ \t]+\S|(?P<named>.)")
_OF_DOCLING: dict[str, BlockKind] = {
    "title": "heading",
    "section_header": "heading",
    "list_item": "list",
    "code": "code",
}
_OF_UNSTRUCTURED: dict[str, BlockKind] = {"Title": "heading", "ListItem": "list", "CodeSnippet": "code"}
_REFERENCE = re.compile(r"(?:#/)?(?P<items>[^/]*)/(?P<number>\d{1,9})")
_TABLES = {"Table", "TableChunk"}
_LEFT_OUT = {"Header", "Footer", "PageNumber", "PageBreak"}


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a document.

    Attributes:
        kind: What it is.
        text: As a reader sees it.
        level: Of a heading, from 1 on.
        page: Number of the page that it begins on, if that is known.
    """

    kind: BlockKind
    text: str
    level: int = 1
    page: int | None = None


def document_of(parts: Iterable[Part], *, rebuild: bool = False) -> Document:
    r"""The parts as a document; blank ones are left out, a page earlier than the one before does not count.

    Args:
        parts: In reading order.
        rebuild: Whether headings on one level may be given several.

    >>> document = document_of([Part("heading", "Sea", page=1), Part("paragraph", "Deep.", page=2)])
    >>> document.text, document.page_numbers(0, 3), document.page_numbers(5, 10)
    ('Sea\n\nDeep.', (1, 1), (2, 2))
    """
    texts: list[tuple[str, int | None]] = []
    blocks: list[Block] = []
    headings: dict[int, Heading] = {}
    at = 0
    for part in parts:
        text = " ".join(part.text.split()) if part.kind == "heading" else part.text.strip()
        if not text:
            continue
        if part.kind == "heading":
            headings[at] = Heading(part.level, text)
        texts.append((text, part.page))
        blocks.append(Block(part.kind, at, at + len(text)))
        at += len(text) + 2
    text, pages = join_pages(texts)
    scan = Scan(blocks, rebuilt(headings) if rebuild else headings)
    return replace(assemble(text, scan, "text"), pages=pages)


def as_mapping(given: object, tool: str) -> Mapping[str, Any]:
    """A dictionary, or the JSON of one, or what a pydantic model or a dataclass of the tool turns into.

    Raises:
        InvalidInput: it is none of these.
    """
    if isinstance(given, str):
        given = read_json(given, f"The output of {tool}")
    for name in ("export_to_dict", "to_dict", "model_dump"):
        if not isinstance(given, Mapping) and callable(turn := getattr(given, name, None)):
            given = turn(mode="json") if name == "model_dump" else turn()
    if not isinstance(given, Mapping):
        raise InvalidInput(f"Expected output of {tool}, a mapping, not a {type(given).__name__}.")
    return given


def page_number(value: object) -> int | None:
    """A page's number, where it is one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def rebuilt(headings: Mapping[int, Heading]) -> dict[int, Heading]:
    """Headings with levels by numbering, where two or more are numbered; as they are where they differ already.

    The first heading may stand alone above all others, as a title does. A heading without a number is below the
    numbered one before it, but for those before the first and after the last number.

    Args:
        headings: By the start of their blocks.

    >>> titles = ["Abstract", "1 Data", "1.1 Units", "Kilograms", "2 Use"]
    >>> [heading.level for heading in rebuilt({at: Heading(2, title) for at, title in enumerate(titles)}).values()]
    [2, 2, 3, 4, 2]
    """
    found = dict(headings)
    rest = list(headings)
    if len(rest) > 1 and headings[rest[0]].level < headings[rest[1]].level:
        rest = rest[1:]  # behind the title
    given_depths = [_depth(headings[start].title) for start in rest]
    places = [at for at, depth in enumerate(given_depths) if depth is not None]
    if len({headings[start].level for start in rest}) != 1 or len(places) < 2:
        return found
    ranks = sorted({depth for depth in given_depths if depth is not None})
    last = 0
    for at, (start, depth) in enumerate(zip(rest, given_depths, strict=True)):
        below = depth is None and places[0] < at < places[-1]
        last = last if depth is None else ranks.index(depth)
        if depth is not None or below:
            found[start] = headings[start]._replace(level=headings[start].level + last + below)
    return found


def _depth(title: str) -> float | None:
    """How deep a number says that a heading is: parts and items are above "1", which is above "1.1"."""
    rank = named_rank(title)
    if rank is not None:
        return rank - 10.0
    found = _NUMBER.match(title)
    return float(found["number"].count(".")) if found and found["number"] else None


def document_from_docling(given: object) -> Document:
    r"""Read what Docling has parsed.

    Running headers and footers are left out. Docling gives most PDFs' headings one level: it is rebuilt from their
    numbering.

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
        return _with_rebuilt_levels(given)
    saved = as_mapping(given, "Docling")
    if not isinstance(saved.get("body"), Mapping):
        raise InvalidInput("This is no DoclingDocument: it has no body.")
    return document_of(_docling_parts(saved), rebuild=True)


def _docling_parts(saved: Mapping[str, Any]) -> Iterator[Part]:
    """What stands below the body, in reading order, each item once."""
    pending, seen = _children(saved, saved["body"]), set[int]()
    while pending:
        item = pending.pop()
        if id(item) in seen or item.get("content_layer", "body") != "body":
            continue
        seen.add(id(item))
        pending += _children(saved, item)
        label = str(item.get("label", ""))
        page = next((page_number(location.get("page_no")) for location in _mappings(item.get("prov"))), None)
        if label in ("table", "document_index"):
            yield Part("table", _docling_table(item.get("data")), page=page)
        elif label not in ("page_header", "page_footer") and isinstance(item.get("text"), str):
            level = item.get("level")
            level = level + 1 if label == "section_header" and isinstance(level, int) and level > 0 else 1
            marker = f"{item['marker']} " if label == "list_item" and item.get("marker") else ""
            yield Part(_OF_DOCLING.get(label, "paragraph"), marker + item["text"], level, page)
        graph = item.get("graph")
        cells = _mappings(graph.get("cells")) if isinstance(graph, Mapping) else []  # of a form
        for note in [*_mappings(item.get("annotations")), *cells]:
            yield Part("paragraph", str(note.get("text") or ""), page=page)
            yield Part("table", _docling_table(note.get("chart_data")), page=page)


def _children(saved: Mapping[str, Any], node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The items that a node's references such as `#/texts/3` name, the last first."""
    found: list[Mapping[str, Any]] = []
    for child in _mappings(node.get("children")):
        reference = _REFERENCE.fullmatch(str(child.get("$ref") or child.get("cref")))
        items = saved.get(reference["items"]) if reference else None
        if reference and isinstance(items, list | tuple):
            found += _mappings(items[int(reference["number"]) :][:1])
    return found[::-1]


def _docling_table(data: object) -> str:
    """A cell over several columns or rows stands at its first place."""
    rows: dict[int, list[tuple[int, str]]] = {}
    for cell in _mappings(data.get("table_cells") if isinstance(data, Mapping) else None):
        row, column = cell.get("start_row_offset_idx"), cell.get("start_col_offset_idx")
        if isinstance(row, int) and isinstance(column, int):
            rows.setdefault(row, []).append((column, " ".join(str(cell.get("text") or "").split())))
    return table([[text for _, text in sorted(rows[row])] for row in sorted(rows)]) if rows else ""


def _mappings(value: object) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list | tuple) else []


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
        kind, text = _OF_UNSTRUCTURED.get(category, "paragraph"), element.get("text") or ""
        html = str(more.get("text_as_html") or "") if category in _TABLES else ""
        if shown := "\n\n".join(as_markdown(assemble(html, scan_html(html), "html"))):
            kind, text = "table", shown
        parts.append(Part(kind, text, level, page_number(more.get("page_number"))))
    return document_of(parts, rebuild=True)


def document_from_llamaparse(given: object) -> Document:
    r"""Read a result of LlamaParse: the pages' Markdown as one document, so that sections run across pages.

    Where all headings are on one level, levels are rebuilt from their numbering.

    Args:
        given: The result in JSON mode (`pages`, each with `page` and `md`), a job's result with `markdown` expanded
            (`markdown.pages`, each with `page_number` and `markdown`), as object, dictionary or JSON; or a list of
            pages.

    Raises:
        InvalidInput: it is something else, or no page has Markdown.

    >>> document = document_from_llamaparse([{"page": 3, "md": "# Sea\n\nWide."}, {"page": 4, "md": "And deep."}])
    >>> document.text, [document.page_numbers(section.start, section.end) for section in document.sections()]
    ('# Sea\n\nWide.\n\nAnd deep.', [(3, 4)])
    """
    texts: list[tuple[str, int | None]] = []
    for location, page in enumerate(_listed(given, "LlamaParse", "pages", "markdown"), start=1):
        saved = as_mapping(page, "LlamaParse")
        text = next((saved[key] for key in ("md", "markdown", "text") if saved.get(key)), None)
        if isinstance(text, str) and text.strip():
            number = page_number(saved.get("page", saved.get("page_number", location)))
            texts.append((with_closed_fence(text.strip("\r\n")), number))
    if not texts:
        raise InvalidInput("No page of this result has Markdown: ask LlamaParse for it.")
    text, pages = join_pages(texts)
    return replace(_with_rebuilt_levels(text), pages=pages)


def _with_rebuilt_levels(text: str) -> Document:
    scan = scan_markdown(text)
    return assemble(text, Scan(scan.blocks, rebuilt(scan.headings)), "markdown")


def _listed(given: object, tool: str, *keys: str) -> Sequence[object]:
    """A list, or the one that a mapping has under the first of some keys; the last key may lead to the first.

    Raises:
        InvalidInput: there is none.
    """
    if isinstance(given, str):
        given = read_json(given, f"The output of {tool}")
    if isinstance(given, list | tuple):
        return given
    saved = as_mapping(given, tool)
    for key in keys:
        found = saved.get(key)
        found = found.get(keys[0]) if isinstance(found, Mapping) else found
        if isinstance(found, list | tuple):
            return found
    raise InvalidInput(f"This is no output of {tool}: it has no {keys[0]}.")


@dataclass(frozen=True)
class PageIndexTree:
    """A tree of PageIndex as a document, and as the outline that drilling down reads.

    Attributes:
        document: Sections with the tree's titles and pages.
        by_text: The tree's summary of each section that has one, by the section's text without its heading.
    """

    document: Document
    by_text: Mapping[str, str]

    def summaries(self, texts: Sequence[str], /) -> list[str]:
        """The tree's summaries, for D3's setting `summarizer`; a text that it has none of comes back as it is."""
        return [self.by_text.get(text, text) for text in texts]


@dataclass(frozen=True, slots=True)
class _Node:
    title: str
    level: int
    page: int | None
    text: str | None
    summary: str
    children: tuple[str, ...]


def document_from_pageindex(tree: object, pages: Sequence[str] | None = None) -> PageIndexTree:
    """Read a tree of PageIndex: its titles, levels, pages and summaries are taken as they are.

    A section's text is the node's `text` without those of its children. Where a node has none, the
    pages are divided at the nodes' titles, looked for on the page of `start_index`, or else where that page begins.

    Args:
        tree: What PageIndex writes (`structure`), or the list of its nodes, or either as JSON.
        pages: The text of each page, the first page's first; needed where nodes have no `text`.

    Raises:
        InvalidInput: it is something else, or a node has neither text nor pages that were given.

    >>> nodes = [{"title": "Sea", "start_index": 1, "end_index": 2, "summary": "On water.", "nodes": []}]
    >>> tree = document_from_pageindex({"structure": nodes}, pages=["Sea is wide.", "And deep."])
    >>> tree.document.text.split(), tree.summaries([tree.document.body(tree.document.sections()[0]).strip()])
    (['Sea', 'is', 'wide.', 'And', 'deep.'], ['On water.'])
    """
    single = [tree] if isinstance(tree, Mapping) and "title" in tree else tree
    nodes = list(_nodes(_listed(single, "PageIndex", "structure", "result", "nodes"), 1))
    from_nodes = all(node.text is not None for node in nodes)
    document = document_of(
        [part for node in nodes for part in _own_parts(node)] if from_nodes else _from_pages(nodes, pages or ())
    )
    bodies = [document.body(section).strip() for section in document.sections() if section.path]
    by_text = {body: node.summary for body, node in zip(bodies, nodes, strict=True) if body and node.summary}
    return PageIndexTree(document, by_text)


def _own_parts(node: _Node) -> list[Part]:
    """The heading of a node, and the paragraphs of its `text` without its title and the texts of its children."""
    text = node.text or ""
    body, at = "", _after(text, node.title)
    for child in node.children:
        if location := find_text(text, child, at):
            body, at = f"{body}{text[at : location[0]]}\n\n", location[1]
    body += text[at:]
    heading = Part("heading", node.title, node.level, node.page)
    return [heading, *(Part("paragraph", body[start:end], page=node.page) for start, end in find_paragraph_spans(body))]


def find_text(text: str, wanted: str, start: int = 0) -> tuple[int, int] | None:
    r"""Where a text stands in another from an offset on: as it is, else whatever white space is in it; else nowhere.

    >>> find_text("The deep\nsea is dark.", "deep sea", 2), find_text("The sea.", "The deep sea")
    ((4, 12), None)
    """
    at = text.find(wanted, start)
    if at >= 0 or not wanted.strip():
        return (at, at + len(wanted)) if at >= 0 and wanted.strip() else None
    places = [location for location in range(start, len(text)) if not text[location].isspace()]
    bare = "".join(wanted.split())
    at = "".join(text[start:].split()).find(bare)
    return None if at < 0 else (places[at], places[at + len(bare) - 1] + 1)


def _from_pages(nodes: Sequence[_Node], pages: Sequence[str]) -> list[Part]:
    """The pages' text, divided where titles stand, or else where their pages begin; all of it, once."""
    text = "\n\n".join(pages)
    firsts = list(accumulate((len(page) + 2 for page in pages), initial=0))
    starts: list[int] = []
    for node in nodes:
        if node.page is None or not 1 <= node.page <= len(pages):
            raise InvalidInput(f"The node {node.title!r:.80} has no text: give the text of each page as pages.")
        begin = max(firsts[node.page - 1], starts[-1] if starts else 0)
        end = max(firsts[node.page], begin)
        found = _title(node.title, alone=True).search(text, begin, end) or _title(node.title).search(text, begin, end)
        starts.append(found.start() if found else begin)
    parts: list[Part] = []
    for above, start, end in zip([None, *nodes], [0, *starts], [*starts, len(text)], strict=True):
        if above is not None:
            parts.append(Part("heading", above.title, above.level, above.page))
            start = _after(text, above.title, start)
        for first, last in find_paragraph_spans(text[start:end]) if start < end else ():
            page = bisect_right(firsts, start + first)
            parts.append(Part("paragraph", text[start + first : start + last], page=page))
    return parts


def _nodes(given: Sequence[object], level: int) -> Iterator[_Node]:
    """All nodes in pre-order."""
    if level > limits.HEADING_DEPTH:
        raise InvalidInput(f"This tree of PageIndex is deeper than {limits.HEADING_DEPTH} levels.")
    for item in given:
        saved = as_mapping(item, "PageIndex")
        title, below = saved.get("title"), saved.get("nodes") or []
        if not isinstance(title, str) or not title.strip() or not isinstance(below, list):
            raise InvalidInput("A node of this tree of PageIndex has no title, or its nodes are no list.")
        first = page_number(saved.get("start_index", saved.get("page_index", saved.get("physical_index"))))
        summary = saved.get("summary") or saved.get("prefix_summary") or ""
        texts = tuple(part["text"] for part in _mappings(below) if isinstance(part.get("text"), str))
        text = saved.get("text")
        yield _Node(title, level, first, text if isinstance(text, str) else None, str(summary), texts)
        yield from _nodes(below, level + 1)


def _after(text: str, title: str, start: int = 0) -> int:
    """Where the text goes on after its title, if it begins with that."""
    found = re.compile(rf"\s*(?:{_title(title).pattern})", re.IGNORECASE).match(text, start)
    return found.end() if found else start


def _title(title: str, *, alone: bool = False) -> re.Pattern[str]:
    """Finds a title, as whole words or alone on its lines, whatever white space is in it, with a heading's marks."""
    words = r"(?<!\w)(?:#+[ \t]+)?" + r"\s+".join(map(re.escape, title.split())) + r"(?!\w)"
    return re.compile(rf"^[ \t]*{words}[ \t]*$" if alone else words, re.IGNORECASE | re.MULTILINE)
