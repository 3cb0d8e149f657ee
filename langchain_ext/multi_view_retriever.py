"""MC-indexing retrieval as a LangChain retriever."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, Field, PrivateAttr

from drillrank.errors import InvalidInput
from drillrank.views import MergedSection, MultiViewIndex, RetrieverName, ViewText


class MultiViewRetriever(BaseRetriever):
    r"""Ranks sections in each view separately and merges the rankings, over an index in memory.

    Args:
        documents: What `MultiViewTextSplitter` made of one or many documents.
        top_n: Sections to return. `invoke(query, top_n=...)` overrides it.
        retriever: `"bm25"` or `"tfidf"`, one index for each view.
        score_key: Metadata key of the score.

    Returns raw documents, each section once; `metadata["matched_views"]` tells the views that matched and at which
    rank. Scores are sums of reciprocal ranks, between 0 and 0.05: they order one result list and mean nothing beyond.

    Raises:
        InvalidInput: a document was not made by `MultiViewTextSplitter`, or the raw view of a section is missing.

    >>> from langchain_ext import MultiViewTextSplitter
    >>> text = "# Foxes\n\nThey hunt.\n\n# Whales\n\nThey sing.\n\n# Owls\n\nThey hoot.\n"
    >>> retriever = MultiViewRetriever(documents=MultiViewTextSplitter().split_text(text), top_n=1)
    >>> hit = retriever.invoke("Who sings?")[0]
    >>> hit.metadata["section_path"], hit.metadata["matched_views"]
    ('Whales', 'raw:1 keywords:1 summary:1')
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    documents: list[Document]
    top_n: int = Field(default=5, gt=0, description="Sections to return.")
    retriever: RetrieverName = Field(default="bm25", description="Index of each view.")
    score_key: str = Field(default="relevance_score", description="Metadata key of the score.")

    _raw: dict[str, Document] = PrivateAttr()
    _index: MultiViewIndex = PrivateAttr()

    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)
        self._raw = {}
        texts = []
        for document in self.documents:
            metadata = document.metadata
            if "section_id" not in metadata or "view" not in metadata:
                raise InvalidInput(
                    f"Document {document.id!r} has no section_id and view in its metadata: MultiViewRetriever searches "
                    "the documents that MultiViewTextSplitter makes."
                )
            if metadata["view"] == "raw":
                self._raw[metadata["section_id"]] = document
            texts.append(ViewText(metadata["section_id"], metadata["view"], document.page_content))
        self._index = MultiViewIndex(texts, self.retriever)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, top_n: int | None = None
    ) -> list[Document]:
        return [
            self._document(section) for section in self._index.search(query, self.top_n if top_n is None else top_n)
        ]

    def _document(self, section: MergedSection) -> Document:
        raw = self._raw[section.section_id]
        return raw.model_copy(
            update={"metadata": {**raw.metadata, "matched_views": section.matched_views, self.score_key: section.score}}
        )
