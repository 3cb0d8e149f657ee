"""Pages of one file as one document."""

from __future__ import annotations

from collections.abc import Sequence

from llama_index.core.schema import BaseNode

from drillrank.frameworks.metadata import with_result_metadata
from drillrank.frameworks.pages import joined


def join_pages(nodes: Sequence[BaseNode]) -> list[BaseNode]:
    r"""Documents that are pages of one file as one, under the first page's id and metadata; what was cut stays.

    `D3Retriever` and `MultiViewNodeParser` do so with what they are given. An `IngestionPipeline` with a docstore hands
    over changed pages only, as `refresh_ref_docs` does, under whose own ids nothing is stored: join them before.

    Args:
        nodes: Documents, as a reader gives them; those that are joined are neighbours.

    Returns:
        The documents in order; those that are no pages are the given ones.

    >>> from llama_index.core.schema import Document
    >>> pages = [Document(text=text, metadata={"file_path": "a.pdf", "page_label": text}) for text in ("1", "2")]
    >>> [(document.text, document.metadata["page_label"]) for document in join_pages(pages)]
    [('1\n\n2', '1')]
    """
    nodes = list(nodes)
    if any(node.ref_doc_id not in (None, node.node_id) for node in nodes):
        return nodes
    whole = []
    for one in joined((node.get_content(), node.metadata) for node in nodes):
        first = nodes[one.members[0]]
        if one.pages is not None:
            first = first.model_copy(
                update={"metadata": with_result_metadata(first.metadata, pages=one.pages.as_json())}
            )
        if len(one.members) > 1:
            first.set_content(one.text)
        whole.append(first)
    return whole
