"""Copies of nodes with more metadata."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import Any

from llama_index.core.schema import BaseNode


def unread(node: BaseNode, metadata: dict[str, Any], keys: Iterable[str]) -> BaseNode:
    """A copy of a node with this metadata, of which no model reads the keys.

    >>> from llama_index.core.schema import MetadataMode, TextNode
    >>> unread(TextNode(text="a"), {"path": "x > y"}, ["path"]).get_content(MetadataMode.LLM)
    'a'
    """
    keys = list(keys)
    return node.model_copy(
        update={
            "metadata": deepcopy(metadata),
            "relationships": deepcopy(node.relationships),
            "excluded_embed_metadata_keys": list(dict.fromkeys([*node.excluded_embed_metadata_keys, *keys])),
            "excluded_llm_metadata_keys": list(dict.fromkeys([*node.excluded_llm_metadata_keys, *keys])),
        }
    )
