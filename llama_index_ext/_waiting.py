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


def retrieved(retrievers: Sequence[BaseRetriever], query_bundle: QueryBundle) -> list[list[NodeWithScore]]:
    """What each retriever finds; the question is embedded once by each model that they want it from."""
    vectors = {id(model): _vector(model, query_bundle) for model in _models(retrievers, query_bundle)}
    return [retriever.retrieve(_with_vector(query_bundle, retriever, vectors)) for retriever in retrievers]


async def aretrieved(retrievers: Sequence[BaseRetriever], query_bundle: QueryBundle) -> list[list[NodeWithScore]]:
    """As `retrieved`, all at the same time."""
    models = _models(retrievers, query_bundle)
    found = await asyncio.gather(*(_avector(model, query_bundle) for model in models))
    vectors = {id(model): vector for model, vector in zip(models, found, strict=True)}
    return await asyncio.gather(
        *(_aretrieved(retriever, _with_vector(query_bundle, retriever, vectors)) for retriever in retrievers)
    )


async def afetched(docstore: BaseDocumentStore, ids: Sequence[str]) -> list[BaseNode]:
    """The nodes with these ids that a document store has."""
    return await awaited(docstore.aget_nodes, list(ids), raise_error=False, own=docstore.aget_document)


async def _aretrieved(retriever: BaseRetriever, query_bundle: QueryBundle) -> list[NodeWithScore]:
    own: Any = retriever._vector_store.aquery if isinstance(retriever, VectorIndexRetriever) else retriever._aretrieve
    if getattr(own, "__func__", own) in _SYNCHRONOUS:
        return await asyncio.to_thread(retriever.retrieve, query_bundle)
    return await awaited(retriever.aretrieve, query_bundle, own=own)


def _models(retrievers: Sequence[BaseRetriever], query_bundle: QueryBundle) -> list[BaseEmbedding]:
    """The embedding models that retrievers over an index would ask, each once."""
    if query_bundle.embedding is not None or not query_bundle.embedding_strs:
        return []
    over_an_index = (retriever for retriever in retrievers if isinstance(retriever, VectorIndexRetriever))
    models = [retriever._embed_model for retriever in over_an_index if retriever._needs_embedding()]
    return list({id(model): model for model in models}.values())


def _vector(model: BaseEmbedding, query_bundle: QueryBundle) -> list[float]:
    return model.get_agg_embedding_from_queries(query_bundle.embedding_strs)


async def _avector(model: BaseEmbedding, query_bundle: QueryBundle) -> list[float]:
    asked, own = model.aget_agg_embedding_from_queries, model._aget_query_embedding
    return await awaited(asked, query_bundle.embedding_strs, own=own)


def _with_vector(query_bundle: QueryBundle, retriever: BaseRetriever, vectors: dict[int, list[float]]) -> QueryBundle:
    """A query of the retriever's own: the host would leave the vector of one model to the next retriever."""
    if isinstance(retriever, VectorIndexRetriever):
        return replace(query_bundle, embedding=vectors.get(id(retriever._embed_model), query_bundle.embedding))
    return query_bundle
