"""Nodes of two tenants, and retrievers with filters over them."""

from __future__ import annotations

from typing import Any

from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.retrievers import (
    BaseRetriever,
    VectorIndexRetriever,
)
from llama_index.core.schema import BaseNode, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import (
    FilterCondition,
    MetadataFilter,
    MetadataFilters,
)

from llama_index_ext._filters import NodeFilter


def node(id_: str, text: str, document: str | None = None, **metadata: Any) -> TextNode:
    related = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document)} if document else {}
    return TextNode(id_=id_, text=text, metadata=metadata, relationships=related)


ALL: list[BaseNode] = [
    node("1", "Mine.", "mine", tenant="a", level=1),
    node("2", "Theirs.", "theirs", tenant="b", level=1),
    node("3", "Secret.", "mine", tenant="a", level=9),
    node("4", "Nobody's."),
]
INDEX = VectorStoreIndex(ALL, embed_model=MockEmbedding(embed_dim=4))


def where(condition: FilterCondition = FilterCondition.AND, **values: Any) -> MetadataFilters:
    return MetadataFilters(
        filters=[MetadataFilter(key=key, value=to) for key, to in values.items()], condition=condition
    )


def retriever(**arguments: Any) -> BaseRetriever:
    if "node_ids" in arguments:
        return VectorIndexRetriever(INDEX, **arguments)
    return INDEX.as_retriever(**(arguments or {"filters": where(tenant="a")}))


def unfiltered() -> BaseRetriever:
    return retriever(similarity_top_k=3)


def seen(source: object, own: Any = None) -> list[str]:
    return [found.node_id for found in NodeFilter(own, source).filter_fetched(ALL)]
