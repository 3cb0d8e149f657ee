"""What a path search asks of LangChain: documents for passages, and events of its progress."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.callbacks import adispatch_custom_event, dispatch_custom_event
from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.stores import BaseStore
from langchain_core.vectorstores import VectorStore

from drillrank import Passage
from drillrank.hosts.sections import StoredSection
from langchain_ext._filters import DocumentFilter, store_behind
from langchain_ext._lookups import StoreLookups
from langchain_ext._records import names_of, passage_of, read_section

HOP_EVENT = "promptrank_hop"
"""Name of the custom event that each hop of a path search dispatches."""


@dataclass(frozen=True)
class DocumentPaths:
    """The `PathHost` of one question.

    Attributes:
        guard: What may be seen.
        retriever: Answers retrievals, if there is one.
        docstore: Knows documents by id, if there is one.
        config: Callbacks of the run that the lookups belong to.
        title_key: Metadata key of the title.
        metadata_fields: Metadata keys that the model reads, too.
    """

    guard: DocumentFilter
    retriever: Runnable[str, list[Document]] | None
    docstore: BaseStore[str, Document] | VectorStore | None
    config: RunnableConfig | None
    title_key: str
    metadata_fields: tuple[str, ...]

    @property
    def certain(self) -> bool:
        """Whether all that the retriever brings is from one vector store."""
        return store_behind(self.retriever, self.config) is not None

    def asked(self, question: str, component: str = "") -> StoreLookups:
        """The retriever, and the vector store behind it or else the docstore."""
        return StoreLookups(question, self.retriever, self.guard, self.config, self.docstore, component)

    def by_id(self) -> StoreLookups:
        """The docstore, or without one the vector store behind the retriever."""
        source = self.retriever if self.docstore is None else None
        return StoreLookups("", source, DocumentFilter(None), self.config, self.docstore)

    def own_id(self, document: Document) -> str | None:
        """What the store calls it."""
        return document.id

    def names(self, documents: Sequence[Document]) -> list[str]:
        """Their ids, or what depends on what they hold."""
        return names_of(documents)

    def passage(self, document: Document, name: str) -> Passage:
        """What is ranked."""
        return passage_of(document, name, self.title_key, self.metadata_fields)

    def section(self, document: Document) -> StoredSection:
        """What it is of a section."""
        return read_section(document)

    def tell(self, hop: dict[str, Any]) -> None:
        """Dispatch the event of a hop."""
        dispatch_custom_event(HOP_EVENT, hop, config=self.config)

    async def atell(self, hop: dict[str, Any]) -> None:
        """As `tell`."""
        await adispatch_custom_event(HOP_EVENT, hop, config=self.config)
