"""Copies of nodes with more metadata."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from llama_index.core.schema import BaseNode

from drillrank.hosts.keys import with_own
from drillrank.hosts.pages import joined


def unread(node: BaseNode, metadata: dict[str, Any], keys: Iterable[str]) -> BaseNode:
    """A copy of a node with this metadata, of which no model reads the keys.

    >>> from llama_index.core.schema import MetadataMode, TextNode
    >>> unread(TextNode(text="a"), {"path": "x > y"}, ["path"]).get_content(MetadataMode.LLM)
    'a'
    """
    keys = list(keys)
    return node.model_copy(
        update={
            "metadata": metadata,
            "excluded_embed_metadata_keys": list(dict.fromkeys([*node.excluded_embed_metadata_keys, *keys])),
            "excluded_llm_metadata_keys": list(dict.fromkeys([*node.excluded_llm_metadata_keys, *keys])),
        }
    )


def with_pages_joined(nodes: Sequence[BaseNode]) -> list[BaseNode]:
    """Documents that are pages of one file as one, under the first page's id and metadata; what was cut stays."""
    nodes = list(nodes)
    if any(node.ref_doc_id not in (None, node.node_id) for node in nodes):
        return nodes
    whole = []
    for one in joined((node.get_content(), node.metadata) for node in nodes):
        first = nodes[one.members[0]]
        if len(one.members) > 1 and one.pages is not None:
            first = first.model_copy(update={"metadata": with_own(first.metadata, pages=one.pages.as_json())})
            first.set_content(one.text)
        whole.append(first)
    return whole
