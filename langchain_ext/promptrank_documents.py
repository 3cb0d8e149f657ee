"""Documents for a path search: what the search asks for, and what it tells of its progress."""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.callbacks import adispatch_custom_event, dispatch_custom_event
from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ensure_config, get_callback_manager_for_config
from langchain_core.stores import BaseStore
from langchain_core.vectorstores import VectorStore

from drillrank import Passage
from drillrank.calling import awaited
from drillrank.errors import InvalidInput
from drillrank.multihop.lookups import Hop
from langchain_ext._documents import document_names

HOP_EVENT = "promptrank_hop"
"""Name of the custom event that each hop of a path search dispatches."""


@dataclass
class DocumentSource:
    """Answers the lookups of one search, and remembers the documents behind the passages.

    Attributes:
        as_passage: From a document and its name to the passage that is ranked.
        retriever: Answers retrievals, if there is one.
        docstore: Knows documents by id, if there is one.
        config: Callbacks of the run that the lookups belong to.
        documents: Every document met so far, by name.
    """

    as_passage: Callable[[Document, str], Passage]
    retriever: Runnable[str, list[Document]] | None = None
    docstore: BaseStore[str, Document] | VectorStore | None = None
    config: RunnableConfig | None = None
    documents: MutableMapping[str, Document] = field(default_factory=dict)

    def retrieve(self, query: str, n: int, /) -> Sequence[Passage]:
        """The retriever's first results."""
        return self.passages(self.retriever.invoke(query, self.config)[:n]) if self.retriever else ()

    async def aretrieve(self, query: str, n: int, /) -> Sequence[Passage]:
        """The retriever's first results."""
        return self.passages((await self.retriever.ainvoke(query, self.config))[:n]) if self.retriever else ()

    def fetch(self, ids: Sequence[str], /) -> Sequence[Passage]:
        """The documents with these ids that the docstore has."""
        if isinstance(self.docstore, VectorStore):
            return self.passages(self.docstore.get_by_ids(ids))
        return self._stored(ids, self.docstore.mget(ids)) if self.docstore else ()

    async def afetch(self, ids: Sequence[str], /) -> Sequence[Passage]:
        """The documents with these ids that the docstore has."""
        if isinstance(self.docstore, VectorStore):
            return self.passages(await awaited(self.docstore.aget_by_ids, ids))
        return self._stored(ids, await awaited(self.docstore.amget, ids)) if self.docstore else ()

    def passages(self, documents: Sequence[Document]) -> list[Passage]:
        """Remember documents and turn them into passages."""
        return self._remembered(zip(names_of(documents), documents, strict=True))

    def _stored(self, ids: Sequence[str], found: Sequence[Document | None]) -> list[Passage]:
        """A document of a key-value store is called by its key, whatever id it has."""
        for value in found:
            if not isinstance(value, Document | None):
                raise InvalidInput(
                    f"The docstore holds a {type(value).__name__} where a Document belongs: "
                    "langchain_classic.storage.create_kv_docstore makes a store of documents of a store of bytes."
                )
        pairs = zip(ids, found, strict=True)
        return self._remembered((name, document) for name, document in pairs if document is not None)

    def _remembered(self, named: Iterable[tuple[str, Document]]) -> list[Passage]:
        passages = []
        for name, document in named:
            self.documents.setdefault(name, document)
            passages.append(self.as_passage(document, name))
        return passages


def names_of(documents: Sequence[Document]) -> list[str]:
    """The documents' ids; those without one get a name that depends on what they hold."""
    return [document.id or name for document, name in zip(documents, document_names(documents), strict=True)]


def tell(query: str, hop: Hop, config: RunnableConfig | None = None) -> None:
    """Dispatch the event of a hop; outside of a run, where none can be, nothing happens."""
    if hop.paths and _in_a_run(config):
        dispatch_custom_event(HOP_EVENT, _described(query, hop), config=config)


async def atell(query: str, hop: Hop, config: RunnableConfig | None = None) -> None:
    """Dispatch the event of a hop; outside of a run, where none can be, nothing happens."""
    if hop.paths and _in_a_run(config):
        await adispatch_custom_event(HOP_EVENT, _described(query, hop), config=config)


def _in_a_run(config: RunnableConfig | None) -> bool:
    return get_callback_manager_for_config(ensure_config(config)).parent_run_id is not None


def _described(query: str, hop: Hop) -> dict[str, Any]:
    best = hop.paths[0]
    return {
        "query": query,
        "hop": hop.number,
        "paths": len(hop.paths),
        "best_path": list(best.passage.ids),
        "best_score": best.score,
    }
