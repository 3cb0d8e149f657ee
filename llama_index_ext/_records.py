"""LlamaIndex nodes: as they are given, copied, and read as sections and chunks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import replace
from functools import cache
from typing import Any

from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import BaseNode, NodeWithScore

from drillrank.errors import InvalidInput
from drillrank.frameworks.metadata import copy_metadata, is_section, prefixed, result_metadata, user_metadata
from drillrank.frameworks.pages import pages_of
from drillrank.frameworks.records import headings_of_path
from drillrank.structure.stored_chunks import StoredChunk


def check_kind(component: object, kind: type, **given: object) -> None:
    """Refuse what is of another kind than a field's, such as a retriever for an index; None is nothing.

    Raises:
        InvalidInput: names the field.
    """
    for name, value in given.items():
        if not (value is None or isinstance(value, kind)):
            raise InvalidInput(
                f"{type(component).__name__}: {name} is a {kind.__name__}, and a {type(value).__name__} is none."
            )


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


def forms(node: BaseNode) -> dict[str, Any]:
    """How a node's metadata and text are put together for a model: what is made of it is read likewise."""
    names = ("metadata_template", "metadata_separator", "text_template")
    return {name: value for name in names if (value := getattr(node, name, None)) is not None}


class RankedNode(NodeWithScore):
    """A hit with a score of ours: so that nothing is said of the scores of others."""


def unread(node: BaseNode, metadata: dict[str, Any], keys: Iterable[str]) -> BaseNode:
    """A copy of a node with this metadata, of which no model reads the keys, and with the hash of the node.

    >>> from llama_index.core.schema import MetadataMode, TextNode
    >>> unread(TextNode(text="a"), {"path": "x > y"}, ["path"]).get_content(MetadataMode.LLM)
    'a'
    """
    keys = list(keys)
    copy: Any = node.model_copy(
        update={
            "metadata": copy_metadata(metadata),
            "relationships": deepcopy(node.relationships),
            "excluded_embed_metadata_keys": list(dict.fromkeys([*node.excluded_embed_metadata_keys, *keys])),
            "excluded_llm_metadata_keys": list(dict.fromkeys([*node.excluded_llm_metadata_keys, *keys])),
        }
    )
    if "_stored" not in type(node).__private_attributes__:  # if not, it is such a copy
        copy.__class__ = _annotated(type(node))
        copy.__pydantic_private__ = {**(node.__pydantic_private__ or {}), "_stored": {"metadata": node.metadata}}
    return copy  # type: ignore[no-any-return]


@cache
def _annotated(kind: type[BaseNode]) -> type[BaseNode]:
    """The class for nodes of this one with notes of a question: by their hash the host's fusion tells nodes apart."""

    class Annotated(kind):  # type: ignore[misc, valid-type]
        _stored: dict[str, Any] = PrivateAttr(default_factory=dict)

        @property
        def hash(self) -> str:
            return str(self._plain(**self._stored).hash)

        def __reduce_ex__(self, protocol: Any) -> Any:
            return deepcopy, (self._plain(),)  # no module has this class

        def _plain(self, **update: Any) -> Any:
            node = self.model_copy(update=update)
            node.__class__ = kind
            return node

    Annotated.__name__ = Annotated.__qualname__ = kind.__name__
    return Annotated


DOCUMENT = "ref_doc_id"
"""Metadata key of a node's document. Stores filter by it, although metadata do not have it."""

_HEADINGS = "header_path"  # of the framework's Markdown parser: those above the heading that the text begins with


def read_chunks(records: Iterable[BaseNode | NodeWithScore]) -> list[StoredChunk[BaseNode]]:
    """Return nodes or hits as stored chunks."""
    hits = [record if isinstance(record, NodeWithScore) else NodeWithScore(node=record) for record in records]
    node_by_id = {hit.node.node_id: hit.node for hit in hits}
    return [replace(_read_node(hit.node, node_by_id), score=hit.score) for hit in hits]


def _read_node(node: BaseNode, node_by_id: Mapping[str, BaseNode]) -> StoredChunk[BaseNode]:
    names, metadata, text = result_metadata(node.metadata), user_metadata(node.metadata), node.get_content()
    namespace, document = str(names.get("namespace") or ""), node.ref_doc_id or node.node_id
    related = {"parent_id": node.parent_node, "previous_id": node.prev_node, "next_id": node.next_node}
    chunk = StoredChunk(
        node,
        node.node_id,
        text,
        (namespace, document),
        view_text=text,
        metadata=metadata,
        pages=pages_of(node.metadata),
        links={name: info.node_id for name, info in related.items() if info is not None},
        vector=node.embedding,
    )
    is_view = is_section(node.metadata)
    if not is_view and node.ref_doc_id in (None, node.node_id):
        return chunk
    siblings = {DOCUMENT: document, **({prefixed("namespace"): namespace} if namespace else {})}
    chunk = replace(chunk, kind="chunk", siblings=siblings)
    start, end = getattr(node, "start_char_idx", None), getattr(node, "end_char_idx", None)
    if is_view:
        view = str(names["view"])
        chunk = replace(chunk, id=str(names["section_id"]), view=view, text=text if view == "raw" else "")
        if start is None:  # a section of a piece that another parser cut
            return chunk
        return replace(chunk, kind="section", path=str(names.get("section_path", "")), start=start, end=end)
    headings, document_start = headings_of_path(metadata.get(_HEADINGS)), _document_start(node, node_by_id)
    chunk = replace(chunk, path=headings, is_below_path=_HEADINGS in metadata)
    if headings and not (document_start != 0 and text.startswith("#")):
        return chunk  # it was cut again, and its offsets count from the first cut
    return replace(chunk, start=document_start, end=end if document_start == start else None)


def _document_start(
    node: BaseNode, node_by_id: Mapping[str, BaseNode], child_ids: frozenset[str] = frozenset()
) -> int | None:
    """Return the offset of a node in its document. None if it is not known.

    The framework's hierarchical parser counts from the parent, and nevertheless names the document as the source. So
    the parent must be in `node_by_id`, and have the node's text at that offset.
    """
    start, parent_info = getattr(node, "start_char_idx", None), node.parent_node
    if start is None or parent_info is None or parent_info.node_id == node.ref_doc_id:
        return start
    parent = node_by_id.get(parent_info.node_id)
    if parent is None or parent.node_id in child_ids:
        return None
    text, parent_start = node.get_content(), _document_start(parent, node_by_id, child_ids | {node.node_id})
    has_text = parent.get_content()[start : start + len(text)] == text
    return None if parent_start is None or not has_text else parent_start + start
