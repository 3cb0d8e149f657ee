"""Retrievers of this host, asked without holding up the event loop, and embedding a question once for all of them.

Where a class has no asynchronous method of its own, the host's calls the synchronous one, on the event loop; so it is
with retrievers, embedding models, vector stores and document stores. What never waits is asked on a thread instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.retrievers import BaseRetriever, VectorIndexRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.storage.docstore.types import BaseDocumentStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from drillrank.hosts.calls import Call, CalledOnce, Calls, call, on_thread

_SYNCHRONOUS = (BaseRetriever._aretrieve, BasePydanticVectorStore.aquery)  # what the host falls back to


class Question:
    """A question with its vectors: each model embeds it once, for whatever retrievers want it.

    Args:
        query_bundle: The question; a vector that it brings is kept.
    """

    def __init__(self, query_bundle: QueryBundle) -> None:
        self._query = query_bundle
        self._vectors: CalledOnce[list[float]] = CalledOnce()

    def asked(self, retriever: BaseRetriever) -> Calls[list[NodeWithScore]]:
        """What a retriever finds; it gets a query of its own: the host would leave its vector to the next one."""
        query, model = self._query, self._model(retriever)
        if model is not None:
            embed, aembed = model.get_agg_embedding_from_queries, model.aget_agg_embedding_from_queries
            embedded = call(embed, aembed, query.embedding_strs, own=model._aget_query_embedding)
            query = replace(query, embedding=(yield from self._vectors.get(model, embedded)))
        own: Any = retriever._aretrieve
        if isinstance(retriever, VectorIndexRetriever):
            own = retriever._vector_store.aquery
        asked = call(retriever.retrieve, retriever.aretrieve, query, own=own)
        if getattr(own, "__func__", own) in _SYNCHRONOUS:
            asked = on_thread(retriever.retrieve, query)
        found: list[NodeWithScore] = yield asked
        return found

    def _model(self, retriever: BaseRetriever) -> BaseEmbedding | None:
        """The embedding model that a retriever over an index would ask."""
        if self._query.embedding is not None or not self._query.embedding_strs:
            return None
        over_an_index = isinstance(retriever, VectorIndexRetriever) and retriever._needs_embedding()
        return retriever._embed_model if over_an_index else None  # type: ignore[attr-defined]  # asked above


def nodes_of(docstore: BaseDocumentStore, ids: Sequence[str]) -> Call:
    """The nodes with these ids that a document store has."""
    own = docstore.aget_document
    return call(docstore.get_nodes, docstore.aget_nodes, list(ids), raise_error=False, own=own)
