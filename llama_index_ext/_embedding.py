"""LlamaIndex's embedding models as functions from texts to vectors."""

from __future__ import annotations

from llama_index.core.base.embeddings.base import BaseEmbedding

from drillrank.hosts.models import HostEmbedding
from drillrank.vectors import Embed


def embedding_of(given: BaseEmbedding | Embed | None) -> Embed | None:
    """The function that an embedding model is; a function stays itself."""
    if isinstance(given, BaseEmbedding):
        return HostEmbedding(given, given.get_text_embedding_batch, given.get_query_embedding)
    return given
