"""A vector store of LlamaIndex that keeps texts, as most databases do: what it holds is all that an index knows."""

from __future__ import annotations

from collections import Counter
from typing import Any

from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.simple import SimpleVectorStore
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryResult,
)
from llama_index.core.vector_stores.utils import metadata_dict_to_node, node_to_metadata_dict
from pydantic import PrivateAttr

from llama_index_ext._filters import Guard


class TextStore(BasePydanticVectorStore):
    """Rows by id, each as JSON would keep it; counts what it is asked."""

    stores_text: bool = True
    _rows: dict[str, dict[str, Any]] = PrivateAttr(default_factory=dict)
    _vectors: dict[str, list[float]] = PrivateAttr(default_factory=dict)
    _asked: Counter[str] = PrivateAttr(default_factory=Counter)

    @property
    def client(self) -> None:
        """There is none."""

    @property
    def asked(self) -> Counter[str]:
        """How often it was searched and asked for nodes."""
        return self._asked

    def held(self) -> dict[str, BaseNode]:
        """Nodes by id."""
        return {id_: metadata_dict_to_node(row) for id_, row in self._rows.items()}

    def add(self, nodes: list[BaseNode], **_: Any) -> list[str]:
        for node in nodes:
            self._rows[node.node_id] = node_to_metadata_dict(node, flat_metadata=False)
            self._vectors[node.node_id] = node.get_embedding()
        return [node.node_id for node in nodes]

    def change(self, node: BaseNode) -> None:
        """Another node in place of the one with this id."""
        self._rows[node.node_id] = node_to_metadata_dict(node, flat_metadata=False)

    def delete(self, ref_doc_id: str, **_: Any) -> None:
        self.delete_nodes([id_ for id_, node in self.held().items() if node.ref_doc_id == ref_doc_id])

    def delete_nodes(self, node_ids: Any = None, filters: Any = None, **_: Any) -> None:
        for id_ in node_ids:
            del self._rows[id_], self._vectors[id_]

    def get_nodes(self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None) -> list[BaseNode]:
        self._asked["nodes"] += 1
        held = self.held()
        return Guard(filters).kept(
            held.values() if node_ids is None else [held[id_] for id_ in node_ids if id_ in held]
        )

    def query(self, query: VectorStoreQuery, **_: Any) -> VectorStoreQueryResult:
        self._asked["search"] += 1
        seen = {node.node_id: node for node in Guard(query.filters).kept(self.held().values())}
        vectors = SimpleVectorStore()
        vectors.data.embedding_dict = {id_: self._vectors[id_] for id_ in seen}
        found = vectors.query(
            VectorStoreQuery(query_embedding=query.query_embedding, similarity_top_k=query.similarity_top_k)
        )
        nodes = [seen[id_] for id_ in found.ids or ()]
        return VectorStoreQueryResult(nodes=nodes, similarities=found.similarities, ids=found.ids)
