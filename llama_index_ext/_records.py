"""LlamaIndex nodes: as they are given, copied, and read as sections and chunks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

from llama_index.core.schema import BaseNode, NodeWithScore

from drillrank.errors import InvalidInput
from drillrank.hosts.metadata import is_section, prefixed, result_metadata, user_metadata
from drillrank.hosts.pages import pages_of
from drillrank.hosts.records import ChunkRecord, headings_of_path
from drillrank.hosts.sections import StoredSection, stored_section
from drillrank.llm import Fetch
from llama_index_ext._lookups import DOCUMENT


def check_retriever(component: object, retriever: object) -> None:
    """Refuse what does not retrieve, such as an index.

    Raises:
        InvalidInput: says what to pass.

    >>> check_retriever("PromptRankRetriever", [])
    Traceback (most recent call last):
    ...
    drillrank.errors.InvalidInput: str: source, a retriever, and a list is none: of an index, pass index.as_retriever().
    """
    if not callable(getattr(retriever, "retrieve", None)):
        raise InvalidInput(
            f"{type(component).__name__}: source, a retriever, and a {type(retriever).__name__} is none: of an index, "
            "pass index.as_retriever()."
        )


def checked_nodes(component: object, given: object) -> list[BaseNode]:
    """The nodes that a component is given, in a list of its own.

    Raises:
        InvalidInput: it is no list of nodes: says where an index goes.
    """
    nodes: list[Any] = list(given) if isinstance(given, Iterable) and not isinstance(given, str | BaseNode) else []
    strange = given if given and not nodes else next((node for node in nodes if not isinstance(node, BaseNode)), None)
    if strange is not None:
        raise InvalidInput(
            f"{type(component).__name__}: documents is a list of nodes or documents, and a {type(strange).__name__} is "
            f"none: an index or a retriever is given as source=; not {strange!r:.100}."
        )
    return nodes


def unread(node: BaseNode, metadata: dict[str, Any], keys: Iterable[str]) -> BaseNode:
    """A copy of a node with this metadata, of which no model reads the keys.

    >>> from llama_index.core.schema import MetadataMode, TextNode
    >>> unread(TextNode(text="a"), {"path": "x > y"}, ["path"]).get_content(MetadataMode.LLM)
    'a'
    """
    keys = list(keys)
    return node.model_copy(
        update={
            "metadata": deepcopy(metadata),
            "relationships": deepcopy(node.relationships),
            "excluded_embed_metadata_keys": list(dict.fromkeys([*node.excluded_embed_metadata_keys, *keys])),
            "excluded_llm_metadata_keys": list(dict.fromkeys([*node.excluded_llm_metadata_keys, *keys])),
        }
    )


def read_section(found: BaseNode | NodeWithScore) -> StoredSection:
    """What a node, or a hit, is."""
    node = found.node if isinstance(found, NodeWithScore) else found
    links = {"parent_id": node.parent_node, "previous_id": node.prev_node, "next_id": node.next_node}
    return stored_section(
        node,
        node.metadata,
        node.get_content(),
        id=node.node_id,
        document=node.ref_doc_id,
        around={name: link.node_id for name, link in links.items() if link is not None},
    )


_HEADINGS = "header_path"  # of the host's parser of Markdown: those above the heading that the text begins with


def chunks_of(nodes: Iterable[BaseNode | NodeWithScore]) -> list[ChunkRecord[BaseNode]]:
    """What each node is a piece of, and where in it it stands."""
    listed = [found.node if isinstance(found, NodeWithScore) else found for found in nodes]
    known = {node.node_id: node for node in listed}
    return [_chunk(node, known) for node in listed]


def metadata_query(chunk: ChunkRecord[BaseNode]) -> Fetch | None:
    """Asks a store for all records of a chunk's document."""
    space, id_ = chunk.document
    return None if chunk.kind == "document" else Fetch(where={DOCUMENT: id_, **_namespace(space)})


def _namespace(space: str) -> dict[str, str]:
    return {prefixed("namespace"): space} if space else {}


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


def _chunk(node: BaseNode, known: Mapping[str, BaseNode]) -> ChunkRecord[BaseNode]:
    found = result_metadata(node.metadata)
    document = str(found.get("namespace") or ""), node.ref_doc_id or node.node_id
    text, start, end = node.get_content(), getattr(node, "start_char_idx", None), getattr(node, "end_char_idx", None)
    metadata, pages = user_metadata(node.metadata), pages_of(node.metadata)
    if is_section(node.metadata):
        raw = found["view"] == "raw"
        placed = start is not None  # if not, it was cut out of what another parser cut
        return ChunkRecord(
            node,
            node.node_id if raw else str(found["section_id"]),
            text if raw else "",
            document,
            kind="section" if placed else "chunk",
            raw=raw,
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
