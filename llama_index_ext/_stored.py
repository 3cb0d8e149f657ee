"""LlamaIndex nodes, grouped into the documents that they are pieces of."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from itertools import chain, count

from llama_index.core.indices.vector_store import VectorStoreIndex
from llama_index.core.schema import BaseNode, IndexNode, RelatedNodeInfo
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters

from drillrank.drilldown.rebuilding import Piece
from drillrank.hosts.keys import is_section, own


class StoredDocuments:
    """Documents by name, in order: a whole document is one node, a document cut into sections its raw nodes.

    The name is the document's id; of different documents with one id, the later ones are numbered.
    """

    def __init__(self, nodes: Iterable[BaseNode] = ()) -> None:
        self._nodes: dict[str, dict[str, BaseNode]] = {}
        self._infos: dict[str, RelatedNodeInfo] = {}
        self.add(nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    def add(self, nodes: Iterable[BaseNode]) -> None:
        """Take nodes in, once each; keyword and summary views stand for the raw node that they lead to, if any."""
        for given in nodes:
            node = given.obj if isinstance(given, IndexNode) and isinstance(given.obj, BaseNode) else given
            if not is_section(node.metadata) or own(node.metadata)["view"] == "raw":
                self._nodes.setdefault(self._name(node), {}).setdefault(node.node_id, node)

    def _name(self, node: BaseNode) -> str:
        if is_section(node.metadata):
            return document_id(node)
        for name in chain([node.node_id], (f"{node.node_id} ({number})" for number in count(2))):
            same = self._nodes.get(name, {}).get(node.node_id)
            if same is None or same.get_content() == node.get_content():
                break
        return name

    def of(self, *ids: str | None) -> list[BaseNode]:
        """The nodes of the first document that is here, or none."""
        return next((list(self._nodes[id_].values()) for id_ in ids if id_ in self._nodes), [])

    def pieces(self) -> list[list[Piece]]:
        """For the core, document by document."""
        return [list(map(_piece, nodes.values())) for nodes in self._nodes.values()]

    def named_at(self, number: int, start: int) -> tuple[str, BaseNode]:
        """The name of the document with that number, and the node that holds its text at that offset."""
        name, nodes = list(self._nodes.items())[number]
        return name, max((node for node in nodes.values() if _start(node) <= start), key=_start)

    def source_of(self, node: BaseNode) -> RelatedNodeInfo:
        """The document that a node is or belongs to."""
        if is_section(node.metadata) and node.source_node is not None:
            return node.source_node
        if node.node_id not in self._infos:  # made once: it hashes the whole text
            self._infos[node.node_id] = node.as_related_node_info()
        return self._infos[node.node_id]


def document_id(node: BaseNode) -> str:
    """The document of a section; any other node is a document of its own."""
    return (node.ref_doc_id if is_section(node.metadata) else None) or node.node_id


def sections_in(index: VectorStoreIndex, document_id: str) -> list[BaseNode]:
    """All nodes of a document that the index's docstore and its vector store can bring."""
    info = index.docstore.get_ref_doc_info(document_id)
    nodes = index.docstore.get_nodes(info.node_ids, raise_error=False) if info else []
    if index.vector_store.stores_text:  # then only views that lead to another node are in the docstore
        of_document = MetadataFilters(filters=[MetadataFilter(key="ref_doc_id", value=document_id)])
        with suppress(NotImplementedError):
            nodes += index.vector_store.get_nodes(filters=of_document)
    return nodes


def _piece(node: BaseNode) -> Piece:
    if not is_section(node.metadata):
        return Piece(node.get_content(), metadata=node.metadata)
    path = str(own(node.metadata).get("section_path", ""))
    return Piece(node.get_content(), path, _start(node), getattr(node, "end_char_idx", None), node.metadata)


def _start(node: BaseNode) -> int:
    return (getattr(node, "start_char_idx", None) or 0) if is_section(node.metadata) else 0
