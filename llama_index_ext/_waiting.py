"""Retrievers of this host, asked without holding up the event loop, and embedding a question once for all of them.

Where a class has no asynchronous method of its own, the host's calls the synchronous one, on the event loop: there the
synchronous one is asked on a thread instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.retrievers import BaseRetriever, VectorIndexRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.storage.docstore.types import BaseDocumentStore
from llama_index.core.vector_stores.simple import SimpleVectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from drillrank.hosts.lookups import EmbeddedOnce
from drillrank.llm import Call, Requests

_SYNCHRONOUS = (BaseRetriever._aretrieve, BasePydanticVectorStore.aquery, SimpleVectorStore.aquery)


class Question:
    """A question with its vectors: each model embeds it once, for whatever retrievers want it.

    Args:
        query_bundle: The question; a vector that it brings is kept.
    """

    def __init__(self, query_bundle: QueryBundle) -> None:
        self._query = query_bundle
        self._embedded = EmbeddedOnce()

    def asked(self, retriever: BaseRetriever) -> Requests[list[NodeWithScore]]:
        """What a retriever finds; it gets a query of its own: the host would leave its vector to the next one."""
        query, model = self._query, self._model(retriever)
        if model is not None:
            embed = partial(model.get_agg_embedding_from_queries, query.embedding_strs)
            query = replace(query, embedding=(yield from self._embedded.vector(model, embed)))
        own: Any = getattr(retriever, "_aretrieve", None)
        if isinstance(retriever, VectorIndexRetriever):
            own = retriever._vector_store.aquery
        asynchronous = hasattr(retriever, "aretrieve") and getattr(own, "__func__", own) not in _SYNCHRONOUS
        [found] = yield [
            Call(partial(retriever.retrieve, query), partial(retriever.aretrieve, query) if asynchronous else None)
        ]
        return found  # type: ignore[no-any-return]

    def _model(self, retriever: BaseRetriever) -> BaseEmbedding | None:
        """The embedding model that a retriever over an index would ask."""
        if self._query.embedding is not None or not self._query.embedding_strs:
            return None
        over_an_index = isinstance(retriever, VectorIndexRetriever) and retriever._needs_embedding()
        return retriever._embed_model if over_an_index else None  # type: ignore[attr-defined]  # asked above


def nodes_of(docstore: BaseDocumentStore, ids: Sequence[str]) -> Call:
    """The nodes with these ids that a document store has."""
    return Call(
        partial(docstore.get_nodes, list(ids), raise_error=False),
        partial(docstore.aget_nodes, list(ids), raise_error=False),
    )
