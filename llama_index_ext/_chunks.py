"""LlamaIndex nodes as the core's stored chunks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from llama_index.core.schema import BaseNode, IndexNode, NodeWithScore

from drillrank.hosts.chunks import ChunkRecord
from drillrank.hosts.headings import headings_of_path
from drillrank.hosts.metadata import is_section, own, prefixed, theirs
from drillrank.hosts.pages import pages_of
from drillrank.llm import Fetch
from llama_index_ext._lookups import DOCUMENT

_HEADINGS = "header_path"  # of the host's parser of Markdown: those above the heading that the text begins with


def chunks_of(nodes: Iterable[BaseNode | NodeWithScore]) -> list[ChunkRecord[BaseNode]]:
    """What each node is a piece of, and where in it it stands."""
    listed = [_record(found.node if isinstance(found, NodeWithScore) else found) for found in nodes]
    known = {node.node_id: node for node, _ in listed}
    return [_chunk(node, itself, known) for node, itself in listed]


def holding(chunk: ChunkRecord[BaseNode]) -> Fetch | None:
    """Asks a store for all records of a chunk's document."""
    space, id_ = chunk.document
    return None if chunk.kind == "document" else Fetch(where={DOCUMENT: id_, **_namespace(space)})


def _namespace(space: str) -> dict[str, str]:
    return {prefixed("namespace"): space} if space else {}


def _record(given: BaseNode) -> tuple[BaseNode, bool]:
    """The node, or the copy in it of the one that it leads to; and whether it is the node."""
    if isinstance(given, IndexNode) and isinstance(given.obj, BaseNode):
        return given.obj, False
    return given, True


def _start(node: BaseNode, known: Mapping[str, BaseNode], below: frozenset[str] = frozenset()) -> int | None:
    """Where a node stands in its document.

    The host's hierarchical parser counts from the parent, which was cut like a document, and names the document as
    the source nevertheless: so the parent has to be known, and to say the same.
    """
    start, parent = getattr(node, "start_char_idx", None), node.parent_node
    if start is None or parent is None or parent.node_id == node.ref_doc_id:
        return start
    above = known.get(parent.node_id)
    if above is None or above.node_id in below:
        return None
    text, first = node.get_content(), _start(above, known, below | {node.node_id})
    return None if first is None or above.get_content()[start : start + len(text)] != text else first + start


def _chunk(node: BaseNode, itself: bool, known: Mapping[str, BaseNode]) -> ChunkRecord[BaseNode]:
    found = own(node.metadata)
    document = str(found.get("namespace") or ""), node.ref_doc_id or node.node_id
    text, start, end = node.get_content(), getattr(node, "start_char_idx", None), getattr(node, "end_char_idx", None)
    metadata, pages = theirs(node.metadata), pages_of(node.metadata)
    if is_section(node.metadata):
        raw = found["view"] == "raw"
        placed = start is not None  # if not, it was cut out of what another parser cut
        return ChunkRecord(
            node,
            node.node_id if raw else str(found["section_id"]),
            text if raw else "",
            document,
            kind="section" if placed else "chunk",
            raw=raw and itself,  # a copy may be outdated
            path=str(found.get("section_path", "")) if placed else (),
            start=start,
            end=end if placed else None,
            metadata=metadata,
            pages=pages,
        )
    if node.ref_doc_id is None or node.ref_doc_id == node.node_id:
        return ChunkRecord(node, node.node_id, text, document, metadata=metadata, pages=pages)
    headings = headings_of_path(metadata.get(_HEADINGS))
    begin = _start(node, known)
    if begin != start:
        start, end = begin, None
    cut_again = bool(headings) and (start == 0 or not text.startswith("#"))  # then offsets count from there
    return ChunkRecord(
        node,
        node.node_id,
        text,
        document,
        kind="chunk",
        path=headings,
        above=_HEADINGS in metadata,
        start=None if cut_again else start,
        end=None if cut_again else end,
        metadata=metadata,
    )
