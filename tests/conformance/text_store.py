"""A LlamaIndex vector store in memory that keeps texts, as those on servers do."""

from __future__ import annotations

from typing import Any

import numpy as np
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryResult,
)
from llama_index.core.vector_stores.utils import build_metadata_filter_fn, metadata_dict_to_node, node_to_metadata_dict
from pydantic import Field


class TextStore(BasePydanticVectorStore):
    """Keeps what a node becomes on its way to a server, and makes a new node of it each time."""

    stores_text: bool = True
    flat_metadata: bool = False
    rows: dict[str, tuple[dict[str, Any], str, list[float]]] = Field(default_factory=dict)

    @property
    def client(self) -> None:
        return None

    def add(self, nodes: list[BaseNode], **kwargs: Any) -> list[str]:  # type: ignore[override]
        for node in nodes:
            metadata = node_to_metadata_dict(node, remove_text=True, flat_metadata=False)
            self.rows[node.node_id] = (metadata, node.get_content(), node.get_embedding())
        return [node.node_id for node in nodes]

    def delete(self, ref_doc_id: str, **kwargs: Any) -> None:
        self.rows = {id_: row for id_, row in self.rows.items() if row[0].get("ref_doc_id") != ref_doc_id}

    def delete_nodes(self, node_ids: list[str] | None = None, filters: Any = None, **kwargs: Any) -> None:
        for id_ in node_ids or ():
            self.rows.pop(id_, None)

    # As Chroma's: the first argument must be given, and no ids are all ids.
    def get_nodes(self, node_ids: list[str] | None, filters: MetadataFilters | None = None) -> list[BaseNode]:  # type: ignore[override]
        passes = build_metadata_filter_fn(lambda id_: self.rows[id_][0], filters)
        return [self._node(id_) for id_ in self.rows if (not node_ids or id_ in node_ids) and passes(id_)]

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        passes = build_metadata_filter_fn(lambda id_: self.rows[id_][0], query.filters)
        asked = np.array(query.query_embedding)
        scores = {id_: float(asked @ np.array(row[2])) for id_, row in self.rows.items() if passes(id_)}
        best = sorted(scores, key=lambda id_: -scores[id_])[: query.similarity_top_k]
        return VectorStoreQueryResult(
            nodes=[self._node(id_) for id_ in best], similarities=[scores[id_] for id_ in best], ids=best
        )

    def _node(self, id_: str) -> BaseNode:
        metadata, text, _ = self.rows[id_]
        return metadata_dict_to_node(metadata, text=text)
