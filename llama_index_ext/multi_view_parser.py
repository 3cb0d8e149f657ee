"""MC-indexing as a LlamaIndex node parser: every section in three views."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from llama_index.core.bridge.pydantic import Field, field_serializer, field_validator
from llama_index.core.node_parser import NodeParser
from llama_index.core.schema import BaseNode, Document, IndexNode, NodeRelationship, TextNode
from llama_index.core.utils import get_tqdm_iterable

from drillrank import parse_document
from drillrank.errors import DrillrankWarning
from drillrank.structure import breadcrumb
from drillrank.views import VIEWS, SectionChunk, View, check_views, section_chunks

BOOKKEEPING = ("view", "section_id", "section_level")


class MultiViewNodeParser(NodeParser):
    r"""Cuts documents along their own sections and indexes each section as raw text, keywords and summary.

    The raw view is a `TextNode` whose text is the section, byte for byte. The other views are `IndexNode`s that lead
    to it, so that any plain retriever over all nodes returns each section once, with its best score. What is embedded
    is the text of the view alone. Metadata are the document's, and `section_path`, `section_level`, `section_id`,
    `view`. PREVIOUS and NEXT link raw nodes of one document, PARENT and CHILD its section tree.

    Args:
        views: Views to make; `raw` is always among them.
        separator: Between the headings of `section_path`.
        id_func: From a running number and the document to a node id. By default ids are UUIDs that depend on the
            document's id, the section and the view only.
        include_metadata: Whether nodes carry the document's metadata.
        include_prev_next_rel: Whether raw nodes are linked to their neighbours.

    Raises:
        ValidationError: unknown views, or `raw` not among them.

    >>> document = Document(text="# Foxes\n\nThey hunt.\n\n# Whales\n\nThey sing.\n")
    >>> nodes = MultiViewNodeParser(views=["raw", "keywords"]).get_nodes_from_documents([document])
    >>> [(node.metadata["section_path"], node.metadata["view"]) for node in nodes]
    [('Foxes', 'raw'), ('Foxes', 'keywords'), ('Whales', 'raw'), ('Whales', 'keywords')]
    """

    views: list[View] = Field(default_factory=lambda: list(VIEWS), description="Views to make.")
    separator: str = Field(default=" > ", description="Between the headings of section_path.")
    id_func: Callable[[int, BaseNode], str] | None = Field(  # type: ignore[assignment]  # the host's has no "none"
        default=None, description="From a running number and the document to a node id."
    )

    @field_validator("views")
    @classmethod
    def _check_views(cls, views: list[View]) -> list[View]:
        check_views(views)
        return views

    @field_validator("id_func", mode="before")
    @classmethod
    def _restore_id_func(cls, id_func: Any) -> Any:
        if isinstance(id_func, str):
            warnings.warn(
                f"The id_func {id_func!r} of a serialised MultiViewNodeParser cannot be restored: set it again.",
                DrillrankWarning,
                stacklevel=2,
            )
            return None
        return id_func

    @field_serializer("id_func")
    def _name_id_func(self, id_func: Callable[[int, BaseNode], str] | None) -> str | None:
        return None if id_func is None else getattr(id_func, "__qualname__", repr(id_func))

    @classmethod
    def from_defaults(cls, **fields: Any) -> MultiViewNodeParser:
        """The parser with the given fields; the host's usual way to build one."""
        return cls(**fields)

    @classmethod
    def class_name(cls) -> str:
        """Name used in serialisation."""
        return "MultiViewNodeParser"

    def _parse_nodes(self, nodes: Sequence[BaseNode], show_progress: bool = False, **kwargs: Any) -> list[BaseNode]:
        documents = get_tqdm_iterable(nodes, show_progress, "Parsing sections")
        return [node for document in documents for node in self._section_nodes(document)]

    async def _aparse_nodes(
        self, nodes: Sequence[BaseNode], show_progress: bool = False, **kwargs: Any
    ) -> list[BaseNode]:
        return await asyncio.to_thread(self._parse_nodes, nodes, show_progress, **kwargs)

    def _postprocess_parsed_nodes(self, nodes: list[BaseNode], parent_doc_map: dict[str, Document]) -> list[BaseNode]:
        """Nothing to do: the host would guess offsets with `find` and chain all views to each other."""
        return nodes

    def _section_nodes(self, document: BaseNode) -> list[BaseNode]:
        chunks = section_chunks(parse_document(document.get_content()), document.node_id, self.views)
        ids = {chunk.id: self.id_func(i, document) if self.id_func else chunk.id for i, chunk in enumerate(chunks)}
        source = document.source_node or document.as_related_node_info()
        raw: dict[str, TextNode] = {}
        nodes: list[BaseNode] = []
        for chunk in chunks:
            fields = self._fields(chunk, document, ids) | {"relationships": {NodeRelationship.SOURCE: source}}
            if chunk.view == "raw":
                nodes.append(raw.setdefault(chunk.id, TextNode(**fields)))
            else:
                nodes.append(IndexNode(**fields, index_id=ids[chunk.section_id], obj=raw[chunk.section_id]))
        self._relate([chunk for chunk in chunks if chunk.view == "raw"], raw)
        return nodes

    def _fields(self, chunk: SectionChunk, document: BaseNode, ids: dict[str, str]) -> dict[str, Any]:
        return {
            "id_": ids[chunk.id],
            "text": chunk.text,
            "start_char_idx": chunk.start,
            "end_char_idx": chunk.end,
            "metadata": {
                **(document.metadata if self.include_metadata else {}),
                "section_path": breadcrumb(chunk.path, self.separator),
                "section_level": chunk.level,
                "section_id": ids[chunk.section_id],
                "view": chunk.view,
            },
            "excluded_embed_metadata_keys": [
                *document.excluded_embed_metadata_keys,
                "section_path",
                *BOOKKEEPING,
            ],
            "excluded_llm_metadata_keys": [*document.excluded_llm_metadata_keys, *BOOKKEEPING],
            "metadata_seperator": document.metadata_separator,
            "metadata_template": document.metadata_template,
            "text_template": getattr(document, "text_template", TextNode.model_fields["text_template"].default),
        }

    def _relate(self, chunks: Sequence[SectionChunk], raw: dict[str, TextNode]) -> None:
        infos = {id_: node.as_related_node_info() for id_, node in raw.items()}
        children: dict[str, list[Any]] = {}
        for position, chunk in enumerate(chunks):
            relationships = raw[chunk.id].relationships
            if chunk.parent_id is not None:
                relationships[NodeRelationship.PARENT] = infos[chunk.parent_id]
                children.setdefault(chunk.parent_id, []).append(infos[chunk.id])
            if self.include_prev_next_rel and position > 0:
                relationships[NodeRelationship.PREVIOUS] = infos[chunks[position - 1].id]
            if self.include_prev_next_rel and position + 1 < len(chunks):
                relationships[NodeRelationship.NEXT] = infos[chunks[position + 1].id]
        for parent, below in children.items():
            raw[parent].relationships[NodeRelationship.CHILD] = below
