"""MC-indexing as a LangChain document transformer: every section in three views."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, MutableMapping, Sequence
from dataclasses import field
from typing import Any

from langchain_core.documents import BaseDocumentTransformer, Document
from langchain_core.runnables import Runnable

from drillrank import parse_document
from drillrank.hosts.fields import Fixed
from drillrank.hosts.keys import theirs, with_own
from drillrank.hosts.namespaces import in_namespace, namespace_of
from drillrank.hosts.pages import at_pages, pages_of
from drillrank.hosts.settings import SplitterSettings
from drillrank.settings import method
from drillrank.structure import Document as ParsedDocument
from drillrank.structure import breadcrumb
from drillrank.views import MultiViewChunker, SectionChunk, ViewWriter
from langchain_ext._documents import document_names, with_pages_joined
from langchain_ext._llm import FrameworkLLM, identity


@method
class MultiViewTextSplitter(Fixed, BaseDocumentTransformer, SplitterSettings):
    r"""Cuts documents along their own sections and gives each section as raw text, keywords and summary.

    The raw view's text is the section, byte for byte; the others lead to it by `drillrank_section_id` and hold no copy
    of it: `MultiViewRetriever` fetches it from the store. `Document.id` depends on the namespace, the document and the
    section only. Metadata are the document's, and `drillrank_` with `section_path`, `section_level`, `section_id`,
    `view`, `start`, `end`, `source_id`, and, where there are such sections, `previous_id`, `next_id` and `parent_id`;
    and the host's `start_index`, unless the document has one of its own.

    With `context`, the headings and the section's keywords stand in front of the raw text in `page_content`, which is
    what a vector store embeds; the source is in `drillrank_section_text`, and `MultiViewRetriever` returns that.

    With `namespace` or `namespace_key`, documents of one id in two namespaces (tenants, collections) have different
    pieces; the namespace is the metadata `drillrank_namespace`.

    Args:
        llm: Chat model or text model that writes keywords and summaries; None computes them. Its calls belong to the
            run that surrounds the splitter, if there is one.
        cache: Remembers what the LLM wrote: any mutable mapping of strings; by default in memory.
        show_progress: Whether a bar counts the LLM calls.

    The other arguments are the settings of `drillrank.views.MultiViewChunker`, and `separator` and namespaces.

    Raises:
        InvalidInput: unknown views, `raw` not among them, settings that do not go together, or a document without a
            namespace under `namespace_key`.

    >>> splitter = MultiViewTextSplitter(views=["raw", "keywords"])
    >>> documents = splitter.split_text("# Foxes\n\nThey hunt.\n\n# Whales\n\nThey sing.\n")
    >>> [(document.metadata["drillrank_section_path"], document.metadata["drillrank_view"]) for document in documents]
    [('Foxes', 'raw'), ('Foxes', 'keywords'), ('Whales', 'raw'), ('Whales', 'keywords')]
    """

    llm: Runnable[Any, Any] | None = field(default=None, kw_only=True)
    cache: MutableMapping[str, str] | None = field(default=None, kw_only=True)
    show_progress: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._chunker = MultiViewChunker.configured(
            self,
            llm=FrameworkLLM(self.llm, "write a view") if self.llm is not None else None,
            writer=ViewWriter(
                identity(self.llm) if self.llm is not None else "",
                {} if self.cache is None else self.cache,
                on_failure=self.on_failure,
            ),
        )

    def split_text(self, text: str) -> list[Document]:
        """The views of one text."""
        return self.split_documents([Document(page_content=text)])

    def split_documents(self, documents: Iterable[Document]) -> list[Document]:
        """The views of all documents, in order. Documents without an id are told apart by metadata and text."""
        documents = self._whole(documents)
        parsed = self._parsed(documents)
        return self._pieces(documents, self._chunker.chunks(parsed, self.show_progress))

    def transform_documents(self, documents: Sequence[Document], **kwargs: Any) -> list[Document]:
        """As `split_documents`; the host's name for it."""
        return self.split_documents(documents)

    async def atransform_documents(self, documents: Sequence[Document], **kwargs: Any) -> list[Document]:
        """As `transform_documents`; computes on a worker thread and awaits the LLM."""
        documents = self._whole(documents)
        parsed = await asyncio.to_thread(self._parsed, documents)
        chunks = await self._chunker.achunks(parsed, self.show_progress)
        return await asyncio.to_thread(self._pieces, documents, chunks)

    def _whole(self, documents: Iterable[Document]) -> list[Document]:
        """The documents; pages of one file as one."""
        documents = list(documents)
        return with_pages_joined(documents) if self.join_pages else documents

    def _parsed(self, documents: Sequence[Document]) -> list[tuple[str, ParsedDocument]]:
        return [
            (in_namespace(name, namespace), parse_document(document.page_content, metadata=document.metadata))
            for (name, namespace), document in zip(self._names(documents), documents, strict=True)
        ]

    def _names(self, documents: Sequence[Document]) -> list[tuple[str, str | None]]:
        """Of each document its name, different from all others of its namespace, and that."""
        settings = {"namespace": self.namespace, "key": self.namespace_key}
        spaces = [namespace_of(document.metadata, _called(document), **settings) for document in documents]
        names = {
            space: iter(
                document_names(document for document, own in zip(documents, spaces, strict=True) if own == space)
            )
            for space in dict.fromkeys(spaces)
        }
        return [(next(names[space]), space) for space in spaces]

    def _pieces(self, documents: Sequence[Document], chunks: Sequence[Sequence[SectionChunk]]) -> list[Document]:
        named = zip(self._names(documents), documents, chunks, strict=True)
        return [piece for (name, space), document, own in named for piece in self._views_of(name, space, document, own)]

    def _views_of(
        self, source_id: str, namespace: str | None, document: Document, chunks: Sequence[SectionChunk]
    ) -> list[Document]:
        raw = [chunk for chunk in chunks if chunk.view == "raw"]
        order = [None, *(chunk.id for chunk in raw), None]
        around = {
            chunk.id: {"previous_id": before, "next_id": behind, "parent_id": chunk.parent_id}
            for before, chunk, behind in zip(order, raw, order[2:], strict=False)
        }
        given, pages = theirs(document.metadata), pages_of(document.metadata)
        pieces = []
        for chunk in chunks:
            metadata = with_own(
                {"start_index": chunk.start, **at_pages(given, pages, chunk.start, chunk.end)},
                section_path=breadcrumb(chunk.path, self.separator),
                section_level=chunk.level,
                section_id=chunk.section_id,
                view=chunk.view,
                start=chunk.start,
                end=chunk.end,
                source_id=source_id,
                namespace=namespace,
                section_text=chunk.text if chunk.context else None,
                **around[chunk.section_id],
            )
            pieces.append(Document(id=chunk.id, page_content=chunk.indexed_text, metadata=metadata))
        return pieces


def _called(document: Document) -> str:
    return document.id or str(document.metadata.get("source", document.page_content[:40]))
