"""Join documents that are pages of one file."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.documents import Document

from drillrank.frameworks import pages
from drillrank.frameworks.metadata import with_result_metadata


def join_pages(documents: Sequence[Document]) -> list[Document]:
    r"""Join documents that are pages of one file to one document, with the id and metadata of the first page.

    `D3Retriever` and `MultiViewTextSplitter` do this themselves. Join pages yourself before other splitters.

    Args:
        documents: Documents of a loader. Only neighbors are joined.

    Returns:
        The documents in order. Documents that are not pages are returned as they are.

    >>> pages = [Document(page_content=text, metadata={"source": "a.pdf", "page": i}) for i, text in enumerate("AB")]
    >>> [(document.page_content, document.metadata["page"]) for document in join_pages(pages)]
    [('A\n\nB', 0)]
    """
    joined_documents = []
    for joined in pages.join_pages((document.page_content, document.metadata) for document in documents):
        document = documents[joined.page_indices[0]]
        if joined.pages is not None:
            metadata = with_result_metadata(document.metadata, pages=joined.pages.as_json())
            document = document.model_copy(update={"page_content": joined.text, "metadata": metadata})
        joined_documents.append(document)
    return joined_documents
