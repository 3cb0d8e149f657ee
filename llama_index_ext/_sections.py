"""LlamaIndex nodes as sections that a store holds, whole or in a view."""

from __future__ import annotations

from llama_index.core.schema import BaseNode, NodeWithScore

from drillrank.hosts.sections import StoredSection, stored_section


def read_section(found: BaseNode | NodeWithScore) -> StoredSection:
    """What a node, or a hit, is."""
    node = found.node if isinstance(found, NodeWithScore) else found
    links = {"parent_id": node.parent_node, "previous_id": node.prev_node, "next_id": node.next_node}
    return stored_section(
        node,
        node.metadata,
        node.get_content(),
        id=node.node_id,
        document=node.ref_doc_id,
        around={name: link.node_id for name, link in links.items() if link is not None},
    )
