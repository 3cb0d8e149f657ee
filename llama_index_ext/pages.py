"""Join documents that are pages of one file."""

from __future__ import annotations

from collections.abc import Sequence

from llama_index.core.schema import BaseNode

from drillrank.frameworks import pages
from drillrank.frameworks.metadata import with_result_metadata


def join_pages(nodes: Sequence[BaseNode]) -> list[BaseNode]:
    r"""Join documents that are pages of one file to one document, with the id and metadata of the first page.

    `D3Retriever` and `MultiViewNodeParser` do this themselves. Join pages yourself before `refresh_ref_docs`, and
    before an `IngestionPipeline` with a docstore: both pass on changed pages only, under ids that no record has.

    Args:
        nodes: Documents of a reader. Only neighbors are joined.

    Returns:
        The documents in order. Documents that are not pages, and nodes that a parser cut, are returned as they are.

    >>> from llama_index.core.schema import Document
    >>> pages = [Document(text=text, metadata={"file_path": "a.pdf", "page_label": text}) for text in ("1", "2")]
    >>> [(document.text, document.metadata["page_label"]) for document in join_pages(pages)]
    [('1\n\n2', '1')]
    """
    nodes = list(nodes)
    may_be_page = [node.ref_doc_id in (None, node.node_id) for node in nodes]
    documents = []
    for joined in pages.join_pages(((node.get_content(), node.metadata) for node in nodes), may_be_page):
        document = nodes[joined.page_indices[0]]
        if joined.pages is not None:
            metadata = with_result_metadata(document.metadata, pages=joined.pages.as_json())
            document = document.model_copy(update={"metadata": metadata})
        if len(joined.page_indices) > 1:
            document.set_content(joined.text)
        documents.append(document)
    return documents
