"""Retrievers of this host, asked without holding up the event loop, and embedding a question once for all of them.

Where a class has no asynchronous method of its own, the host's calls the synchronous one, on the event loop; so it is
with retrievers, embedding models, vector stores and document stores. What never waits is asked on a thread instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.retrievers import BaseRetriever, VectorIndexRetriever
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle
from llama_index.core.storage.docstore.types import BaseDocumentStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from drillrank.calling import awaited

_SYNCHRONOUS = (BaseRetriever._aretrieve, BasePydanticVectorStore.aquery)  # what the host falls back to


class QuestionVectors:
    """A question with its vectors: each model embeds it once, for whatever retrievers want it.

    Args:
        query_bundle: The question; a vector that it brings is kept.
    """

    def __init__(self, query_bundle: QueryBundle) -> None:
        self._query = query_bundle
        self._vectors: dict[int, list[float]] = {}
        self._embedding: dict[int, asyncio.Lock] = {}

    def query_of(self, retriever: BaseRetriever) -> QueryBundle:
        """The question as this retriever is asked it; of its own: the host would leave its vector to the next one."""
        model = self._model(retriever)
        if model is None:
            return self._query
        if id(model) not in self._vectors:
            self._vectors[id(model)] = model.get_agg_embedding_from_queries(self._query.embedding_strs)
        return replace(self._query, embedding=self._vectors[id(model)])

    async def aquery_of(self, retriever: BaseRetriever) -> QueryBundle:
        """As `query_of`, without blocking the event loop."""
        model = self._model(retriever)
        if model is not None:
            async with self._embedding.setdefault(id(model), asyncio.Lock()):
                if id(model) not in self._vectors:
                    asked, own = model.aget_agg_embedding_from_queries, model._aget_query_embedding
                    self._vectors[id(model)] = await awaited(asked, self._query.embedding_strs, own=own)
        return self.query_of(retriever)

    def _model(self, retriever: BaseRetriever) -> BaseEmbedding | None:
        """The embedding model that a retriever over an index would ask."""
        if self._query.embedding is not None or not self._query.embedding_strs:
            return None
        over_an_index = isinstance(retriever, VectorIndexRetriever) and retriever._needs_embedding()
        return retriever._embed_model if over_an_index else None  # type: ignore[attr-defined]  # asked above


def retrieved(retrievers: Sequence[BaseRetriever], query_bundle: QueryBundle) -> list[list[NodeWithScore]]:
    """What each retriever finds; the question is embedded once by each model that they want it from."""
    question = QuestionVectors(query_bundle)
    return [retriever.retrieve(question.query_of(retriever)) for retriever in retrievers]


async def aretrieved(retrievers: Sequence[BaseRetriever], query_bundle: QueryBundle) -> list[list[NodeWithScore]]:
    """As `retrieved`, all at the same time."""
    question = QuestionVectors(query_bundle)
    return await asyncio.gather(*(aretrieved_by(retriever, question) for retriever in retrievers))


async def aretrieved_by(retriever: BaseRetriever, question: QuestionVectors) -> list[NodeWithScore]:
    """What one retriever finds."""
    query_bundle = await question.aquery_of(retriever)
    own: Any = retriever._vector_store.aquery if isinstance(retriever, VectorIndexRetriever) else retriever._aretrieve
    if getattr(own, "__func__", own) in _SYNCHRONOUS:
        return await asyncio.to_thread(retriever.retrieve, query_bundle)
    return await awaited(retriever.aretrieve, query_bundle, own=own)


async def afetched(docstore: BaseDocumentStore, ids: Sequence[str]) -> list[BaseNode]:
    """The nodes with these ids that a document store has."""
    return await awaited(docstore.aget_nodes, list(ids), raise_error=False, own=docstore.aget_document)
