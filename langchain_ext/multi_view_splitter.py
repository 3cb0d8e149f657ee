"""MC-indexing as a LangChain document transformer: every section in three views."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.documents import BaseDocumentTransformer, Document

from drillrank import parse_document
from drillrank.structure import breadcrumb
from drillrank.views import VIEWS, View, check_views, section_chunks
from langchain_ext._documents import document_names


class MultiViewTextSplitter(BaseDocumentTransformer):
    r"""Cuts documents along their own sections and gives each section as raw text, keywords and summary.

    The raw view's text is the section, byte for byte; the others carry it as `section_text`, so no second store is
    needed. `Document.id` and the metadata `section_id` depend on the document and the section only. Metadata are the
    document's, and `section_path`, `section_level`, `section_id`, `view`, `start_index`.

    Args:
        views: Views to make; `raw` is always among them.
        separator: Between the headings of `section_path`.

    Raises:
        InvalidInput: unknown views, or `raw` not among them.

    >>> splitter = MultiViewTextSplitter(views=["raw", "keywords"])
    >>> documents = splitter.split_text("# Foxes\n\nThey hunt.\n\n# Whales\n\nThey sing.\n")
    >>> [(document.metadata["section_path"], document.metadata["view"]) for document in documents]
    [('Foxes', 'raw'), ('Foxes', 'keywords'), ('Whales', 'raw'), ('Whales', 'keywords')]
    """

    def __init__(self, views: Sequence[View] = VIEWS, *, separator: str = " > ") -> None:
        check_views(views)
        self._views = tuple(views)
        self._separator = separator

    def split_text(self, text: str) -> list[Document]:
        """The views of one text."""
        return self.split_documents([Document(page_content=text)])

    def split_documents(self, documents: Iterable[Document]) -> list[Document]:
        """The views of all documents, in order. Documents without an id are told apart by metadata and text."""
        documents = list(documents)
        named = zip(documents, document_names(documents), strict=True)
        return [piece for document, name in named for piece in self._split(document, name)]

    def transform_documents(self, documents: Sequence[Document], **kwargs: Any) -> list[Document]:
        """As `split_documents`; the host's name for it."""
        return self.split_documents(documents)

    async def atransform_documents(self, documents: Sequence[Document], **kwargs: Any) -> list[Document]:
        """As `transform_documents`, on a worker thread."""
        return await asyncio.to_thread(self.transform_documents, documents, **kwargs)

    def _split(self, document: Document, name: str) -> list[Document]:
        parsed = parse_document(document.page_content)
        pieces = []
        for chunk in section_chunks(parsed, name, self._views):
            metadata = {
                **document.metadata,
                "section_path": breadcrumb(chunk.path, self._separator),
                "section_level": chunk.level,
                "section_id": chunk.section_id,
                "view": chunk.view,
                "start_index": chunk.start,
            }
            if chunk.view != "raw":
                metadata["section_text"] = parsed.text[chunk.start : chunk.end]
            pieces.append(Document(id=chunk.id, page_content=chunk.text, metadata=metadata))
        return pieces
