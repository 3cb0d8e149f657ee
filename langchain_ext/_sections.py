"""Sections in a LangChain vector store, looked up by the id that `MultiViewTextSplitter` gave them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from drillrank.calling import awaited
from drillrank.hosts import keys


def stored_sections(store: VectorStore, query: str, ids: Sequence[str]) -> list[Document]:
    """Documents of the sections with these ids, as far as the store has them; not always their raw view.

    Documents have other ids in a store that the host's `index` has filled: then they are searched for by metadata,
    with the query for a text to search.
    """
    found: list[Document] = []
    with suppress(NotImplementedError):
        found += store.get_by_ids(ids)
    for id_ in _left(ids, found):
        found += store.similarity_search(query, k=1, filter=raw_filter(store, id_))
    return found


async def astored_sections(store: VectorStore, query: str, ids: Sequence[str]) -> list[Document]:
    """As `stored_sections`, without blocking the event loop."""
    found: list[Document] = []
    with suppress(NotImplementedError):
        found += await awaited(store.aget_by_ids, ids)
    calls = (store.asimilarity_search(query, k=1, filter=raw_filter(store, id_)) for id_ in _left(ids, found))
    return found + [hit for hits in await asyncio.gather(*calls) for hit in hits]


def searched(store: VectorStore, query: str, k: int, filters: Sequence[Any]) -> list[list[Document]]:
    """The store's results under each of the filters; the query is embedded once if the store takes vectors."""
    if _embeds_before(store):
        vector = store.embeddings.embed_query(query)  # type: ignore[union-attr]
        return [store.similarity_search_by_vector(vector, k=k, filter=wanted) for wanted in filters]
    return [store.similarity_search(query, k=k, filter=wanted) for wanted in filters]


async def asearched(store: VectorStore, query: str, k: int, filters: Sequence[Any]) -> list[list[Document]]:
    """As `searched`, without blocking the event loop."""
    asked, given = store.asimilarity_search, query
    if _embeds_before(store):
        asked = store.asimilarity_search_by_vector  # type: ignore[assignment]
        given = await awaited(store.embeddings.aembed_query, query)  # type: ignore[union-attr, arg-type]
    return list(await asyncio.gather(*(awaited(asked, given, k=k, filter=wanted) for wanted in filters)))


def _embeds_before(store: VectorStore) -> bool:
    own = type(store).similarity_search_by_vector is not VectorStore.similarity_search_by_vector
    return own and store.embeddings is not None


def raw_filter(store: VectorStore, section_id: str) -> Any:
    """The usual filter by metadata; the host's store in memory takes a function."""
    wanted = {keys.prefixed("section_id"): section_id, keys.prefixed("view"): "raw"}
    if isinstance(store, InMemoryVectorStore):
        return lambda document: wanted.items() <= document.metadata.items()
    return {"$and": [{key: value} for key, value in wanted.items()]}


def _left(ids: Sequence[str], found: Sequence[Document]) -> list[str]:
    sections = {str(keys.own(document.metadata).get("section_id")) for document in found}
    return [id_ for id_ in ids if id_ not in sections]
