"""LangChain's embedding models as functions from texts to vectors."""

from __future__ import annotations

from langchain_core.embeddings import Embeddings

from drillrank.hosts.models import HostEmbedding
from drillrank.vectors import Embed


def embedding_of(given: Embeddings | Embed | None) -> Embed | None:
    """The function that an embedding model is; a function stays itself."""
    if isinstance(given, Embeddings):
        return HostEmbedding(given, given.embed_documents, given.embed_query)
    return given
