"""PageIndex: its tree of titles, pages and summaries."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from drillrank import limits
from drillrank.errors import InvalidInput
from drillrank.limits import read_json
from drillrank.structure.document import Document
from drillrank.structure.lines import paragraphs
from drillrank.structure.parsed.parts import Part, as_mapping, document_of, page_number


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
    child_text: str | None


def document_from_pageindex(tree: object, pages: Sequence[str] | None = None) -> PageIndexTree:
    """Read a tree of PageIndex: its titles, levels, pages and summaries are taken as they are.

    A section's text is the node's `text`, up to where that of its first child begins. Where a node has none, the
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
    nodes = list(_nodes(_roots(tree), 1))
    if all(node.text is not None for node in nodes):
        parts = [part for node in nodes for part in (_heading(node), *_own_text(node))]
    else:
        parts = _from_pages(nodes, pages or ())
    document = document_of(parts)
    bodies = [document.body(section).strip() for section in document.sections() if section.path]
    by_text = {body: node.summary for body, node in zip(bodies, nodes, strict=True) if body and node.summary}
    return PageIndexTree(document, by_text)


def _heading(node: _Node) -> Part:
    return Part("heading", node.title, node.level, node.page)


def _own_text(node: _Node) -> list[Part]:
    """The paragraphs of a node's `text`, without its title and the text of its children."""
    text = node.text or ""
    end = text.find(node.child_text) if node.child_text else -1
    text = text[_after(text, node.title) : end if end >= 0 else None]
    return [Part("paragraph", text[start:end], page=node.page) for start, end in paragraphs(text)]


def _from_pages(nodes: Sequence[_Node], pages: Sequence[str]) -> list[Part]:
    """The pages' text, divided where titles stand, or else where their pages begin; all of it, once."""
    text = "\n\n".join(pages)
    firsts = list(accumulate((len(page) + 2 for page in pages), initial=0))
    starts: list[int] = []
    for node in nodes:
        if node.page is None or not 1 <= node.page <= len(pages):
            raise InvalidInput(f"The node {node.title!r:.80} has no text: give the text of each page as pages.")
        begin = max(firsts[node.page - 1], starts[-1] if starts else 0)
        found = _title(node.title).search(text, begin, max(firsts[node.page], begin))
        starts.append(found.start() if found else begin)
    parts: list[Part] = []
    for above, start, end in zip([None, *nodes], [0, *starts], [*starts, len(text)], strict=True):
        if above is not None:
            parts.append(_heading(above))
            start = _after(text, above.title, start)
        for first, last in paragraphs(text[start:end]) if start < end else ():
            page = bisect_right(firsts, start + first)
            parts.append(Part("paragraph", text[start + first : start + last], page=page))
    return parts


def _roots(tree: object) -> Sequence[object]:
    if isinstance(tree, str):
        tree = read_json(tree, "The tree of PageIndex")
    if isinstance(tree, list | tuple):
        return tree
    saved = as_mapping(tree, "PageIndex")
    if "title" in saved:
        return [saved]
    for key in ("structure", "result", "nodes"):
        if isinstance(saved.get(key), list):
            return list(saved[key])
    raise InvalidInput("This is no tree of PageIndex: it has no structure.")


def _nodes(given: Sequence[object], level: int) -> Iterator[_Node]:
    """All nodes in pre-order."""
    if level > limits.HEADING_DEPTH:
        raise InvalidInput(f"This tree of PageIndex is deeper than {limits.HEADING_DEPTH} levels.")
    for item in given:
        saved = as_mapping(item, "PageIndex")
        title, below = saved.get("title"), saved.get("nodes") or []
        if not isinstance(title, str) or not title.strip() or not isinstance(below, list):
            raise InvalidInput("A node of this tree of PageIndex has no title, or its nodes are no list.")
        first = page_number(saved.get("start_index", saved.get("page_index")))
        summary = saved.get("summary") or saved.get("prefix_summary") or ""
        child = next((part.get("text") for part in below if isinstance(part, Mapping)), None)
        yield _Node(title, level, first, _string(saved.get("text")), str(summary), _string(child))
        yield from _nodes(below, level + 1)


def _string(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _after(text: str, title: str, start: int = 0) -> int:
    """Where the text goes on after its title, if it begins with that."""
    found = re.compile(rf"\s*(?:{_title(title).pattern})", re.IGNORECASE).match(text, start)
    return found.end() if found else start


def _title(title: str) -> re.Pattern[str]:
    """Finds a title whatever white space is in it, with a heading's marks before it."""
    return re.compile(r"(?:#+[ \t]+)?" + r"\s+".join(map(re.escape, title.split())), re.IGNORECASE)
