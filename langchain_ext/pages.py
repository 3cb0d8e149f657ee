"""Pages of one file as one document."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.documents import Document

from drillrank.frameworks.metadata import with_result_metadata
from drillrank.frameworks.pages import joined


def join_pages(documents: Sequence[Document]) -> list[Document]:
    r"""Documents that are pages of one file as one, under the first page's id and metadata.

    `D3Retriever` and `MultiViewTextSplitter` do so with what they are given; other splitters are given the whole by
    this.

    Args:
        documents: As a loader gives them; those that are joined are neighbours.

    Returns:
        The documents in order; those that are no pages are the given ones.

    >>> pages = [Document(page_content=text, metadata={"source": "a.pdf", "page": at}) for at, text in enumerate("AB")]
    >>> [(document.page_content, document.metadata["page"]) for document in join_pages(pages)]
    [('A\n\nB', 0)]
    """
    whole = []
    for one in joined((document.page_content, document.metadata) for document in documents):
        first = documents[one.members[0]]
        if one.pages is not None:
            metadata = with_result_metadata(first.metadata, pages=one.pages.as_json())
            first = first.model_copy(update={"page_content": one.text, "metadata": metadata})
        whole.append(first)
    return whole
