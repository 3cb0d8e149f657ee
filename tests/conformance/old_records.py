"""Sections as releases before the prefix stored them: bare keys, and views with a copy of their section."""

from __future__ import annotations

from typing import Any

from langchain_core.documents import Document
from llama_index.core.schema import BaseNode, IndexNode

from drillrank.hosts.keys import own, theirs
from tests.conformance import langchain_leaks, llama_index_leaks
from tests.conformance.leaks import OPEN


class OldDocuments(langchain_leaks.Sections):
    """Every view but the raw one has its section's text among the metadata."""

    def made(self, tenant: str, document: str, version: int) -> list[tuple[int | None, Document]]:
        made = super().made(tenant, document, version)
        texts = {piece.id: piece.page_content for _, piece in made}
        return [(place, piece.model_copy(update={"metadata": _bare(piece, texts)})) for place, piece in made]


def _bare(piece: Document, texts: dict[str | None, str]) -> dict[str, Any]:
    found = own(piece.metadata)
    names = ("section_path", "section_level", "section_id", "view", "source_id", "previous_id", "next_id", "parent_id")
    bare = {name: found[name] for name in names if name in found}
    copied = {} if found["view"] == "raw" else {"section_text": texts[found["section_id"]]}
    return {**theirs(piece.metadata), **bare, "start_index": found["start"], **copied}


class OldNodes(llama_index_leaks.Sections):
    """Every view but the raw one leads to a copy of its raw node, as open as that was."""

    def made(self, tenant: str, document: str, version: int) -> list[tuple[int | None, BaseNode]]:
        made = [
            (place, node.model_copy(update={"metadata": _old(node)}))
            for place, node in super().made(tenant, document, version)
        ]
        raw = {node.node_id: node for _, node in made if node.metadata["view"] == "raw"}
        return [(place, _leading(node, raw[node.metadata["section_id"]])) for place, node in made]


def _old(node: BaseNode) -> dict[str, Any]:
    found = own(node.metadata)
    names = ("section_path", "section_level", "section_id", "view")
    return {**theirs(node.metadata), **{name: found[name] for name in names}}


def _leading(node: BaseNode, raw: BaseNode) -> BaseNode:
    copied = raw.model_copy(update={"metadata": {**raw.metadata, "level": OPEN}})
    return node.model_copy(update={"obj": copied}) if isinstance(node, IndexNode) else node
