"""LlamaIndex nodes: checks of what a component is given, annotated copies, and nodes as stored chunks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from functools import cache
from typing import Any

from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.indices.vector_store import VectorStoreIndex
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, RelatedNodeInfo

from drillrank.errors import InvalidInput
from drillrank.frameworks.headings import headings_of_path
from drillrank.frameworks.inputs import check_text, finite_score
from drillrank.frameworks.metadata import copy_metadata, is_section, prefixed, result_metadata, user_metadata
from drillrank.frameworks.pages import read_pages
from drillrank.frameworks.sections import select_candidates
from drillrank.structure.record_store import RecordStore
from drillrank.structure.stored_chunks import StoredChunk
from llama_index_ext.reader import convert_documents


def check_type(component: object, expected: type, **values: object) -> None:
    """Check the types of fields; None is allowed.

    Raises:
        InvalidInput: A value has another type, such as a retriever instead of an index.
    """
    for name, value in values.items():
        if not (value is None or isinstance(value, expected)):
            raise InvalidInput(
                f"{type(component).__name__}: {name} must be a {expected.__name__}, got a {type(value).__name__}."
            )


def check_source(component: object, source: object, *, takes_store: bool = True) -> None:
    """Check the source of a component.

    Args:
        component: The component.
        source: Its source.
        takes_store: True if the source may be an index or a record store instead of a retriever.

    Raises:
        InvalidInput: The source is something else.

    >>> check_source("PromptRankRetriever", [])
    Traceback (most recent call last):
    ...
    drillrank.errors.InvalidInput: str: source must be a retriever, a VectorStoreIndex or a RecordStore, got a list.
    """
    if callable(getattr(source, "retrieve", None)):
        return
    if not takes_store:
        raise InvalidInput(
            f"{type(component).__name__}: the source of a view must be a retriever, got a {type(source).__name__}. Of "
            "an index, pass index.as_retriever()."
        )
    if not isinstance(source, VectorStoreIndex | RecordStore):
        raise InvalidInput(
            f"{type(component).__name__}: source must be a retriever, a VectorStoreIndex or a RecordStore, got a "
            f"{type(source).__name__}."
        )


def check_nodes(component: object, documents: object) -> list[BaseNode]:
    """Return the documents of a component as a list of nodes. Documents of drillrank are converted.

    Raises:
        InvalidInput: There is something else among them.
    """
    is_collection = isinstance(documents, Iterable) and not isinstance(documents, str | BaseNode)
    nodes: list[Any] = convert_documents(documents) if is_collection else []  # type: ignore[arg-type]
    no_node = next((node for node in nodes if not isinstance(node, BaseNode)), None)
    if documents and not nodes:
        no_node = documents
    if no_node is not None:
        raise InvalidInput(
            f"{type(component).__name__}: documents must be a list of nodes or documents, got a "
            f"{type(no_node).__name__}. Pass an index or a retriever as source=."
        )
    return nodes


def copy_templates(node: BaseNode) -> dict[str, Any]:
    """Return the templates by which a node shows its metadata and text to models, for nodes made from it."""
    names = ("metadata_template", "metadata_separator", "text_template")
    return {name: value for name in names if (value := getattr(node, name, None)) is not None}


def select_hits(hits: Sequence[NodeWithScore]) -> list[NodeWithScore]:
    """Return one hit for each section, its raw node if possible, with the best score of its views."""
    records = [(hit.node.metadata, hit.node.get_content()) for hit in hits]
    candidates = select_candidates(records, [finite_score(hit.score) for hit in hits])
    return [
        hits[candidate.index]
        if candidate.index == candidate.best_index
        else NodeWithScore(node=hits[candidate.index].node, score=hits[candidate.best_index].score)
        for candidate in candidates
    ]


def read_content(node: BaseNode, mode: MetadataMode = MetadataMode.NONE) -> str:
    """Return the text of a node with its metadata, or the text alone if they are nested too deeply.

    Raises:
        InvalidInput: The text is not a string.
    """
    try:
        text = node.get_content(metadata_mode=mode)
    except RecursionError:
        text = node.get_content(metadata_mode=MetadataMode.NONE)
    return check_text(text, type(node).__name__)


def refer_to(node: BaseNode) -> RelatedNodeInfo:
    """Return a reference to a node, with hash and metadata unless the framework cannot compute the hash."""
    try:
        return node.as_related_node_info()
    except (RecursionError, UnicodeEncodeError):  # metadata nested too deeply, or a lone surrogate in the text
        return RelatedNodeInfo(node_id=node.node_id, node_type=node.get_type())


def annotate_node(node: BaseNode, metadata: dict[str, Any], hidden_keys: Iterable[str]) -> BaseNode:
    """Return a copy of a node with other metadata, some of which no model reads. Its hash is that of the node.

    >>> from llama_index.core.schema import MetadataMode, TextNode
    >>> annotate_node(TextNode(text="a"), {"path": "x > y"}, ["path"]).get_content(MetadataMode.LLM)
    'a'
    """
    keys = list(hidden_keys)
    copy: Any = node.model_copy(
        update={
            "metadata": copy_metadata(metadata),
            "relationships": copy_metadata(node.relationships),
            "excluded_embed_metadata_keys": list(dict.fromkeys([*node.excluded_embed_metadata_keys, *keys])),
            "excluded_llm_metadata_keys": list(dict.fromkeys([*node.excluded_llm_metadata_keys, *keys])),
        }
    )
    if "_stored" not in type(node).__private_attributes__:  # otherwise the node is such a copy itself
        copy.__class__ = _annotated_class(type(node))
        copy.__pydantic_private__ = {**(node.__pydantic_private__ or {}), "_stored": {"metadata": node.metadata}}
    return copy  # type: ignore[no-any-return]


@cache
def _annotated_class(kind: type[BaseNode]) -> type[BaseNode]:
    """Return the subclass for annotated copies of nodes. The framework's fusion distinguishes nodes by their hash."""

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


def read_nodes(records: Iterable[BaseNode | NodeWithScore]) -> list[StoredChunk[BaseNode]]:
    """Return each node as a chunk, with its position in the document that it was cut from.

    A `RecordStore` of a third party returns such chunks, and is then a `source` of retrievers.

    Args:
        records: Nodes of `MultiViewNodeParser` or of any other parser, documents, or hits with their scores.

    >>> from llama_index.core.schema import TextNode
    >>> [chunk] = read_nodes([TextNode(text="It is old.", id_="1", metadata={"year": 1226})])
    >>> chunk.id, chunk.text, chunk.metadata
    ('1', 'It is old.', {'year': 1226})
    """
    pairs = [(record.node, record.score) if isinstance(record, NodeWithScore) else (record, None) for record in records]
    node_by_id = {node.node_id: node for node, _ in pairs}
    return [_read_node(node, score, node_by_id) for node, score in pairs]


def _read_node(node: BaseNode, score: float | None, node_by_id: Mapping[str, BaseNode]) -> StoredChunk[BaseNode]:
    metadata, text = user_metadata(node.metadata), read_content(node)
    namespace, document = str(node.metadata.get(prefixed("namespace")) or ""), node.ref_doc_id or node.node_id
    related = {"parent_id": node.parent_node, "previous_id": node.prev_node, "next_id": node.next_node}
    fields: dict[str, Any] = {"id": node.node_id, "text": text}
    is_view = is_section(node.metadata)
    if is_view or node.ref_doc_id not in (None, node.node_id):
        fields["kind"] = "chunk"
        fields["siblings"] = {DOCUMENT: document, **({prefixed("namespace"): namespace} if namespace else {})}
        fields |= _read_section(node, text) if is_view else _read_part(node, metadata, text, node_by_id)
    return StoredChunk(
        record=node,
        document=(namespace, document),
        view_text=text,
        metadata=metadata,
        pages=read_pages(node.metadata),
        links={name: info.node_id for name, info in related.items() if info is not None},
        score=finite_score(score),
        vector=node.embedding,
        **fields,
    )


def _read_section(node: BaseNode, text: str) -> dict[str, Any]:
    """Return the fields of a view of a section that drillrank cut."""
    names = result_metadata(node.metadata)
    view = str(names["view"])
    fields = {"id": str(names["section_id"]), "view": view, "text": text if view == "raw" else ""}
    start, end = getattr(node, "start_char_idx", None), getattr(node, "end_char_idx", None)
    if start is None:  # a section of a piece that another parser cut
        return fields
    return {**fields, "kind": "section", "path": str(names.get("section_path", "")), "start": start, "end": end}


def _read_part(
    node: BaseNode, metadata: Mapping[str, Any], text: str, node_by_id: Mapping[str, BaseNode]
) -> dict[str, Any]:
    """Return the fields of a chunk of another parser."""
    headings, document_start = headings_of_path(metadata.get(_HEADINGS)), _document_start(node, node_by_id)
    fields = {"path": headings, "is_below_path": _HEADINGS in metadata}
    if headings and not (document_start != 0 and text.startswith("#")):
        return fields  # it was cut again, and its offsets count from the first cut
    has_own_offset = document_start == getattr(node, "start_char_idx", None)
    return {**fields, "start": document_start, "end": getattr(node, "end_char_idx", None) if has_own_offset else None}


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
