"""A LlamaIndex vector store in memory that keeps texts, as those on servers do: what it holds is all an index knows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
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

from llama_index_ext._filters import NodeFilter


class TextStore(BasePydanticVectorStore):
    """Keeps what a node becomes on its way to a server, and makes a new node of it each time; counts what it is asked.

    Attributes:
        rows: Metadata, text and vector by id.
        asked: How often for a search, and for nodes.
        nested: Whether it takes filters inside filters, as not all servers do.
    """

    stores_text: bool = True
    flat_metadata: bool = False
    rows: dict[str, tuple[dict[str, Any], str, list[float]]] = Field(default_factory=dict)
    asked: Counter[str] = Field(default_factory=Counter)
    nested: bool = False

    @property
    def client(self) -> None:
        """There is none."""

    def held(self) -> dict[str, BaseNode]:
        """Nodes by id."""
        return {id_: self._node(id_) for id_ in self.rows}

    def add(self, nodes: list[BaseNode], **kwargs: Any) -> list[str]:  # type: ignore[override]
        for node in nodes:
            self.rows[node.node_id] = (*_written(node), node.get_embedding())
        return [node.node_id for node in nodes]

    def change(self, node: BaseNode) -> None:
        """Another node in place of the one with this id, whose vector stays."""
        self.rows[node.node_id] = (*_written(node), self.rows[node.node_id][2])

    def delete(self, ref_doc_id: str, **kwargs: Any) -> None:
        self.rows = {id_: row for id_, row in self.rows.items() if row[0].get("ref_doc_id") != ref_doc_id}

    def delete_nodes(self, node_ids: list[str] | None = None, filters: Any = None, **kwargs: Any) -> None:
        for id_ in node_ids or ():
            self.rows.pop(id_, None)

    # As Chroma's: the first argument must be given, and no ids are all ids.
    def get_nodes(self, node_ids: list[str] | None, filters: MetadataFilters | None = None) -> list[BaseNode]:  # type: ignore[override]
        self.asked["records"] += 1
        passes = self._passes(filters)
        return [self._node(id_) for id_ in self.rows if (not node_ids or id_ in node_ids) and passes(id_)]

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        self.asked["search"] += 1
        passes = self._passes(query.filters)
        asked = np.array(query.query_embedding)
        scores = {id_: float(asked @ np.array(row[2])) for id_, row in self.rows.items() if passes(id_)}
        best = sorted(scores, key=lambda id_: -scores[id_])[: query.similarity_top_k]
        return VectorStoreQueryResult(
            nodes=[self._node(id_) for id_ in best], similarities=[scores[id_] for id_ in best], ids=best
        )

    def _passes(self, filters: MetadataFilters | None) -> Callable[[str], bool]:
        if self.nested:
            return lambda id_: bool(NodeFilter(filters).filter_results([self._node(id_)]))
        return build_metadata_filter_fn(lambda id_: self.rows[id_][0], filters)

    def _node(self, id_: str) -> BaseNode:
        metadata, text, _ = self.rows[id_]
        return metadata_dict_to_node(metadata, text=text)


def _written(node: BaseNode) -> tuple[dict[str, Any], str]:
    return node_to_metadata_dict(node, remove_text=True, flat_metadata=False), node.get_content()
